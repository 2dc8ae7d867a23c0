"""The server that runs an app, and the layers around it."""

from __future__ import annotations

import signal
import socket
from collections.abc import Sequence

import uvicorn
from fastapi import FastAPI
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from memantics.web.address import BACKLOG
from memantics.web.logs import note, start_logs
from memantics.web.shell import Limits, Shell

GRACE = 20


def wrap(app: FastAPI, limits: Limits, trusted_proxies: Sequence[str] = ()) -> None:
    """Put the shell around an app, and outermost the proxies that it believes."""
    app.add_middleware(Shell, limits=limits)
    if trusted_proxies:
        # Anybody else could name another address with every guess at a password.
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(trusted_proxies))


def configure(app: FastAPI, grace: int = GRACE) -> uvicorn.Config:
    """How an app is served."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the app itself asks which proxies are trusted
        date_header=True,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=30,
        backlog=BACKLOG,
    )


def serve(app: FastAPI, taken: socket.socket, grace: int = GRACE) -> None:
    """Serve until the process is told to stop; requests in hand are finished first."""
    start_logs()
    # The server takes these signals while it runs, ends, and raises them again: what was opened
    # around it must then still be closed in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _note_signal)
    uvicorn.Server(configure(app, grace)).run(sockets=[taken])


def _note_signal(number: int, _frame: object) -> None:
    note("signal", name=signal.Signals(number).name)
