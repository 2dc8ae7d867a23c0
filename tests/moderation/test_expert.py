"""Classifiers for any label: on made-up memes, on the sample data, from tables, as files."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import orjson
import pytest

from memantics.core.errors import InputError, UnknownName
from memantics.core.labels import UNKNOWN, LabelledMeme
from memantics.moderation import classifier as classifiers
from memantics.moderation.classifier import (
    Classifier,
    ClassifierOptions,
    find_labelled,
    list_labels,
)
from memantics.moderation.classifiers import find_in_use
from memantics.moderation.examples import Example, Loaded
from memantics.moderation.explanation import explain_label
from memantics.moderation.fast import Trained, fit_labels
from memantics.moderation.features import cut, list_ngrams
from memantics.moderation.heads import find_preset
from memantics.moderation.held_out import cross_validate_labels
from memantics.moderation.labels import (
    FEWEST_MEMBERS,
    OTHER,
    evaluate_labels,
    gather_examples,
    list_cases,
)
from memantics.moderation.storage import load_classifier, load_with_card, save

WORDS = {
    "glad": ("sunny", "cake", "friends", "holiday"),
    "sad": ("rain", "alone", "goodbye", "lost"),
    "cross": ("shouting", "broken", "late", "unfair"),
}


def make_memes(count: int = 90, seed: int = 1) -> list[LabelledMeme]:
    pick = random.Random(seed)
    memes = []
    for number in range(count):
        mood = list(WORDS)[number % 3]
        said = " ".join(pick.sample(WORDS[mood], 2) + pick.sample(["the", "a", "my", "when"], 2))
        memes.append(LabelledMeme(str(number), said, (mood,), group=f"g{number // 2}"))
    return memes


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


@cache
def gather() -> Loaded:
    return gather_examples(make_memes(), "moods")


@cache
def train() -> Trained:
    """Once for all tests, and not where none of them runs."""
    return fit_labels(gather(), find_preset("words"))


@pytest.mark.slow
def test_it_learns_what_words_tell() -> None:
    found = evaluate_labels(gather(), train().said)
    assert (found.find("accuracy") or 0) > 0.9
    assert found.baselines["majority class"] == pytest.approx((1 / 3, 2 / 3 / (4 / 3) / 3))
    said = train().detector.classify(
        [Example("x", "cake with friends"), Example("y", "broken, LATE")]
    )
    assert [own.label for own in said] == ["glad", "cross"]
    assert [own.labels for own in said] == [("glad",), ("cross",)]
    assert sum(said[0].chances.values()) == pytest.approx(1)
    assert said[0].probability == max(said[0].chances.values())
    assert train().detector.classify([]) == []


@pytest.mark.slow
def test_ids_and_order_have_no_say() -> None:
    one = train().detector.classify([Example("a", "rain"), Example("b", "cake")])
    other = train().detector.classify([Example("q", "cake"), Example("7", "rain")])
    assert one[0].chances == other[1].chances


@pytest.mark.slow
def test_groups_are_held_out_together() -> None:
    """Every text occurs twice, in one group: what is predicted was not learnt."""
    pick = random.Random(2)
    texts = [f"w{n} v{n} u{n}" for n in range(40)]
    memes = [
        LabelledMeme(f"{n}-{copy}", text, (label,), group=text)
        for n, text in enumerate(texts)
        for label in [pick.choice("ab")]
        for copy in range(2)
    ]
    data = gather_examples(memes, "copies")
    said = cross_validate_labels(data, find_preset("words"))
    # Labels are drawn by lot: with its copy in view every meme would be known.
    assert (evaluate_labels(data, said).find("accuracy") or 0) < 0.75
    assert len(said) == len(memes)


def test_rare_labels_become_other_or_are_left_out() -> None:
    memes = make_memes()
    few = [LabelledMeme(f"r{n}", "odd one", (f"rare{n % 2}",)) for n in range(FEWEST_MEMBERS)]
    found = gather_examples([*memes, *few], "moods")
    assert found.labels.classes == ("cross", "glad", "sad", OTHER)
    assert f"{FEWEST_MEMBERS} memes whose label has fewer" in found.notes[0]
    fewer = gather_examples([*memes, *few[1:]], "moods")
    assert OTHER not in fewer.labels.classes
    assert len(fewer.skips) == FEWEST_MEMBERS - 1
    blank = LabelledMeme("e", "  ", ("glad",))
    both = LabelledMeme("t", "two", ("glad", "sad"))
    reasons = {skip.reason for skip in gather_examples([*memes, blank, both], "moods").skips}
    assert reasons == {"no text", "has 2 labels"}


def test_labels_unknown_to_an_classifier_are_left_out_when_it_is_judged() -> None:
    memes = [*make_memes(), LabelledMeme("n", "new", ("smug",))]
    found = gather_examples(memes, "moods", classes=train().detector.labels.classes)
    assert found.labels.classes == train().detector.labels.classes
    assert [skip.row for skip in found.skips] == ["n"]


def test_too_little_to_learn_from_is_refused() -> None:
    with pytest.raises(InputError, match="too few"):
        fit_labels(gather_examples(make_memes(9)[:7], "m", classes=("glad", "sad", "cross")),
                   find_preset("words"))  # fmt: skip
    alike = [LabelledMeme(str(n), f"text {n % 9}", ("a",)) for n in range(20)]
    with pytest.raises(InputError, match="one class"):
        fit_labels(gather_examples(alike, "m"), find_preset("words"))
    joined = [LabelledMeme(str(n), "t", ("ab"[n % 2],), group=str(n % 3)) for n in range(30)]
    with pytest.raises(InputError, match="four groups"):
        fit_labels(gather_examples(joined, "m"), find_preset("words"))


def make_several(count: int = 120) -> list[LabelledMeme]:
    pick = random.Random(4)
    memes = []
    for number in range(count):
        held = tuple(name for name in ("race", "sex") if pick.random() < 0.4)
        words = [{"race": "skin", "sex": "kitchen"}[name] for name in held]
        text = " ".join([*words, *pick.sample(["so", "we", "go", "up", "on", "it"], 3)])
        memes.append(LabelledMeme(str(number), text, held, group=str(number)))
    return memes


def test_several_labels_can_hold_or_none() -> None:
    data = gather_examples(make_several(), "groups", several=True)
    trained = fit_labels(data, find_preset("words"))
    said = trained.detector.classify(
        [
            Example("1", "skin kitchen so"),
            Example("2", "so we go up"),
            Example("3", "kitchen we go"),
        ]
    )
    assert [set(own.labels) for own in said] == [{"race", "sex"}, set(), {"sex"}]
    assert sum(said[0].chances.values()) > 1
    found = evaluate_labels(data, trained.said, resamples=50)
    assert (found.find("auroc") or 0) > 0.95
    assert {score.label for score in found.classes} == {"race", "sex"}
    cases = list_cases(data, trained.said, "race")
    assert {case.gold for case in cases} == {"yes", "no"}


def test_a_label_holds_from_its_threshold_on() -> None:
    """As harm does (``test_fast.py``)."""
    data = gather_examples(make_several(), "groups", several=True)
    classifier = fit_labels(data, find_preset("words")).detector
    classes, example = classifier.labels.classes, Example("1", "skin kitchen so")
    (said,) = classifier.classify([example])
    for above, held in ((-0.001, classes), (0.0, classes), (0.001, ())):
        thresholds = np.array([said.chances[name] + above for name in classes])
        moved = replace(classifier, decision=replace(classifier.decision, biases=thresholds))
        (again,) = moved.classify([example])
        assert (again.labels, again.chances) == (held, said.chances)


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_a_file_gives_back_every_digit(tmp_path: Path, several: bool) -> None:
    memes = make_several() if several else make_memes()
    data = gather_examples(memes, "labels", several=several)
    classifier = fit_labels(data, find_preset("words")).detector
    place = tmp_path / "classifier.zip"
    save(classifier, place, {"topic": "mood"})
    again, card = load_classifier(place)
    assert card == {"topic": "mood"}
    assert again.labels == classifier.labels
    assert again.classify(data.examples) == classifier.classify(data.examples)
    first = place.read_bytes()
    save(again, place, {"topic": "mood"})
    assert place.read_bytes() == first


def test_a_detector_is_no_classifier_and_the_other_way_round(tmp_path: Path) -> None:
    place = tmp_path / "classifier.zip"
    save(train().detector, place)
    with pytest.raises(InputError, match="is a classifier for m"):
        load_with_card(place)
    from memantics.moderation.detect import Detector

    other = Detector.load_sample().save(tmp_path / "detector.zip")
    with pytest.raises(InputError, match="is a harm detector, not a classifier"):
        load_classifier(other)
    place.write_bytes(b"no zip")
    with pytest.raises(InputError, match="not a classifier file"):
        load_classifier(place)
    with pytest.raises(InputError, match="no classifier at"):
        load_classifier(tmp_path / "gone.zip")


def test_contributions_add_up_to_the_score() -> None:
    found = explain_label(train().detector, Example("x", "cake with friends in the rain"))
    assert found.label == "glad"
    assert found.against == "sad"
    assert found.gap == pytest.approx(0, abs=1e-3)
    assert {part.text for part in found.strongest(20) if part.contribution > 0} & {
        "cake",
        "friends",
    }
    assert "glad rather than sad" in found.lines[0]
    towards = explain_label(train().detector, Example("x", "cake in the rain"), label="sad")
    assert towards.label == "sad"
    assert towards.gap == pytest.approx(0, abs=1e-3)
    with pytest.raises(UnknownName, match="label"):
        explain_label(train().detector, Example("x", "cake"), label="bold")


def test_contributions_add_up_where_several_labels_can_hold() -> None:
    data = gather_examples(make_several(), "groups", several=True)
    classifier = fit_labels(data, find_preset("words")).detector
    found = explain_label(classifier, Example("x", "skin so we"), label="race")
    assert found.against == ""
    assert found.gap == pytest.approx(0, abs=1e-3)
    assert (found.score > found.needed) == ("race" in found.prediction.labels)


def test_pieces_of_words_lie_where_they_stand_in_the_text() -> None:
    text = "don't stop! été"
    for kind in ("phrases", "subwords"):
        pieces = list(cut(kind, text))
        assert [piece.name for piece in pieces] == list_ngrams(kind, text)
        for piece in pieces:
            assert piece.name.strip("<>").replace(" ", "") in text[piece.start : piece.end].replace(
                " ", ""
            )
    assert "don't stop" in list_ngrams("phrases", text)
    assert "<ét" in list_ngrams("subwords", text)
    assert list_ngrams("phrases", "") == list_ngrams("subwords", "") == []


def write_table(path: Path) -> Path:
    rows = [{"id": own.id, "text": own.text, "mood": own.labels[0]} for own in make_memes()]
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return path


@pytest.mark.slow
def test_a_table_of_ones_own_is_learnt_saved_used_and_forgotten(tmp_path: Path) -> None:
    table = write_table(tmp_path / "mine.jsonl")
    made = Classifier.train(f"{table}/mood")
    assert made.topic == "mood"
    assert made.classes == ("cross", "glad", "sad")
    assert made.languages == ("en",)
    place = made.save()
    assert "classifier for mine.jsonl/mood" in place.with_name(f"{place.stem}.card.md").read_text(
        "utf-8"
    )
    again = Classifier.load("mine.jsonl/mood")
    assert again.checksum == made.checksum
    assert again.predict(["my friends, my cake"])[0].label == "glad"
    assert classifiers.use_classifier("mine.jsonl/mood") == ("mood", place)
    assert find_in_use("mood") == place
    assert find_in_use("emotion") is None
    assert classifiers.tabulate_used().rows[0][1] == "mine.jsonl/mood"
    place.unlink()
    assert classifiers.tabulate_used().rows[0][1] == "gone"
    with pytest.raises(InputError, match="does not exist any more"):
        find_in_use("mood")
    classifiers.forget_classifier("mood")
    with pytest.raises(InputError, match="no classifier is in use for 'mood'"):
        classifiers.forget_classifier("mood")


@pytest.mark.slow
def test_an_prediction_names_its_source_or_is_unknown(tmp_path: Path) -> None:
    made = Classifier.train(f"{write_table(tmp_path / 'mine.jsonl')}/mood")
    sure = made.judge("my friends brought the cake to my holiday")
    assert sure.known
    assert sure.label == "glad"
    assert sure.accuracy == made.accuracy
    assert sure.baseline == pytest.approx(1 / 3, abs=0.05)
    assert "right on" in sure.source
    for text, why in (("", "no text"), ("我今天很开心，我们去吃饭吧", "was trained on en")):
        silent = made.judge(text)
        assert silent.label == UNKNOWN
        assert why in silent.why


def test_what_is_asked_for_must_be_there(tmp_path: Path) -> None:
    table = write_table(tmp_path / "mine.jsonl")
    for name, problem in (
        (f"{table}/feeling", "column of mine.jsonl"),
        ("mer_bench/colour", "label of mer_bench"),
        ("mer_bench", "is not of the form NAME/LABEL"),
        ("nobody/emotion", "benchmark"),
    ):
        with pytest.raises(InputError, match=problem):
            find_labelled(name)
    with pytest.raises(UnknownName, match="split of mer_bench/emotion"):
        find_labelled("mer_bench/emotion", split="dev")
    with pytest.raises(InputError, match="no classifier at"):
        Classifier.load("mer_bench/emotion")


SAMPLE = [own.name for own in list_labels()]


def test_ten_labels_of_five_benchmarks_can_be_learnt() -> None:
    assert len(SAMPLE) >= 10
    assert {name.partition("/")[0] for name in SAMPLE} >= {
        "mer_bench", "punmemecn", "toxicn_mm", "memeintent", "mquest",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["mer_bench/emotion", "punmemecn/sentiment_type", "punmemecn/sentiment_target",
     "toxicn_mm/harm", "memeintent/intent_verb", "mquest/toxicity"],
)  # fmt: skip
def test_the_sample_sample_trains_an_classifier_that_says_so(name: str) -> None:
    made = Classifier.train(name, ClassifierOptions(data="sample"))
    assert made.sample
    assert "sample data" in made.note
    assert made.held_out is not None
    assert made.held_out.count == len(made.trained_on.examples)  # type: ignore[union-attr]
    (said,) = made.predict(["so tired of it all"])
    assert said.label in made.classes
    assert np.isfinite(list(said.chances.values())).all()
