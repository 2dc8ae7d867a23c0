"""``python -m tests.annotation.browser.album FOLDER``: every screen of the app, to look at.

Each is drawn at two widths, in both languages, light and dark, with a team that has begun: votes
that differ, a rule that was added, training that was passed and failed, a limit that is reached.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from memantics.annotation.records import Preferences
from memantics.annotation.service import open_service
from memantics.construction.queues import make_questionnaire
from memantics.core.queue import QueueCard, QueueItem, Shown, write_queue
from tests.annotation.browser.site import Site, User, Windows, serve_site
from tests.annotation.team import PASSWORD, plain_items, quick_hasher
from tests.annotation.team import make_queue as make_plain_queue
from tests.annotation.web.queues import make_queue, questions
from tests.browser import launch

WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
LANGUAGES: tuple[Literal["en", "zh"], ...] = ("en", "zh")
NO: dict[str, JsonValue] = {"harmful": "no"}
YES: dict[str, JsonValue] = {"harmful": "yes", "type": "offence", "modality": "text"}
AIMED: dict[str, JsonValue] = YES | {"type": "targeted", "target": "gender"}
VOTES = {"ann": (NO, YES, NO, AIMED, NO), "bob": (YES, YES, NO, NO, NO), "cy": (NO, NO, NO, YES)}
TURNS = "A: The printer jams again.\nB: Look at my empty bowl."


@dataclass
class Album:
    """One look at all screens: where pictures go, and how people see them."""

    site: Site
    folder: Path
    width: int
    language: Literal["en", "zh"]
    scheme: str

    def sit(self, name: str) -> User:
        """Somebody at a window of this look."""
        actor = self.site.service.accounts.log_in(name, PASSWORD).actor
        self.site.service.accounts.set_preferences(actor, Preferences(language=self.language))
        return self._look(self.site.user(name, width=self.width))

    def visit(self) -> User:
        """Somebody without an account."""
        return self._look(self.site.visitor(width=self.width))

    def _look(self, user: User) -> User:
        user.page.emulate_media(color_scheme="dark" if self.scheme == "dark" else "light")
        return user

    def keep(self, user: User, name: str) -> None:
        """Draw what a person sees now."""
        user.page.wait_for_timeout(350)
        place = self.folder / f"{name}.{self.width}.{self.language}.{self.scheme}.png"
        user.page.screenshot(path=place, full_page=True)

    def show(self, user: User, name: str, path: str) -> None:
        """Go there and draw it; what the server refuses is drawn as well."""
        user.go(path)
        self.keep(user, name)
        user.window.errors.clear()  # the browser notes 403 and 404 on its console


def found_team(album: Album, folder: Path) -> int:
    """A project with three people, votes that differ and a rule that was added."""
    service, lead = album.site.service, album.site.lead
    texts = lambda place: [Shown(label="text", value=f"What is printed on meme {place + 1}")]  # noqa: E731
    queue = make_queue(folder / "votes", "label-by-vote", 8, "Some are rude.", shown=texts)
    project = service.exchange.open_queue(lead, queue).id
    service.projects.set_roles(lead, project, lead.id, ["lead", "annotator", "adjudicator"])
    service.projects.consent(lead, project)
    service.projects.change(lead, project, {"comments": True, "contact": "the lead, room 3"})
    service.accounts.invite(lead, project, ["annotator"], note="for somebody with a long name")
    for name, votes in VOTES.items():
        actor = service.accounts.create(lead, name, PASSWORD)
        service.projects.add_member(lead, project, name, ["annotator"])
        service.projects.consent(actor, project)
        for said in votes:
            task = service.work.next(actor, project)
            assert task is not None
            service.work.submit(actor, task.assignment, said, task.version, 7.0)
    return project


def draw_team(album: Album, folder: Path) -> None:
    """What a lead and an annotator see on their second day."""
    site, project = album.site, found_team(album, folder)
    guest = album.visit()
    album.show(guest, "login", f"/login?lang={album.language}")
    token = site.service.accounts.invite(site.lead, project, ["annotator"])
    album.show(guest, "join", f"/join/{token}?lang={album.language}")
    lead = album.sit("lead")
    page = lead.go(f"/p/{project}/guideline")
    page.locator("[name=number]").first.check()
    page.locator("#en").fill("A joke about a thing is not harmful.")
    album.keep(lead, "guideline-writing")
    with page.expect_navigation():
        page.locator("main form button.main").first.click()
    album.keep(lead, "guideline-added")
    for name in ("progress", "agreement", "disagreements", "items", "members", "data", "audit"):
        album.show(lead, name, f"/p/{project}/{name}")
    for name in ("setup", "guideline", "welcome", "last"):
        album.show(lead, name, f"/p/{project}/{name}")
    album.show(lead, "project-lead", f"/p/{project}")
    album.show(lead, "one", f"/p/{project}/items/1")
    for name, path in {"home": "/", "settings": "/settings", "new": "/projects/new"}.items():
        album.show(lead, name, path)
    album.show(lead, "not-there", "/p/999")
    ann = album.sit("ann")
    album.show(ann, "project-annotator", f"/p/{project}")
    album.show(ann, "item-again", f"/p/{project}/next")
    ann.press("v", "y", "1")
    album.keep(ann, "item-open")
    album.show(ann, "last-annotator", f"/p/{project}/last")
    album.show(ann, "forbidden", f"/p/{project}/audit")
    draw_conflict(album, project)


def draw_conflict(album: Album, project: int) -> None:
    """Two windows of one person on one item; then a limit that is reached."""
    first, second = album.sit("bob"), album.sit("bob")
    for user in (first, second):
        user.next(project)
    for user, key in ((first, "n"), (second, "y")):
        user.press(key, *(("2", "w") if key == "y" else ()))
        user.save()
    album.keep(second, "conflict")
    second.window.errors.clear()  # the browser notes the answer 409 on its console
    album.site.hire(project, ("annotator",), "late")
    album.site.service.projects.change(album.site.lead, project, {"daily_limit": 1})
    late = album.sit("late")
    late.next(project)
    late.press("n")
    late.save()
    album.keep(late, "limit")
    late.window.errors.clear()


def draw_training(album: Album, folder: Path, mark: float, *, feedback: bool, name: str) -> None:
    """One item with a known answer, got wrong: passed where nothing is asked for."""
    service, lead = album.site.service, album.site.lead
    gold = lambda place: NO if place == 0 else None  # noqa: E731
    queue = make_queue(folder / name, "label-by-vote", 3, gold=gold)
    project = service.exchange.open_queue(lead, queue).id
    service.projects.change(lead, project, {"pass_mark": mark, "feedback": feedback})
    album.site.hire(project, ("annotator",), name)
    user = album.sit(name)
    user.next(project)
    album.keep(user, f"{name}-asks")
    user.press("y", "2", "w")
    user.save()
    album.keep(user, f"{name}-ends")
    user.go(f"/p/{project}/next")
    album.keep(user, f"{name}-after")
    user.window.errors.clear()


def make_text_queue(folder: Path, workflow: str, item: QueueItem) -> Path:
    """A queue of words alone."""
    write_queue(folder, QueueCard(title="Words", workflow=workflow), [item])
    return folder


def draw_forms(album: Album, folder: Path) -> None:
    """The first item of each other workflow, and what comes after the last one."""
    service, lead = album.site.service, album.site.lead
    chat = Shown(label="Chat", value=TURNS.splitlines())
    chats = [QueueItem(id="c", group="c", shown=[chat], values={"turns": TURNS})]
    output = [Shown(label="output", value="The meme mocks robots.")]
    pair = [Shown(label="pair", value=["A kinder caption.", "Another one."], kind="pair")]
    words = QueueItem(id="t", group="t", shown=[Shown(label="text", value="Only words here.")])
    queues: dict[str, Callable[[Path], Path]] = {
        "validate": lambda at: make_queue(at, "validate", 1, shown=questions),
        "edit-chats": lambda at: make_plain_queue(at, "edit-chats", chats),
        "rate-outputs": lambda at: make_queue(at, "rate-outputs", 1, shown=output),
        "rate-pairs": lambda at: make_queue(at, "rate-outputs", 1, shown=pair),
        "review": lambda at: make_text_queue(at, "review", words),
        "review-harm": lambda at: make_text_queue(at, "review-harm", words),
    }
    others = ("collect-and-edit", "pun-form", "verify-stages", "find-emotions", "review-text")
    for name in others:
        queues[name] = lambda at, name=name: make_queue(at, name, 2)  # type: ignore[misc]
    for name, make in queues.items():
        project = service.exchange.open_queue(lead, make(folder / name)).id
        album.site.hire(project, ("annotator",), name)
        album.show(album.sit(name), f"form-{name}", f"/p/{project}/next")
    empty = make_plain_queue(folder / "empty", "label-by-vote", plain_items(1))
    project = service.exchange.open_queue(lead, empty).id
    album.site.hire(project, ("annotator",), "early")
    early = album.sit("early")
    early.next(project)
    early.press("n")
    early.save()
    album.keep(early, "nothing-left")


def draw_questionnaire(album: Album, folder: Path) -> None:
    """A form about oneself with its test, and its end; it shares no database with others."""
    forms = make_questionnaire(
        folder / "forms", 2, "zh" if album.language == "zh" else "none"
    ).folder
    project = album.site.service.exchange.open_queue(album.site.lead, forms).id
    album.site.hire(project, ("annotator",), "somebody")
    user = album.sit("somebody")
    user.next(project)
    album.keep(user, "questionnaire")
    user.press("y", "f", "2", "a", "p", *("1" * 5))
    user.save()
    album.keep(user, "questionnaire-end")
    lead = album.sit("lead")
    album.show(lead, "questionnaire-progress", f"/p/{project}/progress")
    album.show(lead, "questionnaire-agreement", f"/p/{project}/agreement")


def draw(album: Album, folder: Path) -> None:
    """All screens of one database."""
    draw_team(album, folder)
    for name, mark, feedback in (
        ("trained", 0.0, True),
        ("failed", 1.0, True),
        ("tested", 0.0, False),
        ("sent-away", 1.0, False),
    ):
        draw_training(album, folder, mark, feedback=feedback, name=name)
    draw_forms(album, folder)


def main(target: str) -> None:
    """Draw every look."""
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    with launch() as browser:
        windows = Windows(browser)
        for width, language, scheme in product(WIDTHS, LANGUAGES, SCHEMES):
            for part in (draw, draw_questionnaire):
                with tempfile.TemporaryDirectory() as name:
                    at = Path(name)
                    service = open_service(at / "db", at / "media", hasher=quick_hasher())
                    with serve_site(service, windows) as site:
                        part(Album(site, folder, width, language, scheme), at)
                    service.close()
            print(width, language, scheme)


if __name__ == "__main__":
    main(sys.argv[1])
