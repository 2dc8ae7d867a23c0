"""The classifier of negative captions, and the command that measures the gate."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from memantics.core.errors import InputError, MissingExtra
from memantics.moderation import measure_negative
from memantics.understanding.reappraisal import negative
from memantics.understanding.reappraisal.negative import estimate_negative


@pytest.mark.parametrize("insult", ["you are a mental deficient!", "你懂个锤子"])
def test_insults_without_a_listed_word_are_negative(insult: str) -> None:
    found = estimate_negative([insult])
    assert (found.listed, found.source) == (False, "classifier")


@pytest.mark.parametrize("kind", ["I love my dog", "thank you my friend", "祝你生日快乐", "收到"])
def test_kind_captions_are_not_negative(kind: str) -> None:
    assert not estimate_negative([kind]).negative


def test_captions_without_words_are_not_negative() -> None:
    assert estimate_negative(["!!!"]).probability is None
    assert not estimate_negative([]).negative


def test_without_the_encoder_the_lists_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MissingExtra("sentence vectors", "offline")

    monkeypatch.setattr(negative, "open_encoder", fail)
    assert estimate_negative(["you are a mental deficient!"]).source == "none"
    assert estimate_negative(["I hate mondays"]).source == "lists"


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "feeling"), *rows])
    return path


ROWS = [("I hate mondays", "negative")] * 5 + [("what a lovely day", "positive")] * 5


def test_the_gate_is_measured_on_any_table(tmp_path: Path) -> None:
    rows = [(f"{text} {n}", label) for n, (text, label) in enumerate(ROWS)]
    found = measure_negative(f"{write(tmp_path / 'memes.csv', rows)}/feeling")
    gate = found.rows[-1]
    assert (found.memes, found.count, found.negative) == (10, 5, ("negative",))
    assert gate.recall.value == 1.0
    assert gate.precision.low is not None
    assert "way" in found.table().columns


def test_the_value_that_means_negative_may_be_named(tmp_path: Path) -> None:
    rows = [(f"{text} {n}", label[:3]) for n, (text, label) in enumerate(ROWS)]
    label = f"{write(tmp_path / 'memes.csv', rows)}/feeling"
    assert measure_negative(label, negative=["neg"]).count == 5
    for given in (None, ["bad"], ["neg", "pos"]):
        with pytest.raises(InputError):
            measure_negative(label, negative=given)
