"""The way in: one service over one database, in parts by what people do."""

from __future__ import annotations

import time
from pathlib import Path

from argon2 import PasswordHasher
from sqlalchemy.exc import SQLAlchemyError

from memantics.annotate.accounts import Accounts
from memantics.annotate.base import Clock, Ground
from memantics.annotate.database import Database
from memantics.annotate.exchange import Exchange
from memantics.annotate.lead import Lead
from memantics.annotate.projects import Projects
from memantics.annotate.records import Health
from memantics.annotate.work import Work


class Service:
    """All that the web app and the command line do with the data."""

    def __init__(self, ground: Ground, hasher: PasswordHasher | None = None) -> None:
        self.ground = ground
        self.accounts = Accounts(ground, hasher)
        self.projects = Projects(ground)
        self.work = Work(ground)
        self.lead = Lead(ground)
        self.exchange = Exchange(ground, self.projects)

    def health(self) -> Health:
        """Whether the database answers."""
        kind = "sqlite" if self.ground.db.sqlite else "postgresql"
        try:
            return Health(True, kind, self.ground.db.schema_version())
        except SQLAlchemyError:
            return Health(False, kind, "")

    def close(self) -> None:
        """Let go of the database."""
        self.ground.db.close()


def open_service(
    url: str | Path,
    media: Path,
    *,
    clock: Clock = time.time,
    hasher: PasswordHasher | None = None,
) -> Service:
    """Open a database, bring its schema up to date and serve it.

    ``hasher`` may be a weaker one in tests: a good one takes its time on purpose.
    """
    database = Database(str(url))
    database.migrate()
    media.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Service(Ground(database, media, clock), hasher)
