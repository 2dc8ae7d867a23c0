"""``python -m perf [--json] [--repeats N]``: does the engine keep its promises?

Every contestant runs in its own process against one loopback server; they take turns, and the
median counts, so that a busy machine hits all of them. CPU time is the client's alone.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import orjson

ROOT = Path(__file__).resolve().parent.parent
ITEMS = 2_000
MANY = 50_000
SIDE = (143, 142)  # three random bytes per pixel: a PNG of 61 KB


@dataclass(frozen=True, slots=True)
class Check:
    """One promise."""

    what: str
    figure: float
    target: float
    kept: bool


@dataclass(frozen=True, slots=True)
class Result:
    """All figures of one run."""

    cpu_ms: dict[str, float]
    peak_mb: dict[int, float]
    checks: tuple[Check, ...]


def make_images(folder: Path, count: int = ITEMS) -> None:
    """Draw noise: every file is another, and none can be compressed."""
    from PIL import Image

    chance = random.Random(1)
    folder.mkdir()
    for number in range(count):
        pixels = chance.randbytes(SIDE[0] * SIDE[1] * 3)
        Image.frombytes("RGB", SIDE, pixels).save(folder / f"{number:05}.png", compress_level=0)


@contextmanager
def serve() -> Iterator[str]:
    """The server in its own process; its address."""
    command = [sys.executable, "-m", "perf.server"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.stdin.close()
            process.wait(timeout=10)


def run(kind: str, url: str, folder: Path, count: int) -> dict[str, float]:
    """One contestant, once."""
    command = [sys.executable, "-m", "perf.contest", kind, url, str(folder), str(count)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = orjson.loads(done.stdout)
    say(
        f"  {kind:<7} {count:>6} items  {figures['cpu_ms']:6.3f} CPU ms/item  "
        f"{figures['peak_mb']:6.1f} MB"
    )
    return figures


def say(line: str) -> None:
    """Progress goes to standard error: standard output is for the result."""
    print(line, file=sys.stderr, flush=True)


def measure(repeats: int, many: int) -> Result:
    """Run everything."""
    with tempfile.TemporaryDirectory() as place, serve() as url:
        folder = Path(place)
        make_images(folder / "images")
        run("cached", url, folder, ITEMS)  # fills the cache
        kinds = ("bare", "bare64", "engine", "sdk", "cached")
        runs: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(repeats):
            for kind in kinds:
                runs[kind].append(run(kind, url, folder, ITEMS)["cpu_ms"])
        peaks = {count: run("engine", url, folder, count)["peak_mb"] for count in (ITEMS, many)}
    cpu = {kind: median(figures) for kind, figures in runs.items()}
    growth = peaks[many] / peaks[ITEMS] - 1
    ratio, gain = cpu["engine"] / cpu["bare"], cpu["sdk"] / cpu["engine"]
    checks = (
        Check("engine / bare loop, at most", ratio, 1.6, ratio <= 1.6),
        Check("SDK / engine, at least", gain, 4.0, gain >= 4.0),
        Check("cached, CPU ms per item, at most", cpu["cached"], 0.8, cpu["cached"] <= 0.8),
        Check(f"memory {ITEMS:,} to {many:,} items, % at most", growth * 100, 25, growth <= 0.25),
    )
    return Result(cpu, peaks, checks)


def show(result: Result) -> str:
    """The table for people."""
    names = {
        "bare": "bare aiohttp + orjson loop",
        "bare64": "the same loop with our Base64",
        "engine": "our engine (journal, cache, retries)",
        "sdk": "openai SDK (AsyncOpenAI)",
        "cached": "our engine, answers from the cache",
    }
    base = result.cpu_ms["bare"]
    lines = [f"{'':<40}{'CPU ms/item':>12}{'x bare':>8}"]
    lines += [f"{names[k]:<40}{ms:>12.3f}{ms / base:>8.2f}" for k, ms in result.cpu_ms.items()]
    lines += [
        f"{f'peak memory at {n:,} items':<40}{mb:>9.1f} MB" for n, mb in result.peak_mb.items()
    ]
    lines += ["", f"{'target':<40}{'figure':>12}{'target':>8}"]
    lines += [
        f"{c.what:<40}{c.figure:>12.2f}{c.target:>8.2f}  {'kept' if c.kept else 'MISSED'}"
        for c in result.checks
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--repeats", type=int, default=5, help="turns per contestant")
    parser.add_argument("--many", type=int, default=MANY, help="items of the memory run")
    given = parser.parse_args()
    result = measure(given.repeats, given.many)
    if given.json:
        print(orjson.dumps(asdict(result), option=orjson.OPT_NON_STR_KEYS).decode())
    else:
        print(show(result))
    return 0 if all(check.kept for check in result.checks) else 1


if __name__ == "__main__":
    sys.exit(main())
