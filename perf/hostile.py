"""``python -m perf.hostile [--minutes N] [--seed N] [--load]``: the attack suite with fresh seeds.

``tests/hostile`` runs in every test run with one fixed seed and few cases. Here its generators run
again and again, with another seed each round, until the time is over; a minute later at the latest
it stops in the middle. A case that breaks something is kept in ``build/hostile/KIND.jsonl``;
whoever fixes it moves it into ``tests/hostile/corpus``, where it is tried for ever. The exit code
is 1 if anything broke or a generator never came to its end. ``--load`` attacks one service instead,
while normal clients use it (:mod:`perf.hostile_load`).
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOUND = ROOT / "build" / "hostile"
# Cases of a round, so that each file takes some seconds and all of them are tried with many seeds.
CASES = {
    "test_images.py": 2_000,
    "test_queries.py": 300,
    "test_cache.py": 200,
    "test_headers.py": 60,
    "test_detectors.py": 60,
    "test_backups.py": 20,
    "test_names.py": 20,
    "test_sources.py": 120,
    "test_databases.py": 400,
    "test_liars.py": 22,
    "test_starving.py": 9,
    "test_stores.py": 12,
    "../serve/test_forms.py": 60,
    "test_orders.py": 1_000,
    "test_injection.py": 78,
    "test_workers.py": 40,
    "test_budget.py": 70,
    "test_places.py": 90,
}
# Of these files only some tests take fresh seeds, and the others take minutes.
FRESH = dict.fromkeys(("test_sources.py", "test_injection.py", "test_places.py"), "not slow")
GRACE = 60  # seconds


def attack(name: str, seed: int, seconds: float) -> tuple[bool | None, str]:
    """One file with one seed; whether it held (None: no time was left), and what it said last."""
    environment = os.environ | {
        "MEMANTICS_HOSTILE_SEED": str(seed),
        "MEMANTICS_HOSTILE_CASES": str(CASES[name]),
        "MEMANTICS_HOSTILE_FOUND": str(FOUND),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "-m", FRESH.get(name, ""), f"tests/hostile/{name}"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"stopped after {seconds:.0f} s"
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
    parser.add_argument("--load", action="store_true", help="attack one service instead")
    parser.add_argument("--requests", type=int, default=2_000, help="of --load")
    given = parser.parse_args()
    if given.load:
        from perf.hostile_load import run

        return run(given.requests, given.seed)
    end = time.monotonic() + 60 * given.minutes
    seeds = dict.fromkeys(CASES, 0)
    broken = cases = 0
    for name, seed in ((name, seed) for seed in count(given.seed) for name in seeds):
        if time.monotonic() >= end:
            break
        held, said = attack(name, seed, end + GRACE - time.monotonic())
        word = {True: "held", False: "BROKEN", None: "unfinished"}[held]
        print(f"seed {seed}  {name:<25} {word}  {said}", flush=True)
        if held is not None:
            seeds[name] += 1
            cases += CASES[name]
            broken += not held
    print(f"{cases:,} cases; {broken} times something broke; seeds tried by each generator:")
    print(
        "  ".join(
            f"{Path(name).stem.removeprefix('test_')} {tried}" for name, tried in seeds.items()
        )
    )
    if broken:
        print(f"the cases are in {FOUND.relative_to(ROOT)}")
    return 1 if broken or not all(seeds.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
