"""``python -m perf.serve [--seconds N] [--json]``: overhead of the service.

Text: 32 clients moderate short texts, in turns with a bare FastAPI endpoint that decodes the same
body and does nothing. Images: CPU of the service for images it has not seen, beside that of the
OCR alone on the same ones. Full queue: more clients than there is room for get 429, and no request
times out. Reload: 200 requests a second, each sent on time, while the detector's file is swapped
every second; none is dropped. Everything is on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles

import aiohttp
import orjson

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = 32
TURNS = 4
IMAGES = 8
RATE, TAIL, OVERHEAD = 0.5, 5.0, 1.1
TEXTS = ("今天天气真好", "你们这些人真是没救了", "最近有点键忘", "打工人的一天又开始了")
PATH = "/v1/moderations"
RELOAD = "/v1/detectors/reload"
PACE = 200  # requests a second under which detectors are swapped
POOL = 256  # connections of that client; beyond 512 the service answers 503, reload or not


@dataclass(slots=True)
class Load:
    """The measurements of one server over all rounds."""

    seconds: float = 0.0
    cpu: float = 0.0
    spans: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.spans) / self.seconds if self.seconds else 0.0

    @property
    def p99(self) -> float:
        """The slowest hundredth, in milliseconds."""
        return quantiles(self.spans, n=100)[98] * 1000 if len(self.spans) > 1 else 0.0

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds a request."""
        return self.cpu / max(1, len(self.spans)) * 1000


@dataclass(slots=True)
class Reloads:
    """Results of requests during detector reloads."""

    sent: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    reloads: Counter[str] = field(default_factory=Counter)
    spans: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Measurements:
    """All measurements, and whether the targets are met."""

    ours_per_second: float
    bare_per_second: float
    ratio: float
    ours_p99_ms: float
    bare_p99_ms: float
    ours_cpu_ms: float
    bare_cpu_ms: float
    image_cpu_s: float
    ocr_cpu_s: float
    overhead: float
    full: dict[str, int]
    reload_sent: int
    reload_statuses: dict[str, int]
    reload_p99_ms: float
    kept: bool


@contextmanager
def serving(kind: str, folder: Path) -> Iterator[tuple[int, str]]:
    """Yield a server in its own process: its number and its address, when it answers."""
    with (folder / f"{kind}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "perf.serve_server", kind, str(folder)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    assert process.stdout is not None
    address = f"http://127.0.0.1:{int(process.stdout.readline())}"
    try:
        asyncio.run(press(address, [body(TEXTS[0])], Load(), 0.0))
        yield process.pid, address
    finally:
        process.terminate()
        process.wait(timeout=60)
        process.stdout.close()


def cpu_of(process: int) -> float:
    """CPU seconds that a process used so far; 0 where the system does not tell."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0.0
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def body(text: str) -> bytes:
    return orjson.dumps({"input": text})


async def press(
    address: str, bodies: list[bytes], load: Load, seconds: float, clients: int = 1
) -> None:
    """Let clients ask for a while, each at least once."""
    end = time.monotonic() + seconds
    head = {"content-type": "application/json"}

    async def ask(session: aiohttp.ClientSession, first: int) -> None:
        place = first
        while True:
            began = time.monotonic()
            async with session.post(PATH, data=bodies[place % len(bodies)], headers=head) as reply:
                await reply.read()
                load.statuses[str(reply.status)] += 1
            load.spans.append(time.monotonic() - began)
            place += clients
            if time.monotonic() >= end:
                return

    timeout = aiohttp.ClientTimeout(total=600)
    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as session:
        began = time.monotonic()
        await asyncio.gather(*(ask(session, number) for number in range(clients)))
        load.seconds += time.monotonic() - began


def measure_text(folder: Path, seconds: float) -> tuple[Load, Load]:
    """Both servers in turns, so that whatever else the machine does strikes both."""
    loads = {"ours": Load(), "bare": Load()}
    bodies = [body(text) for text in TEXTS]
    with serving("ours", folder) as ours, serving("bare", folder) as bare:
        for _ in range(TURNS):
            for kind, (process, address) in (("bare", bare), ("ours", ours)):
                before = cpu_of(process)
                asyncio.run(press(address, bodies, loads[kind], seconds / TURNS, CLIENTS))
                loads[kind].cpu += cpu_of(process) - before
    return loads["ours"], loads["bare"]


def make_images() -> list[bytes]:
    """Memes of the sample data, each with a pixel changed: nobody has read them before."""
    from PIL import Image

    from memantics.core.samples import IMAGES as MEMES

    made = []
    for path in sorted(MEMES.glob("*.png"))[:IMAGES]:
        with Image.open(path) as image:
            changed = image.convert("RGB")
        changed.putpixel((0, 0), (1, 2, 3))
        file = io.BytesIO()
        changed.save(file, "PNG")
        made.append(file.getvalue())
    return made


def measure_images(folder: Path) -> tuple[float, float]:
    """CPU seconds an image: of the service, and of the OCR alone."""
    from memantics.models.embedded.ocr import RapidReader

    images = make_images()
    reader = RapidReader()
    reader.read(images[0], "first")  # loads the network
    alone, served = [], []
    with serving("ours", folder) as (process, address):
        for data in images:
            url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
            part = {"type": "image_url", "image_url": {"url": url}}
            before = cpu_of(process)
            asyncio.run(press(address, [orjson.dumps({"input": [part]})], Load(), 0.0))
            served.append(cpu_of(process) - before)
            before = time.process_time()
            reader.read(data, "meme")
            alone.append(time.process_time() - before)
    return median(served[1:]), median(alone[1:])


def measure_full_queue(folder: Path) -> dict[str, int]:
    """Thirty-two clients with a new image each, and room for four."""
    load = Load()
    images = make_images()
    bodies = []
    for number in range(CLIENTS):
        data = images[number % len(images)] + bytes([number])  # behind the end of a PNG: no matter
        url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        bodies.append(orjson.dumps({"input": [{"type": "image_url", "image_url": {"url": url}}]}))
    with serving("narrow", folder) as (_, address):
        asyncio.run(press(address, bodies, load, 0.0, CLIENTS))
    return dict(load.statuses)


async def press_and_reload(
    address: str, live: Path, swaps: Sequence[Path], seconds: float, texts: Sequence[str] = TEXTS
) -> Reloads:
    """Send PACE requests a second, and meanwhile put each file in place and have it opened."""
    found = Reloads()
    head = {"content-type": "application/json"}

    async def ask(session: aiohttp.ClientSession, number: int) -> None:
        began = time.monotonic()
        found.sent += 1
        try:
            data = body(texts[number % len(texts)])
            async with session.post(PATH, data=data, headers=head) as reply:
                await reply.read()
                found.statuses[str(reply.status)] += 1
        except aiohttp.ClientError as error:
            found.statuses[type(error).__name__] += 1
        found.spans.append(time.monotonic() - began)

    async def swap(session: aiohttp.ClientSession) -> None:
        for file in swaps:
            await asyncio.sleep(seconds / (len(swaps) + 1))
            part = live.with_suffix(".part")
            shutil.copy(file, part)
            part.replace(live)
            async with session.post(RELOAD) as reply:
                await reply.read()
                found.reloads[str(reply.status)] += 1

    timeout = aiohttp.ClientTimeout(total=120)
    connector = aiohttp.TCPConnector(limit=POOL)
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as session:
        swapping = asyncio.create_task(swap(session))
        began, asked = time.monotonic(), []
        for number in range(round(PACE * seconds)):
            await asyncio.sleep(max(0.0, began + number / PACE - time.monotonic()))
            asked.append(asyncio.create_task(ask(session, number)))
        await asyncio.gather(swapping, *asked)
    return found


def measure_reload(folder: Path, seconds: float) -> Reloads:
    """Return the service on a file of its own, which is swapped about once a second."""
    from memantics.core.samples import DETECTOR_FILE

    live = Path(shutil.copy(DETECTOR_FILE, folder / "live.zip"))
    with serving("live", folder) as (_, address):
        # The ear is loaded behind the first request, which takes seconds.
        asyncio.run(press(address, [body(text) for text in TEXTS], Load(), 10.0, 2))
        return asyncio.run(
            press_and_reload(address, live, [DETECTOR_FILE] * round(seconds), seconds)
        )


def measure(seconds: float) -> Measurements:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["MEMANTICS_HOME"] = str(folder / "home")
        ours, bare = measure_text(folder, seconds)
        image, ocr = measure_images(folder)
        full = measure_full_queue(folder)
        swapped = measure_reload(folder, seconds)
    ratio, overhead = ours.rate / bare.rate, image / ocr
    fine = set(full) == {"200", "429"} and set(ours.statuses) == {"200"}
    fine = fine and swapped.statuses == {"200": swapped.sent} and set(swapped.reloads) == {"200"}
    kept = ratio >= RATE and ours.p99 < TAIL * bare.p99 and overhead <= OVERHEAD and fine
    return Measurements(
        ours.rate,
        bare.rate,
        ratio,
        ours.p99,
        bare.p99,
        ours.cpu_ms,
        bare.cpu_ms,
        image,
        ocr,
        overhead,
        full,
        swapped.sent,
        dict(swapped.statuses),
        quantiles(swapped.spans, n=100)[98] * 1000,
        kept,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=16.0, help="for each of both servers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.seconds)
    if options.json:
        print(orjson.dumps(asdict(found)).decode())
    else:
        print(
            f"text, {CLIENTS} clients: {found.ours_per_second:,.0f}/s, bare"
            f" {found.bare_per_second:,.0f}/s (ratio {found.ratio:.2f}, promised {RATE});"
            f" p99 {found.ours_p99_ms:.0f} ms, bare {found.bare_p99_ms:.0f} ms;"
            f" CPU {found.ours_cpu_ms:.2f} and {found.bare_cpu_ms:.2f} ms"
        )
        print(
            f"image: {found.image_cpu_s:.2f} CPU s, OCR alone {found.ocr_cpu_s:.2f}"
            f" (ratio {found.overhead:.2f}, promised {OVERHEAD})"
        )
        print(
            f"reload under {PACE}/s: {found.reload_sent:,} sent,"
            f" {', '.join(f'{n} x {s}' for s, n in sorted(found.reload_statuses.items()))};"
            f" p99 {found.reload_p99_ms:.0f} ms"
        )
        print(f"full queue: {', '.join(f'{n} x {s}' for s, n in sorted(found.full.items()))}")
    sys.exit(0 if found.kept else 1)


if __name__ == "__main__":
    main()
