"""The HTTP server of both web apps: address, allowed host names, trusted proxies, processes."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.process import BaseProcess
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import h11
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from memantics.core.errors import InputError
from memantics.web import budget
from memantics.web.budget import Limits
from memantics.web.logs import note, start_logs, warn
from memantics.web.shell import RequestWatch, Shell

BACKLOG = 512
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
GRACE = 20
SWITCH = 0.001  # seconds after which a computing thread yields to another one
MOST_LOST = 10  # maximum number of worker processes that may die before the server stops


def is_local(host: str) -> bool:
    """Return whether only this machine can reach a host.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0"), is_local("::1")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_url(host: str, port: int, public_url: str = "") -> str:
    """Return the URL for a browser.

    >>> server_url("::1", 80), server_url("127.0.0.1", 80, "https://memes.example.org/")
    ('http://[::1]:80', 'https://memes.example.org')
    """
    if public_url:
        return public_url.rstrip("/")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def list_hosts(host: str, public_url: str = "") -> frozenset[str] | None:
    """Return the allowed Host header values of a request; None: any.

    For a local server only local names are allowed: another site could otherwise reach it by
    pointing its own name at 127.0.0.1 (DNS rebinding).
    """
    if public_url:
        return frozenset({urlsplit(public_url).hostname or "", *LOOPBACK_NAMES})
    return frozenset(LOOPBACK_NAMES) if is_local(host) else None


def check_public_url(given: str) -> str:
    """Return the validated public URL; raise an ``InputError`` if it is invalid.

    >>> check_public_url("https://[::1")
    Traceback (most recent call last):
    memantics.core.errors.InputError: --public-url https://[::1 is not a valid URL; write it like \
https://memes.example.org
    """
    try:
        parts = urlsplit(given)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unfinished IPv6 address, or no number as port
        known = False
    if given and not known:
        raise InputError(
            f"--public-url {given} is not a valid URL",
            hint="write it like https://memes.example.org",
        )
    return given


def read_proxies(given: Iterable[str]) -> tuple[str, ...]:
    """Return the validated IP addresses and networks of proxies.

    >>> read_proxies(["10.0.0.7", "192.168.1.0/24"])
    ('10.0.0.7/32', '192.168.1.0/24')
    """
    found = []
    for text in given:
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            raise InputError(
                f"--trusted-proxy {text} is not a valid IP address",
                hint="for example 10.0.0.7 or 10.0.0.0/24",
            ) from error
        if network.prefixlen == 0:
            raise InputError(
                f"--trusted-proxy {text} includes every IP address",
                hint="give the IP address of your proxy",
            )
        found.append(str(network))
    return tuple(found)


def listen(host: str, port: int) -> socket.socket:
    """Bind the port at once, so that a port in use is reported before anything else happens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Responses are sent in two pieces. Without this option the second piece waits 40 ms until the
    # client acknowledges the first.
    taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        taken.bind((host, port))
        taken.listen(BACKLOG)  # Early connections wait in the queue and are not refused.
    except OSError as error:
        taken.close()
        busy = error.errno == errno.EADDRINUSE
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another --port" if busy else "check --host",
        ) from error
    return taken


# A connection that joins everything written in one iteration of the event loop into one packet.

_PIECE = 64 * 1024  # number of bytes from which data are sent immediately


class GatheringTransport:
    """A connection that joins header and body of a response into one write, at half the cost."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = bytearray()

    def write(self, data: bytes) -> None:
        """Send at the end of this loop iteration, or at once if there is much data."""
        if data and not self._held:
            self._loop.call_soon(self.flush)
        self._held += data
        if len(self._held) >= _PIECE:
            self.flush()

    def flush(self) -> None:
        """Send buffered data."""
        held, self._held = self._held, bytearray()
        if held and not self._transport.is_closing():
            self._transport.write(held)

    def close(self) -> None:
        """Send buffered data, then close the connection."""
        self.flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Return the number of unsent bytes."""
        return len(self._held) + self._transport.get_write_buffer_size()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def wrap(
    app: Starlette,
    limits: Limits,
    trusted_proxies: Sequence[str] = (),
    watch: RequestWatch | None = None,
) -> None:
    """Wrap an app in the shared request checks and the handling of trusted proxies."""
    app.add_middleware(Shell, limits=limits, watch=watch)
    app.state.trusted_proxies = tuple(map(ipaddress.ip_network, trusted_proxies))
    if trusted_proxies:
        # Untrusted clients could otherwise claim a new address for every guess at a password.
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(trusted_proxies))


class CountingConnection(h11.Connection):
    """The HTTP parser of a connection; it rejects bodies of very many very small pieces."""

    _pieces = _bytes = 0

    def next_event(self) -> Any:
        """Return the next event of a request."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            least = self._pieces * budget.LEAST_PIECE
            if self._pieces > budget.FEW_PIECES and self._bytes < least:
                raise h11.RemoteProtocolError("the chunks of the request body are too small")
        return event


_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 2\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 38\r\n\r\n"
    b"Too many connections from this address"
)


class PatientProtocol(H11Protocol):
    """An HTTP protocol with limits, all of them in :mod:`memantics.web.budget`.

    A connection is closed if a request's header does not arrive in time, or if the client does not
    read the response. If one address has too many connections, or all addresses together, the
    connection of that address that has waited longest without a request is closed. The protocol is
    always h11, because httptools has no limit on the length of a head.
    """

    _late: asyncio.TimerHandle | None = None
    _beat: asyncio.TimerHandle | None = None
    _unsent = 0
    _moved = False
    network = ""
    since = 0.0
    _surplus = 0

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.conn = CountingConnection(h11.SERVER, budget.HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for a request."""
        # A piece is parsed without a break, so other connections wait for it.
        transport.max_size = budget.HEAD_BYTES  # type: ignore[attr-defined]
        gathering: Any = GatheringTransport(transport, self.loop)
        super().connection_made(gathering)
        self.since = self.loop.time()
        self.network = budget.name_network(self.client[0]) if self.client else ""
        if not self._make_room():
            _TABLES[self.server_state].remove(self)
            transport.write(_BUSY)
            transport.close()
            return
        self._watch()
        self._beat = self.loop.call_later(budget.WRITE_SECONDS, self._check_reader)

    @property
    def is_idle(self) -> bool:
        """Whether the connection has no request and no unsent response."""
        return self._waits and not self.transport.get_write_buffer_size()

    def _make_room(self) -> bool:
        """Return whether this connection may stay; if needed, close one that has no request."""
        table = _TABLES.setdefault(self.server_state, ConnectionTable())
        table.add(self)
        mine = len(table.networks[self.network])
        if mine > budget.MOST_PER_ADDRESS and not self._is_proxy():
            return table.close_idle(self.network)
        if table.count < budget.MOST_CONNECTIONS:
            return True
        # Above this number, uvicorn answers every request with status 503.
        most = max(table.networks, key=lambda network: len(table.networks[network]))
        return table.close_idle(most) or table.count <= 2 * budget.MOST_CONNECTIONS

    def _is_proxy(self) -> bool:
        proxies = getattr(getattr(self.config.app, "state", None), "trusted_proxies", ())
        if not proxies or self.client is None:
            return False
        try:
            address = ipaddress.ip_address(self.client[0])
        except ValueError:
            return False
        return any(address in network for network in proxies)

    def resume_writing(self) -> None:
        """Stop the write timer, because the client has read the buffered data."""
        self._moved = True
        super().resume_writing()

    def _check_reader(self) -> None:
        """Abort the connection of a client that does not read; ``close`` would wait forever."""
        left = self.transport.get_write_buffer_size()
        if self._unsent and not self._moved and left > max(0, self._unsent - budget.LEAST_READ):
            self.transport.abort()
            return
        self._unsent, self._moved = left, False
        self._beat = self.loop.call_later(budget.WRITE_SECONDS, self._check_reader)

    def data_received(self, data: bytes) -> None:
        """Process received data; between requests, restart the timer."""
        if self.transport.is_closing():
            return
        if self._waits and self.conn.their_state is h11.SEND_BODY:
            # The request is answered, but its body still arrives.
            self._surplus += len(data)
            if self._surplus > budget.LINGER_BYTES:
                self.transport.abort()
                return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Count from here how long the connection has no request."""
        self.since, self._surplus = self.loop.time(), 0
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Reject an invalid request; if it is already answered, only close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
            if self.cycle is not None and not self.cycle.response_complete:
                # The app must not answer a second time.
                self.cycle.disconnected = True
                self.cycle.message_event.set()
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers of the closed connection."""
        for timer in (self._late, self._beat):
            if timer is not None:
                timer.cancel()
        if self.server_state in _TABLES:
            _TABLES[self.server_state].remove(self)
        super().connection_lost(exc)

    @property
    def _waits(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        if not self._waits and self._late is not None:
            self._late.cancel()
            self._late = None
        elif self._waits and self._late is None:
            self._late = self.loop.call_later(budget.HEAD_SECONDS, self._cut)

    def _cut(self) -> None:
        self._late = None
        if self._waits and not self.transport.is_closing():
            self.transport.close()


class ConnectionTable:
    """The open connections of a server by network, oldest first."""

    def __init__(self) -> None:
        self.networks: dict[str, dict[PatientProtocol, None]] = {}
        self.count = 0

    def add(self, one: PatientProtocol) -> None:
        """Add a new connection."""
        self.networks.setdefault(one.network, {})[one] = None
        self.count += 1

    def remove(self, one: PatientProtocol) -> None:
        """Remove a connection, if it is not yet removed."""
        found = self.networks.get(one.network, {})
        if one in found:
            del found[one]
            self.count -= 1
            if not found:
                del self.networks[one.network]

    def close_idle(self, network: str) -> bool:
        """Close the longest idle connection of a network; return False if none is idle.

        Connections that never had a request come first. The newest connection is kept.
        """
        found = list(self.networks[network])[:-1]
        chosen = next((one for one in found if one.cycle is None and one.is_idle), None)
        if chosen is None:
            idle = [one for one in found if one.is_idle]
            if not idle:
                return False
            chosen = min(idle, key=lambda one: one.since)
        self.remove(chosen)
        chosen.transport.close()
        return True


_TABLES: WeakKeyDictionary[ServerState, ConnectionTable] = WeakKeyDictionary()


def configure(app: Starlette, grace: int = GRACE) -> uvicorn.Config:
    """Return the server configuration of an app."""
    return uvicorn.Config(
        app,
        http=PatientProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # The app itself decides which proxies are trusted.
        date_header=True,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=budget.IDLE_SECONDS,
        limit_concurrency=budget.MOST_CONNECTIONS,
        h11_max_incomplete_event_size=budget.HEAD_BYTES,
        loop="asyncio",  # its transports have the size limit of a read
        ws="none",  # Requests for WebSockets would bypass all checks.
        backlog=BACKLOG,
    )


def serve(app: Starlette, taken: socket.socket, grace: int = GRACE) -> None:
    """Serve an app until the process is stopped; current requests are finished first."""
    start_logs()
    if multiprocessing.parent_process() is None:
        warn_of_python()
    sys.setswitchinterval(SWITCH)
    # While it runs, uvicorn handles these signals, shuts down and raises them again. Resources
    # opened around the server must then still be closed in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _note_signal)
    uvicorn.Server(configure(app, grace)).run(sockets=[taken])


def warn_of_python() -> None:
    """Log a warning if this version of Python has known faults that attacks on web apps use."""
    fault = budget.find_python_fault()
    if fault:
        warn("python", problem=fault)


def serve_many(
    make: Callable[[], FastAPI], taken: socket.socket, workers: int, grace: int = GRACE
) -> None:
    """Serve with several processes, each with its own app; a process that dies is replaced."""
    start_logs()
    warn_of_python()
    told: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: told.append(number))
    context = multiprocessing.get_context("spawn")

    def start() -> BaseProcess:
        process = context.Process(target=_serve_one, args=(make, taken, grace))
        process.start()
        return process

    running = [start() for _ in range(workers)]
    # An app may act on this signal, for example by opening its files again.
    signal.signal(signal.SIGHUP, lambda number, _frame: _pass_on(running, number))
    lost = 0
    while not told and lost < MOST_LOST:
        time.sleep(0.2)
        for place, process in enumerate(running):
            if not process.is_alive() and not told:
                lost += 1
                note("worker lost", code=process.exitcode)
                running[place] = start()
    for process in running:
        process.terminate()
    for process in running:
        process.join(grace + 5)
        process.kill()
    if not told:
        raise InputError(f"{lost} worker processes died", hint="see the log")


def _pass_on(running: Sequence[BaseProcess], number: int) -> None:
    for process in running:
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, number)


def _serve_one(make: Callable[[], FastAPI], taken: socket.socket, grace: int) -> None:
    start_logs()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    serve(make(), taken, grace)


def _end_with_parent() -> None:
    """End this worker process if its parent was killed, so that the port is released."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _note_signal(number: int, _frame: object) -> None:
    note("signal", name=signal.Signals(number).name)
