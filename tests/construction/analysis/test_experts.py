"""Classifiers in use speak in analyses, screenings and the embedded reader."""

from __future__ import annotations

import random
from pathlib import Path

import orjson
import pytest

from memantics.core.labels import ClassifierPrediction, Judge
from memantics.core.lines import ImageReading
from memantics.core.memes import Meme
from memantics.core.records import Field, Form, Option
from memantics.core.samples import image_path, read_samples
from memantics.models.embedded.choices import choose
from memantics.models.embedded.evidence import Evidence
from memantics.models.embedded.reader import EmbeddedReader, open_senses
from memantics.models.kinds import ModelSettings, open_model
from memantics.moderation.classifier import Classifier, find_labelled, use_classifier
from memantics.moderation.classifiers import open_judges
from memantics.moderation.screen import screen
from memantics.understanding.analysis.gather import Tools, look
from memantics.workbench.analyze import AnalyzeSettings, analyze, describe
from tests.places import SHARED_DATA, needs_shared_data

pytestmark = pytest.mark.slow

WORDS = {
    "sad": "alone goodbye rain lost cry", "angry": "shout hate broken unfair rude",
    "tense": "exam boss deadline panic late", "bored": "nothing waiting slow again dull",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


@pytest.fixture
def classifier(tmp_path: Path) -> Classifier:
    """A classifier for emotions from words that we made up; it is in use."""
    pick = random.Random(5)
    (said,) = (own.text for own in read_samples() if own.id == "en-001")
    rows = [
        {
            "text": " ".join(pick.sample(WORDS[mood].split(), 3)) + " when I am at work",
            "emotion": mood,
        }
        for _ in range(30)
        for mood in WORDS
    ]
    rows += [{"text": f"{said} {n}", "emotion": "tense"} for n in range(20)]
    table = tmp_path / "feelings.jsonl"
    table.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    made = Classifier.train(f"{table}/emotion")
    use_classifier(made.save())
    return made


def test_an_analysis_says_who_tells_the_emotion_and_how_well(classifier: Classifier) -> None:
    found = analyze(image_path("en-001"), settings=AnalyzeSettings(known="sample"))
    (feeling,) = found.feelings
    assert feeling.emotion == "tense"
    assert feeling.emotion in classifier.classes
    assert feeling.by == "classifier feelings.jsonl/emotion"
    assert feeling.reason.startswith("right on ")
    assert not feeling.baseline
    assert "emotion" not in {gap.part for gap in found.missing}
    assert all(own.meme != "en-001" for own in found.near)
    assert any(line[0] == "emotion" for line in describe(found))


def test_without_an_classifier_the_emotion_is_unknown_and_it_says_what_would_help() -> None:
    found = analyze(image_path("en-001"))
    assert found.feelings == ()
    reasons = {gap.part: gap.reason for gap in found.missing}
    assert reasons["emotion"].startswith("unknown: ")
    assert "memantics classifier train mer_bench/emotion" in reasons["emotion"]


def test_without_an_classifier_no_emotion_of_the_sample_pack_is_guessed() -> None:
    tools = Tools(lambda *_: ImageReading(), lambda _: "en", lambda *_: (), judges=open_judges())
    memes = [own for own in read_samples() if own.emotion is not None]
    assert len(memes) > 30
    for own in memes:
        found = look(Meme(own.id, image_path(own.id), own.text, own.language), tools)
        assert found.moods == ()
        assert "emotion: unknown" in found.gaps


def test_an_classifier_of_another_language_makes_it_unknown(classifier: Classifier) -> None:
    found = analyze(image_path("CN90001"))
    assert found.feelings == ()
    reasons = {gap.part: gap.reason for gap in found.missing}
    assert "the classifier was trained on en" in reasons["emotion"]
    assert classifier.languages == ("en",)


def judge_always(label: str, *classes: str) -> Judge:
    def ask(_text: str, _language: str) -> ClassifierPrediction:
        return ClassifierPrediction("emotion", label, "classifier x", 0.9, 0.8, 0.3)

    return Judge("emotion", "x", "1", classes, ask)


def make_field(*names: str) -> Evidence:
    options = tuple(Option(name, name) for name in names)
    fields = (Field("emotion", "choice", options),)
    return Evidence(Form("How does it feel?", fields, context={"text": "x"}))


def test_the_reader_asks_an_classifier_whose_labels_are_just_the_options() -> None:
    judge = judge_always("bored", "bored", "sad")
    senses = open_senses({"emotion": judge})
    same, more = make_field("sad", "bored"), make_field("sad", "bored", "happy")
    assert choose(same, same.form.fields[0], senses) == "bored"
    plain = open_senses()
    assert choose(more, more.form.fields[0], senses) == choose(more, more.form.fields[0], plain)
    assert "classifiers: x@1" in EmbeddedReader(senses).note
    assert EmbeddedReader(senses).identity["classifiers"] == "x@1"
    assert "classifiers" not in EmbeddedReader(plain).identity


def test_the_reader_of_the_registry_has_the_classifiers_in_use(classifier: Classifier) -> None:
    model = open_model("embedded/reader", ModelSettings())
    assert classifier.checksum[:12] in str(model.identity["classifiers"])


def test_screening_adds_a_column_of_labels(classifier: Classifier, tmp_path: Path) -> None:
    table = tmp_path / "texts.jsonl"
    texts = ["my boss set a deadline and I panic before the exam", "今天我们一起去吃饭吧"]
    table.write_bytes(
        b"\n".join(orjson.dumps({"id": str(n), "text": t}) for n, t in enumerate(texts))
    )
    done = screen(table, out=tmp_path / "out")
    rows = {row["id"]: row for row in done.rows_iter()}
    told = [own for row in rows.values() for own in row["labels"]]
    assert all(own["classifier"].startswith(f"{classifier.label}@") for own in told)
    assert {own["label"] for own in told} <= {*classifier.classes, "unknown"}
    assert told


@needs_shared_data
def test_on_the_sample_pack_emotions_are_told_better_than_by_any_trivial_answer() -> None:
    """The classifier of the release has never seen our own memes."""
    from memantics.evaluation.datasets import add_release

    add_release("mer_bench", SHARED_DATA / "mer_bench")
    made = Classifier.train("mer_bench/emotion")
    use_classifier(made.save())
    pack = find_labelled("mer_bench/emotion", data="sample", classes=made.classes)
    said = [made.judge(example.text) for example in pack.examples]
    told = [(own.label, gold[0]) for own, gold in zip(said, pack.gold, strict=True) if own.known]
    right = sum(label == gold for label, gold in told) / len(told)
    shares = [sum(gold == name for _, gold in told) / len(told) for name in made.classes]
    assert right > max(shares)
    assert len(told) >= 8
    doubts = {own.why.partition(" (")[0].partition(";")[0] for own in said if not own.known}
    assert doubts <= {
        "the text is in zh",
        "the text is in und",
        "no label has a probability above 50 %",
    }
