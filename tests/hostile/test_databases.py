"""Both databases of the annotation app under the same attacks: no error is theirs to tell."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from memantics.annotation import schema
from memantics.annotation.web.app import list_routes
from tests.annotation.conftest import database_url, migrated, postgres, sqlite_file
from tests.annotation.web.queues import make_queue
from tests.annotation.web.visitors import PASSWORD, Office, Visitor, make_office, open_quick
from tests.hostile.cases import SEED, Case, count_cases, noted
from tests.hostile.fields import encode, generate

__all__ = ["database_url", "migrated", "postgres", "sqlite_file"]  # fixtures
pytestmark = pytest.mark.slow
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def office(database_url: str, tmp_path: Path) -> Iterator[Office]:
    service = open_quick(database_url, tmp_path / "media")
    made = make_office(service)
    for number in range(2):
        queue = make_queue(tmp_path / f"queue{number}", "label-by-vote", 4)
        project = service.exchange.open_queue(made.lead, queue).id
        if number == 0:
            made.hire("ann", project, "annotator")
    yield made
    service.close()


def attack(visitor: Visitor, token: str, case: Case) -> int:
    """One request; its status."""
    places = iter(case["places"])
    path = re.sub(r"\{[^}]*\}", lambda _: next(places), case["path"])
    text = encode(case)
    if case["method"] == "GET":  # as long as a server reads
        return int(visitor.client.get(f"{path}?{text[:30_000].rpartition('%')[0]}").status_code)
    body = f"token={token}&{text}"
    return int(visitor.client.post(path, content=body, headers=FORM).status_code)


def test_forms_and_questions_of_members(office: Office) -> None:
    skipped = {
        "/logout",
        "/settings/password",
        "/p/{project:int}/import",
        "/p/{project:int}/media",
    }
    routes = sorted({(r.method, r.path) for r in list_routes() if r.path not in skipped})
    visitors = [(v, v.token()) for v in (office.visitor("lead"), office.visitor("ann"))]
    fine = 0
    for number, case in enumerate(generate(SEED, count_cases(300), routes)):
        with noted("fields", case):
            status = attack(*visitors[number % 2], case)
            assert status < 500, status
            fine += status < 400
    assert fine > 0


def test_logins_at_once_make_no_second_account(office: Office) -> None:
    """Ten people accept one invitation at the same moment: it is good for one."""
    token = office.service.accounts.invite(office.lead, 1, ["annotator"])
    visitors = [office.visitor() for _ in range(10)]
    forms = [v.token() for v in visitors]
    statuses: list[int] = []

    def join(number: int) -> None:
        form = {"token": forms[number], "name": f"n{number}", "password": PASSWORD}
        answer = visitors[number].client.post(f"/join/{token}", data=form | {"again": PASSWORD})
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=join, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(statuses).count(303) == 1
    assert set(statuses) <= {303, 409, 410, 422}
    with office.service.context.db.read() as connection:
        count = connection.execute(sa.select(sa.func.count()).select_from(schema.users)).scalar()
    assert count == 3
