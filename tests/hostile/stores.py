"""Knowledge stores of which bytes were changed, anywhere in their tables."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.hostile.cases import Case

HOW = ("bit", "zeros", "cut", "twice")


def generate(seed: int, count: int) -> Iterator[Case]:
    """Which table (by its size), where (a share of its length), and what happens there."""
    chance = random.Random(seed)
    for _ in range(count):
        yield {
            "table": chance.randrange(12),
            "place": round(chance.random() ** chance.choice((1, 0.02)), 6),  # blocks; the index
            "how": chance.choice(HOW),
            "bit": chance.randrange(8),
        }


def damage(sound: Path, folder: Path, case: Case) -> Path:
    """A copy of a store with one table changed."""
    shutil.copytree(sound, folder)
    tables = sorted((folder / "graphs").glob("*.sst"), key=lambda path: -path.stat().st_size)
    table = tables[case["table"] % len(tables)]
    data = bytearray(table.read_bytes())
    place = min(int(case["place"] * len(data)), len(data) - 1)
    if case["how"] == "bit":
        data[place] ^= 1 << case["bit"]
    elif case["how"] == "zeros":
        data[place : place + 16] = bytes(len(data[place : place + 16]))
    elif case["how"] == "cut":
        del data[place:]
    else:
        data[place:place] = data[place : place + 64]
    table.write_bytes(data)
    return folder
