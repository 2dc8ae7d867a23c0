"""The service: HTTP interfaces and pages over the actions. ``memantics serve`` starts it.

``app.build_app(settings)`` makes the application. Nothing here is imported before the extra
``serve`` is known to be there: see :func:`require_extra`.
"""

from __future__ import annotations

from memantics.core.errors import need_packages


def require_extra() -> None:
    """Say in one line what to install, where the packages of this part are absent."""
    needed = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")
    need_packages("services", "serve", *needed)
