"""Servers that lie: answers over HTTP that no honest server gives, byte by byte."""

from __future__ import annotations

import random
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache

from tests.hostile.cases import Case

MOST_SECONDS = 4.0  # a lie that nobody hangs up on ends here
MOST_BYTES = 64 * 1024 * 1024
LENGTHS = ("0", "1", "-1", "+5", "5 5", "99999999999999999999", "0x10", "", "1e3", "5, 7", "\x00")
PLACES = (
    "http://127.0.0.1:1/",
    "http://169.254.169.254/latest/meta-data",
    "http://[::1]/",
    "file:///etc/passwd",
    "//localhost/",
    "http://2130706433/",
    "gopher://127.0.0.1:70/",
    "\x00",
    "a" * 300,
)
KINDS = (
    "length",
    "endless",
    "drip",
    "bomb",
    "redirect",
    "chunk",
    "heads",
    "interim",
    "silent",
    "noise",
    "hang up",
)


def generate(seed: int, count: int) -> Iterator[Case]:
    """Kinds of lies with their sizes; every kind comes in turn."""
    chance = random.Random(seed)
    for number in range(count):
        yield {
            "kind": KINDS[number % len(KINDS)],
            "length": chance.choice(LENGTHS),
            "place": chance.choice(PLACES),
            "status": chance.choice((200, 200, 200, 206, 301, 302, 307, 401, 429, 500, 999)),
            "size": chance.choice((0, 1, 100, 100_000)),
            "pause": chance.choice((0.0, 0.01, 0.2)),
            "chunk": chance.choice(("ffffffffffffffff", "-1", "zz", "5;" + "x" * 70_000, "0")),
            "noise": chance.randbytes(40).hex(),
        }


def speak(case: Case, body: bytes) -> Iterator[tuple[bytes, float]]:
    """The pieces of an answer, each with a pause behind it."""
    head = f"HTTP/1.1 {case['status']} OK\r\ncontent-type: application/json\r\n".encode()
    pause = float(case["pause"])
    tell: dict[str, Callable[[], Iterator[tuple[bytes, float]]]] = {
        "length": lambda: _once(_length(head, case, body), pause),
        "endless": lambda: _forever(head + b"transfer-encoding: chunked\r\n\r\n", _CHUNK, 0.0),
        "drip": lambda: _forever(head + b"content-length: 1000000\r\n\r\n", b"x", 0.05),
        "bomb": lambda: _once(head + _bomb(), 0.0),
        "redirect": lambda: _once(_redirect(case), 0.0),
        "chunk": lambda: _once(
            head + b"transfer-encoding: chunked\r\n\r\n" + case["chunk"].encode() + b"\r\n", pause
        ),
        "heads": lambda: _forever(head, b"x-%d: %b\r\n" % (case["size"], b"y" * 1000), 0.0),
        "interim": lambda: _forever(b"", b"HTTP/1.1 102 Processing\r\n\r\n", 0.0),
        "silent": lambda: _forever(b"", b"", 0.1),
        "noise": lambda: _once(bytes.fromhex(case["noise"]), pause),
        "hang up": lambda: _once(head[: len(head) * case["size"] // 100_000], 0.0),
    }
    return tell[case["kind"]]()


_CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"


def _length(head: bytes, case: Case, body: bytes) -> bytes:
    return head + f"content-length: {case['length']}\r\n\r\n".encode("latin-1") + body


@cache
def _bomb() -> bytes:
    """A thousand times as large when it is unpacked: 200 MB."""
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(1_000_000)
    packed = b"".join(packer.compress(zeros) for _ in range(200)) + packer.flush()
    return b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(packed), packed)


def _redirect(case: Case) -> bytes:
    place: bytes = case["place"].encode("latin-1")
    return b"HTTP/1.1 302 Found\r\nlocation: " + place + b"\r\ncontent-length: 0\r\n\r\n"


def _once(data: bytes, pause: float) -> Iterator[tuple[bytes, float]]:
    yield data, pause


def _forever(head: bytes, piece: bytes, pause: float) -> Iterator[tuple[bytes, float]]:
    yield head, 0.0
    while True:
        yield piece, pause


class Liar:
    """A server on this machine that gives every guest the answer of one case."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.case: Case = {"kind": "silent", "pause": 0.0, "status": 200}
        self.visits = 0
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                guest, _ = self._socket.accept()
            except OSError:
                return
            self.visits += 1
            threading.Thread(target=self._lie, args=(guest, self.case), daemon=True).start()

    def _lie(self, guest: socket.socket, case: Case) -> None:
        end, sent = time.monotonic() + MOST_SECONDS, 0
        with guest:
            guest.settimeout(MOST_SECONDS)
            try:
                guest.recv(65536)
                for piece, pause in speak(case, self.body):
                    guest.sendall(piece)
                    sent += len(piece)
                    time.sleep(pause)
                    if time.monotonic() > end or sent > MOST_BYTES:
                        return
            except OSError:
                return
