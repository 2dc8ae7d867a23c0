"""Figures, studies and comparisons; and the official code's mistakes that they must not repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score

from memantics.core.errors import InputError
from memantics.moderation.evaluation import compare, evaluate
from memantics.moderation.examples import TYPES, Example, split_blocks, split_examples
from memantics.moderation.fast import Prediction
from memantics.moderation.features import Dense
from memantics.moderation.heads import find_preset
from memantics.moderation.held_out import cross_validate, make_trainer
from memantics.moderation.kernel import Singles
from tests.moderation.samples import make_examples


def guess(examples: Sequence[Example], seed: int = 0, right: float = 0.7) -> list[Prediction]:
    rng = np.random.default_rng(seed)
    said = []
    for example in examples:
        label = int(example.label or 0) if rng.random() < right else 1
        kind = str(example.type) if rng.random() < right else str(rng.choice(TYPES[1:]))
        said.append(Prediction(example.id, label, 0.2 + 0.6 * label, kind, {}))
    return said


def test_precision_and_recall_are_not_swapped() -> None:
    """The official code gave predictions where labels belong."""
    examples = make_examples(200)
    said = guess(examples, right=0.5)
    found = evaluate(examples, said)
    truth, labels = [e.label for e in examples], [p.label for p in said]
    precision = precision_score(truth, labels, average="macro")
    recall = recall_score(truth, labels, average="macro")
    assert abs(precision - recall) > 0.02
    assert found.find("precision") == pytest.approx(precision)
    assert found.find("recall") == pytest.approx(recall)
    assert found.find("macro_f1") == pytest.approx(f1_score(truth, labels, average="macro"))
    assert found.find("f1/harmful") == pytest.approx(f1_score(truth, labels))


def test_types_are_five_classes_on_all_memes_under_their_own_names() -> None:
    """The tables print offence before sexual; the files number them the other way round."""
    examples = make_examples(200)
    said = guess(examples)
    found = evaluate(examples, said)
    truth, kinds = [str(e.type) for e in examples], [str(p.type) for p in said]
    by_class = f1_score(truth, kinds, average=None, labels=list(TYPES))
    for name, value in zip(TYPES, by_class, strict=True):
        assert found.find(f"f1/{name}", "types") == pytest.approx(value)
    assert found.find("macro_f1", "types") == pytest.approx(by_class.mean())


def test_types_are_not_measured_where_nobody_named_them() -> None:
    """Readers call harmless memes none: these alone would give a perfect score."""
    examples = [replace(e, type="none" if e.label == 0 else None) for e in make_examples(60)]
    said = [Prediction(e.id, int(e.label or 0), 0.5, "none", {}) for e in examples]
    assert evaluate(examples, said).types == ()


def test_every_metric_has_an_interval_that_holds_it() -> None:
    examples = make_examples(200)
    found = evaluate(examples, guess(examples))
    for score in (*found.harmful, *found.types, *found.recalls):
        assert score.value is not None
        assert score.low is not None
        assert score.high is not None
        assert score.low <= score.value <= score.high
    assert {score.label for score in found.recalls if score.by == "modality"} == {
        "fusion", "text", "image", "both",
    }  # fmt: skip


def test_trivial_baselines_are_what_they_would_score() -> None:
    examples = make_examples(200)
    found = evaluate(examples, guess(examples))
    truth = [e.label for e in examples]
    for name, answer in (("always harmless", 0), ("always harmful", 1)):
        expected = f1_score(truth, [answer] * 200, average="macro", zero_division=0)
        assert found.baselines[name][0] == pytest.approx(expected)
    none = f1_score(
        [str(e.type) for e in examples], ["none"] * 200, average="macro", zero_division=0
    )
    assert found.baselines["always harmless"][1] == pytest.approx(none)


def test_no_choice_is_made_on_what_is_tested() -> None:
    """The official code picked the epoch that was best on test: here test labels change nothing."""
    examples = make_examples(80)
    folds = split_examples(examples, "blocks", 4)
    trainer = make_trainer(find_preset("ridge"))
    plain = cross_validate(examples, trainer, "blocks", 4)
    turned = [
        replace(e, label=1 - int(e.label or 0), type=None) if fold == 2 else e
        for e, fold in zip(examples, folds, strict=True)
    ]
    other = cross_validate(turned, trainer, "blocks", 4)
    for place, fold in enumerate(folds):
        if fold == 2:
            assert plain.predictions[place].probability == other.predictions[place].probability


def test_what_predicts_sees_no_label_and_no_training_meme() -> None:
    examples = make_examples(60)

    def trainer(inside: Sequence[Example]) -> Callable[[Sequence[Example]], list[Prediction]]:
        known = {e.id for e in inside}

        def predict(outside: Sequence[Example]) -> list[Prediction]:
            for example in outside:
                assert example.id not in known
                assert (example.label, example.type, example.modality) == (None, None, None)
            return [Prediction(e.id, 0, 0.0, None, {}) for e in outside]

        return predict

    for split, count in (("blocks", 10), ("random", 5)):
        study = cross_validate(examples, trainer, split)  # type: ignore[arg-type]
        assert study.count == count
        assert [p.id for p in study.predictions] == [e.id for e in examples]


def test_meanings_are_computed_once_for_all_folds() -> None:
    asked: list[str] = []

    class Counting:
        version = "counting-1"

        def encode(self, texts: Sequence[str]) -> Singles:
            asked.extend(texts)
            return np.full((len(texts), 2), 0.5, np.float32)

    examples = make_examples(40)
    settings = replace(find_preset("ridge"), dense=(Dense("text", 0.5),))
    cross_validate(examples, make_trainer(settings, Counting()), "random", 3)
    assert sorted(asked) == sorted({e.text for e in examples})


def test_blocks_follow_the_ids_and_not_the_order_of_the_file() -> None:
    assert split_blocks(["30", "4", "100", "5"], 2).tolist() == [1, 0, 1, 0]
    examples = make_examples(100)
    turned = examples[::-1]
    assert (
        split_examples(turned, "blocks", 5).tolist()[::-1]
        == split_examples(examples, "blocks", 5).tolist()
    )


def test_one_class_folds_are_refused() -> None:
    examples = [replace(e, label=int(i < 30), type=None) for i, e in enumerate(make_examples(60))]
    trainer = make_trainer(find_preset("ridge"))
    with pytest.raises(InputError, match=r"all but fold 1 has only one class"):
        cross_validate(examples, trainer, "blocks", 2)
    with pytest.raises(InputError, match="too few for"):
        cross_validate(examples[:5], trainer, "blocks", 10)


def test_a_comparison_counts_pairs() -> None:
    examples = make_examples(200)
    better, worse = guess(examples, 1, 0.95), guess(examples, 2, 0.5)
    found = compare(examples, worse, better)
    assert found.difference > 0
    assert found.low is not None
    assert found.low > 0
    assert found.p < 0.001
    assert found.both + found.neither + found.only_first + found.only_second == 200
    same = compare(examples, better, better)
    assert (same.difference, same.p) == (0, 1)
    for seed in range(20):  # interval and p-value come from one test
        near = compare(examples, better, guess(examples, seed, 0.92))
        assert near.low is not None
        assert near.high is not None
        assert (near.low > 0 or near.high < 0) == (near.p < 0.05)
    with pytest.raises(InputError, match="different memes"):
        compare(examples, better, better[:-1])
