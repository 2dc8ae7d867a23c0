"""Seeded samples."""

from __future__ import annotations

from collections import Counter

from memantics.core.records import Form, Item
from memantics.evaluation.run import draw_memes


def items(memes: int, each: int) -> list[Item]:
    form = Form("", ())
    return [Item(f"{m}-{n}", f"meme-{m}", "", form) for m in range(memes) for n in range(each)]


def test_memes_are_whole_and_no_more_than_needed() -> None:
    drawn, held = draw_memes(items(40, 3), 10, seed=7)
    assert (len(drawn), held) == (4, 12)


def test_the_same_seed_draws_the_same_memes_for_other_tasks() -> None:
    first, _ = draw_memes(items(40, 1), 8, seed=1)
    second, _ = draw_memes(items(40, 2), 16, seed=1)
    assert first == second
    assert first != draw_memes(items(40, 1), 8, seed=2)[0]


def test_a_sample_larger_than_the_data_is_all_of_it() -> None:
    drawn, held = draw_memes(items(5, 2), 99, seed=0)
    assert (len(drawn), held) == (5, 10)


def test_every_meme_is_drawn_about_equally_often() -> None:
    counts: Counter[str] = Counter()
    for seed in range(400):
        counts.update(draw_memes(items(20, 1), 5, seed)[0])
    assert set(counts) == {f"meme-{m}" for m in range(20)}
    # 100 times each is expected, with a standard deviation of 8.7.
    assert min(counts.values()) > 60
    assert max(counts.values()) < 140
