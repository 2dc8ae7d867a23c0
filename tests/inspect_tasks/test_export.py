"""Runs written as Inspect logs, read back by Inspect and opened in its viewer."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.core.errors import MissingExtra, StoreError
from memantics.core.records import NO_REPLY, Answer, Message, Reply
from memantics.core.rundir import RunWriter, Scores, read_scores, write_scores
from memantics.evaluation.inspect_logs import name_metrics, write_log
from memantics.evaluation.reports.runs import load_runs
from tests.browser import launch, watch
from tests.commands import Shell
from tests.report.samples import make_facts, make_questions

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed (extra inspect)")

from inspect_ai.log import EvalLog, read_eval_log

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with each status, one item asked twice, one image that is none and one gone."""
    items = make_questions(tmp_path / "images", 5)
    answers = [
        Answer(items[0].id, 0, "unparsed", Reply("hm"), reason="no option letter found"),
        Answer(items[0].id, 1, "answered", Reply("A", tokens_in=5, tokens_out=1), "A"),
        Answer(items[1].id, 0, "answered", Reply("<b>B", "so", finish="length"), "B"),
        Answer(items[2].id, 0, "refused", NO_REPLY, reason="declined"),
        Answer(items[3].id, 0, "failed", NO_REPLY, reason="no connection"),
        Answer(items[4].id, 0, "unparsed", Reply("?"), reason="no option letter found"),
    ]
    place = tmp_path / "run"
    with RunWriter(place, make_facts("mquest/qa", "openai/x", fingerprint="../../f00")) as writer:
        for item in items:
            writer.add_item(item, (Message("user", (*item.images, item.form.question)),))
        for answer in answers:
            writer.add_answer(answer)
    counts = {"answered": 2, "refused": 1, "unparsed": 1, "failed": 1}
    write_scores(place, Scores("accuracy", counts, ()))
    items[3].images[0].path.write_bytes(b"<svg onload=alert(1)>")
    items[4].images[0].path.unlink()
    return place


def export(folder: Path, out: Path, *, images: bool = True) -> EvalLog:
    (run,) = load_runs([folder])
    path = write_log(run, out, {}, [folder.parent.resolve()] if images else None)
    assert path.parent == out
    return read_eval_log(str(path), resolve_attachments=True)


def test_every_status_arrives(folder: Path, tmp_path: Path) -> None:
    log = export(folder, tmp_path / "logs")
    assert (log.status, log.eval.task, log.eval.model) == (
        "success",
        "memantics/mquest_qa",
        "openai/x",
    )
    assert log.samples is not None
    twice, cut, refused, failed, unparsed = log.samples
    assert [s.scores and s.scores["memantics"].value for s in log.samples] == [
        "C" if twice.target == "A" else "I",
        "C" if cut.target == "B" else "I",
        "N",
        None,
        "N",
    ]
    assert [attempt["reply"]["text"] for attempt in twice.metadata["attempts"]] == ["hm", "A"]
    assert twice.output.usage is not None
    assert twice.output.usage.total_tokens == 6
    assert cut.output.stop_reason == "max_tokens"
    assert cut.output.completion == "<b>B"
    assert refused.output.stop_reason == "content_filter"
    assert failed.error is not None
    assert failed.error.message == "no connection"
    assert unparsed.scores is not None
    assert unparsed.scores["memantics"].explanation == "no option letter found"


def test_images_are_in_the_log_byte_by_byte_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    log = export(folder, tmp_path / "logs")
    assert log.samples is not None
    content = log.samples[0].input[0].content  # type: ignore[union-attr]
    assert not isinstance(content, str)
    head, _, body = content[0].image.partition(",")  # type: ignore[union-attr]
    assert head == "data:image/png;base64"
    item = log.samples[0].metadata["item"]
    assert base64.b64decode(body) == Path(item["images"][0]["path"]).read_bytes()
    assert "not one of PNG" in log.samples[3].input[0].text  # type: ignore[union-attr]
    assert "missing" in log.samples[4].input[0].text  # type: ignore[union-attr]
    plain = export(folder, tmp_path / "plain", images=False)
    assert plain.samples is not None
    assert plain.samples[0].input[0].text.startswith("[image meme-000.png]")  # type: ignore[union-attr]


def test_an_unfinished_or_damaged_run(folder: Path, tmp_path: Path) -> None:
    (run,) = load_runs([folder])
    path = write_log(replace(run, facts=replace(run.facts, finished="")), tmp_path / "logs", {})
    assert read_eval_log(str(path), header_only=True).status == "cancelled"
    broken = replace(run, facts=replace(run.facts, started="yesterday"))
    with pytest.raises(StoreError, match="cannot be written as a log"):
        write_log(broken, tmp_path / "logs", {})
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="choose another --out"):
        write_log(run, tmp_path / "file", {})


def test_absent_package_names_the_extra(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    (run,) = load_runs([folder])
    with pytest.raises(MissingExtra, match="Inspect logs need an optional package"):
        write_log(run, tmp_path, {})


@pytest.mark.slow
def test_the_command_exports_real_runs(shell: Shell) -> None:
    arguments = ["run", "mquest", "memeintent/intent", "--data", "sample", "--limit", "4"]
    assert shell.run(*arguments, "--model", "baseline/longest").code == 0
    runs = sorted((shell.folder / "runs").iterdir())
    ran = shell.run("export-inspect", *runs, "--out", "logs", "--json")
    assert ran.code == 0, ran.err
    paths = json.loads(ran.out)
    assert len(paths) == 2
    for run, path in zip(load_runs(runs), paths, strict=True):
        log = read_eval_log(str(shell.folder / path))
        assert log.results is not None
        found = {n: m.value for n, m in log.results.scores[0].metrics.items()}
        expected = name_metrics(read_scores(run.folder).scores, run.results.main)
        assert {name: found[name] for name in expected} == expected
        assert log.samples is not None
        assert len(log.samples) == 4
        kinds = {type(s.scores["memantics"].value) for s in log.samples if s.scores}
        assert kinds == ({str} if run.task == "mquest/qa" else {float})
    said = shell.run("export-inspect", runs[0], "--out", "logs")
    assert "inspect view --log-dir logs" in said.out
    assert "is not a run directory" in shell.refused("export-inspect", shell.folder / "nothing")


@contextmanager
def view(folder: Path) -> Iterator[str]:
    """Inspect's own viewer on a folder of logs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("inspect")), "view", "start"]
    command += ["--log-dir", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(address).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()


@pytest.mark.slow
def test_the_viewer_shows_samples_and_their_images(folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "logs")
    with view(tmp_path / "logs") as address, launch() as browser, watch(browser) as watched:
        page = watched.page
        page.goto(address)
        page.get_by_text("mquest").first.click()
        page.get_by_text("q001").first.click()
        page.get_by_role("tab", name="Messages").click()
        page.locator("img").first.wait_for()
        assert "<b>B" in page.inner_text("body")
