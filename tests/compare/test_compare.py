"""Two runs item by item: the right test, the right items, the right warnings."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import JsonValue
from scipy import stats
from sklearn.metrics import roc_auc_score

from memantics.benchmarks.factories import accuracy_score
from memantics.core.errors import InputError, UnknownName
from memantics.core.records import Field, Form, Item, Odds, Outcome, Score
from memantics.core.rundir import read_facts
from memantics.core.task import InvalidPolicy, Task
from memantics.evaluation import main_metric, paired
from memantics.evaluation.paired import Comparison, Side, compare_sides, open_side
from memantics.evaluation.tasks import open_task_of_run
from memantics.metrics.paired import BY_MEME, compare_left_out
from tests.commands import Shell
from tests.runs import make_facts, pick, write_run

LETTERS = pick("A", "B", "C", "D")
T_AND_R = {"dimension": "Scene", "kind": "R"}
WORDS = {"pun": "双关", "non-pun": "非双关"}


def side(folder: Path) -> Side:
    facts = read_facts(folder)
    return open_side(folder, facts, open_task_of_run(facts, None)[1])


def one(first: Path, second: Path, *metrics: str) -> Comparison:
    found = compare_sides([side(first), side(second)], metrics)
    assert len(found) == 1
    return found[0]


def choices(
    folder: Path, right: Mapping[str, bool], groups: Mapping[str, str] | None = None
) -> Path:
    """A run of multiple-choice answers, right or wrong as told; the key is always A."""
    return write_run(
        folder,
        "mquest/qa",
        {name: "Answer: A" if hit else "Answer: B" for name, hit in right.items()},
        golds=dict.fromkeys(right, "A"),
        groups=groups,
        tags=T_AND_R,
        form=LETTERS,
        model=f"fake/{folder.name}",
    )


def puns(folder: Path, calls: Mapping[str, str], golds: Mapping[str, str]) -> Path:
    field = Field("label", "choice", pick("双关", "非双关").fields[0].options)
    return write_run(
        folder,
        "punmemecn/detection",
        {name: WORDS[call] for name, call in calls.items()},
        golds=dict(golds),
        groups={name: name.partition("-")[0] for name in calls},
        tags={"role": "pun"},
        form=Form("?", (field,), language="zh"),
        model=f"fake/{folder.name}",
    )


def test_right_and_wrong_get_mcnemars_test(tmp_path: Path) -> None:
    names = [str(n) for n in range(20)]
    first = choices(tmp_path / "a", {name: int(name) < 12 for name in names})
    second = choices(tmp_path / "b", {name: int(name) > 1 for name in names})
    found = one(first, second)
    (row,) = found.differences
    assert (row.key, row.test) == ("accuracy", "McNemar's test")
    assert (row.first, row.second) == (0.6, 0.9)
    assert row.p == pytest.approx(stats.chi2.sf(3.6, 1))
    assert row.corrected == row.p
    assert (row.effect, row.size) == ("odds ratio", 4.0)
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.difference < row.high
    assert {change.item for change in found.changes} == {"0", "1", *names[12:]}
    assert [change.gain for change in found.changes] == [1.0] * 8 + [-1.0] * 2
    assert (found.changes[0].first, found.changes[0].second, found.changes[0].gold) == (
        "B",
        "A",
        "A",
    )


def test_memes_with_several_items_get_the_clustered_test(tmp_path: Path) -> None:
    names = [f"{meme}-{n}" for meme in range(5) for n in range(4)]
    groups = {name: name.partition("-")[0] for name in names}
    first = choices(tmp_path / "a", dict.fromkeys(names, False), groups)
    second = choices(tmp_path / "b", {name: name[0] in "01" for name in names}, groups)
    (row,) = one(first, second).differences
    assert row.test == BY_MEME
    assert (row.items, row.memes) == (20, 5)
    # Two memes gained, not eight independent items.
    expected = stats.ttest_1samp([1, 1, 0, 0, 0], 0)
    assert row.p == pytest.approx(expected.pvalue)
    span = expected.confidence_interval()
    assert (row.low, row.high) == pytest.approx((span.low, min(1.0, span.high)))


@pytest.mark.slow
def test_texts_get_a_jackknife_and_t_tests(tmp_path: Path) -> None:
    texts = {str(n): f"the meme mocks thing{n} and other{n}" for n in range(30)}
    golds: dict[str, JsonValue] = {n: [text] for n, text in texts.items()}
    chance = random.Random(2)
    better = {n: text if chance.random() < 0.5 else "the meme" for n, text in texts.items()}
    first = write_run(
        tmp_path / "a", "memeintent/intent", dict.fromkeys(golds, "the meme"), golds=golds
    )
    second = write_run(
        tmp_path / "b", "memeintent/intent", better, golds=golds, model="fake/better"
    )
    found = one(first, second)
    keys = ["rouge_l", "bleu_4", "meaning_above_constant"]
    assert [row.key for row in found.differences] == keys
    rouge = found.differences[0]
    assert rouge.test == BY_MEME
    gains = [0.0 if text == "the meme" else 1 - 4 / 8 for text in better.values()]
    expected = stats.ttest_1samp(gains, 0)
    assert rouge.difference == pytest.approx(sum(gains) / 30)
    assert rouge.t_test == pytest.approx(expected.pvalue)
    assert rouge.size == pytest.approx(expected.statistic / 30**0.5)
    assert rouge.p == pytest.approx(expected.pvalue)
    assert {c.item for c in found.changes} == {n for n, t in better.items() if t != "the meme"}
    only = one(first, second, "bleu_4")
    assert [row.key for row in only.differences] == ["bleu_4"]
    with pytest.raises(UnknownName, match="bleu_4, meaning_above_constant, rouge_l"):
        one(first, second, "meteor")


def flip(gold: str) -> str:
    return "pun" if gold == "non-pun" else "non-pun"


@pytest.mark.parametrize("recognized", [True, False])
def test_f1_is_compared_by_leaving_out_memes(
    tmp_path: Path, recognized: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In arrays, or by the task's own scorer: both give the same interval and p-value."""
    if not recognized:
        monkeypatch.setattr(paired, "recognize_metric", lambda *_: None)
    chance = random.Random(5)
    golds = {f"{n}-{k}": "pun" if k == 0 else "non-pun" for n in range(40) for k in range(3)}
    worse = {name: g if chance.random() < 0.6 else flip(g) for name, g in golds.items()}
    found = one(puns(tmp_path / "a", worse, golds), puns(tmp_path / "b", golds, golds)).differences
    f1, right = found
    assert (f1.key, right.key) == ("f1", "right")
    assert f1.second == 1.0
    assert (f1.test, right.test) == (BY_MEME, BY_MEME)
    assert (f1.difference, f1.low, f1.high) == pytest.approx((0.5417, 0.4286, 0.6547), abs=1e-4)
    assert f1.p is not None
    assert 0 < f1.p < 1e-9


def test_a_huge_effect_stays_significant_among_a_hundred_comparisons(tmp_path: Path) -> None:
    """Draws of a bootstrap give p >= 1/1001, which Holm over 75 comparisons pushes above .05."""
    chance = random.Random(1)
    golds = {f"{n}-0": "pun" if n % 2 else "non-pun" for n in range(150)}

    def guess(rate: float) -> dict[str, str]:
        return {n: g if chance.random() < rate else flip(g) for n, g in golds.items()}

    strong = puns(tmp_path / "strong", guess(0.85), golds)
    weak = [puns(tmp_path / f"weak{n}", guess(0.5), golds) for n in range(14)]
    sides = [side(folder) for folder in (strong, *weak)]
    found = compare_sides(sides)
    assert len(found) == 105
    rows = [(row, c.first) for c in found for row in c.differences if row.key == "f1"]
    with_strong = [row for row, first in rows if first == str(strong)]
    assert len(with_strong) == 14
    assert all(row.corrected is not None and row.corrected < 0.001 for row in with_strong)
    others = [row for row, first in rows if first != str(strong)]
    assert not any((row.corrected or 1.0) < 0.05 for row in others)


@pytest.mark.parametrize("seed", range(6))
def test_interval_and_test_come_from_one_procedure(tmp_path: Path, seed: int) -> None:
    """An interval excludes zero exactly if p < .05, for every metric, clustered or not."""
    chance = random.Random(seed)
    golds = {
        f"{n}-{k}": "pun" if k == 0 else "non-pun" for n in range(30) for k in range(1 + seed % 3)
    }
    golds |= {f"{n}-0": "non-pun" for n in range(15)}
    rates = [0.55 + 0.05 * n for n in range(5)]
    folders = [
        puns(
            tmp_path / str(n),
            {name: g if chance.random() < rate else flip(g) for name, g in golds.items()},
            golds,
        )
        for n, rate in enumerate(rates)
    ]
    for found in compare_sides([side(folder) for folder in folders]):
        for row in found.differences:
            assert row.low is not None
            assert row.high is not None
            assert row.p is not None
            assert row.low <= row.difference <= row.high
            assert (row.low > 0 or row.high < 0) == (row.p < 0.05), row


def test_equal_runs_have_an_interval_with_a_width(tmp_path: Path) -> None:
    golds = {f"{n}-0": "pun" if n % 2 else "non-pun" for n in range(12)}
    found = one(puns(tmp_path / "a", golds, golds), puns(tmp_path / "b", golds, golds))
    for row in found.differences:
        assert (row.difference, row.p) == (0.0, 1.0)
        assert row.low is not None
        assert row.high is not None
        assert row.low < -0.1
        assert row.high > 0.1


def test_the_fallback_keeps_its_level() -> None:
    """No difference: about one in twenty is found by chance, with an unknown metric."""

    def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
        values = [outcome.value for outcome in outcomes if isinstance(outcome.value, float)]
        return (Score("metric", sum(values) / len(values), len(values)),)

    def never(*_: object) -> Any:
        raise AssertionError

    task = Task("t", lambda: iter(()), never, never, score, "metric", InvalidPolicy())
    chance, found = random.Random(1), 0
    for _ in range(200):
        items = [Item(str(n), str(n), None, LETTERS) for n in range(40)]
        first, second = (
            [Outcome(item, "answered", chance.gauss(0, 1)) for item in items] for _ in range(2)
        )
        assert main_metric.recognize_metric(task, [first, second]) is None
        one, two = (main_metric.leave_out_blocks(task, part) for part in (first, second))
        assert one is not None
        assert two is not None
        found += compare_left_out(two[0] - one[0], two[1] - one[1]).p < 0.05
    assert 4 <= found <= 17


@pytest.mark.parametrize(("memes", "tested"), [(14, False), (15, True)])
def test_the_fallback_needs_fifteen_memes(memes: int, tested: bool) -> None:
    def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
        values = [outcome.value for outcome in outcomes if isinstance(outcome.value, float)]
        return (Score("metric", max(values), len(values)),)

    def never(*_: object) -> Any:
        raise AssertionError

    task = Task("t", lambda: iter(()), never, never, score, "metric", InvalidPolicy())
    items = [Item(str(n), str(n), None, LETTERS) for n in range(memes)]
    facts = make_facts("t", "m", {})
    sides = [
        Side(
            Path(name),
            facts,
            task,
            tuple(Outcome(item, "answered", shift + n / 7) for n, item in enumerate(items)),
        )
        for name, shift in (("a", 0.25), ("b", 0.5))
    ]
    (row,) = compare_sides(sides)[0].differences
    assert (row.p is not None) is (row.low is not None) is tested
    if not tested:
        assert row.test == "too few memes for this test: 14, at least 15"


@pytest.mark.parametrize("memes", [30, 15, 14])
def test_auroc_is_compared_where_probabilities_exist(memes: int) -> None:
    form = pick("yes", "no")
    rng = np.random.default_rng(3)
    golds = ["yes" if n % 3 else "no" for n in range(60)]

    def state(noise: float) -> list[Outcome]:
        logits = [(1.0 if g == "yes" else -1.0) + rng.normal() * noise for g in golds]
        chances = [1 / (1 + np.exp(-x)) for x in logits]
        return [
            Outcome(
                Item(str(n), str(n % memes), gold, form),
                "answered",
                "yes" if p > 0.5 else "no",
                odds=Odds({"yes": float(p), "no": float(1 - p)}, gold),
            )
            for n, (gold, p) in enumerate(zip(golds, chances, strict=True))
        ]

    def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
        return (accuracy_score("accuracy", outcomes),)

    def never(*_: object) -> Any:
        raise AssertionError

    task = Task("t", lambda: iter(()), never, never, score, "accuracy", InvalidPolicy())
    facts = make_facts("t", "m", {})
    sides = [Side(Path(name), facts, task, tuple(state(x))) for name, x in (("a", 3.0), ("b", 0.5))]
    found = compare_sides(sides)[0]
    assert [row.key for row in found.differences] == ["accuracy", "auroc"]
    area = found.differences[1]
    for value, run in ((area.first, sides[0]), (area.second, sides[1])):
        stated = [o.odds.stated["yes"] for o in run.outcomes if o.odds]
        assert value == pytest.approx(roc_auc_score([g == "yes" for g in golds], stated))
    assert (area.items, area.memes) == (60, memes)
    if memes < 15:
        assert area.test == "too few memes for this test: 14, at least 15"
        assert (area.low, area.high, area.p, area.corrected) == (None,) * 4
    else:
        assert area.test == "DeLong's test over memes"
        assert area.low is not None
        assert area.low > 0
    only = compare_sides(sides, ["auroc"])[0]
    assert [row.key for row in only.differences] == ["auroc"]


@pytest.mark.parametrize(("recognized", "most"), [(True, 0), (False, 3 * (main_metric.BLOCKS + 1))])
def test_runs_are_not_scored_again_for_every_resample(
    tmp_path: Path, recognized: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1 is resampled in arrays; another metric is scored once per run and block of memes."""
    golds = {f"{n}-0": "pun" if n % 2 else "non-pun" for n in range(60)}
    chance, calls = random.Random(2), []
    sides = []
    for name in "abc":
        said = {n: g if chance.random() < 0.7 else flip(g) for n, g in golds.items()}
        sides.append(side(puns(tmp_path / name, said, golds)))
    task = sides[0].task
    form = main_metric.recognize_metric(task, [own.outcomes for own in sides])
    monkeypatch.setattr(paired, "recognize_metric", lambda *_: form if recognized else None)

    def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
        calls.append(len(outcomes))
        return task.score(outcomes)

    counted = replace(task, score=score)
    found = compare_sides([replace(own, task=counted) for own in sides])
    assert len(found) == 3
    assert len(calls) <= most


def test_progress_counts_comparisons(tmp_path: Path) -> None:
    sides = [side(choices(tmp_path / n, {"1": True, "2": n == "a"})) for n in "abc"]
    seen: list[tuple[int, int]] = []
    compare_sides(sides, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_several_runs_are_corrected_together(tmp_path: Path) -> None:
    names = [str(n) for n in range(30)]
    folders = [
        choices(tmp_path / label, {name: int(name) < limit for name in names})
        for label, limit in (("a", 10), ("b", 20), ("c", 28))
    ]
    sides = [side(folder) for folder in folders]
    found = compare_sides(sides)
    assert [(Path(c.first).name, Path(c.second).name) for c in found] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    p_values = [c.differences[0].p or 0.0 for c in found]
    corrected = [c.differences[0].corrected or 0.0 for c in found]
    order = sorted(range(3), key=lambda place: p_values[place])
    assert corrected[order[0]] == pytest.approx(3 * p_values[order[0]])
    assert all(after >= before for before, after in zip(p_values, corrected, strict=True))
    assert len(compare_sides(sides, against_first=True)) == 2


def test_only_shared_items_that_count_are_compared(tmp_path: Path) -> None:
    first = write_run(
        tmp_path / "a",
        "mquest/qa",
        {"1": "Answer: A", "2": None, "3": "Answer: A", "4": "Answer: A"},
        golds={"1": "A", "2": "A", "3": "A", "4": "A"},
        tags=T_AND_R,
        form=LETTERS,
    )
    second = write_run(
        tmp_path / "b",
        "mquest/qa",
        {"1": "no idea", "2": "Answer: A", "3": "Answer: A", "5": "Answer: A"},
        golds={"1": "A", "2": "A", "3": "B", "5": "A"},
        tags=T_AND_R,
        form=LETTERS,
        model="fake/other",
        checksum="else",
        options={"parser": "paper"},
    )
    found = one(first, second)
    assert found.shared == 1
    assert found.skipped == {
        "in the first run only": 1,
        "in the second run only": 1,
        "failed or dropped": 1,
        "gold answers differ": 1,
    }
    assert found.differences[0].second == 0.0
    assert any("parser" in note for note in found.notes)
    assert any("different copies" in note for note in found.notes)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    first = choices(tmp_path / "a", {"1": True})
    other = write_run(tmp_path / "b", "memeintent/intent", {"1": "the meme"})
    elsewhere = choices(tmp_path / "c", {"9": True})
    with pytest.raises(InputError, match="different tasks"):
        one(first, other)
    with pytest.raises(InputError, match="no scored item in common"):
        one(first, elsewhere)
    with pytest.raises(InputError, match="at least two runs"):
        compare_sides([side(first)])


def test_the_command_shows_and_exports(tmp_path: Path, shell: Shell) -> None:
    names = [str(n) for n in range(20)]
    first = choices(tmp_path / "a", {name: int(name) < 12 for name in names})
    second = choices(tmp_path / "b", {name: int(name) > 1 for name in names})
    shown = shell.run("compare", first, second, "--show", "3")
    assert shown.code == 0, shown.err
    assert "10 of 20 items changed, 8 better, 2 worse" in shown.out
    assert "+0.300" in shown.out
    assert "0.058" in shown.out
    assert "20 items of 20 memes" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    listed = json.loads(shell.run("compare", first, second, "--json").out)
    assert listed[0]["differences"][0]["key"] == "accuracy"
    assert len(listed[0]["changes"]) == 10
    assert "not a run directory" in shell.refused("compare", first, tmp_path)
    assert "two or more" in shell.refused("compare", first)


def test_items_that_are_memes_are_in_groups_of_memes(shell: Shell) -> None:
    """An item of pun detection is a meme; its group has a pun and the two memes made from it."""
    models = ("--model", "baseline/random", "--model", "baseline/majority")
    run = shell.run("run", "punmemecn/detection", "--data", "sample", *models)
    assert run.code == 0, run.err
    assert "; 9 groups of memes" in " ".join(run.out.split())
    folders = sorted(map(str, (shell.folder / "runs").iterdir()))
    shown = shell.run("compare", *folders)
    assert "items of 9 groups of memes" in " ".join(shown.out.split()), shown.err
