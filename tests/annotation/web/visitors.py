"""People with a browser each, talking to the app in this process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argon2 import PasswordHasher
from fastapi import FastAPI
from starlette.testclient import TestClient

from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService, open_service
from memantics.annotation.web.app import make_app
from memantics.annotation.web.settings import WebSettings

# The test client brings its own HTTP library, another one in each release.
Response = Any
HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
SECRET = b"a secret of the tests"
PASSWORD = "correct horse battery"
ADDRESS = "http://127.0.0.1:8765"


def open_quick(url: str, media: Path, clock: Any = None) -> AnnotationService:
    """A service whose passwords take no time; never do this outside tests."""
    if clock is None:
        return open_service(url, media, hasher=HASHER)
    return open_service(url, media, hasher=HASHER, clock=clock)


class Visitor:
    """A browser: it keeps cookies, and fills tokens into forms as a page would."""

    def __init__(self, app: FastAPI) -> None:
        self.client = TestClient(
            app, base_url=ADDRESS, follow_redirects=False, raise_server_exceptions=True
        )

    def get(self, path: str, **headers: str) -> Response:
        return self.client.get(path, headers=headers)

    def post(
        self, path: str, data: Mapping[str, Any] | None = None, files: Any = None, **headers: str
    ) -> Response:
        """Post with the token of this session."""
        form = {"token": self.token(), **(data or {})}
        return self.client.post(path, data=form, files=files, headers=headers)

    def token(self) -> str:
        for path in ("/settings", "/login"):
            found = re.search(r'name="token" value="([0-9a-f]+)"', self.get(path).text)
            if found:
                return found[1]
        raise AssertionError("no page with a form")

    def log_in(self, name: str, password: str = PASSWORD) -> Response:
        return self.post("/login", {"name": name, "password": password, "next": "/"})


@dataclass
class Office:
    """A service with its app, and people by name."""

    service: AnnotationService
    app: FastAPI
    lead: Actor

    def visitor(self, name: str = "") -> Visitor:
        """Somebody's browser, logged in where a name is given."""
        visitor = Visitor(self.app)
        if name:
            assert visitor.log_in(name).status_code == 303
        return visitor

    def hire(self, name: str, project: int, *roles: str, consent: bool = True) -> Actor:
        """A person with an account and roles in a project."""
        actor = self.service.accounts.create(self.lead, name, PASSWORD)
        if roles:
            self.service.projects.add_member(self.lead, project, name, roles)
            if consent:
                self.service.projects.consent(actor, project)
        return actor


def make_office(service: AnnotationService, **settings: Any) -> Office:
    """An app on a service, with its first account."""
    lead = service.accounts.create_first("lead", PASSWORD)
    return Office(service, make_app(service, WebSettings(SECRET, **settings)), lead)
