"""Clients that never read what they asked for are hung up on; connections have an end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.responses import Response

from memantics.web import budget, server
from memantics.web.server import listen


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[uvicorn.Server, int]]:
    """A page of 16 MB, by the server of all our apps."""
    monkeypatch.setattr(budget, "WRITE_SECONDS", 1.0, raising=False)
    app = FastAPI()
    app.add_route("/", lambda _request: Response(b"x" * 16_000_000))
    with listen("127.0.0.1", 0) as taken:
        made = uvicorn.Server(server.configure(app, grace=1))
        thread = threading.Thread(target=made.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        while not made.started:
            time.sleep(0.02)
        yield made, taken.getsockname()[1]
        made.should_exit = made.force_exit = True
        thread.join(20)


def ask(port: int) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port))
    line.settimeout(20)
    line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return line


@pytest.mark.slow
def test_who_does_not_read_is_hung_up_on(served: tuple[uvicorn.Server, int]) -> None:
    made, port = served
    with ExitStack() as lines:
        for _ in range(3):
            lines.enter_context(ask(port))
        while len(made.server_state.connections) < 3:
            time.sleep(0.02)
        slow = lines.enter_context(ask(port))
        for _ in range(100):  # reads all the time, a little
            assert len(slow.recv(100_000)) > 0
            if len(made.server_state.connections) == 1:
                break
            time.sleep(0.05)
        assert len(made.server_state.connections) == 1


def test_connections_have_an_end(
    served: tuple[uvicorn.Server, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle connections make room; if none is idle, new ones are rejected."""
    made, port = served
    assert made.config.limit_concurrency == 512
    monkeypatch.setattr(budget, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(budget, "WRITE_SECONDS", 60.0)
    with ExitStack() as lines:
        for _ in range(6):
            lines.enter_context(socket.create_connection(("127.0.0.1", port)))
        for number in range(4):  # these wait for their answers to be read
            assert lines.enter_context(ask(port)).recv(10)
            assert len(made.server_state.connections) <= max(2, number + 1)
        fifth = lines.enter_context(socket.create_connection(("127.0.0.1", port)))
        fifth.settimeout(20)
        assert fifth.recv(20).startswith(b"HTTP/1.1 503")


def test_a_refused_body_is_answered_once(caplog: pytest.LogCaptureFixture) -> None:
    """The app answered, too, and the log had a failure with status 500 for each such request."""
    app, statuses = FastAPI(), list[int]()
    server.wrap(app, budget.Limits(None), watch=lambda _scope, status, _s: statuses.append(status))
    head = b"POST /none HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    with listen("127.0.0.1", 0) as taken:
        made = uvicorn.Server(server.configure(app, grace=1))
        thread = threading.Thread(target=made.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        for body in (b"-1\r\na\r\n", b"1\na\n0\n\n", b"zz"):
            with socket.create_connection(taken.getsockname()) as line:
                line.settimeout(20)
                line.sendall(head + body + b"\r\n")
                heard = b"".join(iter(lambda: line.recv(1000), b""))
            assert heard.startswith(b"HTTP/1.1 400")
            assert heard.count(b"HTTP/1.1") == 1
        made.should_exit = made.force_exit = True
        thread.join(20)
    assert 500 not in statuses
    assert not [record for record in caplog.records if record.message == "failed"]
