"""Contrasts by factor over a grid: runs that differ in it alone, corrected together."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from memantics.core.errors import InputError
from memantics.evaluation.contrasts import FactorContrasts, FactorEffect, SettingContrast, contrast
from memantics.evaluation.paired import Comparison, Difference, show_p
from memantics.metrics.comparison import holm
from tests.commands import Shell
from tests.compare.test_compare import choices, puns, side
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


@pytest.mark.slow
def test_only_runs_that_differ_in_the_factor_are_compared(grid: list[Path]) -> None:
    found = contrast([side(own) for own in grid], "background", ["rouge_l"])
    told = [(own.setting, own.first, own.second) for own in found.contrasts]
    assert told == [("shots=zero", "none", "human"), ("shots=few", "none", "human")]
    for own in found.contrasts:
        (row,) = own.comparison.differences
        assert row.difference > 0.3
        assert row.t_test is not None
        assert row.t_test_corrected == pytest.approx(min(1.0, 2 * row.t_test), abs=0.2)
    (effect,) = found.effects
    assert (effect.settings, effect.memes) == (2, 6)
    rows = [own.comparison.differences[0].difference for own in found.contrasts]
    assert effect.difference == pytest.approx(sum(rows) / 2)
    assert len(found.table().rows) == 2
    assert len(found.effect_table().rows) == 1


def test_no_comparison_has_an_unpaired_test(grid: list[Path]) -> None:
    """It ignores that both runs answer the same memes, so it finds too few differences."""
    found = contrast([side(own) for own in grid[:2]], "background", ["rouge_l"])
    assert "unpaired" not in json.dumps(found.to_dict())
    row = found.contrasts[0].comparison.differences[0]
    first, second = (side(own) for own in grid[:2])
    assert first.task.marks is not None
    marks = [first.task.marks(own.outcomes)["rouge_l"] for own in (first, second)]
    assert row.t_test == pytest.approx(stats.ttest_rel(marks[1], marks[0]).pvalue)


def test_what_cannot_be_contrasted_is_refused(grid: list[Path], tmp_path: Path) -> None:
    sides = [side(own) for own in grid]
    with pytest.raises(InputError, match="has no option 'colour'"):
        contrast(sides, "colour")
    with pytest.raises(InputError, match="all runs have decoding = greedy"):
        contrast(sides, "decoding")
    with pytest.raises(InputError, match="no two runs differ in background alone"):
        contrast([sides[0], sides[3]], "background")
    with pytest.raises(InputError, match="equal in all other settings"):
        contrast([*sides, sides[0]], "background")


def test_models_are_a_factor_and_right_answers_a_metric(tmp_path: Path) -> None:
    names = [str(n) for n in range(8)]
    one = choices(tmp_path / "a", {name: int(name) < 2 for name in names})
    other = choices(tmp_path / "b", {name: int(name) < 7 for name in names})
    found = contrast([side(one), side(other)], "model")
    (effect,) = found.effects
    assert (effect.first, effect.second) == ("fake/a", "fake/b")
    assert effect.difference == pytest.approx(5 / 8)


@pytest.mark.slow
def test_the_command(grid: list[Path], tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = shell.done("compare", *grid, "--by", "background", "--metric", "rouge_l")
    assert "none → human" in told
    assert "Over all settings" in told
    found = json.loads(shell.done("compare", *grid, "--by", "shots", "--json"))
    assert found["factor"] == "shots"
    assert "no option" in shell.refused("compare", *grid, "--by", "colour")


def test_right_answers_are_a_metric_beside_the_main_one(tmp_path: Path) -> None:
    golds = {f"{n}-0": "pun" if n % 2 else "non-pun" for n in range(8)}
    first = puns(tmp_path / "a", dict.fromkeys(golds, "pun"), golds)
    second = puns(tmp_path / "b", golds, golds)
    found = contrast([side(first), side(second)], "model", ["right"])
    (effect,) = found.effects
    assert (effect.key, effect.settings, effect.memes) == ("right", 1, 8)
    assert effect.difference == pytest.approx(0.5)


def test_tables_name_their_columns_and_leave_out_what_is_not_known() -> None:
    known = FactorEffect("rouge_l", "none", "human", 2, 6, 0.25, -0.125, 0.5, 0.0004, 0.04)
    single = FactorEffect("bleu_4", "none", "human", 1, 1, -0.5, None, None, None)
    row = Difference(
        *("rouge_l", 0.25, 0.5, 0.25, None, None, "bootstrap", 0.01, "d", 1.0, 6, 6),
        t_test=0.02,
        corrected=0.03,
        t_test_corrected=0.04,
    )
    pair = Comparison("a", "b", "t", 6, {}, (row,), (), ())
    found = FactorContrasts(
        "background", (SettingContrast("shots=few", "none", "human", pair),), (known, single)
    )
    effects = found.effect_table()
    assert effects.title == "Over all settings"
    assert [name for name, _ in effects.sides] == [
        *("background", "metric", "mean difference (95 %)", "settings", "memes", "p", "Holm")
    ]
    assert [where for _, where in effects.sides] == ["left"] * 3 + ["right"] * 4
    assert effects.rows == (
        ("none → human", "rouge_l", "+0.250 (-0.125 to +0.500)", "2", "6", "<0.001", "0.040"),
        ("none → human", "bleu_4", "-0.500", "1", "1", "–", "–"),
    )
    table = found.table()
    assert [name for name, _ in table.sides] == [
        *("setting", "background", "metric", "difference (95 %)", "p", "Holm"),
        *("paired t", "items", "memes"),
    ]
    assert [where for _, where in table.sides] == ["left"] * 4 + ["right"] * 5
    assert table.rows == (
        (
            *("shots=few", "none → human", "rouge_l", "+0.250"),
            *("0.010", "0.030", "0.040", "6", "6"),
        ),
    )
    page = found._repr_html_()
    assert page.index("Over all settings") < page.index("shots=few")
    plain = pair.table()
    assert plain.title == "6 items of 6 memes"
    assert [name for name, _ in plain.sides] == [
        *("metric", "first", "second", "difference (95 %)", "p", "Holm")
    ]
    assert [where for _, where in plain.sides] == ["left", "right", "right", "left", *["right"] * 2]
    assert plain.rows == (("rouge_l", "0.250", "0.500", "+0.250", "0.010", "0.030"),)
    assert "<td" in pair._repr_html_()
    assert replace(row, low=0.125, high=0.5).span == "+0.250 (+0.125 to +0.500)"
    assert replace(row, low=0.125).span == "+0.250"


@pytest.mark.parametrize(("p", "shown"), [(0.001, "0.001"), (0.00099, "<0.001"), (1.0, "1.000")])
def test_small_p_values_have_a_bound(p: float, shown: str) -> None:
    assert show_p(p) == shown


def test_a_setting_is_named_by_what_differs_besides_the_factor(grid: list[Path]) -> None:
    lone = contrast([side(folder) for folder in grid[:2]], "background", ["rouge_l"])
    assert [row.setting for row in lone.contrasts] == ["all"]
    # A setting without its counterpart is left out, and three levels give three pairs.
    sides = [side(folder) for folder in grid]
    half = contrast(sides[:3], "background", ["rouge_l"])
    assert [row.setting for row in half.contrasts] == ["shots=zero"]
    assert [effect.settings for effect in half.effects] == [1]
    models = [
        replace(sides[0], facts=replace(sides[0].facts, model=name, split=name, perturbation=""))
        for name in ("x", "y")
    ]
    with pytest.raises(InputError, match="no two runs differ in model alone"):
        contrast(models, "model", ["rouge_l"])


def test_effects_are_corrected_together_over_pairs_of_levels(tmp_path: Path) -> None:
    folders = [
        intents(tmp_path / level, hits, background=level)
        for level, hits in (("none", 0), ("auto", 3), ("human", 6))
    ]
    found = contrast([side(folder) for folder in folders], "background", ["rouge_l"])
    assert [(effect.first, effect.second) for effect in found.effects] == [
        *(("none", "auto"), ("none", "human"), ("auto", "human")),
    ]
    known = [effect.p for effect in found.effects if effect.p is not None]
    assert [effect.corrected for effect in found.effects] == pytest.approx(holm(known))
    assert all(
        effect.low is not None and effect.low <= effect.difference <= (effect.high or 0.0)
        for effect in found.effects
    )
