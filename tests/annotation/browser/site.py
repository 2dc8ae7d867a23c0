"""The app in a thread, and the people who sit before it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.request import Request, urlopen

import uvicorn
from playwright.sync_api import Browser, Page
from pydantic import JsonValue

from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService
from memantics.annotation.web.app import make_app
from memantics.annotation.web.settings import WebSettings
from memantics.web.server import listen
from tests.annotation.team import PASSWORD, make_lead

SECRET = b"a secret of the tests"


class Windows:
    """Windows of one browser, taken and handed back: opening one costs more than many pages."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._idle: dict[tuple[bool, int], list[Window]] = {}

    def take(self, *, script: bool, width: int) -> Window:
        """An empty window that nobody is logged in to."""
        idle = self._idle.setdefault((script, width), [])
        if idle:
            return idle.pop()
        context = self._browser.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=script, locale="en-GB"
        )
        context.set_default_timeout(60_000)
        window = Window(context.new_page(), script, width)
        window.page.on("pageerror", lambda error: window.errors.append(str(error)))
        window.page.on(
            "console",
            lambda message: window.errors.append(message.text) if message.type == "error" else None,
        )
        return window

    def give_back(self, window: Window) -> None:
        """Leave nothing of its last user behind: no page, no session, no choice of colours."""
        window.page.goto("about:blank")
        window.page.emulate_media(color_scheme="null")
        window.page.context.clear_cookies()
        window.errors.clear()
        self._idle[window.script, window.width].append(window)


@dataclass
class Window:
    """A page in a context of its own, and the errors it met."""

    page: Page
    script: bool
    width: int
    errors: list[str] = field(default_factory=list)


@dataclass
class User:
    """One person at a browser window of their own."""

    name: str
    address: str
    window: Window

    @property
    def page(self) -> Page:
        return self.window.page

    def go(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def next(self, project: int) -> str:
        """Open the next item; its heading, or nothing when there is none."""
        page = self.go(f"/p/{project}/next")
        return page.locator("h1").inner_text() if "/work/" in page.url else ""

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        """Write into the field in hand, then leave it."""
        self.press("e")
        self.page.keyboard.insert_text(text)
        self.press("Escape")

    def save(self) -> None:
        if self.page.locator("[name=veiled]").count() and self.window.script:
            for box in self.page.locator(".reveal:not(:checked)").all():
                box.check(force=True)
        with self.page.expect_navigation():
            self.press("Control+Enter")

    def chosen(self) -> list[str]:
        """What is chosen in the form, by value."""
        found: list[str] = self.page.eval_on_selector_all(
            "#answers input:checked", "nodes => nodes.map(node => node.value)"
        )
        return found


@dataclass
class Site:
    """A served app."""

    service: AnnotationService
    address: str
    windows: Windows
    lead: Actor
    cookie: str
    users: list[User] = field(default_factory=list)

    def visitor(self, *, script: bool = True, width: int = 1280) -> User:
        """A window of somebody who is not logged in."""
        user = User("", self.address, self.windows.take(script=script, width=width))
        self.users.append(user)
        return user

    def user(self, name: str, *, script: bool = True, width: int = 1280) -> User:
        """A window of somebody who has an account."""
        user = self.visitor(script=script, width=width)
        token = self.service.accounts.log_in(name, PASSWORD).token
        host = "127.0.0.1"
        user.page.context.add_cookies(
            [{"name": self.cookie, "value": token, "domain": host, "path": "/"}]
        )
        user.name = name
        return user

    def hire(self, project: int, roles: tuple[str, ...], *names: str) -> list[User]:
        """Accounts with roles, and a window each."""
        for name in names:
            actor = self.service.accounts.create(self.lead, name, PASSWORD)
            self.service.projects.add_member(self.lead, project, name, roles)
            self.service.projects.consent(actor, project)
        return [self.user(name) for name in names]

    def aggregated(self, project: int, *names: str) -> list[dict[str, JsonValue]]:
        """The resolved export as the lead downloads it; only what was asked for."""
        token = self.service.accounts.log_in("lead", PASSWORD).token
        path = f"/p/{project}/export?what=aggregated&form=jsonl"
        request = Request(self.address + path, headers={"cookie": f"{self.cookie}={token}"})
        with urlopen(request) as answer:
            rows = [json.loads(line) for line in answer]
        return [{name: row.get(name) for name in names} for row in rows]


@contextmanager
def serve_site(service: AnnotationService, windows: Windows) -> Iterator[Site]:
    """Serve until the block ends; then no window may have seen an error."""
    taken = listen("127.0.0.1", 0)
    port = taken.getsockname()[1]
    settings = WebSettings(SECRET, port=port)
    config = uvicorn.Config(
        make_app(service, settings),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    cookie = f"memantics-{port}"
    site = Site(service, settings.url, windows, make_lead(service), cookie)
    try:
        yield site
        assert [error for user in site.users for error in user.window.errors] == []
    finally:
        for user in site.users:
            windows.give_back(user.window)
        server.should_exit = True
        thread.join(20)
        taken.close()
