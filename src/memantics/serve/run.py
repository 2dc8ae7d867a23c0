"""Start the service: take the port, say where it is, serve until told to stop."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from memantics.core.errors import InputError
from memantics.core.journal import refuse_unwritable
from memantics.serve.app import build_app
from memantics.serve.jobs import JobStore
from memantics.serve.metrics import FOLDER
from memantics.serve.settings import ServeSettings
from memantics.web.address import listen
from memantics.web.server import serve, serve_many

GRACE = 40  # seconds: longer than a request may take


def run(settings: ServeSettings, started: Callable[[ServeSettings], None]) -> None:
    """Serve until the process is told to stop; ``started`` is called before the first request."""
    with listen(settings.reach.host, settings.reach.port) as taken:
        port = int(taken.getsockname()[1])
        settings = replace(settings, reach=replace(settings.reach, port=port))
        with _own(settings.state):
            _recover(settings.state)
            if settings.workers == 1:
                app = build_app(settings)
                started(settings)
                serve(app, taken, GRACE)
            else:
                started(settings)
                with tempfile.TemporaryDirectory(prefix="memantics-metrics-") as folder:
                    os.environ[FOLDER] = folder
                    serve_many(partial(build_app, settings), taken, settings.workers, GRACE)


def _recover(folder: Path) -> None:
    """What ran when the service ended last time waits again."""
    store = JobStore(folder, keep=0, most=0)
    try:
        store.recover()
    finally:
        store.close()


@contextmanager
def _own(folder: Path) -> Iterator[None]:
    """Hold the folder of jobs: a second service on it would run them twice."""
    with refuse_unwritable(folder, "--state"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (folder / "lock").open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another service keeps its jobs in {folder}", hint="give --state another folder"
            ) from None
        yield
