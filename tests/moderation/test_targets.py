"""Errors by the group that is attacked: found, accused, and shown where people look."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.moderation.card import format_card, make_card, read_stored
from memantics.moderation.evaluation import evaluate
from memantics.moderation.examples import Example, Loaded, read_examples
from memantics.moderation.fast import Prediction, fit
from memantics.moderation.heads import find_preset
from memantics.moderation.operating_points import (
    EVERYBODY,
    FEWEST,
    find_target_errors,
    find_words,
    tabulate_targets,
)
from tests.moderation.commands import run
from tests.moderation.samples import make_examples


def make_targeted(count: int = 160) -> list[Example]:
    """Bitter melons attack the north, the other bitter memes nobody."""
    return [
        replace(e, target="north" if e.type == "targeted" else None) for e in make_examples(count)
    ]


def test_recall_and_false_alarms_are_counted_by_group() -> None:
    others = ["北方 苦瓜", *["南方 西瓜"] * 99]
    texts = ["北方 人 苦瓜"] * FEWEST + others
    examples = [
        Example(str(n), text, label=int(n < FEWEST), target="north" if n < FEWEST else None)
        for n, text in enumerate(texts)
    ]
    said = [1] * (FEWEST - 1) + [0] + [1, 1] + [0] * 98
    everybody, north = find_target_errors(examples, said)
    assert (everybody.target, north.target) == (EVERYBODY, "north")
    assert everybody.found.value == north.found.value == 1 - 1 / FEWEST
    assert everybody.alarms.value == 2 / 100
    # One harmless meme uses its words, and it is accused.
    assert "苦瓜" in north.words
    assert (north.alarms.count, north.alarms.value) == (1, 1.0)
    assert north.found.low is not None
    assert north.found.low < 1 - 1 / FEWEST


@pytest.mark.parametrize(("count", "shown"), [(FEWEST - 1, False), (FEWEST, True)])
def test_a_group_needs_enough_memes(count: int, shown: bool) -> None:
    harmful = [Example(str(n), "苦瓜", label=1, target="north") for n in range(count)]
    examples = [*harmful, Example("x", "西瓜", label=0)]
    assert bool(find_target_errors(examples, [1] * len(examples))) is shown


def test_a_group_whose_words_no_harmless_meme_uses_has_no_false_alarms() -> None:
    harmful = [Example(str(n), "苦瓜", label=1, target="north") for n in range(FEWEST)]
    examples = [*harmful, *(Example(f"x{n}", "西瓜", label=0) for n in range(50))]
    _, north = find_target_errors(examples, [1] * len(examples))
    assert (north.alarms.count, north.alarms.value) == (0, None)
    assert tabulate_targets([north]).rows[0][5] == "–"


def test_words_are_those_that_the_others_do_not_use() -> None:
    texts = [frozenset({"own", "both"})] * 6 + [frozenset({"both", "other"})] * 60
    assert find_words(texts, set(range(6))) == ("own",)
    assert find_words(texts, set(range(2))) == ()  # twice is chance


def test_the_card_names_whom_it_fails() -> None:
    loaded = Loaded("toy", tuple(make_targeted()))
    trained = fit(loaded.examples, find_preset("ridge"))
    found = evaluate(loaded.examples, trained.held_out)
    card = make_card(trained.detector, loaded, found, "n")
    assert "## Errors by target" in format_card(card)
    assert "| north |" in format_card(card)
    again = read_stored({**json.loads(json.dumps(card.dump())), "sample": False}, "toy.zip")
    assert format_card(again) == format_card(card)
    plain = evaluate(make_examples(), trained.held_out)
    assert plain.targets == ()
    assert "Errors by target" not in format_card(replace(card, targets=()))
    with pytest.raises(InputError, match="no valid model card"):
        read_stored({"sample": True}, "sample.zip")


def test_a_table_says_whom_memes_attack_and_info_shows_the_errors(tmp_path: Path) -> None:
    table, page = tmp_path / "memes.jsonl", tmp_path / "page.html"
    lines = [
        {"id": e.id, "text": e.text, "label": e.label, "target": e.target or ""}
        for e in make_targeted()
    ]
    table.write_text("\n".join(json.dumps(own) for own in lines), encoding="utf-8")
    assert {e.target for e in read_examples(table).examples} == {"north", None}
    model = tmp_path / "toy.zip"
    assert "north" in run("train", "--data", table, "--preset", "ridge", "--out", model)
    assert "| north |" in run("info", model)
    assert json.loads(run("info", model, "--json"))["targets"][1]["target"] == "north"
    run("eval", model, "--data", table, "--page", page)
    assert "Errors by target" in page.read_text(encoding="utf-8")


def test_no_target_reaches_a_prediction() -> None:
    """The target is a label: what is judged has lost it."""
    examples = make_targeted(60)
    trained = fit(examples, find_preset("ridge")).detector
    blind = [replace(e, target=None, label=None, type=None) for e in examples]
    said: list[Prediction] = trained.predict(examples)
    assert said == trained.predict(blind)
