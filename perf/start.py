"""``python -m perf.start [--json] [--repeats N]``: what does it cost to begin, and to use Python?

CPU seconds of whole processes, so that a busy machine changes little: importing the package, the
help, and 2,000 texts scored by ``Detector.predict`` against the same texts through the command.
The processes take turns and the median counts. Python's own start is taken off the import.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import orjson

TEXTS = 2_000
LETTERS = "今天明天我们他们一起去市场买东西回家做饭看电视听音乐散步聊天"
CLI = (sys.executable, "-m", "memantics.cli.main")
PREDICT = """
import json, sys
import memantics as mm
rows = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
found = mm.Detector.load(sys.argv[1]).predict([row["text"] for row in rows])
assert len(found) == len(rows)
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One target and its measured value."""

    what: str
    value: float
    target: float

    @property
    def kept(self) -> bool:
        """Whether the value is at most the target."""
        return self.value <= self.target


def spend(*command: str, folder: Path) -> float:
    """CPU seconds of a process and all that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # One thread: others would only wait for each other, and their waiting would count.
    environment = os.environ | {"MEMANTICS_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(repeats: int) -> tuple[Check, ...]:
    """Run everything in turns."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        spend(*CLI, "detector", "train", "--data", "sample", "--out", "fast.zip", folder=folder)
        chance = random.Random(0)
        rows = (
            {"id": str(n), "text": "".join(chance.choices(LETTERS, k=chance.randint(5, 25)))}
            for n in range(TEXTS)
        )
        (folder / "texts.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        data = ("fast.zip", "--data", "texts.jsonl", "--out", "judged.jsonl")
        commands: dict[str, tuple[str, ...]] = {
            "nothing": (sys.executable, "-c", "pass"),
            "import": (sys.executable, "-c", "import memantics"),
            "help": (*CLI, "--help"),
            "command": (*CLI, "detector", "predict", *data),
            "python": (sys.executable, "-c", PREDICT, "fast.zip", "texts.jsonl"),
        }
        measurements: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeats):
            for name, command in commands.items():
                measurements[name].append(spend(*command, folder=folder))
                print(
                    f"  {name:<8} {measurements[name][-1]:6.3f} CPU s", file=sys.stderr, flush=True
                )
    cpu = {name: median(found) for name, found in measurements.items()}
    return (
        Check("import memantics, CPU s", max(0.0, cpu["import"] - cpu["nothing"]), 0.1),
        Check("memantics --help, CPU s", cpu["help"], 0.4),
        Check(f"Detector.predict / command, {TEXTS:,} texts", cpu["python"] / cpu["command"], 1.2),
    )


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.start", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each")
    given = parser.parse_args()
    checks = measure(given.repeats)
    if given.json:
        print(orjson.dumps([asdict(check) | {"kept": check.kept} for check in checks]).decode())
    else:
        print(f"{'at most':<44}{'figure':>10}{'target':>8}")
        for check in checks:
            end = "kept" if check.kept else "MISSED"
            print(f"{check.what:<44}{check.value:>10.3f}{check.target:>8.2f}  {end}")
    return 0 if all(check.kept for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
