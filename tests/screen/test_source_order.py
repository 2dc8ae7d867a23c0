"""No verdict depends on the order of files, on how rows are spread over them, or on processes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from memantics.moderation.scale.engines import PoolEngine, ShardEngine
from memantics.moderation.screen import screen
from memantics.moderation.screening import ScreenSettings, read_rows
from tests.moderation.samples import make_examples
from tests.scale.inline import InlineEngine

TEXTS = [example.text for example in make_examples(24, seed=3)]


def write_files(folder: Path, seed: int) -> list[Path]:
    """Spread the texts over three tables; the order of rows and of tables depends on the seed."""
    draw, rows = random.Random(seed), [*enumerate(TEXTS)]
    draw.shuffle(rows)
    cut = sorted(draw.sample(range(1, len(rows)), 2))
    files = []
    for number, some in enumerate((rows[: cut[0]], rows[cut[0] : cut[1]], rows[cut[1] :])):
        path = folder / f"part-{number}.jsonl"
        lines = [json.dumps({"id": f"m{n}", "text": text}) for n, text in some]
        path.write_text("\n".join(lines), encoding="utf-8")
        files.append(path)
    draw.shuffle(files)
    return files


def judge(files: list[Path], out: Path, engine: ShardEngine, size: int) -> dict[str, Any]:
    settings = ScreenSettings(readings="none")
    screen([*map(str, files)], settings, out=out, engine=engine, shard_size=size)
    found = {str(row["id"]): row for row in read_rows(out)}
    assert len(found) == len(TEXTS)
    return found


def test_shuffled_files_and_shards_of_any_size_give_the_same_verdicts(tmp_path: Path) -> None:
    made = []
    for seed, size in ((0, 24), (1, 5), (2, 1)):
        (tmp_path / f"in-{seed}").mkdir()
        files = write_files(tmp_path / f"in-{seed}", seed)
        made.append(judge(files, tmp_path / f"out-{seed}", InlineEngine(), size))
    assert made[0] == made[1] == made[2]


@pytest.mark.slow
def test_any_number_of_processes_gives_the_same_verdicts(tmp_path: Path) -> None:
    made = []
    for seed, count in ((0, 1), (1, 3)):
        (tmp_path / f"in-{seed}").mkdir()
        files = write_files(tmp_path / f"in-{seed}", seed)
        made.append(judge(files, tmp_path / f"out-{seed}", PoolEngine(count), 4))
    assert made[0] == made[1]
