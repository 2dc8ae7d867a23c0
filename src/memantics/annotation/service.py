"""The annotation service: accounts, projects, work, lead and exchange on one database."""

from __future__ import annotations

import time
from pathlib import Path

from argon2 import PasswordHasher

from memantics.annotation.accounts import Accounts
from memantics.annotation.context import ServiceContext, WallClock
from memantics.annotation.database import Database
from memantics.annotation.lead import Guideline, Lead
from memantics.annotation.projects import Projects
from memantics.annotation.records import DatabaseHealth
from memantics.annotation.tables import Exchange
from memantics.annotation.work import AnnotationWork
from memantics.core.errors import StoreError

HEALTH_SECONDS = 1.5


class AnnotationService:
    """All operations of the web app and the command line on one database."""

    def __init__(self, context: ServiceContext, hasher: PasswordHasher | None = None) -> None:
        self.context = context
        self.accounts = Accounts(context, hasher)
        self.projects = Projects(context)
        self.work = AnnotationWork(context)
        self.lead = Lead(context)
        self.guideline = Guideline(context, self.lead)
        self.exchange = Exchange(context, self.projects)

    def health(self) -> DatabaseHealth:
        """Return whether the database responds within 1.5 seconds, and its schema revision."""
        kind = "sqlite" if self.context.db.sqlite else "postgresql"
        try:
            return DatabaseHealth(True, kind, self.context.db.schema_version(HEALTH_SECONDS))
        except StoreError:
            return DatabaseHealth(False, kind, "")

    def close(self) -> None:
        """Close the database."""
        self.context.db.close()


def open_service(
    url: str | Path,
    media: Path,
    *,
    clock: WallClock = time.time,
    hasher: PasswordHasher | None = None,
) -> AnnotationService:
    """Open a database, upgrade its schema and return the service.

    Tests may pass a faster ``hasher``; the default one is slow by design.
    """
    database = Database(str(url))
    database.migrate()
    media.mkdir(mode=0o700, parents=True, exist_ok=True)
    return AnnotationService(ServiceContext(database, media, clock), hasher)
