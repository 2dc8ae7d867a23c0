"""Contrasts by factor over a grid: runs that differ in it alone, corrected together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy import stats

from memantics.core.errors import InputError
from memantics.run.contrasts import contrast
from tests.commands import Shell
from tests.compare.test_compare import choices, side
from tests.runs import write_run

WORDS = ("cats", "dogs", "updates", "trains", "mondays", "cables")


def intents(folder: Path, hits: int, **options: str) -> Path:
    """Replies to six memes, of which so many are the reference itself."""
    golds = {str(n): [f"the meme mocks {word}"] for n, word in enumerate(WORDS)}
    replies = {
        name: gold[0] if int(name) < hits else "it is a picture" for name, gold in golds.items()
    }
    base = {"shots": "zero", "background": "none", "images": "all", "decoding": "greedy"}
    more = {"max_tokens": "100", "stemmer": "none", "bleu_smoothing": "none"}
    return write_run(
        folder,
        "memeintent/intent",
        replies,
        golds={name: list(gold) for name, gold in golds.items()},
        options=base | more | options,
    )


@pytest.fixture
def grid(tmp_path: Path) -> list[Path]:
    hits = {("zero", "none"): 1, ("zero", "human"): 4, ("few", "none"): 2, ("few", "human"): 5}
    return [
        intents(tmp_path / f"{shots}-{background}", count, shots=shots, background=background)
        for (shots, background), count in hits.items()
    ]


def test_only_runs_that_differ_in_the_factor_are_compared(grid: list[Path]) -> None:
    found = contrast([side(own) for own in grid], "background", ["rouge_l"])
    told = [(own.setting, own.first, own.second) for own in found.contrasts]
    assert told == [("shots=zero", "none", "human"), ("shots=few", "none", "human")]
    for own in found.contrasts:
        (row,) = own.comparison.differences
        assert row.difference > 0.3
        assert row.t_unpaired is not None
        assert row.t_unpaired_corrected == pytest.approx(min(1.0, 2 * row.t_unpaired), abs=0.2)
    (effect,) = found.effects
    assert (effect.settings, effect.memes) == (2, 6)
    rows = [own.comparison.differences[0].difference for own in found.contrasts]
    assert effect.difference == pytest.approx(sum(rows) / 2)
    assert len(found.table().rows) == 2
    assert len(found.effect_table().rows) == 1


def test_the_unpaired_test_is_welch_s(grid: list[Path]) -> None:
    found = contrast([side(own) for own in grid[:2]], "background", ["rouge_l"])
    row = found.contrasts[0].comparison.differences[0]
    first, second = (side(own) for own in grid[:2])
    assert first.task.marks is not None
    marks = [first.task.marks(own.outcomes)["rouge_l"] for own in (first, second)]
    assert row.t_unpaired == pytest.approx(
        stats.ttest_ind(marks[1], marks[0], equal_var=False).pvalue
    )


def test_what_cannot_be_contrasted_is_refused(grid: list[Path], tmp_path: Path) -> None:
    sides = [side(own) for own in grid]
    with pytest.raises(InputError, match="has no option 'colour'"):
        contrast(sides, "colour")
    with pytest.raises(InputError, match="all runs have decoding = greedy"):
        contrast(sides, "decoding")
    with pytest.raises(InputError, match="no two runs differ in background alone"):
        contrast([sides[0], sides[3]], "background")
    with pytest.raises(InputError, match="alike in everything else"):
        contrast([*sides, sides[0]], "background")


def test_models_are_a_factor_and_right_answers_a_figure(tmp_path: Path) -> None:
    names = [str(n) for n in range(8)]
    one = choices(tmp_path / "a", {name: int(name) < 2 for name in names})
    other = choices(tmp_path / "b", {name: int(name) < 7 for name in names})
    found = contrast([side(one), side(other)], "model")
    (effect,) = found.effects
    assert (effect.first, effect.second) == ("fake/a", "fake/b")
    assert effect.difference == pytest.approx(5 / 8)


def test_the_command(grid: list[Path], tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = shell.done("compare", *grid, "--by", "background", "--metric", "rouge_l")
    assert "none → human" in told
    assert "Over all settings" in told
    found = json.loads(shell.done("compare", *grid, "--by", "shots", "--json"))
    assert found["factor"] == "shots"
    assert "no option" in shell.refused("compare", *grid, "--by", "colour")
