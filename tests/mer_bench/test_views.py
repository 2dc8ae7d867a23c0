"""Draws against a plain simulation of the procedure, with the seed of the paper."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from memantics.benchmarks.mer_bench.load import ReappraisalRow
from memantics.benchmarks.mer_bench.views import (
    FACTORS,
    LEVELS,
    EditToJudge,
    KeptMemes,
    draw_pairs,
    level_of,
    share_out,
)
from tests.mer_bench.samples import opened, write_release
from tests.places import SHARED_DATA, needs_shared_data


@pytest.fixture
def rows(tmp_path: Path) -> tuple[ReappraisalRow, ...]:
    return opened(write_release(tmp_path, 130, ())).rows


def keep(rows: tuple[ReappraisalRow, ...], editors: int) -> KeptMemes:
    return KeptMemes(rows, tuple(f"editor{n:02}" for n in range(editors)), len(rows))


def drawn_in(pairs: tuple[EditToJudge, ...], table: str, run: int) -> Counter[tuple[str, str]]:
    return (
        Counter({(pair.editor, pair.row.id): pair.runs.get(table, []).count(run) for pair in pairs})
        + Counter()
    )


def test_all_judges_every_pair_once(rows: tuple[ReappraisalRow, ...]) -> None:
    pairs = draw_pairs(keep(rows, 3), "all", 42)
    assert len(pairs) == 390
    assert all(pair.runs == {"": [0]} for pair in pairs)


def test_model_view_draws_the_same_hundred_for_every_editor(
    rows: tuple[ReappraisalRow, ...],
) -> None:
    kept = keep(rows, 3)
    pairs = draw_pairs(kept, "model", 42)
    chance = random.Random(42)
    for run in range(10):
        wanted = {row.id for row in chance.sample(list(rows), 100)}
        found = drawn_in(pairs, "", run)
        assert set(found.values()) == {1}
        for editor in kept.editors:
            assert {meme for own, meme in found if own == editor} == wanted
    assert len(pairs) == len({(pair.editor, pair.row.id) for pair in pairs})


def test_few_memes_are_drawn_again(rows: tuple[ReappraisalRow, ...]) -> None:
    pairs = draw_pairs(keep(rows[:7], 1), "model", 42)
    chance = random.Random(42)
    wanted = Counter(chance.choice(rows[:7]).id for _ in range(100))
    assert Counter({meme: n for (_, meme), n in drawn_in(pairs, "", 0).items()}) == wanted


def simulate(
    rows: list[ReappraisalRow], editors: tuple[str, ...], size: int
) -> list[Counter[tuple[str, str]]]:
    chance = random.Random(42)
    runs = []
    for _ in range(10):
        quota = [size // len(editors)] * len(editors)
        rest = size - sum(quota)
        if rest:
            order = list(range(len(editors)))
            chance.shuffle(order)
            for place in order[:rest]:
                quota[place] += 1
        run: Counter[tuple[str, str]] = Counter()
        for editor, own in zip(editors, quota, strict=True):
            picked = (
                chance.sample(rows, own)
                if len(rows) >= own
                else [chance.choice(rows) for _ in range(own)]
            )
            run.update((editor, row.id) for row in picked)
        runs.append(run)
    return runs


def test_category_view_has_fifty_a_run_with_quotas(rows: tuple[ReappraisalRow, ...]) -> None:
    kept = keep(rows, 14)
    pairs = draw_pairs(kept, "category", 42)
    for factor in FACTORS:
        for level in {level_of(row, factor) for row in rows}:
            assert level in LEVELS[factor]
            members = [row for row in rows if level_of(row, factor) == level]
            own = tuple(pair for pair in pairs if level_of(pair.row, factor) == level)
            wanted = simulate(members, kept.editors, 50)
            for run in range(10):
                found = drawn_in(own, factor, run)
                assert found == wanted[run]
                assert found.total() == 50
                shares = Counter(editor for editor, _ in found.elements())
                assert Counter(shares.values()) == {3: 6, 4: 8}


def test_overall_view_has_fifty_of_each_editor(rows: tuple[ReappraisalRow, ...]) -> None:
    kept = keep(rows, 14)
    pairs = draw_pairs(kept, "overall", 42)
    wanted = simulate(list(rows), kept.editors, 700)
    assert [drawn_in(pairs, "", run) for run in range(10)] == wanted
    assert all(run.total() == 700 for run in wanted)


def test_even_shares_need_no_chance() -> None:
    chance = random.Random(1)
    before = chance.getstate()
    assert share_out(50, 10, chance) == [5] * 10
    assert chance.getstate() == before


def test_another_seed_draws_otherwise(rows: tuple[ReappraisalRow, ...]) -> None:
    kept = keep(rows, 2)
    one, other = (draw_pairs(kept, "model", seed) for seed in (42, 43))
    assert drawn_in(one, "", 0) != drawn_in(other, "", 0)


@needs_shared_data
def test_on_the_shared_part() -> None:
    rows = opened_shared()
    kept = keep(rows, 14)
    pairs = draw_pairs(kept, "category", 42)
    assert {table for pair in pairs for table in pair.runs} == set(FACTORS)
    # At most 9 categories of 50 pairs in 10 runs.
    assert sum(len(runs) for pair in pairs for runs in pair.runs.values()) == 9 * 500


def opened_shared() -> tuple[ReappraisalRow, ...]:
    from memantics.core.data import Source

    return opened(Source("release", SHARED_DATA / "mer_bench")).rows
