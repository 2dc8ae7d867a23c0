"""``python -m perf.screen [--rows 1000000] [--quick]``: what screening costs, beside its targets.

Texts are random characters, images the starter pack's. CPU time counts every process that a run
started, read from /proc by a mark in their environment, so that a pool and a Ray cluster are
measured alike. On a busy machine only CPU times and ratios in turns tell; wall time is used for one
row, two processes against one, and the load is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from memantics.actions.screening import ScreenSettings, ScreenWork, _Screener, read_tables
from memantics.core.images import decode
from memantics.detector.examples import Example
from memantics.detector.fast import find_preset, train
from memantics.detector.novelty import fit_novelty
from memantics.detector.storage import save
from memantics.models.embedded import rapid
from memantics.models.embedded.lines import Reading, order_lines
from memantics.scale.records import Ref
from memantics.starter import image_path, read_starter
from perf.detector import LETTERS, draw_examples

ROOT = Path(__file__).resolve().parent.parent
MARK = "MEMANTICS_PERF_MARK"
SMALL = 50_000
TICKS = os.sysconf("SC_CLK_TCK")
SCRIPT = """
import json, resource, sys, time
from pathlib import Path
from memantics.actions.screen import ScreenSettings, open_engine, screen
if __name__ == "__main__":
    source, detector, out, engine, workers = sys.argv[1:]
    settings = ScreenSettings(detector=Path(detector), readings="none")
    started = time.monotonic()
    done = screen(source, settings, out=out, engine=open_engine(engine, int(workers)))
    wall = time.monotonic() - started
    peaks = [resource.getrusage(who).ru_maxrss / 1024
             for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"rows": done.rows, "wall": wall, "driver": peaks[0], "worker": peaks[1]}))
"""


@dataclass(frozen=True, slots=True)
class Check:
    """A figure and its target; ``most``: the target is an upper bound."""

    what: str
    figure: float
    target: float
    most: bool = False
    note: str = ""

    @property
    def kept(self) -> bool:
        return self.figure <= self.target if self.most else self.figure >= self.target


@dataclass(frozen=True, slots=True)
class Run:
    rows: int
    wall: float
    driver: float
    worker: float
    cpu: float


class CpuWatch(threading.Thread):
    """CPU seconds of all processes that carry a mark, those that ended included."""

    def __init__(self, mark: str) -> None:
        super().__init__(daemon=True)
        self._mark, self._ended = f"{MARK}={mark}".encode(), threading.Event()
        self._ticks: dict[int, int] = {}
        self._strange: set[int] = set()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            self.look()

    def look(self) -> None:
        for place in Path("/proc").iterdir():
            if not place.name.isdigit() or int(place.name) in self._strange:
                continue
            try:
                if self._mark not in (place / "environ").read_bytes():
                    self._strange.add(int(place.name))
                    continue
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                self._ticks[int(place.name)] = int(fields[11]) + int(fields[12])

    def close(self) -> float:
        self._ended.set()
        self.join()
        return sum(self._ticks.values()) / TICKS


def screen_texts(
    source: Path, detector: Path, out: Path, engine: str = "pool", workers: int = 2
) -> Run:
    mark = uuid.uuid4().hex
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = dict(os.environ) | {MARK: mark, "PYTHONPATH": paths}
    script = out.with_name(f"drive_{out.name}.py")
    script.write_text(SCRIPT, encoding="utf-8")
    words = [sys.executable, str(script), str(source), str(detector), str(out), engine]
    watch = CpuWatch(mark)
    watch.start()
    done = subprocess.run(
        [*words, str(workers)], env=environment, capture_output=True, text=True, check=True
    )
    cpu = watch.close()
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    run = Run(cpu=cpu, **said)
    check_once(out, run.rows)
    return run


def check_once(out: Path, rows: int) -> None:
    """Each row once: ids are the numbers from 0."""
    seen = bytearray(rows)
    for table in read_tables(out, ("id",)):
        for own in table["id"].to_pylist():
            assert not seen[int(own)], f"{own} came twice"
            seen[int(own)] = 1
    assert all(seen), "a row is missing"


def write_texts(path: Path, rows: int) -> Path:
    """Other texts than the detector learnt, as long and with the same characters."""
    draw = random.Random(1)
    shares = list(accumulate(1 / (place + 3) for place in range(len(LETTERS))))
    with path.open("w", encoding="utf-8") as file:
        for place in range(rows):
            text = "".join(draw.choices(LETTERS, cum_weights=shares, k=22))
            file.write(json.dumps({"id": str(place), "text": text}) + "\n")
    return path


def make_detector(path: Path, count: int, preset: str) -> Path:
    examples = [Example(e.id, e.text, label=e.label) for e in draw_examples(count)]
    most = fit_novelty([example.text for example in examples])
    save(train(examples, find_preset(preset)), path, {"languages": ["zh"], "novelty": most})
    return path


def measure_texts(folder: Path, rows: int, small: int, examples: int) -> Iterator[Check]:
    texts = write_texts(folder / "small.jsonl", small)
    fast = make_detector(folder / "fast.zip", examples, "fast")
    one = screen_texts(texts, fast, folder / "one", workers=1)
    two = screen_texts(texts, fast, folder / "two", workers=2)
    yield Check("texts: memes per CPU second", two.rows / two.cpu, 700, note="readings none")
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    busy = f"load {load:.1f} on {cores} cores: wall time means little" if load > cores + 1 else ""
    yield Check("texts: two processes, times one", one.wall / two.wall, 1.8, note=busy)
    ray = screen_texts(texts, fast, folder / "ray", "ray", workers=2)
    yield Check("texts: CPU of Ray, times the pool's", ray.cpu / two.cpu, 1.3, most=True)
    linear = make_detector(folder / "linear.zip", examples, "linear")
    first = screen_texts(texts, linear, folder / "few")
    many = screen_texts(write_texts(folder / "many.jsonl", rows), linear, folder / "many")
    for name in ("driver", "worker"):
        low, high = getattr(first, name), getattr(many, name)
        note = f"{low:.0f} MB at {small:,} rows, {high:.0f} MB at {rows:,}"
        yield Check(f"texts: memory of a {name}, growth", high / low, 1.25, most=True, note=note)


@dataclass
class Reader:
    """A reader with its CPU time and what it found of each caption."""

    name: str
    read: Any
    cpu: float = 0.0
    found: int = 0
    wanted: int = 0

    @property
    def recall(self) -> float:
        return self.found / self.wanted


def read_as_before() -> Any:
    """The package as it comes, with its own sessions: what reading cost before."""
    from rapidocr import RapidOCR

    folder = rapid._weights()
    plain = RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.max_side_len": 1280,
            "Det.model_path": str(folder / rapid._DETECTOR),
            "Det.limit_side_len": 544,
            "Rec.model_path": str(folder / rapid._RECOGNISER),
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )

    def read(data: bytes, name: str) -> Reading:
        import numpy as np

        pixels = np.ascontiguousarray(np.asarray(decode(data, name))[:, :, ::-1])
        return Reading(order_lines(rapid._read_thoroughly(plain, pixels)))

    return read


def measure_reading(count: int) -> Iterator[Check]:
    """Three readers in turns in one process, on memes whose captions are known."""
    readers = [
        Reader("before", read_as_before()),
        Reader("thorough", rapid.RapidReader("thorough").read),
        Reader("fast", rapid.RapidReader("fast").read),
    ]
    memes = random.Random(3).sample(list(read_starter()), count)
    for reader in readers:
        reader.read(image_path(memes[0].id).read_bytes(), "warm-up")
    for meme in memes:
        data = image_path(meme.id).read_bytes()
        for reader in random.sample(readers, len(readers)):
            started = time.process_time()
            text = reader.read(data, meme.id).text
            reader.cpu += time.process_time() - started
            wanted = Counter(c for c in meme.text.casefold() if c.isalnum())
            held = Counter(c for c in text.casefold() if c.isalnum())
            reader.found += (wanted & held).total()
            reader.wanted += wanted.total()
    before = readers[0]
    for reader, target in zip(readers[1:], (2.3, 4.5), strict=True):
        recall = f"recall {reader.recall:.3f}, before {before.recall:.3f}"
        figure = before.cpu / reader.cpu
        each = f"{1000 * reader.cpu / count:.0f} ms each, {1000 * before.cpu / count:.0f} before"
        note = f"{each}; {recall}"
        if platform.machine() != "x86_64":
            note += f"; set on x86-64, here {platform.machine()}"
        yield Check(f"reading, {reader.name}: times cheaper", figure, target, note=note)


def measure_images(folder: Path, count: int) -> Iterator[Check]:
    """The share of time outside OCR, where nothing is remembered."""
    os.environ["MEMANTICS_HOME"] = str(folder / "home")
    detector = make_detector(folder / "images.zip", 2000, "fast")
    work = ScreenWork(ScreenSettings(detector=detector, readings="none"), 0.5, "perf", ("zh", "en"))
    screener: _Screener = work.open().__self__  # type: ignore[attr-defined]
    spent, read = 0.0, screener._read

    def clock(data: bytes, name: str) -> str:
        nonlocal spent
        started = time.process_time()
        text = read(data, name)
        spent += time.process_time() - started
        return text

    screener._read = clock
    memes = list(read_starter())[:count]
    refs = [Ref(meme.id, "file", str(image_path(meme.id))) for meme in memes]
    screener.screen(refs[:1])
    spent, started = 0.0, time.process_time()
    rows = screener.screen(refs[1:])
    total = time.process_time() - started
    assert {row["status"] for row in rows} <= {"judged", "unjudged"}
    note = f"{1000 * total / len(rows):.0f} ms a meme"
    yield Check("images: share of time outside OCR", 1 - spent / total, 0.25, most=True, note=note)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.screen", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the largest run")
    parser.add_argument("--images", type=int, default=40, help="images that are read")
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look")
    parser.add_argument("--only", choices=("texts", "reading", "images"), help="one part")
    given = parser.parse_args()
    small, examples = (4000, 2000) if given.quick else (SMALL, 9600)
    rows = 20_000 if given.quick else given.rows
    kept = True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        parts = {
            "reading": measure_reading(given.images),
            "images": measure_images(folder, given.images),
            "texts": measure_texts(folder, rows, small, examples),
        }
        for name, checks in parts.items():
            if given.only not in (None, name):
                continue
            for check in checks:
                bound = f"{'≤' if check.most else '≥'} {check.target:g}"
                verdict = "kept" if check.kept else "MISSED"
                print(f"{check.what:<42}{check.figure:>9.2f}  {bound:>8}  {verdict}  {check.note}")
                kept = kept and check.kept
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'this process, peak memory':<42}{peak:>6.0f} MB")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
