"""``python -m perf.annotate [--seconds N] [--json]``: throughput, and no lost answer.

Fifty simulated annotators post answers as fast as they can to one process on SQLite. The bare
endpoint that it is measured against is of the same framework and does one insert, through the
same driver with the same durability. Both run in turns on the same machine. In the middle our
server is killed (``kill -9``) and started again. Every answer that was acknowledged must be there,
once. An annotator takes an item (one request), then posts its answer (another): a rate of answers
is that of both together, against one request and one insert of the bare endpoint.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import quantiles

import aiohttp
import orjson
import sqlalchemy as sa

from perf.annotate_server import PEOPLE, SECRET

ROOT = Path(__file__).resolve().parent.parent
TURNS = 4
SHARE = 1 / 3
ITEMS_PER_SECOND = 1200
PROJECT = 1
WORKFLOW = """
name = "load"
title = { en = "Load" }
[settings]
daily_limit = 0
weekly_limit = 0
[[fields]]
id = "harmful"
kind = "choice"
label = { en = "Harmful?" }
options = [
  { value = "no", key = "n", label = { en = "No" } },
  { value = "yes", key = "y", label = { en = "Yes" } },
]
[[fields]]
id = "why"
kind = "text"
label = { en = "Why?" }
[[stages]]
id = "label"
kind = "independent"
annotators = 3
title = { en = "Label" }
fields = ["harmful", "why"]
[[aggregate]]
fields = ["harmful"]
rule = "majority"
stage = "label"
"""


@dataclass(slots=True)
class Person:
    """One simulated annotator, with what was acknowledged to them."""

    cookie: str
    token: str
    acknowledged: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class Load:
    """The measurements of one kind of server over all rounds."""

    seconds: float = 0.0
    cpu: float = 0.0
    posts: list[float] = field(default_factory=list)
    rounds: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def p99(self) -> float:
        """The slowest hundredth, in milliseconds."""
        return quantiles(self.posts, n=100)[98] * 1000 if len(self.posts) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """All measurements."""

    answers: int
    ours_per_second: float
    bare_per_second: float
    ratio: float
    ours_p99_ms: float
    bare_p99_ms: float
    ours_cpu_ms: float
    bare_cpu_ms: float
    errors: dict[str, int]
    lost: int
    double: int
    unexplained: int
    kept: bool


def prepare(folder: Path, seconds: int) -> list[Person]:
    """Return a database with a project, items for everybody, and fifty people who are logged in."""
    from argon2 import PasswordHasher

    from memantics.annotation.service import open_service
    from memantics.annotation.web.settings import make_form_token
    from memantics.core.queue import QueueCard, QueueItem, write_queue

    flow = folder / "load.toml"
    flow.write_text(WORKFLOW)
    write_queue(
        folder / "queue",
        QueueCard(title="Load", workflow="load"),
        (
            QueueItem(id=f"meme-{n}", group=f"meme-{n}")
            for n in range(max(2_000, seconds * ITEMS_PER_SECOND // 3))
        ),
    )
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    service = open_service(str(folder / "load.db"), folder / "media", hasher=cheap)
    lead = service.accounts.create_first("lead", secrets.token_urlsafe())
    project = service.projects.create(lead, "Load", flow)
    assert project.id == PROJECT
    service.exchange.import_queue(lead, project.id, folder / "queue")
    people = []
    for number in range(PEOPLE):
        actor = service.accounts.create(lead, f"person-{number}", "a long password")
        service.projects.add_member(lead, project.id, actor.name, ["annotator"])
        service.projects.consent(actor, project.id)
        session = service.accounts.enter(service.accounts.login_link(actor)).token
        people.append(Person(session, make_form_token(SECRET, session)))
    service.close()
    return people


@contextmanager
def serving(kind: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Yield a server in its own process; its address."""
    command = [sys.executable, "-m", "perf.annotate_server", kind, str(folder)]
    with (folder / f"{kind}.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log)
    assert process.stdout is not None
    port = int(process.stdout.readline())
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()


def cpu_of(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds that a process used so far; 0 where the system does not tell."""
    try:
        text = Path(f"/proc/{process.pid}/stat").read_text()
    except OSError:
        return 0.0
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def annotate(session: aiohttp.ClientSession, person: Person, load: Load, end: float) -> None:
    """Take an item, answer it, again and again."""
    cookies = {"cookie": f"memantics={person.cookie}"}
    while time.monotonic() < end:
        try:
            async with session.get(
                f"/p/{PROJECT}/next", headers=cookies, allow_redirects=False
            ) as taken:
                place = taken.headers.get("location", "")
                if taken.status != 303 or not (found := re.match(r"/work/(\d+)", place)):
                    load.errors[f"next {taken.status}"] += 1
                    continue
            said = secrets.token_hex(8)
            form = {
                "token": person.token,
                "version": "0",
                "project": str(PROJECT),
                "opened": str(int(time.time())),
                "k-harmful": "choice",
                "f-harmful": "no",
                "k-why": "text",
                "f-why": said,
            }
            began = time.monotonic()
            async with session.post(
                f"/work/{found[1]}", data=form, headers=cookies, allow_redirects=False
            ) as saved:
                await saved.read()
                if saved.status == 303:
                    load.posts.append(time.monotonic() - began)
                    person.acknowledged.append((int(found[1]), said))
                else:
                    load.errors[f"save {saved.status}"] += 1
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            load.errors[type(error).__name__] += 1
            return


async def insert(session: aiohttp.ClientSession, load: Load, end: float) -> None:
    """Post rows to the bare endpoint."""
    while time.monotonic() < end:
        row = {"item": 1, "value": secrets.token_hex(8)}
        began = time.monotonic()
        async with session.post("/insert", json=row) as saved:
            await saved.read()
            if saved.status == 200:
                load.posts.append(time.monotonic() - began)
            else:
                load.errors[f"insert {saved.status}"] += 1


async def press(url: str, people: list[Person] | None, load: Load, seconds: float) -> None:
    """Let fifty people work for a while."""
    began = time.monotonic()
    end = began + seconds
    before = len(load.posts)
    connector = aiohttp.TCPConnector(limit=PEOPLE)
    # Cookies are sent by hand, one person each.
    async with aiohttp.ClientSession(
        url, connector=connector, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        if people is None:
            await asyncio.gather(*(insert(session, load, end) for _ in range(PEOPLE)))
        else:
            await asyncio.gather(*(annotate(session, person, load, end) for person in people))
    load.seconds += time.monotonic() - began
    load.rounds += len(load.posts) - before


def warm_up(url: str) -> None:
    """Wait until the server answers at all; what it imports is not part of the measurement."""

    async def ask() -> None:
        async with aiohttp.ClientSession(url) as session, session.get("/health") as answer:
            await answer.read()

    asyncio.run(ask())


def kill_in_the_middle(folder: Path, people: list[Person], seconds: float) -> Load:
    """Work while the server dies; what broke off is not an error here, what is lost would be."""
    load = Load()
    with serving("ours", folder) as (process, url):
        warm_up(url)

        async def work() -> None:
            loop = asyncio.get_running_loop()
            loop.call_later(seconds / 2, os.kill, process.pid, signal.SIGKILL)
            await press(url, people, load, seconds)

        asyncio.run(work())
    return load


def judge(folder: Path, people: list[Person]) -> tuple[int, int, int]:
    """Compare what was acknowledged with what is in the database: lost, double, unexplained."""
    engine = sa.create_engine(f"sqlite:///{folder / 'load.db'}")
    with engine.connect() as connection:
        rows = connection.execute(
            sa.text("SELECT assignment_id, answer FROM revisions WHERE action = 'submit'")
        ).all()
    engine.dispose()
    stored = Counter((int(row[0]), str(orjson.loads(row[1])["why"])) for row in rows)
    told = {entry for person in people for entry in person.acknowledged}
    lost = sum(1 for entry in told if entry not in stored)
    double = sum(count - 1 for count in stored.values())
    double += sum(count - 1 for count in Counter(assignment for assignment, _ in stored).values())
    return lost, double, sum(1 for entry in stored if entry not in told)


def measure(seconds: int) -> Result:
    """Both servers in turns, then the kill, then the count."""
    ours, bare = Load(), Load()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        say("preparing items and people")
        people = prepare(folder, seconds)
        for turn in range(TURNS):
            with serving("bare", folder) as (process, url):
                warm_up(url)
                before = cpu_of(process)
                asyncio.run(press(url, None, bare, max(2.0, seconds / TURNS / 3)))
                bare.cpu += cpu_of(process) - before
            with serving("ours", folder) as (process, url):
                warm_up(url)
                before = cpu_of(process)
                asyncio.run(press(url, people, ours, seconds / TURNS))
                ours.cpu += cpu_of(process) - before
            say(
                f"  turn {turn + 1}: ours {ours.rounds / ours.seconds:.0f}/s,"
                f" bare {bare.rounds / bare.seconds:.0f}/s"
            )
        broken = kill_in_the_middle(folder, people, max(4.0, seconds / 12))
        say(f"  killed after {broken.rounds} answers")
        # At the kill each person had at most one answer on its way: saved, never acknowledged.
        lost, double, unexplained = judge(folder, people)
    rate, base = ours.rounds / ours.seconds, bare.rounds / bare.seconds
    whole = not ours.errors and not bare.errors and not lost and not double
    return Result(
        answers=ours.rounds + broken.rounds,
        ours_per_second=rate,
        bare_per_second=base,
        ratio=rate / base,
        ours_p99_ms=ours.p99,
        bare_p99_ms=bare.p99,
        ours_cpu_ms=ours.cpu / ours.rounds * 1000,
        bare_cpu_ms=bare.cpu / bare.rounds * 1000,
        errors=dict(ours.errors + bare.errors),
        lost=lost,
        double=double,
        unexplained=unexplained,
        kept=whole and unexplained <= PEOPLE and rate / base >= SHARE,
    )


def say(line: str) -> None:
    """Progress goes to standard error: standard output is for the result."""
    print(line, file=sys.stderr, flush=True)


def show(result: Result) -> str:
    """Return the table for people."""
    return "\n".join(
        [
            f"{'':<34}{'answers/s':>10}{'p99 ms':>9}{'CPU ms':>9}",
            (
                f"{'memantics annotate, 50 people':<34}{result.ours_per_second:>10.0f}"
                f"{result.ours_p99_ms:>9.1f}{result.ours_cpu_ms:>9.2f}"
            ),
            (
                f"{'bare endpoint, one insert':<34}{result.bare_per_second:>10.0f}"
                f"{result.bare_p99_ms:>9.1f}{result.bare_cpu_ms:>9.2f}"
            ),
            f"ratio {result.ratio:.2f}, at least {SHARE:.2f}",
            (
                f"{result.answers:,} answers acknowledged, kill -9 included: {result.lost} lost,"
                f" {result.double} double, errors {result.errors or 'none'}"
            ),
            f"saved at the kill but not acknowledged: {result.unexplained} (at most {PEOPLE})",
            "kept" if result.kept else "MISSED",
        ]
    )


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.annotate", description=__doc__)
    parser.add_argument("--seconds", type=int, default=120, help="how long annotators work")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    given = parser.parse_args()
    result = measure(given.seconds)
    print(orjson.dumps(asdict(result)).decode() if given.json else show(result))
    return 0 if result.kept else 1


if __name__ == "__main__":
    sys.exit(main())
