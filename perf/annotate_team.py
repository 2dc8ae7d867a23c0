"""``python -m perf.annotate_team [--seconds N] [--json]``: a team at work on PostgreSQL.

Thirty simulated annotators answer as fast as they can. At the same time two leads save the
project's settings, add rules and invite people, three adjudicators decide ties, and somebody opens
each login link several times at once. The app runs as one process on a PostgreSQL server that this
program starts. Afterwards the database is compared with what the app acknowledged: no status 500,
no lost answer, no item that two people hold for the same place, no link that opened two sessions,
no deadlock.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import secrets
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import quantiles

import aiohttp
import orjson
import psycopg
from tests.annotation.postgres import start_postgres, why_not

from perf.annotate import Person, cpu_of, say, serving, warm_up
from perf.annotate_server import ADDRESS, SECRET

ANNOTATORS, LEADS, ADJUDICATORS = 30, 2, 3
PROJECT = 1
ITEMS_PER_SECOND = 40
KINDS = ("offence", "innuendo", "dispirited")
REFUSED = 503
CHECKS = {
    "double seats": (
        "SELECT COUNT(*) FROM (SELECT 1 FROM revisions WHERE action = 'submit'"
        " GROUP BY assignment_id HAVING COUNT(DISTINCT user_id) > 1) AS twice"
    ),
    "double answers": (
        "SELECT COUNT(*) FROM (SELECT 1 FROM revisions WHERE action = 'submit'"
        " GROUP BY assignment_id, version HAVING COUNT(*) > 1) AS twice"
    ),
    "deadlocks": "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
}


@dataclass(slots=True)
class Team:
    """The people with their sessions, and what the app told them."""

    annotators: list[Person]
    leads: list[Person]
    adjudicators: list[Person]
    links: list[str]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)
    taken: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class TeamResult:
    """All measurements."""

    seconds: float
    answers: int
    answers_per_second: float
    p50_ms: dict[str, float]
    p99_ms: dict[str, float]
    statuses: dict[str, int]
    errors_500: int
    refused_503: int
    lost: int
    double_seats: int
    double_answers: int
    double_sessions: int
    deadlocks: int
    cpu_seconds: float
    kept: bool


def prepare(folder: Path, url: str, seconds: int) -> Team:
    """Fill a database with a project, and log its people in."""
    from argon2 import PasswordHasher

    from memantics.annotation.records import Actor
    from memantics.annotation.service import open_service
    from memantics.annotation.web.settings import make_form_token
    from memantics.core.queue import QueueItem

    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    service = open_service(url, folder / "media", hasher=cheap)
    lead = service.accounts.create_first("lead", secrets.token_urlsafe())
    free = {"daily_limit": 0, "weekly_limit": 0}
    project = service.projects.create(lead, "Team", "label-by-vote", changes=free).id
    assert project == PROJECT
    count = max(200, seconds * ITEMS_PER_SECOND)
    items = [QueueItem(id=f"meme-{n}", group=f"meme-{n}") for n in range(count)]
    service.exchange.import_items(lead, project, [(item, []) for item in items])

    def log_in(actor: Actor) -> Person:
        session = service.accounts.enter(service.accounts.login_link(actor)).token
        return Person(session, make_form_token(SECRET, session))

    def hire(role: str, number: int) -> Person:
        actor = service.accounts.create(lead, f"{role}-{number}", "a long password")
        service.projects.add_member(lead, project, actor.name, [role])
        service.projects.consent(actor, project)
        return log_in(actor)

    team = Team(
        [hire("annotator", number) for number in range(ANNOTATORS)],
        [log_in(lead), *(hire("lead", number) for number in range(1, LEADS))],
        [hire("adjudicator", number) for number in range(ADJUDICATORS)],
        [service.accounts.login_link(lead) for _ in range(max(5, seconds))],
    )
    service.close()
    return team


class Worker:
    """One person's browser."""

    def __init__(self, session: aiohttp.ClientSession, team: Team, person: Person) -> None:
        self._session = session
        self._team = team
        self.person = person

    async def ask(
        self, kind: str, path: str, form: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Send a request; return the status and where it leads."""
        cookie = {"cookie": f"memantics={self.person.cookie}"} if self.person.cookie else {}
        began = time.monotonic()
        async with self._session.request(
            "GET" if form is None else "POST",
            path,
            data=None if form is None else form | {"token": self.person.token},
            headers=cookie,
            allow_redirects=False,
        ) as answer:
            await answer.read()
        self._team.seconds.setdefault(kind, []).append(time.monotonic() - began)
        self._team.statuses[f"{kind} {answer.status}"] += 1
        if answer.status == REFUSED:
            await asyncio.sleep(float(answer.headers.get("retry-after", 1)))
        return answer.status, answer.headers.get("location", "")

    async def answer(self, page: str) -> None:
        """Save an answer on the page of an item; three kinds cause ties."""
        number = int(page.rpartition("/")[2])
        form = {"version": "0", "project": str(PROJECT), "opened": str(int(time.time()))}
        said = {"harmful": "yes", "type": random.choice(KINDS), "modality": "text"}
        for name, value in said.items():
            form |= {f"k-{name}": "choice", f"f-{name}": value}
        status, _ = await self.ask("save", page, form)
        if status == 303:
            self.person.acknowledged.append((number, said["type"]))


def page_of(place: str) -> str:
    """Return the path of an item's page from a redirection, or an empty string."""
    found = re.match(r"/work/\d+", place)
    return found[0] if found else ""


async def annotate(worker: Worker, end: float) -> None:
    """Take an item, answer it, again and again."""
    while time.monotonic() < end:
        _, place = await worker.ask("next", f"/p/{PROJECT}/next")
        if page := page_of(place):
            await worker.answer(page)
        else:
            await asyncio.sleep(0.2)


async def lead_project(worker: Worker, end: float) -> None:
    """Save settings, add a rule, invite somebody and look at the progress."""
    number = 0
    while time.monotonic() < end:
        number += 1
        form = {"annotators_per_item": str(2 + number % 2), "lease_minutes": str(30 + number % 5)}
        form |= {"daily_limit": "0", "weekly_limit": "0", "order": "given"}
        await worker.ask("settings", f"/p/{PROJECT}/setup", form)
        if number % 3 == 0:
            rule = {"en": f"Rule {number}", "zh": "", "again": ""}
            await worker.ask("rule", f"/p/{PROJECT}/guideline", rule)
        await worker.ask("invite", f"/p/{PROJECT}/invite", {"role": "annotator", "note": ""})
        await worker.ask("progress", f"/p/{PROJECT}/progress")
        await asyncio.sleep(0.5)


async def adjudicate(workers: list[Worker], team: Team, end: float) -> None:
    """Decide ties: all adjudicators ask for the same item at once, and one of them gets it."""
    number, missed = 1, 0
    while time.monotonic() < end:
        path = f"/p/{PROJECT}/decide/{number}"
        asked = await asyncio.gather(*(worker.ask("decide", path, {}) for worker in workers))
        pages = [page_of(place) for _, place in asked]
        team.taken[number] = max(team.taken[number], sum(map(bool, pages)))
        work = [worker.answer(page) for worker, page in zip(workers, pages, strict=True) if page]
        await asyncio.gather(*work)
        missed = 0 if work else missed + 1
        number += 1
        if missed > 20:  # the annotators have not come that far
            number, missed = max(1, number - 40), 0
            await asyncio.sleep(0.5)


async def open_links(session: aiohttp.ClientSession, team: Team, end: float) -> None:
    """Open each login link eight times at once."""
    guests = [Worker(session, team, Person("", "")) for _ in range(8)]
    for link in team.links:
        if time.monotonic() > end:
            return
        asked = await asyncio.gather(*(one.ask("link", f"/enter/{link}") for one in guests))
        team.sessions[link] = sum(status == 303 for status, _ in asked)
        await asyncio.sleep(0.5)


async def press(url: str, team: Team, seconds: float) -> float:
    """Let the whole team work; return the seconds that it took."""
    began = time.monotonic()
    end = began + seconds
    connector = aiohttp.TCPConnector(limit=0)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(url, connector=connector, cookie_jar=jar) as session:
        work = [annotate(Worker(session, team, one), end) for one in team.annotators]
        work += [lead_project(Worker(session, team, one), end) for one in team.leads]
        judges = [Worker(session, team, one) for one in team.adjudicators]
        work += [adjudicate(judges, team, end)]
        await asyncio.gather(*work, open_links(session, team, end))
    return time.monotonic() - began


def judge(url: str, team: Team) -> tuple[int, dict[str, int]]:
    """Compare what was acknowledged with the database: lost answers, and what exists twice."""
    people = [*team.annotators, *team.adjudicators]
    told = {number for person in people for number, _ in person.acknowledged}
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT assignment_id FROM revisions").fetchall()
        found = {}
        for name, query in CHECKS.items():
            row = connection.execute(query.encode()).fetchone()
            found[name] = int(row[0]) if row else 0
    return len(told - {int(row[0]) for row in rows}), found


def measure(seconds: int) -> TeamResult:
    """Start a server, let the team work, and count."""
    with tempfile.TemporaryDirectory() as place, start_postgres() as server:
        folder, url = Path(place), server.make_tables()
        say("preparing items and people")
        team = prepare(folder, url, seconds)
        (folder / ADDRESS).write_text(url)
        with serving("team", folder) as (process, address):
            warm_up(address)
            before = cpu_of(process)
            took = asyncio.run(press(address, team, seconds))
            cpu = cpu_of(process) - before
        lost, found = judge(url, team)
    answers = sum(len(one.acknowledged) for one in (*team.annotators, *team.adjudicators))
    failed = sum(count for name, count in team.statuses.items() if name.endswith(" 500"))
    refused = sum(count for name, count in team.statuses.items() if name.endswith(f" {REFUSED}"))
    twice = sum(max(0, count - 1) for count in team.sessions.values())
    seats = found["double seats"] + sum(max(0, count - 1) for count in team.taken.values())
    cuts = {name: quantiles(times, n=100) for name, times in team.seconds.items() if len(times) > 1}
    wrong = failed + lost + seats + twice + found["double answers"] + found["deadlocks"]
    return TeamResult(
        seconds=took,
        answers=answers,
        answers_per_second=answers / took,
        p50_ms={name: 1000 * cut[49] for name, cut in sorted(cuts.items())},
        p99_ms={name: 1000 * cut[98] for name, cut in sorted(cuts.items())},
        statuses=dict(sorted(team.statuses.items())),
        errors_500=failed,
        refused_503=refused,
        lost=lost,
        double_seats=seats,
        double_answers=found["double answers"],
        double_sessions=twice,
        deadlocks=found["deadlocks"],
        cpu_seconds=cpu,
        kept=wrong == 0 and answers > 0,
    )


def show(result: TeamResult) -> str:
    """Return the table for people."""
    lines = [f"{'request':<12}{'p50 ms':>10}{'p99 ms':>10}"]
    lines += [
        f"{name:<12}{result.p50_ms[name]:>10.0f}{result.p99_ms[name]:>10.0f}"
        for name in result.p99_ms
    ]
    counts = ", ".join(f"{name}: {count:,}" for name, count in result.statuses.items())
    lines.append(
        f"{result.answers:,} answers in {result.seconds:.0f} s,"
        f" {result.answers_per_second:.0f} per second; server CPU {result.cpu_seconds:.0f} s"
    )
    lines.append(f"statuses: {counts}")
    lines.append(
        f"status 500: {result.errors_500}, 503: {result.refused_503}, lost: {result.lost},"
        f" double seats: {result.double_seats}, double answers: {result.double_answers},"
        f" double sessions: {result.double_sessions}, deadlocks: {result.deadlocks}"
    )
    return "\n".join([*lines, "kept" if result.kept else "MISSED"])


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.annotate_team", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long the team works")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    given = parser.parse_args()
    if reason := why_not():
        say(reason)
        return 2
    result = measure(given.seconds)
    print(orjson.dumps(asdict(result)).decode() if given.json else show(result))
    return 0 if result.kept else 1


if __name__ == "__main__":
    sys.exit(main())
