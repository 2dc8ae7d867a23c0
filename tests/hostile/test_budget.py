"""What strangers send has a limit in both apps, and honest clients are answered meanwhile."""

from __future__ import annotations

import http.cookies
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from memantics.serve.settings import ServeSettings, Token, digest
from memantics.web import server
from memantics.web.server import listen
from tests.annotation.web.visitors import ADDRESS, SECRET, open_quick
from tests.hostile.budgets import build, generate
from tests.hostile.cases import SEED, Case, count_cases, noted
from tests.serve.site import serving

HELLO = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
STATUSES = {200, 303, 400, 401, 403, 404, 405, 408, 413, 415, 421, 431, 503}


@contextmanager
def running(app: FastAPI) -> Iterator[int]:
    """Serve an app on a port until the block ends."""
    with listen("127.0.0.1", 0) as taken:
        made = uvicorn.Server(server.configure(app, grace=1))
        thread = threading.Thread(target=made.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        while not made.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield taken.getsockname()[1]
        made.should_exit = made.force_exit = True
        thread.join(20)


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[FastAPI]:
    """The annotation app."""
    from memantics.annotation.web.app import make_app
    from memantics.annotation.web.settings import WebSettings

    service = open_quick(f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "media")
    yield make_app(service, WebSettings(SECRET))
    service.close()


def send(port: int, data: bytes, *, hang_up: bool = False) -> int:
    """Send a request; its status, or 0 if one of both hung up."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.settimeout(20)
        if hang_up:
            _push(line, data)
            return 0
        sender = threading.Thread(target=_push, args=(line, data), daemon=True)
        sender.start()
        try:
            heard = line.recv(100)
        except ConnectionError:
            heard = b""
        sender.join(20)
    found = re.match(rb"HTTP/1\.1 (\d+)", heard)
    return int(found[1]) if found else 0


def _push(line: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        line.sendall(data)


def attack(port: int, health: str, cases: Iterator[Case]) -> Counter[int]:
    ends: Counter[int] = Counter()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        for case in cases:
            with noted("budgets", case):
                status = send(port, build(case), hang_up=case["kind"] == "short")
                assert status == 0 or status in STATUSES
                ends[status] += 1
                assert client.get(health).status_code == 200
    return ends


def test_strangers_of_the_annotation_app(pages: FastAPI) -> None:
    with running(pages) as port:
        ends = attack(port, "/health", generate(SEED, count_cases(35)))
    assert ends[431] > 0
    assert ends[413] > 0


@pytest.mark.slow
def test_strangers_of_the_service(tmp_path: Path) -> None:
    settings = ServeSettings(tokens=(Token("a", digest("a-secret")),), state=tmp_path / "state")
    with serving(settings, tmp_path / "home") as site:
        port = int(site.address.rpartition(":")[2])
        ends = attack(port, "/healthz", generate(SEED, count_cases(70)))
    assert ends[431] > 0
    assert ends[413] > 0


def test_a_cookie_of_backslashes_is_not_decoded(
    pages: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python before 3.11.10 needs quadratic time for it, on the event loop."""
    decode, seen = http.cookies._unquote, []

    def unquote(text: str) -> str:
        seen.append(text.count("\\"))
        found: str = decode(text[:100])
        return found

    monkeypatch.setattr(http.cookies, "_unquote", unquote)
    with TestClient(pages, base_url=ADDRESS) as client:
        for size, status in ((100, 200), (7_000, 200), (60_000, 431)):
            cookie = f'a="{chr(92) * size}"; memantics-guest=mine'
            answer = client.get("/login", headers={"cookie": cookie})
            assert answer.status_code == status, size
            # The app's own cookie arrives, so it is not set again.
            if status == 200:
                assert "memantics-guest" not in answer.headers.get("set-cookie", "")
    assert max(seen) <= 64


def test_a_login_takes_four_kilobytes(pages: FastAPI) -> None:
    with TestClient(pages, base_url=ADDRESS) as client:
        for path, most in (("/login", 4096), ("/logout", 4096), ("/join/x", 8192)):
            for size, refused in ((most, False), (most + 1, True)):
                head = {"content-type": "application/x-www-form-urlencoded"}
                answer = client.post(path, content=b"a" * size, headers=head)
                assert (answer.status_code == 413) == refused


def test_a_long_form_without_a_session_is_not_read(pages: FastAPI) -> None:
    taken: list[int] = []

    def pieces() -> Iterator[bytes]:
        for _ in range(16):
            taken.append(1)
            yield b"a" * 60_000

    with running(pages) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        answer = client.post("/settings", content=pieces())
        assert answer.status_code == 401
        assert client.get("/health").status_code == 200


def test_long_forms_are_parsed_on_another_thread() -> None:
    from memantics.web.budget import Limits
    from memantics.web.shell import open_form

    app = FastAPI()
    parsers: list[str] = []

    async def take(request: Request) -> Response:
        async with open_form(request, files=0, fields=20) as form:
            return JSONResponse(sorted(form))

    app.add_route("/form", take, ["POST"])
    server.wrap(app, Limits(None, form_bytes=32 * 2**20))
    head = {"content-type": "application/x-www-form-urlencoded"}
    with TestClient(app) as client, pytest.MonkeyPatch.context() as patch:
        from memantics.web import shell

        parse = shell.parse_form

        def note(body: bytes, fields: int) -> object:
            parsers.append(threading.current_thread().name)
            return parse(body, fields)

        patch.setattr(shell, "parse_form", note)
        assert client.post("/form", content=b"a=" + b"%41" * 3_000, headers=head).json() == ["a"]
        assert client.post("/form", content=b"a=1&b=2", headers=head).json() == ["a", "b"]
        assert client.post("/form", content=b"&" * 900_000, headers=head).status_code == 413
        # A form without files has one megabyte, whatever its route takes.
        assert client.post("/form", content=b"a" * 2_000_000, headers=head).status_code == 413
    assert parsers[0].startswith("forms")
    assert not parsers[1].startswith("forms")


def test_idle_sockets_of_one_address_lock_nobody_out() -> None:
    """The attacker has another address of this machine."""
    app = FastAPI()
    app.add_route("/", lambda _request: Response(b"hello"))
    statuses: Counter[int] = Counter()
    with running(app) as port, ExitStack() as lines:
        for _ in range(700):
            line = socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0))
            lines.enter_context(line)
        for _ in range(40):
            statuses[send(port, HELLO)] += 1
    assert statuses == {200: 40}


def test_idle_sockets_of_ones_own_address_lock_nobody_out() -> None:
    app = FastAPI()
    app.add_route("/", lambda _request: Response(b"hello"))
    with running(app) as port, ExitStack() as lines:
        for _ in range(300):
            lines.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert send(port, HELLO) == 200


def test_one_address_has_a_share_of_busy_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    from memantics.web import budget

    monkeypatch.setattr(budget, "MOST_PER_ADDRESS", 3)
    release = threading.Event()
    app = FastAPI()
    app.add_route("/", lambda _request: Response(b"hello"))
    app.add_route("/wait", lambda _request: Response(str(release.wait(20)).encode()))
    with running(app) as port, ExitStack() as lines:
        for _ in range(3):
            line = socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0))
            lines.enter_context(line).sendall(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n")
        time.sleep(0.5)  # the server has read them
        fourth = socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0))
        lines.enter_context(fourth).settimeout(20)
        assert fourth.recv(100).startswith(b"HTTP/1.1 503")
        assert send(port, HELLO) == 200
        release.set()


def test_a_trusted_proxy_has_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    from memantics.web import budget

    monkeypatch.setattr(budget, "MOST_PER_ADDRESS", 1)
    app = FastAPI()
    app.add_route("/", lambda _request: Response(b"hello"))
    server.wrap(app, budget.Limits(None), ("127.0.0.0/8",))
    with running(app) as port, ExitStack() as lines:
        first = lines.enter_context(socket.create_connection(("127.0.0.1", port)))
        lines.enter_context(socket.create_connection(("127.0.0.1", port)))
        first.settimeout(20)
        first.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert first.recv(100).startswith(b"HTTP/1.1 200")


def test_a_body_of_tiny_pieces_is_refused_and_one_of_some_is_read() -> None:
    app = FastAPI()

    async def count(request: Request) -> Response:
        return Response(str(len(await request.body())).encode())

    app.add_route("/", count, ["POST"])
    with running(app) as port:
        for piece, times, status in ((1, 900, 200), (1, 1_100, 400), (80, 5_000, 200)):
            body = (b"%x\r\n%s\r\n" % (piece, b"a" * piece)) * times
            head = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
            assert send(port, head + body + b"0\r\n\r\n") == status


def test_a_body_after_its_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from memantics.web import budget

    monkeypatch.setattr(budget, "LINGER_BYTES", 256 * 1024)
    app = FastAPI()
    app.add_route("/", lambda _request: Response(b"no", 401), ["POST"])
    head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99000000\r\n\r\n"
    with running(app) as port, socket.create_connection(("127.0.0.1", port)) as line:
        line.settimeout(20)
        line.sendall(head)
        assert line.recv(100).startswith(b"HTTP/1.1 401")
        with pytest.raises(ConnectionError):
            line.sendall(b"a" * 50_000_000)


def test_a_request_has_a_total_time() -> None:
    import asyncio

    from memantics.web.budget import Limits

    app = FastAPI()

    async def sleep(_request: Request) -> Response:
        await asyncio.sleep(0.3)
        return Response(b"late")

    app.add_route("/page", sleep)
    app.add_route("/job/events", sleep)
    server.wrap(app, Limits(None, total_seconds=0.1, streams=("/events",)))
    with TestClient(app) as client:
        assert client.get("/page").status_code == 504
        assert client.get("/job/events").status_code == 200


def test_no_websocket_is_opened(pages: FastAPI) -> None:
    head = (
        b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    with running(pages) as port:
        assert send(port, head) == 303


def test_an_unsafe_python_is_named(caplog: pytest.LogCaptureFixture) -> None:
    from memantics.web import budget

    unsafe = budget.find_python_fault()
    server.warn_of_python()
    told = [record for record in caplog.records if record.message == "python"]
    assert bool(told) == bool(unsafe)
    assert "3.12.6" in budget.find_python_fault((3, 12, 5))
    assert not any(budget.find_python_fault(v) for v in ((3, 11, 10), (3, 12, 6), (3, 14, 0)))
