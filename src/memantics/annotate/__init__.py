"""People validate, edit and agree: queues come in, verdicts go out.

``service.open_service`` is the way in; ``workflows/`` holds the rules as data. Nothing here is
imported before the extra ``annotate`` is known to be there: see :func:`require_extra`.
"""

from __future__ import annotations

from importlib.util import find_spec

from memantics.core.errors import MissingExtra

__all__ = ["require_extra"]


def require_extra() -> None:
    """Say in one line what to install, where the packages of this part are absent."""
    if any(find_spec(name) is None for name in ("sqlalchemy", "alembic", "argon2")):
        raise MissingExtra("annotation projects", "annotate")
