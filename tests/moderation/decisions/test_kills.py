"""Commands on decisions under ``kill -9``: nothing accepted is lost, nothing is there twice.

Each command is killed at every step, each on a log of its own, and at random moments, again and
again on the same log. Then the same command is run again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
import sqlalchemy as sa

from memantics.core.errors import InputError
from memantics.core.queue import AggregatedAnnotation, IndividualAnnotation, write_annotations
from memantics.moderation.decisions import cases
from memantics.moderation.decisions.log import DecisionLog, LogLine
from memantics.moderation.decisions.reviews import record_reviews
from memantics.moderation.decisions.verification import find_faults
from memantics.moderation.decisions.webhooks import VARIABLE, list_events
from tests import forks
from tests.annotation.postgres import start_postgres, why_not
from tests.commands import Shell
from tests.kills import choose_points, run_counted
from tests.moderation.policies.scripted import POLICIES
from tests.serve.test_jobs import command

POLICY = str(POLICIES / "forum.md")
HOOK = "http://127.0.0.1:9/hook"
SECRET = "a secret of the tests"
_ALL = 1 << 30
Prepare = Callable[[Shell, str], list[str]]
Check = Callable[[Shell, str], None]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Callable[[], str]]:
    if problem := why_not():
        pytest.skip(problem)
    with start_postgres() as server:
        yield server.make_database


@dataclass
class Desk:
    """Makes terminals with a log each, on one kind of database."""

    folder: Path
    make: Callable[[], str] | None
    points: int
    made: int = field(default=0)

    def open(self) -> tuple[Shell, str]:
        """Return a terminal in a new folder, and the URL of a log that does not exist yet."""
        self.made += 1
        shell = Shell(self.folder / f"desk-{self.made}")
        shell.folder.mkdir()
        url = self.make() if self.make is not None else str(shell.folder / "log.db")
        return shell, url

    def kill_at_each_step(self, prepare: Prepare, check: Check) -> None:
        """Kill a command at each step (or at some of them), each on a new log; then repeat it."""
        shell, url = self.open()
        words, counter = prepare(shell, url), self.folder / "count"
        assert run_counted(shell, words, _ALL, counter).code == 0
        total = int(counter.read_text())
        assert total > 5
        check(shell, url)
        for point in choose_points(total, self.points):
            shell, url = self.open()
            words = prepare(shell, url)
            before = assert_sound(url, [])
            done = run_counted(shell, words, point, self.folder / "unused")
            assert done.code == -signal.SIGKILL, (point, done)
            assert_sound(url, before)
            again = run_counted(shell, words, _ALL, counter)
            assert again.code == 0, (point, again)
            check(shell, url)


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)],
)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """A few points on SQLite in the first tier; more on PostgreSQL in the second."""
    if request.param == "sqlite":
        return Desk(tmp_path, None, 4)
    return Desk(tmp_path, request.getfixturevalue("postgres"), 8)


def assert_sound(url: str, before: list[LogLine]) -> list[LogLine]:
    """Check that a log has no fault, and that no line of before was lost; return its lines.

    Lines are lost only if a line of kind ``retention`` says so.
    """
    try:
        log = DecisionLog(url, create=False)
    except InputError:  # no command has created it
        assert before == []
        return []
    with log:
        assert list(find_faults(log)) == []
        lines = list(log.walk())
    if not any(line.kind == "retention" for line in lines):
        assert lines[: len(before)] == before
    return lines


def write_reviews(path: Path, count: int) -> None:
    """Annotations of a policy review: some are unsure, and one is a gold item."""
    rows = []
    for number in range(count + 2):
        text = f"the old turnip {number}"
        said = "unsure" if number == count else "yes"
        hidden = {"id": f"p{number}", "text": text, "language": "en"}
        hidden |= {"gold": "1"} if number == count + 1 else {}
        rows.append(make_annotation(f"p{number}", said, "reviewer-1", hidden))
    write_annotations(path, rows)


def make_annotation(
    item: str, said: str, annotator: str, hidden: dict[str, str]
) -> AggregatedAnnotation:
    values = {"harmful": said} | ({"clause": "1"} if said == "yes" else {})
    one = IndividualAnnotation(
        annotator=annotator, stage="review", values=dict(values), roles=["reviewer"]
    )
    return AggregatedAnnotation(
        item=item, group=item, workflow="review-policy", kept=said != "unsure",
        values=dict(values), annotations=[one], hidden=dict(hidden),
    )  # fmt: skip


def prepare_record(shell: Shell, url: str, *, count: int = 4) -> list[str]:
    write_reviews(shell.folder / "a.jsonl", count)
    words = ["decisions", "record", "a.jsonl", "--policy", POLICY, "--db", url]
    return [*words, "--webhook", HOOK, "--keep-texts", "30"]


def check_record(shell: Shell, url: str, *, count: int = 4) -> None:
    """Each post was decided once, with its text and one webhook; repeating records nothing."""
    expected = [f"p{number}" for number in range(count)]
    with DecisionLog(url) as log:
        found = cases.list_cases(log)
        assert sorted(one.decision.content_id for one in found) == sorted(expected)
        ids = sorted(one.decision.id for one in found)
        told = sorted(json.loads(one.body)["decision"] for one in list_events(log))
        assert told == ids
        assert all(str(log.read_content(name)).startswith("the old turnip") for name in ids)
        assert count_contents(log) == count
    words = ("decisions", "record", "a.jsonl", "--policy", POLICY, "--db", url)
    assert f"recorded: 0; skipped: {count + 1}" in shell.done(*words)
    assert "0 faults" in shell.done("decisions", "verify", "--db", url)


def count_contents(log: DecisionLog) -> int:
    query = sa.select(sa.func.count()).select_from(log.tables["decision_contents"])
    with log.read() as connection:
        return int(connection.execute(query).scalar_one())


@pytest.mark.slow
def test_record_killed_at_each_step(desk: Desk) -> None:
    desk.kill_at_each_step(prepare_record, check_record)


def fill(shell: Shell, url: str, count: int, keep_days: float | None = None) -> list[str]:
    """Record decisions with an appeal each; return their ids."""
    write_reviews(shell.folder / "a.jsonl", count)
    made = record_reviews(shell.folder / "a.jsonl", url, policy=Path(POLICY), keep_texts=keep_days)
    with DecisionLog(url) as log:
        for one in made.decisions:
            cases.record_appeal(log, one.id, statement="It is art.", keep_days=keep_days)
    return [one.id for one in made.decisions]


def prepare_resolve(shell: Shell, url: str, *, count: int = 3) -> list[str]:
    """Every third appeal is upheld; the others are overturned."""
    rows = [
        make_annotation(name, "no" if n % 3 else "yes", "reviewer-2", {
            "decision": name, "text": f"the old turnip {n}", "id": f"p{n}",
        })
        for n, name in enumerate(fill(shell, url, count))
    ]  # fmt: skip
    write_annotations(shell.folder / "appeals.jsonl", rows)
    words = ["decisions", "resolve", "appeals.jsonl", "--policy", POLICY, "--db", url]
    more = ["--webhook", HOOK, "--labels", "labels.jsonl", "--next-policy", "next.md"]
    return words + more


def check_resolve(shell: Shell, url: str, *, count: int = 3) -> None:
    """Each appeal has one outcome; labels and the next policy have all overturned cases."""
    overturned = [n for n in range(count) if n % 3]
    with DecisionLog(url) as log:
        kinds = Counter(line.kind for line in log.walk())
        found = cases.list_cases(log)
        events = [json.loads(one.body)["decision"] for one in list_events(log)]
    assert kinds == {
        "decided": count, "appealed": count,
        "overturned": len(overturned), "upheld": count - len(overturned),
    }  # fmt: skip
    right = [one.decision.id for one in found if one.state == "overturned"]
    assert sorted(events) == sorted(right)
    labels = (shell.folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(one)["item"] for one in labels] == right
    grown = (shell.folder / "next.md").read_text(encoding="utf-8")
    assert "version: 2" in grown
    assert [n for n in range(count) if f"text: the old turnip {n}\n" in grown] == overturned
    assert "0 faults" in shell.done("decisions", "verify", "--db", url)


@pytest.mark.slow
def test_resolve_killed_at_each_step(desk: Desk) -> None:
    desk.kill_at_each_step(prepare_resolve, check_resolve)


def prepare_retain(shell: Shell, url: str) -> list[str]:
    """Old decisions whose texts and lines are due, and new ones."""
    old, new = shell.folder / "old.jsonl", shell.folder / "new.jsonl"
    write_reviews(old, 3)
    write_reviews(new, 5)
    past = time.time() - 40 * 86_400
    with DecisionLog(url, clock=lambda: past) as log:
        for number in range(3):
            text = f"the old turnip {number}"
            one = cases.Decision(
                content_sha256=cases.hash_content(text), content_id=f"p{number}",
                verdict="violates", band="block", clause="1", reviewer="reviewer-1",
            )  # fmt: skip
            cases.record_decision(log, one, text=text, keep_days=1)
    record_reviews(new, url, policy=Path(POLICY), keep_texts=30)
    return ["decisions", "retain", "--keep-lines", "20", "--db", url]


def check_retain(shell: Shell, url: str) -> None:
    """The old lines and texts are gone, the new ones are complete."""
    with DecisionLog(url) as log:
        found = cases.list_cases(log)
        assert sorted(one.decision.content_id for one in found) == [f"p{n}" for n in range(5)]
        assert all(log.read_content(one.decision.id) for one in found)
        assert count_contents(log) == 5
        assert next(iter(log.walk())).seq == 4
    assert "0 faults" in shell.done("decisions", "verify", "--db", url)


def test_retain_killed_at_each_step(desk: Desk) -> None:
    desk.kill_at_each_step(prepare_retain, check_retain)


@pytest.mark.slow
def test_appeal_killed_at_each_step(desk: Desk) -> None:
    """The appeal is there once: its id is printed, or repeating says that it exists."""
    counter = desk.folder / "count"
    for point in (*range(0, 40, max(1, 40 // desk.points)), _ALL):
        shell, url = desk.open()
        write_reviews(shell.folder / "a.jsonl", 1)
        made = record_reviews(shell.folder / "a.jsonl", url, policy=Path(POLICY))
        name = made.decisions[0].id
        words = ["decisions", "appeal", name, "--statement", "It is art.", "--db", url]
        first = run_counted(shell, words, point, counter)
        assert_sound(url, [])
        again = run_counted(shell, words, _ALL, counter)
        if again.code:
            assert "has been appealed already" in again.err
        with DecisionLog(url) as log:
            (line,) = (one for one in log.walk() if one.kind == "appealed")
            told = [done.out.strip() for done in (first, again) if done.code == 0]
            assert told in ([], [line.body["appeal"]])
            assert log.read_content(str(line.body["appeal"])) == "It is art."
    assert told  # the last one was not killed


class Receiver(HTTPServer):
    """Takes webhooks and notes their ids and bodies."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.got: list[tuple[str, bytes]] = []


class _Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Take one webhook."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.headers["Memantics-Delivery"], body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.slow
def test_deliver_killed_at_each_step(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed round may repeat one event under its id; it loses none and changes none."""
    monkeypatch.setenv(VARIABLE, SECRET)
    with Receiver() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url_of_hook = f"http://127.0.0.1:{server.server_address[1]}/hook"
        shell, url = desk.open()
        words = ["decisions", "deliver", "--db", url]
        counter, batch = desk.folder / "count", 0
        for point in (_ALL, *range(0, 60, max(1, 60 // desk.points))):
            batch += 1
            write_reviews(shell.folder / "a.jsonl", 3 * batch)
            record_reviews(
                shell.folder / "a.jsonl", url, policy=Path(POLICY), webhooks=[url_of_hook]
            )
            run_counted(shell, words, point, counter)
            assert_sound(url, [])
            make_due(url)
            again = run_counted(shell, words, _ALL, counter)
            assert "waiting: 0; dead: 0" in again.out, again
        with DecisionLog(url) as log:
            events = list_events(log)
        server.shutdown()
    assert {one.state for one in events} == {"delivered"}
    assert len(events) == 3 * batch
    assert set(server.got) == {(str(one.id), one.body.encode()) for one in events}
    repeated = Counter(name for name, _ in server.got)
    assert len(server.got) <= len(events) + batch - 1
    assert max(repeated.values()) <= 2


def make_due(url: str) -> None:
    """Let the time pass after which the event of a killed worker is due again."""
    with DecisionLog(url) as log, log.write() as connection:
        table = log.tables["decision_deliveries"]
        waiting = sa.update(table).where(table.c.state == "waiting")
        connection.execute(waiting.values(next_at=0.0))


def kill_at_random(
    shell: Shell, words: list[str], url: str, rng: random.Random, longest: float
) -> int:
    """Repeat a command that is killed at random moments until it ends; return the kills.

    The first moments are early, so that a command is killed on a fast machine, too.
    """
    kills, before = 0, list[LogLine]()
    while True:
        variables = shell.environment
        place = forks.Place(shell.folder, variables)
        process = forks.start(partial(forks.be_command, words), place)
        process.join(rng.uniform(0.0, longest * (kills + 1) / 12) if kills < 12 else 300)
        if process.exitcode is None:
            process.kill()
            process.join()
        code = process.exitcode
        process.close()
        before = assert_sound(url, before)
        if code != -signal.SIGKILL:
            assert code == 0
            return kills
        kills += 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_batches_killed_at_random_moments_resume(desk: Desk, seed: int) -> None:
    rng = random.Random(seed)
    shell, url = desk.open()
    words = prepare_record(shell, url, count=60)
    kills = kill_at_random(shell, words, url, rng, 1.0)
    check_record(shell, url, count=60)
    shell, url = desk.open()
    words = prepare_resolve(shell, url, count=60)
    kills += kill_at_random(shell, words, url, rng, 1.0)
    check_resolve(shell, url, count=60)
    assert kills >= 2


@pytest.mark.slow
def test_two_commands_at_once_record_each_post_once(desk: Desk) -> None:
    shell, url = desk.open()
    words = prepare_record(shell, url, count=40)
    DecisionLog(url).close()
    place = forks.Place(shell.folder, shell.environment)
    processes = [forks.start(partial(forks.be_command, words), place) for _ in range(3)]
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    check_record(shell, url, count=40)


@pytest.mark.slow
def test_a_killed_service_keeps_what_it_answered(desk: Desk) -> None:
    """Every decision and appeal with an answer is in the log once."""
    shell, url = desk.open()
    rng = random.Random(4)
    decided: list[str] = []
    appealed: list[str] = []
    for _ in range(2):
        with command(shell, "--decisions", url) as (process, address):
            workers = [
                Thread(target=post_until_it_dies, args=(address, decided, appealed))
                for _ in range(2)
            ]
            for worker in workers:
                worker.start()
            before = len(decided)
            while len(decided) < before + 5:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.5))
            os.killpg(process.pid, signal.SIGKILL)
            for worker in workers:
                worker.join(60)
        lines = assert_sound(url, [])
        stored = Counter((line.kind, line.case) for line in lines)
        assert max(stored.values()) == 1
        assert {("decided", name) for name in decided} <= stored.keys()
        assert {("appealed", name) for name in appealed} <= stored.keys()
    assert len(decided) >= 10
    assert len(appealed) >= 4


def post_until_it_dies(address: str, decided: list[str], appealed: list[str]) -> None:
    number = 0
    with httpx.Client(base_url=address, timeout=30) as client:
        while True:
            number += 1
            given = {"verdict": "allowed"}
            try:
                made = client.post("/v1/decisions", json={"text": f"{number}", "decision": given})
                assert made.status_code == 201, made.text
                decided.append(made.json()["id"])
                one = client.post("/v1/appeals", json={"decision": decided[-1]})
                assert one.status_code == 201, one.text
                appealed.append(one.json()["decision"])
            except httpx.TransportError:
                return
