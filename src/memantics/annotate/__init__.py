"""People validate, edit and agree: queues come in, verdicts go out.

``service.open_service`` is the way in; ``workflows/`` holds the rules as data. Nothing here is
imported before the extra ``annotate`` is known to be there: see :func:`require_extra`.
"""

from __future__ import annotations

from memantics.core.errors import need_packages

__all__ = ["require_extra"]


def require_extra() -> None:
    """Say in one line what to install, where the packages of this part are absent."""
    need_packages("annotation projects", "annotate", "sqlalchemy", "alembic", "argon2")
