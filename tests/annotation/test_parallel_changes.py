"""Leads, annotators and adjudicators at the same moment: nobody blocks, nothing is taken twice."""

from __future__ import annotations

import ast
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from memantics.annotation import faults
from memantics.annotation.database import Database
from memantics.annotation.errors import AnnotateError, AnswerError, Forbidden, Locked, TokenInvalid
from memantics.annotation.faults import DatabaseContended, DatabaseFailed, retried
from memantics.annotation.project_settings import LocalizedText
from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService
from tests.annotation.team import PASSWORD, add_people, make_lead, open_project, plain_items
from tests.places import ROOT

NO = {"harmful": "no"}
YES = {"harmful": "yes", "type": "offence", "modality": "text"}
SPLIT = [YES | {"type": kind} for kind in ("offence", "innuendo", "dispirited")]


def all_at_once(jobs: Sequence[Callable[[], object]]) -> list[object]:
    """Run jobs at the same moment; their results, or the errors that they raised."""
    barrier = threading.Barrier(len(jobs))

    def run(job: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return job()
        except Exception as error:  # noqa: BLE001 - an error is a result here
            return error

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [done.result() for done in [pool.submit(run, job) for job in jobs]]


def count_deadlocks(service: AnnotationService) -> int:
    """How many deadlocks PostgreSQL resolved so far; SQLite has none."""
    database = service.context.db
    if database.sqlite:
        return 0
    query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    with database.read() as connection:
        connection.execute(sa.text("SELECT pg_stat_force_next_flush()"))
        connection.execute(sa.text("SELECT pg_stat_clear_snapshot()"))
        return int(connection.execute(sa.text(query)).scalar_one())


def test_a_lead_saves_settings_while_six_people_answer(
    service: AnnotationService, tmp_path: Path
) -> None:
    """A3: the lock of the project fought with the foreign keys of the answers."""
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(40))
    people = add_people(service, lead, project.id, [f"p{n}" for n in range(6)], ["annotator"])
    before, failed, done = count_deadlocks(service), Counter[str](), threading.Event()
    saved: list[int] = []

    def answer(person: Actor) -> None:
        for _ in range(12):
            try:
                task = service.work.next(person, project.id)
                if task is None:
                    return
                service.work.submit(person, task.assignment, NO, task.version, 1.0)
                saved.append(task.assignment)
            except Locked:
                continue  # fewer annotators per item than before
            except Exception as error:  # noqa: BLE001 - counted
                failed[f"{type(error).__name__}: {error}"] += 1

    def save_settings() -> None:
        number = 0
        while not done.is_set():
            number += 1
            held = service.projects.get(lead, project.id).settings
            changed = {"annotators_per_item": 2 + number % 2, "lease_minutes": 30 + number % 5}
            try:
                service.projects.set_settings(lead, project.id, held.model_copy(update=changed))
            except Exception as error:  # noqa: BLE001 - counted
                failed[f"settings {type(error).__name__}: {error}"] += 1

    lead_at_work = threading.Thread(target=save_settings)
    lead_at_work.start()
    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(answer, people))
    done.set()
    lead_at_work.join()
    assert not failed
    assert count_deadlocks(service) == before
    with service.context.db.read() as connection:
        rows = connection.execute(sa.text("SELECT assignment_id FROM revisions")).scalars().all()
    assert sorted(rows) == sorted(saved)


@pytest.mark.slow
def test_every_kind_of_change_at_once_blocks_nobody(
    service: AnnotationService, tmp_path: Path
) -> None:
    """Answers, order by uncertainty, settings, roles, rules, imports and people who join."""
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(30))
    service.projects.change(lead, project.id, {"order": "uncertainty"})
    people = add_people(service, lead, project.id, ["a", "b", "c", "d"], ["annotator"])
    (second,) = add_people(service, lead, project.id, ["second"], ["lead", "annotator"])
    tokens = [service.accounts.invite(lead, project.id, ["annotator"]) for _ in range(6)]
    before, end = count_deadlocks(service), time.monotonic() + 4

    def repeat(job: Callable[[int], object]) -> Callable[[], None]:
        def run() -> None:
            number = 0
            while time.monotonic() < end:
                number += 1
                with suppress(AnnotateError):
                    job(number)

        return run

    def answer(person: Actor, number: int) -> None:
        task = service.work.next(person, project.id)
        if task is not None:
            kind = SPLIT[number % 3]
            service.work.save_draft(person, task.assignment, kind)
            service.work.submit(person, task.assignment, kind, task.version, 1.0)

    def settings(actor: Actor, number: int) -> None:
        service.projects.change(actor, project.id, {"annotators_per_item": 2 + number % 3})

    def clarify(number: int) -> None:
        service.guideline.clarify(second, project.id, LocalizedText(en=f"r{number}"), [1, 5, 3])
        time.sleep(0.2)

    def bring(number: int) -> None:
        item = plain_items(1)[0].model_copy(update={"id": f"new{number}"})
        service.exchange.import_items(second, project.id, [(item, [])])
        time.sleep(0.1)

    def join(number: int) -> None:
        if tokens:
            service.accounts.accept(tokens.pop(), f"late{number}", PASSWORD)
        service.projects.set_roles(lead, project.id, people[3].id, ["annotator", "reviewer"])
        service.lead.set_training(lead, project.id, people[2].id, "passed")

    jobs = [repeat(partial(answer, person)) for person in people]
    jobs += [repeat(partial(settings, lead)), repeat(clarify), repeat(bring), repeat(join)]
    ends = all_at_once(jobs)
    assert [end for end in ends if end is not None] == []
    assert count_deadlocks(service) == before


def test_a_login_link_opens_one_session_of_twenty(service: AnnotationService) -> None:
    """A4: the token was found by several requests before one of them dropped it."""
    lead = make_lead(service)
    for _ in range(5):
        link = service.accounts.login_link(lead)
        ends = all_at_once([partial(service.accounts.enter, link)] * 20)
        refused = [end for end in ends if isinstance(end, TokenInvalid)]
        assert len(refused) == 19
    with service.context.db.read() as connection:
        query = "SELECT COUNT(*) FROM sessions WHERE kind = 'session'"
        assert connection.execute(sa.text(query)).scalar_one() == 5


def test_an_invitation_is_good_for_one_of_ten(service: AnnotationService) -> None:
    lead = make_lead(service)
    project = service.projects.create(lead, "p", "label-by-vote").id
    token = service.accounts.invite(lead, project, ["annotator"])
    jobs = [partial(service.accounts.accept, token, f"n{n}", PASSWORD) for n in range(10)]
    ends = all_at_once(jobs)
    assert Counter(type(end).__name__ for end in ends) == {"Session": 1, "TokenInvalid": 9}


def test_two_adjudicators_never_get_the_same_item(
    service: AnnotationService, tmp_path: Path
) -> None:
    """A5: whether the item was free was checked before its lock."""
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(10))
    people = add_people(service, lead, project.id, ["a", "b", "c"], ["annotator"])
    judges = add_people(service, lead, project.id, ["x", "y", "z"], ["adjudicator"])
    for person, kind in zip(people, SPLIT, strict=True):
        while (task := service.work.next(person, project.id)) is not None:
            service.work.submit(person, task.assignment, kind, task.version)
    for number in range(1, 11):
        jobs = [partial(service.work.decide, judge, project.id, number) for judge in judges]
        ends = Counter(type(end).__name__ for end in all_at_once(jobs))
        assert ends == {"int": 1, "Locked": 2}, number


def test_two_leads_who_save_at_once_lose_nothing(
    service: AnnotationService, tmp_path: Path
) -> None:
    """Settings of one lead must not replace the rule that the other has just added."""
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(2))
    (second,) = add_people(service, lead, project.id, ["second"], ["lead"])
    for number in range(1, 9):
        held = service.projects.get(lead, project.id).settings
        rule = LocalizedText(en=f"rule {number}")
        jobs: list[Callable[[], object]] = [
            partial(service.projects.set_settings, lead, project.id, held),
            partial(service.guideline.clarify, second, project.id, rule, again=False),
        ]
        assert [end for end in all_at_once(jobs) if isinstance(end, Exception)] == []
        assert service.projects.get(lead, project.id).settings.guideline == 1 + number


def test_two_leads_cannot_both_leave(service: AnnotationService) -> None:
    lead = make_lead(service)
    project = service.projects.create(lead, "p", "label-by-vote").id
    (second,) = add_people(service, lead, project, ["second"], ["lead"])
    leave = [
        partial(service.projects.set_roles, one, project, one.id, []) for one in (lead, second)
    ]
    ends = all_at_once(leave)
    assert sum(isinstance(end, (AnswerError, Forbidden)) for end in ends) == 1


def test_one_first_account(service: AnnotationService) -> None:
    jobs = [partial(service.accounts.create_first, f"n{n}", PASSWORD) for n in range(6)]
    ends = all_at_once(jobs)
    assert Counter(type(end).__name__ for end in ends) == {"Actor": 1, "Forbidden": 5}


def test_a_deadlock_is_tried_again_and_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    tries: list[int] = []

    @retried
    def save(succeeds: int) -> str:
        tries.append(1)
        if len(tries) < succeeds:
            raise faults.explain(psycopg.errors.DeadlockDetected("deadlock detected"))
        return "saved"

    assert save(3) == "saved"
    assert len(tries) == 3
    assert len(pauses) == 2
    assert all(0 <= pause <= faults.PAUSE * 2**number for number, pause in enumerate(pauses))
    tries.clear()

    @retried
    def outer() -> str:
        return save(99)

    with pytest.raises(DatabaseContended) as raised:
        outer()
    assert len(tries) == faults.TRIES  # not its square
    assert raised.value.wait == faults.SOON


@pytest.mark.slow
def test_a_real_deadlock_ends_without_an_error(database_url: str) -> None:
    """Two transactions that take two rows in opposite order: the loser runs again."""
    if database_url.startswith("sqlite"):
        pytest.skip("SQLite has one writer at a time")
    database = Database(database_url)
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE pair (id int PRIMARY KEY, n int)"))
        connection.execute(sa.text("INSERT INTO pair VALUES (1, 0), (2, 0)"))
    met = threading.Barrier(2)

    @retried
    def change(first: int, second: int) -> None:
        with database.write() as connection:
            add = sa.text("UPDATE pair SET n = n + 1 WHERE id = :id")
            connection.execute(add, {"id": first})
            with suppress(threading.BrokenBarrierError):
                met.wait(2)
            connection.execute(add, {"id": second})

    ends = all_at_once([partial(change, 1, 2), partial(change, 2, 1)])
    with database.read() as connection:
        counted = connection.execute(sa.text("SELECT n FROM pair")).scalars().all()
    database.close()
    assert ends == [None, None]
    assert counted == [2, 2]


@pytest.mark.slow
def test_statements_and_locks_do_not_last_forever(database_url: str) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("limits of PostgreSQL; for SQLite see BUSY_MS")
    database = Database(database_url.replace("options=", "options=-cstatement_timeout%3D300%20"))
    plain = Database(database_url)
    try:
        with plain.read() as connection:
            shown = {
                name: connection.execute(sa.text(f"SHOW {name}")).scalar_one()
                for name in ("statement_timeout", "lock_timeout")
            }
        assert shown == {"statement_timeout": "30s", "lock_timeout": "10s"}
        with pytest.raises(DatabaseFailed, match="took too long"), database.read() as connection:
            connection.execute(sa.text("SELECT pg_sleep(5)"))
        with plain.write() as holder:
            holder.execute(sa.text("LOCK TABLE users"))
            with pytest.raises(DatabaseFailed, match="same rows"), plain.write() as waiter:
                waiter.execute(sa.text("SET LOCAL lock_timeout = 200; SELECT * FROM users"))
    finally:
        database.close()
        plain.close()


def opens_a_write(call: ast.AST) -> bool:
    """Whether a call is ``….write()`` of a database, or ``as_lead(…, write=True)``."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    named = {word.arg: word.value for word in call.keywords}
    given = named.get("write")
    changes = isinstance(given, ast.Constant) and given.value is True
    return ast.unparse(call.func).endswith("db.write") or changes


def test_every_write_is_tried_again() -> None:
    """Functions with a write transaction are decorated; those that lend one out are not."""
    lenders = {"as_member", "_at"}
    writers, plain = set(), set()
    for path in sorted((ROOT / "src/memantics/annotation").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or node.name in lenders:
                continue
            through = f"{path.stem}.{node.name}"
            uses = [call for call in ast.walk(node) if opens_a_write(call)]
            uses += [call for call in ast.walk(node) if is_own_place(call)]
            if uses:
                writers.add(through)
                if "retried" not in {ast.unparse(one) for one in node.decorator_list}:
                    plain.add(through)
                assert len(uses) == 1, through
    assert plain == set()
    assert len(writers) > 35


def is_own_place(call: ast.AST) -> bool:
    """Whether a call is ``self._at(…)`` of the annotator's actions, for writing."""
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "self._at":
        return False
    return not any(word.arg == "write" for word in call.keywords)


def test_connections_that_are_all_lost_are_a_failed_database() -> None:
    """A server that closed each new connection, too, gave status 500 once in 132 requests."""
    engine = sa.create_engine("sqlite://")

    @sa.event.listens_for(engine, "checkout")
    def lose(*_: object) -> None:
        raise sa.exc.DisconnectionError

    lost = pytest.raises(DatabaseFailed, match="connection to the database was lost")
    with lost, faults.explained(), engine.connect():
        raise AssertionError("unreachable")
    # Wrong use of SQLAlchemy is not a failed database.
    with pytest.raises(sa.exc.InvalidRequestError), faults.explained():
        raise sa.exc.InvalidRequestError("a wrong use")
