"""The service under attack: waiting time of normal requests, and memory afterwards.

``python -m perf.hostile --load [--requests N]``. Four normal clients moderate short texts, first
alone, then while 16 attackers send N hostile requests (2,000 by default) and another address opens
150 idle connections each second. Promised: memory
afterwards within 10 % of before, and p99 of normal requests within 3 times that of the quiet time.

Attackers are a process of their own at the lowest priority: they stand for other machines, and must
neither share the event loop whose waits are measured nor take the service's processors.
"""

from __future__ import annotations

import asyncio
import base64
import io
import os
import random
import socket
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles

import aiohttp
import orjson
from PIL import Image
from tests.hostile import forms, starving

from perf.serve import PATH, TEXTS, body, serving

ATTACKERS, HONEST = 16, 4
IDLE, MOST_IDLE = 15, 700  # connections opened each tenth of a second, and held
PAUSE, QUIET = 0.05, 15.0  # seconds between two requests of an honest client, and without attack
MEMORY, TAIL = 1.10, 3.0
WARM = 60
SETTLE = 10.0
JSON = {"content-type": "application/json"}


@dataclass(slots=True)
class Attack:
    """One hostile request."""

    name: str
    path: str
    data: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    piece: int = 0  # bytes of a chunk; 0: the body is one piece

    def list_pieces(self) -> bytes | AsyncIterator[bytes]:
        return self._cut() if self.piece else self.data

    async def _cut(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.data), self.piece):
            yield self.data[start : start + self.piece]


def _png(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("1", (side, side)).save(file, "PNG")
    return file.getvalue()


def _scans() -> bytes:
    """Return a progressive JPEG whose last scan comes a thousand times."""
    file = io.BytesIO()
    Image.new("L", (2000, 2000)).save(file, "JPEG", progressive=True)
    data = file.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * 1000 + b"\xff\xd9"


def _image(data: bytes) -> bytes:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return orjson.dumps({"input": [{"type": "image_url", "image_url": {"url": url}}]})


def _json(name: str, data: bytes, path: str = PATH) -> Callable[[random.Random], Attack]:
    return lambda _chance: Attack(name, path, data, JSON)


def _form(chance: random.Random) -> Attack:
    kind = next(forms.generate(chance.randrange(10**6), 1))
    sent = forms.body(("token", b"x-" + b"a" * 200_000))
    return Attack("form in another charset", "/login", sent, {"content-type": kind})


def _question(chance: random.Random) -> Attack:
    query = list(starving.generate(chance.randrange(10**6), 9))[chance.randrange(9)]
    data = orjson.dumps({"query": query[:19_000]})
    return Attack("starving question", "/v1/knowledge/query", data, JSON)


def _header(chance: random.Random) -> Attack:
    name = chance.choice(("origin", "host", "x-forwarded-for", "cookie", "accept-language"))
    value = chance.choice(("https://evil.example", "a" * 8000, "127.0.0.1, " * 500, "{{7*7}}"))
    return Attack(
        "header", chance.choice(("/", "/login", "/browse/store")), b"", {name: value}, "GET"
    )


def _cookie(chance: random.Random) -> Attack:
    value = chance.choice(("\\", '\\"', "\\054")) * chance.choice((1_000, 2_000, 20_000))
    path = chance.choice(("/", "/login", "/healthz", "/v1/models"))
    return Attack("cookie", path, b"", {"cookie": f'memantics-serve="{value}"'}, "GET")


def _separators(chance: random.Random) -> Attack:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    sent = chance.choice((b"&", b"a&", b"=&", b"%41")) * chance.choice((2_000, 300_000, 1_000_000))
    return Attack("form of separators", chance.choice(("/login", "/v1/puns")), sent, kind)


def _pieces(chance: random.Random) -> Attack:
    path = chance.choice(("/login", PATH, "/none"))
    return Attack("tiny chunks", path, b"a" * 3_000, JSON, piece=1)


def _path(chance: random.Random) -> Attack:
    path = chance.choice(
        (
            "/browse/store/meme?id=" + "x" * 400,
            "/browse/runs/item?run=../../etc&item=passwd",
            "/static/..%2f..%2fetc%2fpasswd",
            "/v1/jobs/" + "a" * 2000,
            "/browse/store?start=9999999&q=%00",
        )
    )
    return Attack("path", path, method="GET")


# Weights, and what.
KINDS: tuple[tuple[int, Callable[[random.Random], Attack]], ...] = (
    (15, _form),
    (10, _json("list of 1.5 million", b'{"input":[' + b"1," * 1_500_000 + b"1]}")),
    (10, _json("49,000 values", b'{"input":[' + b"1," * 49_000 + b"1]}")),
    (10, _json("nesting", b'{"input":' + b"[" * 100_000)),
    (5, _json("NaN and surrogates", b'{"input":"\\ud83d","model":NaN}')),
    (10, _json("image of a thousand scans", _image(_scans()))),
    (10, _json("image of 100 megapixels", _image(_png(10_000)))),
    (10, _json("no image", _image(b"\x89PNG" + bytes(200_000)))),
    (1, _question),
    (9, _header),
    (10, _path),
    (8, _cookie),
    (8, _separators),
    (4, _pieces),
)


async def honest(session: aiohttp.ClientSession, spans: list[float], stop: asyncio.Event) -> None:
    """One client that asks, waits a little, and asks again."""
    place = 0
    while not stop.is_set():
        began = time.monotonic()
        sent = body(TEXTS[place % len(TEXTS)])
        async with session.post(PATH, data=sent, headers=JSON) as reply:
            await reply.read()
            assert reply.status == 200, reply.status
        spans.append(time.monotonic() - began)
        place += 1
        await asyncio.sleep(PAUSE)


async def assault(address: str, count: int, seed: int) -> Counter[str]:
    """All hostile requests, some at a time; every twentieth connection sends a byte a second."""
    chance, found = random.Random(seed), Counter[str]()
    weights = [share for share, _ in KINDS]
    attacks = [make(chance) for make in chance.choices([m for _, m in KINDS], weights, k=count)]
    queue = iter(enumerate(attacks))

    async def attack(session: aiohttp.ClientSession) -> None:
        for number, one in queue:
            if number % 20 == 0:
                await drip(address, found)
                continue
            try:
                async with session.request(
                    one.method,
                    one.path,
                    data=one.list_pieces(),
                    headers=one.headers,
                    allow_redirects=False,
                ) as reply:
                    await reply.read()
                    found[f"{reply.status}"] += 1
                    if reply.status >= 500 and reply.status not in (503, 504):
                        found[f"FAILED {one.name} {reply.status}"] += 1
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                found[f"hung up ({type(error).__name__})"] += 1

    timeout = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(limit=ATTACKERS)
    idle = asyncio.create_task(hold_open(address, found))
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as session:
        await asyncio.gather(*(attack(session) for _ in range(ATTACKERS)))
    idle.cancel()
    await asyncio.gather(idle, return_exceptions=True)
    return found


async def hold_open(address: str, found: Counter[str]) -> None:
    """Open idle connections from another address of this machine, and keep the latest 700."""
    host, _, port = address.removeprefix("http://").partition(":")
    lines: list[socket.socket] = []
    try:
        while True:
            for _ in range(IDLE):
                line = socket.create_connection((host, int(port)), 5, ("127.0.0.2", 0))
                lines.append(line)
                found["idle connection"] += 1
            while len(lines) > MOST_IDLE:
                lines.pop(0).close()
            await asyncio.sleep(0.1)
    finally:
        for line in lines:
            line.close()


async def drip(address: str, found: Counter[str]) -> None:
    """A slow sender, for three seconds."""
    host, _, port = address.removeprefix("http://").partition(":")
    line = socket.create_connection((host, int(port)), timeout=5)
    line.setblocking(False)
    head = b"POST /v1/moderations HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n"
    with line:
        for piece in (head, b"{", b'"', b"i"):
            await asyncio.get_running_loop().sock_sendall(line, piece)
            await asyncio.sleep(1)
    found["slow sender"] += 1


def _assault(address: str, count: int, seed: int) -> Counter[str]:
    os.nice(19)
    return asyncio.run(assault(address, count, seed))


async def elsewhere(address: str, count: int, seed: int) -> Counter[str]:
    """Return the attack, by another process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool, _assault, address, count, seed)


def memory_of(process: int) -> int:
    """Resident bytes of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def p99(spans: list[float]) -> float:
    return quantiles(spans, n=100)[98] * 1000


async def press(address: str, process: int, count: int, seed: int) -> bool:
    """Measure, and say what came out."""
    async with aiohttp.ClientSession(address) as session:

        async def hold(until: asyncio.Event) -> list[float]:
            spans: list[float] = []
            await asyncio.gather(*(honest(session, spans, until) for _ in range(HONEST)))
            return spans

        await elsewhere(address, WARM, seed + 1)  # what is loaded once is loaded before
        await asyncio.sleep(SETTLE)
        before, over = memory_of(process), asyncio.Event()
        asyncio.get_running_loop().call_later(QUIET, over.set)
        quiet = await hold(over)
        over.clear()
        waiting, began = asyncio.create_task(hold(over)), time.monotonic()
        found = await elsewhere(address, count, seed)
        seconds = time.monotonic() - began
        over.set()
        busy = await waiting
    await asyncio.sleep(SETTLE)
    after = memory_of(process)
    grown, slower = after / before, p99(busy) / p99(quiet)
    kept = grown <= MEMORY and slower <= TAIL and not any(k.startswith("FAILED") for k in found)
    print(
        f"{count:,} hostile requests in {seconds:.0f} s, seed {seed}: {dict(found.most_common())}"
    )
    print(
        f"memory {before / 1e6:.0f} MB before, {after / 1e6:.0f} MB after"
        f" ({grown:.2f} times; promised {MEMORY})"
    )
    print(
        f"honest requests: p99 {p99(quiet):.0f} ms quiet ({len(quiet)}), {p99(busy):.0f} ms under"
        f" attack ({len(busy)}): {slower:.1f} times (promised {TAIL}); median"
        f" {median(quiet) * 1000:.0f} and {median(busy) * 1000:.0f} ms"
    )
    print("kept" if kept else "NOT KEPT")
    return kept


def run(count: int, seed: int) -> int:
    """Return the exit code: 1 if a target was missed."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["MEMANTICS_HOME"] = f"{place}/home"
        with serving("usual", Path(place)) as (process, address):
            return 0 if asyncio.run(press(address, process, count, seed)) else 1
