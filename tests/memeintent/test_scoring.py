"""Figures from outcomes with known answers, and every hidden choice as an option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from memantics.benchmarks.registry import find_tasks
from memantics.core.data import Source
from memantics.core.errors import InputError
from memantics.core.records import CALIBRATED, Field, Form, Item, Outcome, Score
from memantics.core.task import Task
from tests.metrics.tiny_models import make_encoder, make_judge
from tests.places import SHARED_DATA, needs_shared_data

REPLY = Form("?", (Field("intent", "text"),), reply="text")


def make(name: str = "intent", options: Mapping[str, str] | None = None) -> Task:
    ref = find_tasks([f"memeintent/{name}"])[0]
    return ref.make(options or {}, "all", None, None)


def outcome(number: int, gold: Sequence[str], value: str | None, **tags: str) -> Outcome:
    item = Item(str(number), str(number), [*gold], REPLY, tags=tags)
    return Outcome(item, "answered" if value is not None else "refused", value)


def row(scores: Sequence[Score], key: str, by: str = "", label: str = "") -> Score:
    found = [s for s in scores if (s.key, s.by, s.label) == (key, by, label)]
    assert len(found) == 1, key
    return found[0]


OUTCOMES = [
    outcome(1, ["the meme mocks late buses", "the meme cries"], "the meme mocks late trains"),
    outcome(2, ["the meme praises cats"], "The meme praises cats."),
    outcome(3, ["the meme warns of dogs"], None),
    outcome(4, ["the meme warns of dogs"], "the meme mocks dogs"),
]


def test_metrics_are_means_of_the_best_reference() -> None:
    scores = make().score(OUTCOMES)
    assert row(scores, "rouge_l").value == pytest.approx((0.8 + 1 + 0 + 2 / 3) / 4)
    assert row(scores, "rouge_l").n == 4
    # The final full stop is a fifth token: 4/5, 3/4, 2/3, 1/2.
    full = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    part = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert row(scores, "bleu_4").value == pytest.approx((part + full) / 4)
    assert row(scores, "rouge_l_recall").value == pytest.approx((0.8 + 1 + 0.6) / 4)


def test_both_ways_with_the_prefix_are_always_shown() -> None:
    kept, stripped = make().score(OUTCOMES), make(options={"strip_prefix": "yes"}).score(OUTCOMES)
    assert row(kept, "rouge_l").value == row(kept, "rouge_l", "prefix", "kept").value
    assert row(stripped, "rouge_l").value == row(kept, "rouge_l", "prefix", "stripped").value
    assert row(stripped, "rouge_l").value == pytest.approx((2 / 3 + 1 + 0.4) / 4)
    assert "prefix stripped" in row(stripped, "rouge_l").note
    assert row(kept, "bleu_4", "prefix", "stripped").value == 0.0


def test_the_best_constant_is_shown_with_and_without_the_prefix() -> None:
    scores = make().score(OUTCOMES)
    kept = row(scores, "best_constant_rouge_l", "prefix", "kept")
    stripped = row(scores, "best_constant_rouge_l", "prefix", "stripped")
    assert kept.value is not None
    assert stripped.value is not None
    assert kept.value > stripped.value > 0
    assert "the meme" in kept.note
    assert "meme" not in stripped.note.partition("”")[0]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("bleu_smoothing", "epsilon"),
        ("bleu_smoothing", "chen-cherry-4"),
        ("bleu_tokenizer", "space"),
        ("bleu_case", "keep"),
    ],
)
def test_choices_of_bleu_change_bleu_alone_and_are_noted(option: str, value: str) -> None:
    plain, other = make().score(OUTCOMES), make(options={option: value}).score(OUTCOMES)
    assert row(plain, "bleu_4").value != row(other, "bleu_4").value
    assert row(plain, "bleu_4").note != row(other, "bleu_4").note
    assert row(plain, "rouge_l") == row(other, "rouge_l")


def test_the_stemmer_changes_rouge_alone_and_is_noted() -> None:
    pytest.importorskip("nltk", reason="nltk is not installed")
    outcomes = [outcome(1, ["the meme mocks updates"], "the meme mocked an update")]
    plain, stemmed = make().score(outcomes), make(options={"stemmer": "porter"}).score(outcomes)
    assert row(plain, "rouge_l").value == pytest.approx(4 / 9)
    assert row(stemmed, "rouge_l").value == pytest.approx(8 / 9)
    assert "Porter" in row(stemmed, "rouge_l").note
    assert row(plain, "bleu_4") == row(stemmed, "bleu_4")


def test_memes_without_background_are_counted() -> None:
    outcomes = [
        outcome(1, ["the meme begs"], "the meme begs", background="given"),
        outcome(2, ["the meme begs"], "the meme", background="empty"),
        outcome(3, ["the meme begs"], "the meme", background="missing"),
        outcome(4, ["the meme begs"], "the meme", background="empty"),
    ]
    scores = make().score(outcomes)
    share = row(scores, "without_background")
    assert (share.value, share.n) == (0.75, 4)
    assert "2 memes have none, 1 answers are missing" in share.note
    assert row(scores, "rouge_l", "background", "given").value == 1.0
    assert row(scores, "rouge_l", "background", "empty").n == 2


def test_background_is_scored_as_one_text_or_by_fact() -> None:
    outcomes = [
        outcome(1, ["cats sleep\ndogs bark loud"], "* dogs bark loud\n* cats sleep"),
        outcome(2, [], "* whatever"),
    ]
    joined = row(make("background").score(outcomes), "rouge_l")
    facts = row(make("background", {"against": "facts"}).score(outcomes), "rouge_l")
    assert joined.value == pytest.approx(3 / 5)
    assert facts.value == 1.0
    assert joined.n == facts.n == 1
    assert "1 memes without facts are not scored" in joined.note


def test_a_reply_of_none_gets_nothing_for_facts() -> None:
    for against in ("joined", "facts"):
        scores = make("background", {"against": against}).score([outcome(1, ["a fact"], "none")])
        assert row(scores, "rouge_l").value == 0.0


def test_captions_are_called_descriptive_and_have_no_bleu() -> None:
    scores = make("caption").score([outcome(1, ["a cat sleeps"], "a cat")])
    assert "descriptive" in row(scores, "rouge_l").note
    assert not [score for score in scores if score.key == "bleu_4"]


def test_marks_average_to_the_metrics() -> None:
    task = make()
    assert task.marks is not None
    marks, scores = task.marks(OUTCOMES), task.score(OUTCOMES)
    assert set(marks) == {"rouge_l", "bleu_4", CALIBRATED}
    for key, values in marks.items():
        assert sum(v or 0 for v in values) / 4 == pytest.approx(row(scores, key).value)


def test_without_a_model_neural_rows_are_absent_and_said_to_be() -> None:
    scores = make().score(OUTCOMES)
    assert not {"bertscore_f1", "nli_consistency"} & {score.key for score in scores}
    note = row(scores, "rouge_l").note
    assert "not computed, because no model was given: BERTScore" in note
    assert "NLI consistency" in note


@pytest.mark.slow
def test_neural_rows_name_model_layer_and_direction(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra 'text' is not installed")
    pytest.importorskip("transformers", reason="the extra 'text' is not installed")
    encoder = make_encoder(tmp_path / "encoder")
    judge = make_judge(tmp_path / "judge", ("entailment", "contradiction"))
    options = {
        "bertscore": str(encoder),
        "bertscore_layer": "2",
        "nli": str(judge),
        "nli_direction": "reference_first",
        "nli_unit": "whole",
    }
    scores = make(options=options).score(OUTCOMES[1:3])
    bert, nli = row(scores, "bertscore_f1"), row(scores, "nli_consistency")
    assert bert.value is not None
    assert 0 < bert.value < 1
    assert "encoder (sha256" in bert.note
    assert "layer 2, not rescaled" in bert.note
    assert nli.value is not None
    assert "reference first, whole text, labels 0-1" in nli.note
    assert "not computed" not in row(scores, "rouge_l").note


@pytest.mark.slow
def test_a_model_that_cannot_judge_is_refused_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra 'text' is not installed")
    pytest.importorskip("transformers", reason="the extra 'text' is not installed")
    judge = make_judge(tmp_path / "judge", ("LABEL_0", "LABEL_1"))
    with pytest.raises(InputError, match="nli_labels"):
        make(options={"nli": str(judge)}).score(OUTCOMES)


@pytest.mark.slow
@needs_shared_data
def test_a_constant_beats_the_published_rows_where_the_prefix_stays() -> None:
    """SPEC 2d-1: with the prefix kept a constant passes every legible ROUGE-L (.287 at most)."""
    ref = find_tasks(["memeintent/intent"])[0]
    source = Source("release", SHARED_DATA / "memeintent")
    task = ref.make({"role": "text"}, "all", source, None)
    items = list(task.items())
    constant = items[0].form.fields[0].majority
    scores = task.score([Outcome(item, "answered", constant) for item in items])
    kept = row(scores, "rouge_l", "prefix", "kept").value
    assert kept is not None
    assert kept > 0.287
    assert kept == pytest.approx(row(scores, "best_constant_rouge_l", "prefix", "kept").value)
    plain = row(scores, "rouge_l", "prefix", "stripped").value
    assert plain is not None
    assert plain < 0.287
