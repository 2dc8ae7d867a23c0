"""Steps that many tests take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memantics.annotation.records import Actor
from tests.annotation.web.queues import make_queue
from tests.annotation.web.visitors import PASSWORD, Office, Visitor

HARMLESS = {"version": "0", "project": "1", "k-harmful": "choice", "f-harmful": "no"}


def open_project(office: Office, folder: Path, workflow: str, count: int = 3, **extra: Any) -> int:
    queue = make_queue(folder / "queue", workflow, count, **extra)
    return office.service.exchange.open_queue(office.lead, queue).id


def take(visitor: Visitor, project: int) -> str:
    """Go to the next item; the path of its page."""
    return str(visitor.get(f"/p/{project}/next").headers["location"]).partition("?")[0]


def actor(office: Office, name: str) -> Actor:
    return office.service.accounts.log_in(name, PASSWORD).actor
