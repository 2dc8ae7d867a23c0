"""Start the service: take the port, say where it is, serve until told to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memantics.serve.app import build_app
from memantics.serve.settings import ServeSettings
from memantics.web.address import listen
from memantics.web.server import serve


def run(settings: ServeSettings, started: Callable[[ServeSettings], None]) -> None:
    """Serve until the process is told to stop; ``started`` is called before the first request."""
    with listen(settings.reach.host, settings.reach.port) as taken:
        port = int(taken.getsockname()[1])
        settings = replace(settings, reach=replace(settings.reach, port=port))
        started(settings)
        serve(build_app(settings), taken)
