"""Long work as jobs: accepted on disk, followed, cancelled, forgotten in time, taken up again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from memantics.serve.inputs import JobRecord
from memantics.serve.jobs import LEASE, TRIES, JobStore
from memantics.serve.refusals import Refusal
from tests.commands import Shell
from tests.kinder import MODEL
from tests.serve.site import MEME, Clock, Site

pytestmark = pytest.mark.slow

PLANNED = {"target": "relaxed", "model": MODEL}
FILE = {"image": ("meme.png", MEME.read_bytes(), "image/png")}


def test_a_reappraisal_is_a_job_that_can_be_followed_and_forgotten(site: Site) -> None:
    with site.client() as client:
        sent = client.post("/v1/reappraise", files=FILE, data=PLANNED)
        assert sent.status_code == 202
        location = sent.headers["location"]
        assert sent.json()["status"] == "queued"
        with client.stream("GET", f"{location}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = [line for line in stream.iter_lines() if line]
        events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
        assert events[0] == "progress"
        assert events[-1] == "done"
        last = JobRecord.model_validate_json(lines[-1].removeprefix("data: "))
        assert last.reappraisal is not None
        assert last.reappraisal.status == "done"
        assert last.reappraisal.image is not None
        assert last.reappraisal.image.startswith("data:image/png;base64,")
        assert last.expires is not None
        assert last.ended is not None
        assert (last.expires - last.ended).total_seconds() == pytest.approx(24 * 3600)
        # Nothing but the result is kept.
        folder = site.service.jobs.place(last.id)
        while folder.exists():  # it goes right after the result is there
            time.sleep(0.01)
        assert client.get(location).json()["id"] == last.id
        assert client.delete(location).status_code == 204
        assert client.get(location).status_code == 404
        assert client.delete(location).status_code == 404


def test_versions_of_a_meme_come_with_their_contact_sheet(site: Site) -> None:
    with site.client() as client:
        sent = client.post(
            "/v1/reappraise",
            files=FILE,
            data={**PLANNED, "versions": "2"},
        )
        job = site.ended(sent.headers["location"])
        wrong = client.post("/v1/reappraise", files=FILE, data={"versions": "9"})
        assert wrong.status_code in (400, 422)
    made = JobRecord.model_validate(job).reappraisal
    assert len(made.versions) == len(made.images) >= 2
    assert made.sheet.startswith("data:image/png;base64,")
    assert "Versions of meme" in made.page
    assert made.image == made.images[0]


def test_an_analysis_with_a_model_is_a_job_and_without_one_an_answer(site: Site) -> None:
    with site.client() as client:
        at_once = client.post("/v1/analyze", files=FILE)
        assert at_once.status_code == 200
        assert at_once.json()["text"] == "最近有点键忘"
        sent = client.post("/v1/analyze", files=FILE, data={"with_model": "true"})
        assert sent.status_code == 202
        unknown = client.post("/v1/analyze", files=FILE, data={"model": "openai/other"})
        assert unknown.status_code == 404
    job = JobRecord.model_validate(site.ended(sent.headers["location"]))
    assert job.status == "done"
    assert job.analysis is not None
    assert job.analysis.model == "fake/builder"
    assert job.analysis.knowledge is not None
    assert (job.done, job.total) == (job.total, job.done)


def test_jobs_belong_to_the_token_that_sent_them_and_are_bounded(guarded: Site) -> None:
    store = guarded.service.jobs
    with guarded.client("shop-secret") as client:
        assert client.post("/v1/analyze", files=FILE, data={"with_model": "1"}).status_code == 422
        sent = client.post("/v1/reappraise", files=FILE)
        assert sent.status_code == 202
        location = sent.headers["location"]
        # One unfinished job is all that this service takes.
        assert client.post("/v1/reappraise", files=FILE).status_code == 429
        assert client.get(location).status_code == 200
    other = store.get(sent.json()["id"])
    assert other is not None
    assert other.owner == "shop"
    with guarded.client("mod-secret") as client:
        assert client.get(location).status_code == 403
    with guarded.client("shop-secret") as client:
        assert client.delete(location).status_code == 204  # while it waits or runs
        assert client.get(location).json()["status"] == "cancelled"


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[JobStore]:
    made = JobStore(tmp_path / "state", keep=60, most=2, clock=clock)
    yield made
    made.close()


def test_a_job_whose_process_died_is_taken_up_when_its_lease_is_over(
    store: JobStore, clock: Clock
) -> None:
    job = store.add("analyze", "a", {}, b"image")
    for tried in range(1, TRIES + 1):
        claimed = store.claim()
        assert claimed is not None
        assert (claimed.id, claimed.tries) == (job.id, tried)
        clock.now += LEASE
        assert store.claim() is None  # the lease is not over yet
        clock.now += 0.001
    assert store.claim() is None
    failed = store.get(job.id)
    assert failed is not None
    assert failed.status == "failed"
    assert "3 times" in failed.reason


def test_a_held_job_is_nobody_elses_and_a_cancelled_one_is_noticed(
    store: JobStore, clock: Clock
) -> None:
    job = store.add("analyze", "a", {}, b"image")
    store.claim()
    clock.now += LEASE - 1
    assert store.hold(job.id, 3, 10)
    clock.now += LEASE - 1
    assert store.claim() is None
    found = store.get(job.id)
    assert found is not None
    assert (found.done, found.total) == (3, 10)
    store.drop(job.id)
    assert not store.hold(job.id, 4, 10)
    store.finish(job.id, "done", {"late": True})  # what was cancelled stays cancelled
    found = store.get(job.id)
    assert found is not None
    assert (found.status, found.result) == ("cancelled", None)


def test_results_are_kept_for_their_time_and_no_longer(store: JobStore, clock: Clock) -> None:
    job = store.add("analyze", "a", {}, b"image")
    store.claim()
    store.finish(job.id, "done", {"x": 1})
    clock.now += 60
    store.purge()
    assert store.get(job.id) is not None
    clock.now += 0.001
    store.purge()
    assert store.get(job.id) is None


def test_a_stop_gives_jobs_back_and_a_start_takes_them_up(store: JobStore) -> None:
    one, two = store.add("analyze", "a", {}, b"1"), store.add("analyze", "a", {}, b"2")
    with pytest.raises(Refusal):
        store.add("analyze", "a", {}, b"3")
    assert len(list((store.folder / "jobs").iterdir())) == 2
    for _ in range(2):
        assert store.claim() is not None
    store.give_back(one.id)
    again = store.claim()
    assert again is not None
    assert (again.id, again.tries) == (one.id, 1)  # an orderly stop is no failed try
    assert store.recover() == 2
    assert store.count() == {"queued": 2}
    assert two.status == "queued"
    (store.folder / "jobs" / "left-behind").mkdir()
    store.recover()
    assert len(list((store.folder / "jobs").iterdir())) == 2


@contextmanager
def command(shell: Shell, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``memantics serve`` in a process of its own."""
    with (shell.folder / "log").open("a") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "memantics",
                "serve",
                "--port",
                "0",
                "--state",
                "state",
                "--deadline",
                "300",
                *more,
            ],
            cwd=shell.folder,
            env=shell.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("Serving on "), (shell.folder / "log").read_text()
            yield process, line.removeprefix("Serving on ").strip()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]


def test_after_kill_9_every_accepted_job_ends(shell: Shell) -> None:
    with (
        command(shell) as (process, address),
        httpx.Client(base_url=address, timeout=300) as client,
    ):
        sent = [client.post("/v1/reappraise", files=FILE) for _ in range(2)]
        places = [answer.headers["location"] for answer in sent]
        said = shell.apart.refused("serve", "--port", "0", "--state", "state")
        assert "another service uses the job folder" in said
        while client.get(places[0]).json()["status"] == "queued":
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    # Two processes share what is left.
    with (
        command(shell, "--workers", "2") as (process, address),
        httpx.Client(base_url=address, timeout=300) as client,
    ):
        ends = [wait_for(client, place) for place in places]
        assert [job["status"] for job in ends] == ["done"] * 2
        # A stop finishes the request in hand: the service has asked for its body when it is told.
        asked = client.build_request(
            "POST", "/v1/analyze", files=FILE, headers={"expect": "100-continue"}
        )
        body = asked.read()
        head = "".join(f"{name}: {value}\r\n" for name, value in asked.headers.items())
        with socket.create_connection((asked.url.host, asked.url.port or 0)) as line:
            line.settimeout(300)
            line.sendall(f"POST /v1/analyze HTTP/1.1\r\n{head}\r\n".encode())
            assert line.recv(1000).startswith(b"HTTP/1.1 100 ")
            process.send_signal(signal.SIGTERM)
            line.sendall(body)
            assert line.recv(1000).startswith(b"HTTP/1.1 200 ")
            while line.recv(65536):  # until the service hangs up
                pass
        process.wait(60)
    log = [json.loads(line) for line in (shell.folder / "log").read_text().splitlines()]
    assert log[-1]["event"] in ("stopped", "signal")
    assert not [line for line in log if line["level"] == "error"]


def wait_for(client: httpx.Client, place: str) -> dict[str, object]:
    for _ in range(3000):
        job: dict[str, object] = client.get(place).json()
        if job["status"] in ("done", "failed"):
            return job
        time.sleep(0.1)
    raise AssertionError(job)
