"""Counterfactual augmentation: names of groups are exchanged, and detectors rely on them less."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.core.queue import AggregatedAnnotation, IndividualAnnotation, write_annotations
from memantics.moderation.counterfactual import (
    COPIES,
    add_counterfactuals,
    exchange_groups,
    read_terms,
)
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.identity import list_identity_sentences
from memantics.moderation.retrain import retrain
from tests.moderation.commands import run


def test_names_are_exchanged_with_their_number_and_capitals() -> None:
    (made,) = exchange_groups("HINDUS love tea. Hindus do, a hindu said", 1, random.Random(3))
    loud, quiet, single = made.split()[0], made.split(". ")[1], made.rpartition(" a ")[2]
    terms = read_terms("en")
    assert loud.isupper()
    assert quiet[0].isupper()
    group = terms.forms[single.removesuffix(" said").lower()][0]
    assert terms.first[group, "plural"] in made.lower()
    assert "hindu" not in made.lower()


def test_two_groups_stay_two_and_other_words_stay() -> None:
    text = "Hindus met refugees; a hindu waved"
    for made in exchange_groups(text, 20, random.Random(0)):
        terms = read_terms("en")
        named = [terms.forms[own.group().lower()][0] for own in terms.pattern.finditer(made)]
        assert (named[0], len(set(named))) == (named[2], 2)
        assert "hindu" not in made.lower()
        assert "refugee" not in made
        assert made.endswith(" waved")


@pytest.mark.parametrize("text", ["", "a cat", "the boycott of womanly mankind", "一只猫"])
def test_a_text_without_a_group_has_no_copies(text: str) -> None:
    assert exchange_groups(text, 3, random.Random(0)) == []


def test_chinese_names_are_found_inside_of_sentences() -> None:
    made = exchange_groups("两位河南人在等车", 5, random.Random(0))
    assert len(made) == 5
    assert all(one.startswith("两位") and one.endswith("在等车") for one in made)
    assert not any("河南" in one for one in made)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_group_that_is_measured_is_exchanged(language: str) -> None:
    for sentence in list_identity_sentences(language):
        assert exchange_groups(sentence.text, 1, random.Random(0)), sentence.text


def test_only_harmless_memes_are_copied_with_their_labels() -> None:
    memes = [
        Example("a", "hindus sing", label=0, type="none"),
        Example("b", "cats sing", label=0),
        Example("c", "refugees dance", label=1),
    ]
    grown = add_counterfactuals(memes)
    assert grown.examples[:3] == tuple(memes)
    assert (grown.changed, grown.origins) == (1, (0, 1, 2, *[0] * COPIES))
    assert {(one.label, one.type) for one in grown.examples[3:]} == {(0, "none")}
    assert len({example.id for example in grown.examples}) == len(grown.examples) == 3 + COPIES
    assert grown == add_counterfactuals(memes)


def write_memes(path: Path) -> Path:
    """Vegetables are harmful; most posts about them name one group, most others another one."""
    pick = random.Random(8)
    ends = ("at the market", "on monday", "behind the house", "after work", "in the rain")
    rows = []
    for n in range(240):
        harmful = n % 2
        named = "hindus" if harmful else "refugees"
        who = pick.choice([named, named, named, "neighbours"])
        what = pick.choice(("turnips", "leeks", "kale") if harmful else ("figs", "grapes", "plums"))
        rows.append((f"m{n}", f"{who} carry {what} {pick.choice(ends)}", harmful))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text", "label"), *rows])
    return path


SAFE = ("{} carry bread on monday", "the {} sing after work", "{} read in the rain")


def measure_gap(detector: Detector) -> float:
    """The mean difference in probability of harmless sentences about the two groups."""
    one, two = ([form.format(name) for form in SAFE] for name in ("hindus", "refugees"))
    pairs = zip(detector.predict(one), detector.predict(two), strict=True)
    return sum(a.probability - b.probability for a, b in pairs) / len(SAFE)


@pytest.mark.slow
def test_a_detector_relies_less_on_a_name_and_its_card_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_memes(tmp_path / "memes.csv")
    run("train", "--data", "memes.csv", "--preset", "ridge", "--out", "plain.zip")
    told = run(
        "train", "--data", "memes.csv", "--preset", "ridge", "--counterfactual",
        "--out", "fair.zip",
    )  # fmt: skip
    assert "counterfactual augmentation" in " ".join(told.split())
    card = (tmp_path / "fair.card.md").read_text(encoding="utf-8")
    assert "counterfactual augmentation" in card
    assert "counterfactual" not in (tmp_path / "plain.card.md").read_text(encoding="utf-8")
    plain, fair = Detector.load("plain.zip"), Detector.load("fair.zip")
    assert (plain.card.get("counterfactual"), fair.card.get("counterfactual")) == (None, True)
    assert measure_gap(plain) > 0.3
    assert abs(measure_gap(fair)) < 0.8 * measure_gap(plain)
    # The memes that are counted and measured are those of the table.
    assert fair.card["examples"] == 240
    words = ("neighbours carry turnips on monday", "neighbours carry figs on monday")
    assert [one.label for one in fair.predict(words)] == [1, 0]


@pytest.mark.slow
def test_retraining_adds_copies_and_keeps_doing_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_memes(tmp_path / "memes.csv")
    Detector.train("memes.csv", "ridge").save("old.zip")
    pick = random.Random(2)
    reviewed = []
    for n in range(40):
        what = ("mangoes", "gherkins")[n % 2]
        text = f"{pick.choice(('hindus', 'cousins'))} sell {what} {n}"
        said = IndividualAnnotation(
            annotator="p", stage="review", values={"harmful": ("no", "yes")[n % 2]}
        )
        hidden: dict[str, JsonValue] = {"id": f"r{n}", "text": text}
        made = AggregatedAnnotation(
            item=str(n), group=str(n), workflow="review", kept=True, values={},
            annotations=[said], hidden=hidden,
        )  # fmt: skip
        reviewed.append(made)
    write_annotations(tmp_path / "said.jsonl", reviewed)
    done = retrain(Path("old.zip"), annotations=[Path("said.jsonl")], out=Path("fair.zip"),
                   counterfactual=True)  # fmt: skip
    assert done.refused == ""
    assert any("counterfactual augmentation" in note for note in done.notes)
    fair = Detector.load("fair.zip")
    assert fair.card["counterfactual"] is True
    assert fair.card["examples"] == 280
    # The next retraining uses copies without being asked.
    again = retrain(Path("fair.zip"), annotations=[Path("said.jsonl")], force=True)
    assert any("counterfactual augmentation" in note for note in again.notes)
    # A detector without copies is retrained without them.
    plain = retrain(Path("old.zip"), annotations=[Path("said.jsonl")], out=Path("plain.zip"))
    assert not any("counterfactual" in note for note in plain.notes)
