"""A database that fails or freezes: 503 with Retry-After instead of an error, and all goes on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from memantics.annotation import liveness
from memantics.annotation.web.app import make_app
from memantics.annotation.web.settings import WebSettings
from tests.annotation.postgres import Postgres, start_postgres, why_not
from tests.annotation.web.steps import HARMLESS, open_project, take
from tests.annotation.web.visitors import SECRET, Office, Visitor, make_office, open_quick


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server of one's own: it is stopped."""
    if reason := why_not():
        pytest.skip(reason)
    with start_postgres() as made:
        yield made


def hire(office: Office, folder: Path, count: int = 3) -> tuple[Visitor, int]:
    project = open_project(office, folder, "label-by-vote", count)
    office.hire("ann", project, "annotator")
    return office.visitor("ann"), project


def assert_refused(answer: object) -> None:
    status, headers = answer.status_code, answer.headers  # type: ignore[attr-defined]
    assert status == 503
    assert 1 <= int(headers["retry-after"]) <= 60


@pytest.mark.slow
def test_a_frozen_server(server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A7: /health hung for over 40 seconds, and so did every request."""
    monkeypatch.setattr(liveness, "PATIENCE", 1.5)
    monkeypatch.setattr(liveness, "ANSWER", 1.5)
    service = open_quick(server.make_tables(), tmp_path / "media")
    office = make_office(service)
    ann, project = hire(office, tmp_path)
    page = take(ann, project)
    token = ann.token()
    guest = office.visitor()
    pages: list[tuple[object, float]] = []

    def look() -> None:
        began = time.monotonic()
        pages.append((ann.get(page), time.monotonic() - began))

    with server.frozen():
        waiting = threading.Thread(target=look)
        waiting.start()
        for _ in range(3):
            began = time.monotonic()
            assert_refused(guest.get("/health"))
            assert time.monotonic() - began < 2
        waiting.join(30)
        ((answer, seconds),) = pages
        assert_refused(answer)
        assert seconds < 15
        began = time.monotonic()
        assert_refused(ann.client.post(page, data=HARMLESS | {"token": token}))
        assert time.monotonic() - began < 2  # known to be down: nobody waits again
    end = time.monotonic() + 20
    while guest.get("/health").status_code != 200 or service.context.db._watch.down:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert ann.post(page, HARMLESS).status_code == 303
    service.close()


@pytest.mark.slow
def test_a_query_that_waits_too_long_is_refused(server: Postgres, tmp_path: Path) -> None:
    """A7: errors of the driver, such as this one, became status 500."""
    url = server.make_tables()
    service = open_quick(url.replace("options=", "options=-clock_timeout%3D300%20"), tmp_path)
    office = make_office(service)
    ann, project = hire(office, tmp_path)
    page, lead = take(ann, project), office.visitor("lead")
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE assignments")
        settings = {"annotators_per_item": "2", "daily_limit": "9", "weekly_limit": "9"}
        assert_refused(lead.post(f"/p/{project}/setup", settings))
        assert_refused(ann.get(f"/p/{project}/next"))
        assert_refused(ann.post(page, HARMLESS))
        told = ann.post(page, HARMLESS, accept="application/json")
        assert_refused(told)
        assert "busy" in told.json()["error"]
    assert ann.post(page, HARMLESS).status_code == 303
    service.close()


@pytest.mark.slow
def test_rights_that_a_role_lost(server: Postgres, tmp_path: Path) -> None:
    url = server.make_tables()
    service = open_quick(url, tmp_path)
    ann, project = hire(make_office(service), tmp_path)
    page = take(ann, project)
    role = server.as_role(url, "limited")
    schema = url.rpartition("%3D")[2]
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(f"GRANT USAGE ON SCHEMA {schema} TO limited")
        tables = f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO limited"
        other.execute(tables)
    limited = open_quick(role, tmp_path)
    browser = Visitor(make_app(limited, WebSettings(SECRET)))
    browser.client.cookies = ann.client.cookies
    assert browser.get(page).status_code == 200
    assert_refused(browser.client.post(page, data=HARMLESS | {"token": ann.token()}))
    limited.close()
    service.close()


@pytest.mark.slow
def test_killed_connections_lose_nothing(server: Postgres, tmp_path: Path) -> None:
    """Connection churn: the server ends all connections again and again while people answer."""
    url = server.make_tables()
    service = open_quick(url, tmp_path / "media")
    office = make_office(service)
    ann, project = hire(office, tmp_path, 40)
    token = ann.token()
    ended, statuses = threading.Event(), Counter[int]()

    def end_connections() -> None:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> %s"
        with psycopg.connect(url, autocommit=True) as other:
            while not ended.wait(0.15):
                mine = other.info.backend_pid
                other.execute(f"{query} AND backend_type = 'client backend'", [mine])

    killer = threading.Thread(target=end_connections)
    killer.start()
    saved: set[int] = set()
    try:
        for _ in range(120):
            answer = ann.get(f"/p/{project}/next")
            statuses[answer.status_code] += 1
            if answer.status_code != 303 or "/work/" not in answer.headers["location"]:
                continue
            page = str(answer.headers["location"]).partition("?")[0]
            answer = ann.client.post(page, data=HARMLESS | {"token": token})
            statuses[answer.status_code] += 1
            if answer.status_code == 303:
                saved.add(int(page.rpartition("/")[2]))
    finally:
        ended.set()
        killer.join()
    assert set(statuses) <= {200, 303, 503, 409}, statuses
    with service.context.db.read() as connection:
        query = sa.text("SELECT assignment_id FROM revisions WHERE action = 'submit'")
        stored = connection.execute(query).scalars().all()
    assert saved <= set(stored)
    assert len(set(stored)) == len(stored)
    assert saved
    service.close()


def test_a_full_disk(sqlite_file: Path, tmp_path: Path) -> None:
    """A7: SQLite says it in the middle of a query, and that became status 500."""
    service = open_quick(str(sqlite_file), tmp_path / "media")
    office = make_office(service)
    project = open_project(office, tmp_path, "pun-form")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    page, token = take(ann, project), ann.token()
    engine = service.context.db.engine
    engine.dispose()
    sa.event.listen(
        engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 1")
    )
    form = {"version": "0", "project": "1", "token": token, "k-explanation": "longtext"}
    statuses = [
        ann.client.post(f"{page}/draft", data=form | {"f-explanation": "x" * 15_000 * size})
        for size in range(1, 5)
    ]
    assert_refused(statuses[-1])
    assert {one.status_code for one in statuses} <= {200, 204, 503}
    service.close()
