"""``python -m perf [--json] [--repeats N]``: measure the engine against its targets.

Every contestant runs in its own process against one loopback server; they take turns, and the
median counts, so that a busy machine hits all of them. CPU time is the client's alone.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import orjson

ROOT = Path(__file__).resolve().parent.parent
ITEMS = 2_000
MANY = 50_000
HUGE = 200_000
SIDE = (143, 142)  # three random bytes per pixel: a PNG of 61 KB


@dataclass(frozen=True, slots=True)
class Check:
    """One target and its measured value."""

    what: str
    value: float
    target: float
    kept: bool


@dataclass(frozen=True, slots=True)
class Result:
    """All measurements of one run."""

    cpu_ms: dict[str, float]
    peak_mb: dict[int, float]
    huge: dict[str, dict[str, float]]
    read: dict[str, dict[str, float]]
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
    """Yield the server in its own process; its address."""
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
    """Return one contestant, once."""
    command = [sys.executable, "-m", "perf.contest", kind, url, str(folder), str(count)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    measurements: dict[str, float] = orjson.loads(done.stdout)
    say(
        f"  {kind:<7} {count:>6} items  {measurements['cpu_ms']:6.3f} CPU ms/item  "
        f"{measurements['peak_mb']:6.1f} MB"
    )
    return measurements


def run_huge(folder: Path, count: int, *source: str) -> dict[str, dict[str, float]]:
    """A run of very many items: asked, started again, scored, each in a process of its own."""
    folder.mkdir()
    phases = {}
    for phase in ("ask", "resume", "score"):
        command = [sys.executable, "-m", "perf.large_run", phase, str(folder), str(count), *source]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        phases[phase] = measurements = orjson.loads(done.stdout)
        say(
            f"  {phase:<7} {count:>6} items  {measurements['seconds']:6.1f} CPU s  "
            f"{measurements['peak_mb']:6.1f} MB  {' '.join(source)}"
        )
    return phases


def check_huge(found: dict[str, dict[str, float]], items: str) -> tuple[Check, ...]:
    """Check the targets of a very large run, with generated or stored items."""
    first, resume = found["ask"]["first"], found["resume"]["seconds"]
    peak = max(phase["peak_mb"] for phase in found.values())
    share = found["score"]["seconds"] / found["ask"]["seconds"]
    return (
        Check(f"{items}: first call, CPU s at most", first, 5, first <= 5),
        Check(f"{items}: start again, CPU s at most", resume, 10, resume <= 10),
        Check(f"{items}: peak memory, MB at most", peak, 300, peak <= 300),
        Check(f"{items}: scoring / asking, at most", share, 1, share <= 1),
    )


def time_free_text(count: int = 2_000) -> float:
    """CPU ms to score a reply of 14 words by ROUGE-L and BLEU against two references."""
    from memantics.metrics.text import bleu_4, load_porter, rouge_l, tokenize
    from perf.contest import QUESTION

    chance = random.Random(1)
    words = [*QUESTION.split()]
    words += [f"word{number}" for number in range(300)]
    texts = [" ".join(chance.choices(words, k=14)) for _ in range(3 * count)]
    stem = load_porter()
    rouge_l(texts[0], texts[1], stem)
    begin = time.process_time()
    for place in range(0, len(texts), 3):
        for reference in texts[place + 1 : place + 3]:
            rouge_l(texts[place], reference, stem)
            bleu_4(tokenize(texts[place]), tokenize(reference), "epsilon")
    return (time.process_time() - begin) * 1000 / count


def say(line: str) -> None:
    """Progress goes to standard error: standard output is for the result."""
    print(line, file=sys.stderr, flush=True)


def measure(repeats: int, many: int, most: int) -> Result:
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
        huge = run_huge(folder / "huge", most)
        read = run_huge(folder / "read", most, "read")
    text = time_free_text()
    cpu = {kind: median(measurements) for kind, measurements in runs.items()}
    growth = peaks[many] / peaks[ITEMS] - 1
    ratio, gain = cpu["engine"] / cpu["bare"], cpu["sdk"] / cpu["engine"]
    checks = (
        Check("engine / bare loop, at most", ratio, 1.3, ratio <= 1.3),
        Check("SDK / engine, at least", gain, 4.0, gain >= 4.0),
        Check("cached, CPU ms per item, at most", cpu["cached"], 0.8, cpu["cached"] <= 0.8),
        Check(f"memory {ITEMS:,} to {many:,} items, % at most", growth * 100, 25, growth <= 0.25),
        Check("free text, CPU ms per answer, at most", text, 0.2, text <= 0.2),
        *check_huge(huge, f"{most // 1000}k items"),
        *check_huge(read, f"{most // 1000}k records"),
    )
    return Result(cpu, peaks, huge, read, checks)


def show(result: Result) -> str:
    """Return the table for people."""
    names = {
        "bare": "bare aiohttp + orjson loop",
        "bare64": "the same loop with our Base64",
        "engine": "our engine (call log, cache, retries)",
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
        f"{c.what:<40}{c.value:>12.2f}{c.target:>8.2f}  {'kept' if c.kept else 'MISSED'}"
        for c in result.checks
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--repeats", type=int, default=5, help="turns per contestant")
    parser.add_argument("--many", type=int, default=MANY, help="items of the memory run")
    parser.add_argument("--most", type=int, default=HUGE, help="items of the largest run")
    given = parser.parse_args()
    result = measure(given.repeats, given.many, given.most)
    if given.json:
        print(orjson.dumps(asdict(result), option=orjson.OPT_NON_STR_KEYS).decode())
    else:
        print(show(result))
    return 0 if all(check.kept for check in result.checks) else 1


if __name__ == "__main__":
    sys.exit(main())
