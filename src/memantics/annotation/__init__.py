"""Annotation web app: import queues, annotate in the browser, export aggregated annotations.

``service.open_service`` opens a database; ``workflows/`` contains the workflows as TOML files. The
modules of this package need the extra ``annotate``: call :func:`require_extra` before importing
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memantics.core.errors import need_packages

__all__ = ["require_extra"]


def require_extra() -> None:
    """Raise an error with the install command if the packages of the extra are missing."""
    need_packages("annotation projects", "annotate", "sqlalchemy", "alembic", "argon2")


if TYPE_CHECKING:
    from memantics.annotation.commands import AppStart as AppStart
    from memantics.annotation.commands import BackupSummary as BackupSummary
    from memantics.annotation.commands import ImportSummary as ImportSummary
    from memantics.annotation.commands import back_up as back_up
    from memantics.annotation.commands import close_account as close_account
    from memantics.annotation.commands import export_annotations as export_annotations
    from memantics.annotation.commands import import_annotations as import_annotations
    from memantics.annotation.commands import reset_password as reset_password
    from memantics.annotation.commands import restore_backup as restore_backup
    from memantics.annotation.commands import serve_annotations as serve_annotations
    from memantics.annotation.commands import set_up_project as set_up_project
    from memantics.annotation.guideline import GuidelineState as GuidelineState
    from memantics.annotation.guideline import grow_guideline as grow_guideline
else:
    from memantics.core.lazy import offer

    offer(__name__, __file__)
