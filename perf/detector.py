"""``python -m perf.detector [--data FOLDER] [--preset fast]``: training time, rate, size.

Promises: ``fast`` trains on the official training part in under 2 minutes on 2 free cores, judges
at least 500 memes a second and core from text and captions, and its file is below 25 MB. From
Python ``Detector.predict`` on 2,000 texts costs at most 1.2 times the command's CPU time. CPU time
is printed beside wall time: on a busy machine only the former tells.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.fast import train
from memantics.moderation.heads import find_preset
from memantics.moderation.judges import open_embedder
from memantics.moderation.storage import load, save

Value = TypeVar("Value")
LETTERS = [chr(0x4E00 + place) for place in range(3000)]


@dataclass(frozen=True, slots=True)
class Measurements:
    examples: int
    train_wall_s: float
    train_cpu_s: float
    memes_per_cpu_s: float
    megabytes: float
    load_s: float
    peak_mb: float
    python_cpu_s: float
    command_cpu_s: float
    python_to_command: float


def draw_examples(count: int, seed: int = 0) -> list[Example]:
    """Random texts of the lengths that ToxiCN MM has; rare letters are rare, as in real texts."""
    pick = random.Random(seed)
    weights = [1 / (place + 3) for place in range(len(LETTERS))]

    def text(size: int) -> str:
        return "".join(pick.choices(LETTERS, weights, k=size))

    return [
        Example(str(i), text(22), text(33), text(25), None, int(pick.random() < 0.32))
        for i in range(count)
    ]


def read_official(folder: Path) -> list[Example]:
    """Return the official training part; only texts, captions and labels are taken."""
    rows = json.loads((folder / "train_data_discription.json").read_text(encoding="utf-8"))
    names = ("none", "targeted", "sexual", "offence", "dispirited")
    return [
        Example(
            str(place),
            row["text"],
            row["text_discription"],
            row["meme_discription"],
            None,
            row["label"],
            names[row["type"]],  # type: ignore[arg-type]
        )
        for place, row in enumerate(rows)
    ]


def clock(work: Callable[[], Value]) -> tuple[Value, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def measure(examples: list[Example], preset: str) -> Measurements:
    embedder = open_embedder(find_preset(preset))
    detector, wall, cpu = clock(lambda: train(examples, find_preset(preset), embedder))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "detector.zip"
        save(detector, path)
        size = path.stat().st_size / 1e6
        again, _, opened = clock(lambda: load(path))
        python, command = compare_faces(path, examples[:2000])
    asked = examples[:2000]
    again.predict(asked[:50], embedder)
    said, _, spent = clock(lambda: again.predict(asked, embedder))
    assert len(said) == len(asked)
    scale = 1e6 if sys.platform == "darwin" else 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale
    rate = len(asked) / spent
    ratio = python / command
    return Measurements(len(examples), wall, cpu, rate, size, opened, peak, python, command, ratio)


def compare_faces(path: Path, examples: list[Example]) -> tuple[float, float]:
    """Measure the CPU seconds to load a detector and score texts, from Python and by command."""
    texts = [example.text for example in examples]
    rows = path.with_name("texts.jsonl")
    rows.write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    said, _, python = clock(lambda: Detector.load(path).predict(texts))
    main = "from memantics.cli.main import main; main()"
    words = ["detector", "predict", str(path), "--data", str(rows), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", main, *words], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shown = [prediction["probability"] for prediction in json.loads(done.stdout)]
    assert shown == [prediction.probability for prediction in said]
    command = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return python, command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the official release")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--count", type=int, default=9600, help="examples where there is no data")
    options = parser.parse_args()
    examples = read_official(options.data) if options.data else draw_examples(options.count)
    measurements = measure(examples, options.preset)
    print(
        json.dumps(
            {name: round(value, 2) for name, value in asdict(measurements).items()}, indent=2
        )
    )


if __name__ == "__main__":
    main()
