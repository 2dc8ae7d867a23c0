"""Who may open what: every route × every kind of person, and every forbidden cell is refused.

A route that is new fails here until it is classified.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from memantics.annotation import schema
from memantics.annotation.service import AnnotationService
from memantics.annotation.web.app import list_routes, make_app
from memantics.annotation.web.settings import WebSettings
from tests.annotation.team import draw_image
from tests.annotation.web.queues import make_queue
from tests.annotation.web.visitors import (
    PASSWORD,
    SECRET,
    Office,
    Response,
    Visitor,
    make_office,
    open_quick,
)

MEMBERS = frozenset({"lead", "annotator", "reviewer", "adjudicator"})
LOGGED_IN = MEMBERS | {"admin", "stranger", "outsider", "other_lead"}
EVERYBODY = LOGGED_IN | {"anonymous"}
ADMIN = frozenset({"admin"})
# The other members have no role in any stage of this workflow.
# The workflow has no stage for reviewers, so that they work like annotators.
WORKERS = frozenset({"annotator", "reviewer", "adjudicator"})
OWNER = frozenset({"annotator"})
LEAD = frozenset({"lead"})

# Who may use a route, and what its form needs.
ROUTES: dict[tuple[str, str], tuple[frozenset[str], dict[str, object]]] = {
    ("GET", "/login"): (EVERYBODY, {}),
    ("POST", "/login"): (EVERYBODY, {"name": "stranger", "password": PASSWORD}),
    ("POST", "/logout"): (EVERYBODY, {}),
    ("GET", "/enter/{ticket}"): (EVERYBODY, {}),
    ("GET", "/join/{invitation}"): (EVERYBODY, {}),
    ("POST", "/join/{invitation}"): (
        EVERYBODY,
        {"name": "newcomer", "password": PASSWORD, "again": PASSWORD},
    ),
    ("GET", "/settings"): (LOGGED_IN, {}),
    ("POST", "/settings"): (LOGGED_IN, {"language": "zh"}),
    ("POST", "/settings/language"): (LOGGED_IN, {"language": "zh"}),
    ("POST", "/settings/password"): (
        LOGGED_IN,
        {"old": PASSWORD, "new": "another password", "again": "another password"},
    ),
    ("GET", "/"): (LOGGED_IN, {}),
    ("GET", "/projects/new"): (ADMIN, {}),
    ("POST", "/projects/new"): (ADMIN, {"title": "New", "workflow": "validate"}),
    ("GET", "/p/{project:int}"): (MEMBERS, {}),
    ("GET", "/p/{project:int}/welcome"): (MEMBERS, {}),
    ("POST", "/p/{project:int}/welcome"): (MEMBERS, {"agree": "yes"}),
    ("GET", "/p/{project:int}/next"): (WORKERS, {}),
    ("GET", "/p/{project:int}/last"): (MEMBERS, {}),
    ("POST", "/p/{project:int}/leave"): (MEMBERS, {}),
    ("GET", "/media/{media}"): (MEMBERS, {}),
    ("GET", "/work/{assignment:int}"): (OWNER, {}),
    ("POST", "/work/{assignment:int}"): (
        OWNER,
        {"project": "1", "version": "0", "k-harmful": "choice", "f-harmful": "no"},
    ),
    ("POST", "/work/{assignment:int}/draft"): (OWNER, {"k-harmful": "choice"}),
    ("POST", "/work/{assignment:int}/skip"): (OWNER, {}),
    ("POST", "/work/{assignment:int}/release"): (OWNER, {}),
    ("POST", "/work/{assignment:int}/undo"): (OWNER, {"version": "0"}),
    ("POST", "/work/{assignment:int}/keep"): (OWNER, {}),
    ("GET", "/p/{project:int}/progress"): (LEAD, {}),
    ("GET", "/p/{project:int}/agreement"): (LEAD, {}),
    ("GET", "/p/{project:int}/disagreements"): (LEAD, {}),
    ("POST", "/p/{project:int}/decide/{number:int}"): (frozenset({"adjudicator"}), {}),
    ("GET", "/p/{project:int}/guideline"): (LEAD, {}),
    ("POST", "/p/{project:int}/guideline"): (LEAD, {"do": "save", "en": "A rule."}),
    ("GET", "/p/{project:int}/items"): (LEAD, {}),
    ("GET", "/p/{project:int}/items/{item:int}"): (LEAD, {}),
    ("POST", "/p/{project:int}/reopen/{assignment:int}"): (LEAD, {"item": "1"}),
    ("GET", "/p/{project:int}/audit"): (LEAD, {}),
    ("GET", "/p/{project:int}/members"): (LEAD, {}),
    ("POST", "/p/{project:int}/members"): (LEAD, {"name": "stranger", "role": "annotator"}),
    ("POST", "/p/{project:int}/members/{user:int}"): (LEAD, {"role": "reviewer", "daily": "5"}),
    ("POST", "/p/{project:int}/invite"): (LEAD, {"role": "annotator"}),
    ("POST", "/p/{project:int}/invitations/{invitation:int}/revoke"): (LEAD, {}),
    ("GET", "/p/{project:int}/setup"): (LEAD, {}),
    ("POST", "/p/{project:int}/setup"): (LEAD, {"prelabels": "shown"}),
    ("POST", "/p/{project:int}/archive"): (LEAD, {"archived": "yes"}),
    ("GET", "/p/{project:int}/data"): (LEAD, {}),
    ("GET", "/p/{project:int}/export"): (LEAD, {"what": "raw", "form": "jsonl"}),
    ("POST", "/p/{project:int}/import"): (LEAD, {"file": b"[]"}),
    ("POST", "/p/{project:int}/media"): (LEAD, {"file": b"an image"}),
}

CELLS = [pytest.param(*route, id=" ".join(route)) for route in ROUTES]


@dataclass(frozen=True)
class Ids:
    """What the places in paths stand for."""

    project: int
    assignment: int
    done: int
    item: int
    user: int
    media: str
    invitation: str
    invitation_id: int
    ticket: str

    def path(self, method: str, route: str) -> str:
        invitation = str(self.invitation_id) if "revoke" in route else self.invitation
        assignment = self.done if "reopen" in route else self.assignment
        return (
            route.replace("{project:int}", str(self.project))
            .replace("{assignment:int}", str(assignment))
            .replace("{item:int}", str(self.item))
            .replace("{number:int}", "1")
            .replace("{user:int}", str(self.user))
            .replace("{media}", self.media)
            .replace("{invitation:int}", invitation)
            .replace("{invitation}", invitation)
            .replace("{ticket}", self.ticket)
        )


@dataclass
class World:
    """One filled database that tests copy."""

    folder: Path
    ids: Ids
    picture: bytes

    def open(self, name: str) -> tuple[AnnotationService, Office]:
        """A copy of the world, so that no cell sees what another one did."""
        copy = self.folder / f"{name}.db"
        shutil.copyfile(self.folder / "world.db", copy)
        service = open_quick(str(copy), self.folder / "media")
        lead = service.accounts.log_in("lead", PASSWORD).actor
        return service, Office(service, make_app(service, WebSettings(SECRET)), lead)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two projects: one with everybody, one of others."""
    folder = tmp_path_factory.mktemp("world")
    service = open_quick(str(folder / "world.db"), folder / "media")
    office = make_office(service)
    admin = service.accounts.create(office.lead, "admin", PASSWORD, admin=True)
    queue = make_queue(folder / "queue", "label-by-vote", 4)
    project = service.exchange.open_queue(office.lead, queue).id
    people = {
        role: office.hire(role, project, role) for role in ("annotator", "reviewer", "adjudicator")
    }
    office.hire("stranger", project)
    other = service.accounts.create(office.lead, "other_lead", PASSWORD, admin=True)
    elsewhere = service.projects.create(other, "Elsewhere", "validate").id
    office.lead, kept = other, office.lead
    office.hire("outsider", elsewhere, "annotator", "reviewer", "adjudicator")
    office.lead = kept
    done = service.work.next(people["annotator"], project)
    assert done is not None
    service.work.submit(people["annotator"], done.assignment, {"harmful": "no"}, 0)
    task = service.work.next(people["annotator"], project)
    assert task is not None
    invitation = service.accounts.invite(office.lead, project, ["reviewer"])
    ids = Ids(
        project=project,
        assignment=task.assignment,
        done=done.assignment,
        item=service.lead.items(office.lead, project, limit=1, offset=0)[0].id,
        user=people["reviewer"].id,
        media=task.images[0],
        invitation=invitation,
        invitation_id=service.accounts.invitations(office.lead, project)[0].id,
        ticket=service.accounts.login_link(admin),
    )
    # Only the first account stays an administrator of none; leads of projects are no admins.
    with service.context.db.write() as connection:
        users = schema.users
        connection.execute(
            sa.update(users).where(users.c.name.in_(["lead", "other_lead"])).values(admin=False)
        )
        connection.execute(sa.text("DELETE FROM sessions WHERE kind = 'session'"))
    service.close()
    draw_image(folder / "new.png", 7)
    return World(folder, ids, (folder / "new.png").read_bytes())


def call(visitor: Visitor, world: World, method: str, route: str) -> Response:
    """Use a route as its page would."""
    data = dict(ROUTES[method, route][1])
    path = world.ids.path(method, route)
    if method == "GET":
        query = "&".join(f"{name}={value}" for name, value in data.items())
        return visitor.get(f"{path}?{query}" if query else path)
    content = data.pop("file", None)
    if content is None:
        return visitor.post(path, data)
    name = "new.png" if route.endswith("media") else "tasks.json"
    body = world.picture if route.endswith("media") else content
    return visitor.post(path, data, files={"file": (name, body)})


def is_refused(response: Response) -> bool:
    away = response.headers.get("location", "")
    to_login = away == "/login" or away.startswith("/login?next=")
    return bool(response.status_code in (401, 403) or (response.status_code == 303 and to_login))


def contents(service: AnnotationService) -> dict[str, list[tuple[object, ...]]]:
    """Everything in the database but sessions, which logging in makes."""
    with service.context.db.read() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(sa.select(table)).all()]
            for table in schema.metadata.sorted_tables
            if table.name != "sessions"
        }


def test_every_route_is_classified() -> None:
    served = {(route.method, route.path) for route in list_routes()}
    assert served == set(ROUTES)


def test_routes_outside_the_list_show_nothing_of_the_data(office: Office) -> None:
    known = {route.path for route in list_routes()}
    installed = {getattr(route, "path", "") for route in office.app.routes}
    paths = {path.replace(":number}", ":int}") for path in installed}
    assert paths - known == {"/health", "/static/{name}"}


@pytest.fixture(scope="module")
def shared(world: World) -> Iterator[tuple[AnnotationService, dict[str, Visitor]]]:
    """One copy for everything that must be refused, and everybody logged in to it."""
    service, office = world.open("refused")
    yield (
        service,
        {name: office.visitor("" if name == "anonymous" else name) for name in EVERYBODY},
    )
    service.close()


@pytest.mark.parametrize(("method", "route"), CELLS)
def test_forbidden_cells_are_refused_and_change_nothing(
    method: str, route: str, world: World, shared: tuple[AnnotationService, dict[str, Visitor]]
) -> None:
    service, visitors = shared
    before = contents(service)
    for name in sorted(EVERYBODY - ROUTES[method, route][0]):
        response = call(visitors[name], world, method, route)
        assert is_refused(response), f"{name}: {response.status_code}"
        assert "meme-1" not in response.text
    assert contents(service) == before


@pytest.mark.parametrize(("method", "route"), CELLS)
def test_allowed_cells_are_served(method: str, route: str, world: World) -> None:
    service, office = world.open("allowed")
    for name in sorted(ROUTES[method, route][0]):
        visitor = office.visitor("" if name == "anonymous" else name)
        response = call(visitor, world, method, route)
        assert not is_refused(response), f"{name}: {response.status_code}"
        assert response.status_code < 500, f"{name}: {response.status_code}"
        if method == "POST" or "{ticket}" in route:
            service.close()
            service, office = world.open("allowed")
    service.close()


def test_a_lead_reaches_nothing_of_another_project_by_its_numbers(world: World) -> None:
    """Numbers in a path are checked against each other, not only one by one."""
    service, office = world.open("mixed")
    other = office.visitor("other_lead")
    actor = service.accounts.log_in("other_lead", PASSWORD).actor
    mine = service.projects.mine(actor)[0].id
    ids = world.ids
    assert other.get(f"/p/{mine}/items/{ids.item}").status_code == 403
    before = contents(service)
    for path, data in (
        (f"/p/{mine}/reopen/{ids.done}", {"item": "1"}),
        (f"/p/{mine}/invitations/{ids.invitation_id}/revoke", {}),
    ):
        assert other.post(path, data).status_code == 403, path
    assert contents(service) == before
    service.close()
