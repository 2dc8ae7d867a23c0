"""Many people at once, and a process that dies: nothing acknowledged is lost, nothing doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from memantics.annotation.errors import AnnotateError
from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService, open_service
from tests.annotation.team import (
    Clock,
    add_people,
    make_lead,
    open_project,
    plain_items,
    quick_hasher,
)
from tests.places import ROOT

NO = {"harmful": "no"}
YES = {"harmful": "yes", "type": "offence", "modality": "text"}


def run_together(jobs: Sequence[Callable[[], None]]) -> None:
    """Run all at once; the first error of any is raised here."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [pool.submit(job) for job in jobs]:
            done.result()


def count(service: AnnotationService, query: str) -> int:
    with service.context.db.read() as connection:
        return int(connection.execute(sa.text(query)).scalar_one())


def test_three_people_saving_at_once_keep_180_of_180(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(60))
    people = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    kept: list[int] = []

    def work(person: Actor) -> None:
        while (task := service.work.next(person, project.id)) is not None:
            service.work.submit(person, task.assignment, NO, task.version, 1.0)
            kept.append(task.assignment)

    run_together([partial(work, person) for person in people])
    assert len(set(kept)) == len(kept) == 180
    assert count(service, "SELECT COUNT(*) FROM assignments WHERE state = 'done'") == 180
    assert count(service, "SELECT COUNT(*) FROM revisions") == 180
    assert service.lead.progress(lead, project.id).finished == 60


def test_leases_never_overlap(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(20))
    people = add_people(service, lead, project.id, [f"p{n}" for n in range(8)], ["annotator"])
    held: Counter[int] = Counter()
    barrier = threading.Barrier(len(people))

    def take(person: Actor) -> None:
        barrier.wait()
        for _ in range(2):
            task = service.work.next(person, project.id)
            assert task is not None
            held[task.assignment] += 1
            answer = {"question": "yes", "answer": "yes"}
            service.work.submit(person, task.assignment, answer, task.version)

    run_together([partial(take, person) for person in people])
    assert set(held.values()) == {1}
    assert len(held) == 16


def test_one_person_in_two_tabs_holds_one_item(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(9))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    seen: set[int] = set()
    barrier = threading.Barrier(4)

    def look() -> None:
        barrier.wait()
        task = service.work.next(ann, project.id)
        assert task is not None
        seen.add(task.assignment)

    run_together([look] * 4)
    assert len(seen) == 1


def test_tabs_that_save_at_once_keep_every_version(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(1))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    task = service.work.next(ann, project.id)
    assert task is not None
    outcomes: list[str] = []
    barrier = threading.Barrier(6)

    def save(number: int) -> None:
        answer = YES if number % 2 else NO
        barrier.wait()
        try:
            saved = service.work.submit(ann, task.assignment, answer, 0)
            outcomes.append("again" if saved.again else "saved")
        except AnnotateError as error:
            outcomes.append(type(error).__name__)

    run_together([partial(save, number) for number in range(6)])
    assert Counter(outcomes) == {"saved": 1, "again": 2, "Conflict": 3}
    assert count(service, "SELECT COUNT(*) FROM revisions") == 1


def test_the_last_votes_at_once_open_one_adjudication(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(6))
    people = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    kinds = ("offence", "innuendo", "dispirited")
    barrier = threading.Barrier(3)

    def vote(person: Actor, kind: str) -> None:
        for _ in range(6):
            task = service.work.next(person, project.id)
            assert task is not None
            barrier.wait()
            service.work.submit(person, task.assignment, YES | {"type": kind}, task.version)

    pairs = zip(people, kinds, strict=True)
    run_together([partial(vote, person, kind) for person, kind in pairs])
    open_assignments = "SELECT COUNT(*) FROM assignments WHERE stage = 1 AND state = 'open'"
    assert count(service, open_assignments) == 6


WRITER = """
import sys
from pathlib import Path
from memantics.annotation.records import Actor
from memantics.annotation.service import open_service

url, media, user, project = sys.argv[1:]
service = open_service(url, Path(media))
actor = Actor(int(user), "writer")
while (task := service.work.next(actor, int(project))) is not None:
    service.work.submit(actor, task.assignment, {"harmful": "no"}, task.version, 1.0)
    print(task.assignment, flush=True)
"""


def kill_writers(people: Sequence[Actor], least: int, *words: str) -> list[int]:
    """Let people answer in processes of their own, kill these, and list what was acknowledged."""
    url, media, project = words
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, media, str(one.id), project],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for one in people
    ]
    acknowledged: list[int] = []
    for writer in writers:
        assert writer.stdout is not None
        acknowledged += [int(writer.stdout.readline()) for _ in range(least)]
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
    for writer in writers:
        rest, _ = writer.communicate()
        acknowledged += [int(line) for line in rest.splitlines()]
    return acknowledged


@pytest.mark.slow
def test_ten_kills_lose_no_acknowledged_answer(
    service: AnnotationService, database_url: str, tmp_path: Path
) -> None:
    lead = make_lead(service)
    project = service.projects.create(lead, "many", "label-by-vote")
    service.exchange.import_items(lead, project.id, [(item, []) for item in plain_items(4_000)])
    people = add_people(service, lead, project.id, ["a", "b"], ["annotator"])
    for person in people:
        service.projects.set_limits(lead, project.id, person.id, 0, 0)
    words = (database_url, str(tmp_path / "media"), str(project.id))
    kills = 5 * len(people)
    acknowledged = [
        one for least in (1, 3, 7, 12, 20) for one in kill_writers(people, least, *words)
    ]
    again = open_service(database_url, tmp_path / "media", hasher=quick_hasher())
    try:
        with again.context.db.read() as connection:
            query = sa.text("SELECT id FROM assignments WHERE state = 'done'")
            done = {row.id for row in connection.execute(query)}
        assert set(acknowledged) <= done
        # At most one answer of each killed writer that was saved and not yet told.
        assert len(done) <= len(acknowledged) + kills
        assert count(again, "SELECT COUNT(*) FROM revisions") == len(done)
    finally:
        again.close()


def test_expired_leases_are_taken_over_once(
    service: AnnotationService, clock: Clock, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(3))
    first = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    later = add_people(service, lead, project.id, ["d", "e", "f", "g"], ["annotator"])
    held = [service.work.next(person, project.id) for person in first]
    clock.forward(3600)
    taken: list[int] = []
    barrier = threading.Barrier(len(later))

    def take(person: Actor) -> None:
        barrier.wait()
        task = service.work.next(person, project.id)
        if task is not None:
            taken.append(task.assignment)

    run_together([partial(take, person) for person in later])
    assert sorted(taken) == sorted(task.assignment for task in held if task)
