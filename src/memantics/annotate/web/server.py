"""Run the app: one process, one port, and an orderly end."""

from __future__ import annotations

import errno
import signal
import socket

import uvicorn

from memantics.annotate.service import Service
from memantics.annotate.web.app import make_app
from memantics.annotate.web.logs import note, start_logs
from memantics.annotate.web.settings import WebSettings
from memantics.core.errors import InputError

GRACE = 20
BACKLOG = 512


def listen(host: str, port: int) -> socket.socket:
    """Take the port, so that a busy one is an error before anything else happens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(BACKLOG)  # who opens the link at once waits instead of being turned away
    except OSError as error:
        taken.close()
        busy = error.errno == errno.EADDRINUSE
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another --port" if busy else "check --host",
        ) from error
    return taken


def serve(service: Service, settings: WebSettings, taken: socket.socket) -> None:
    """Serve until the process is told to stop; requests in hand are finished first."""
    start_logs()
    config = uvicorn.Config(
        make_app(service, settings),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the app itself asks which proxies are trusted
        date_header=True,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30,
        backlog=BACKLOG,
    )
    # The server takes these signals while it runs, ends, and raises them again: what was opened
    # around it must then still be closed in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _note_signal)
    uvicorn.Server(config).run(sockets=[taken])


def _note_signal(number: int, _frame: object) -> None:
    note("signal", name=signal.Signals(number).name)
