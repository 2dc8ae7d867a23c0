"""Scores by a field of the items, with the majority baseline of each subset."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.evaluation import score_subsets
from memantics.evaluation.run import score_here
from tests.suite.conftest import Bench
from tests.suite.test_scoring import conduct, models


def test_subsets_have_their_own_majority_baseline(bench: Bench) -> None:
    toy = bench.make_toy(items=24)
    right, wrong = (end.job.folder for end in conduct(bench, [f"{toy}/choice"], models()))
    for folder, correct in ((right, 1.0), (wrong, 0.0)):
        for by in ("gold", "status", "images"):
            for row in score_subsets(folder, by).rows:
                assert row.correct == correct
                assert row.low <= row.correct <= row.high
                assert 0 < row.baseline <= 1
    assert all(row.baseline == 1 for row in score_subsets(right, "gold").rows)
    assert sum(row.items for row in score_subsets(right, "images").rows) == 24
    assert "majority" in score_subsets(right, "gold").table().columns


def test_an_unknown_field_names_the_others(bench: Bench) -> None:
    toy = bench.make_toy(items=4)
    (folder, _) = (end.job.folder for end in conduct(bench, [f"{toy}/choice"], models()))
    with pytest.raises(InputError, match="gold"):
        score_subsets(folder, "colour")


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_answers_have_the_same_scores(bench: Bench, seed: int) -> None:
    toy = bench.make_toy(items=40)
    job = conduct(bench, [f"{toy}/choice"], models())[0].job
    before = asyncio.run(score_here(job)), score_subsets(job.folder, "gold")
    path = Path(job.folder) / "answers.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    path.write_bytes(b"".join(lines))
    assert (asyncio.run(score_here(job)), score_subsets(job.folder, "gold")) == before
