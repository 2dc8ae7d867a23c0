"""``python -m perf.hostile [--minutes N] [--seed N]``: the attack suite with fresh seeds.

``tests/hostile`` runs in every test run with one fixed seed and few cases. Here it runs again and
again, with another seed and more cases each round, until the time is over. A case that breaks
something is kept in ``build/hostile/KIND.jsonl``; whoever fixes it moves it into
``tests/hostile/corpus``, where it is tried for ever. The exit code is 1 if anything broke.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOUND = ROOT / "build" / "hostile"
# Cases of a round by what one costs; images and queries take a millisecond, a backup a quarter
# of a second.
CASES = {
    "test_images.py": 10_000,
    "test_queries.py": 1_000,
    "test_cache.py": 1_000,
    "test_headers.py": 300,
    "test_detectors.py": 200,
    "test_backups.py": 80,
    "test_names.py": 80,
}


def attack(name: str, seed: int) -> tuple[bool, str]:
    """One file of the suite with one seed; whether it held, and what it said last."""
    environment = os.environ | {
        "MEMANTICS_HOSTILE_SEED": str(seed),
        "MEMANTICS_HOSTILE_CASES": str(CASES.get(name, 100)),
        "MEMANTICS_HOSTILE_FOUND": str(FOUND),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"tests/hostile/{name}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode:
        notes = [line for line in lines if re.match(r"E +(hostile \w+:|\w+Error)|FAILED", line)]
        return False, "\n".join(notes[:20] or lines[-5:])
    return True, lines[-1] if lines else ""


def main() -> int:
    """Attack until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m perf.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9), help="first seed")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    names = sorted(path.name for path in (ROOT / "tests" / "hostile").glob("test_*.py"))
    broken = rounds = cases = 0
    seed = given.seed
    while rounds == 0 or time.monotonic() < end:
        for name in names:
            held, said = attack(name, seed)
            cases += CASES.get(name, 100)
            broken += not held
            print(f"seed {seed}  {name:<20} {'held' if held else 'BROKEN'}  {said}", flush=True)
            if rounds and time.monotonic() >= end:
                break
        rounds, seed = rounds + 1, seed + 1
    print(f"{cases:,} cases in {rounds} rounds; {broken} times something broke")
    if broken:
        print(f"the cases are in {FOUND.relative_to(ROOT)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
