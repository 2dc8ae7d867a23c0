"""Two runs item by item: the right test, the right items, the right warnings."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from scipy import stats

from memantics.core.errors import InputError, UnknownName
from memantics.core.records import Field, Form, Item, Outcome, Score
from memantics.core.rundir import read_facts
from memantics.core.task import InvalidPolicy, Task
from memantics.evaluation import paired as resample
from memantics.evaluation.paired import Comparison, Side, compare_sides, open_side
from memantics.evaluation.tasks import open_task_of_run
from tests.commands import Shell
from tests.runs import pick, write_run

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


def test_right_and_wrong_get_the_exact_test(tmp_path: Path) -> None:
    names = [str(n) for n in range(20)]
    first = choices(tmp_path / "a", {name: int(name) < 12 for name in names})
    second = choices(tmp_path / "b", {name: int(name) > 1 for name in names})
    found = one(first, second)
    (row,) = found.differences
    assert (row.key, row.test) == ("accuracy", "McNemar's exact test")
    assert (row.first, row.second) == (0.6, 0.9)
    assert row.p == pytest.approx(stats.binomtest(2, 10).pvalue)
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
    assert row.test == "McNemar's test by meme"
    assert (row.items, row.memes) == (20, 5)
    # Two memes gained, not eight independent items.
    assert row.p == pytest.approx(stats.chi2.sf(2, 1))


def test_texts_get_bootstrap_and_t_test(tmp_path: Path) -> None:
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
    assert rouge.test == "paired bootstrap over memes"
    gains = [0.0 if text == "the meme" else 1 - 4 / 8 for text in better.values()]
    expected = stats.ttest_1samp(gains, 0)
    assert rouge.difference == pytest.approx(sum(gains) / 30)
    assert rouge.t_test == pytest.approx(expected.pvalue)
    assert rouge.size == pytest.approx(expected.statistic / 30**0.5)
    assert rouge.p is not None
    assert rouge.p < 0.001
    assert {c.item for c in found.changes} == {n for n, t in better.items() if t != "the meme"}
    only = one(first, second, "bleu_4")
    assert [row.key for row in only.differences] == ["bleu_4"]
    with pytest.raises(UnknownName, match="bleu_4, meaning_above_constant, rouge_l"):
        one(first, second, "meteor")


@pytest.mark.parametrize("small", [300, 10])
def test_f1_is_compared_by_scoring_again(
    tmp_path: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a mean of items, so neither McNemar nor a plain bootstrap fits; both ways agree."""
    monkeypatch.setattr(resample, "SMALL", small)
    chance = random.Random(5)
    golds = {f"{n}-{k}": "pun" if k == 0 else "non-pun" for n in range(40) for k in range(3)}
    worse = {
        name: gold if chance.random() < 0.6 else ("pun" if gold == "non-pun" else "non-pun")
        for name, gold in golds.items()
    }
    found = one(puns(tmp_path / "a", worse, golds), puns(tmp_path / "b", golds, golds)).differences
    f1, right = found
    assert (f1.key, right.key) == ("f1", "right")
    assert f1.second == 1.0
    assert f1.test.startswith("jackknife" if small == 10 else "bootstrap")
    assert f1.low is not None
    assert f1.high is not None
    assert 0.2 < f1.low < f1.difference < f1.high < 0.75
    assert f1.high - f1.low == pytest.approx(0.24, abs=0.08)
    assert f1.p is not None
    assert f1.p < 0.01
    assert right.test == "McNemar's test by meme"


def test_resampling_keeps_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """No difference: about one in twenty is found by chance, by bootstrap and jackknife alike."""

    def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
        values = [outcome.value for outcome in outcomes if isinstance(outcome.value, float)]
        return (Score("metric", sum(values) / len(values), len(values)),)

    def never(*_: object) -> Any:
        raise AssertionError

    monkeypatch.setattr(resample, "_RESAMPLES", 100)
    task = Task("t", lambda: iter(()), never, never, score, "metric", InvalidPolicy())
    chance = random.Random(1)
    found = {"bootstrap": 0, "jackknife": 0}
    for _ in range(60):
        items = [Item(str(n), str(n), None, LETTERS) for n in range(40)]
        first, second = (
            [Outcome(item, "answered", chance.gauss(0, 1)) for item in items] for _ in range(2)
        )
        pairs = list(zip(first, second, strict=True))
        main = resample.find_main(task, first) or 0.0, resample.find_main(task, second) or 0.0
        for name, small in (("bootstrap", 100), ("jackknife", 10)):
            monkeypatch.setattr(resample, "SMALL", small)
            moved = resample.resample_metric(task, pairs, main)
            assert moved is not None
            assert moved.test.startswith(name)
            found[name] += moved.p < 0.05
    assert found["bootstrap"] <= 8
    assert found["jackknife"] <= 8


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
    assert "0.109" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    listed = json.loads(shell.run("compare", first, second, "--json").out)
    assert listed[0]["differences"][0]["key"] == "accuracy"
    assert len(listed[0]["changes"]) == 10
    assert "not a run directory" in shell.refused("compare", first, tmp_path)
    assert "two or more" in shell.refused("compare", first)
