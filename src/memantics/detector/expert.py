"""An expert: the fast detector's machine for any set of labels, one of them or several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memantics.core.data import Skip
from memantics.core.errors import InputError
from memantics.core.labelled import LabelledMeme, name_group
from memantics.core.result import Result
from memantics.detector.calibration import (
    Floats,
    Softmax,
    choose_biases,
    choose_threshold,
    fit_softmax,
    fit_types,
    macro_f1,
)
from memantics.detector.examples import Example
from memantics.detector.features import Embedder
from memantics.detector.heads import FEWEST, FastSettings, HeadModel, Ints, fit_heads, split_inner
from memantics.detector.kernel import Singles, Targets
from memantics.metrics.rounding import settle

Flags = NDArray[np.bool_]
# Memes of a class: rarer ones cannot be held out and learnt at once. In a large set a class needs
# a share of the memes, too (less where several can hold: each is a question of its own).
FEWEST_MEMBERS = 5
_FEWEST_SHARE = {False: 0.03, True: 0.01}
_NESTED = 5
OTHER = "other"


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The labels that an expert tells apart; ``several``: any number of them can hold."""

    name: str
    classes: tuple[str, ...]
    several: bool = False


@dataclass(frozen=True, slots=True)
class ExpertPrediction(Result):
    """What an expert says about one meme.

    ``labels`` is one label, or any number where several can hold; ``label`` the likeliest.
    ``chances`` add up to 1 unless several labels can hold.
    """

    id: str
    label: str
    probability: float
    labels: tuple[str, ...]
    chances: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ClassDecision:
    """From scores to chances and labels.

    One label: one softmax over the classes, and a bias per class. Several: a softmax of two for
    each class, and its threshold in ``biases``.
    """

    softmaxes: tuple[Softmax, ...]
    biases: Floats
    several: bool

    def decide(self, scores: Floats) -> tuple[Floats, list[tuple[int, ...]]]:
        """Chances of the classes, and the places of those that hold."""
        if not self.several:
            (whole,) = self.softmaxes
            best = (whole.logits(scores) + self.biases).argmax(axis=1)
            return whole.probabilities(scores), [(int(place),) for place in best]
        chances = np.column_stack(
            [softmax.probabilities(scores)[:, 1] for softmax in self.softmaxes]
        )
        held = settle(chances) >= settle(self.biases)  # at its threshold a label holds
        return chances, [tuple(np.flatnonzero(row).tolist()) for row in held]


@dataclass(frozen=True, slots=True, kw_only=True)
class FastExpert(HeadModel):
    """A trained expert; its heads are the classes of its labels."""

    labels: LabelSet
    decision: ClassDecision

    def predict(
        self, examples: Sequence[Example], embedder: Embedder | None = None
    ) -> list[ExpertPrediction]:
        """What it says about each example; ids are copied into the answer and not looked at."""
        if not examples:
            return []
        return self.name_predictions(examples, np.asarray(self.score(examples, embedder), float))

    def name_predictions(
        self, examples: Sequence[Example], scores: Floats
    ) -> list[ExpertPrediction]:
        """Decisions from scores."""
        return self.name_decisions(examples, *self.decision.decide(scores))

    def name_decisions(
        self, examples: Sequence[Example], chances: Floats, places: Sequence[tuple[int, ...]]
    ) -> list[ExpertPrediction]:
        """Chances and places of classes in words."""
        classes = self.labels.classes
        found = []
        for example, row, held in zip(examples, chances.tolist(), places, strict=True):
            first = held[0] if len(held) == 1 else int(np.argmax(row))
            found.append(
                ExpertPrediction(
                    id=example.id,
                    label=classes[first],
                    probability=row[first],
                    labels=tuple(classes[place] for place in held),
                    chances=dict(zip(classes, row, strict=True)),
                )
            )
        return found


@dataclass(frozen=True, slots=True)
class LabelledExamples:
    """Examples with their labels and groups. Classes that are too rare to learn are ``other``."""

    examples: tuple[Example, ...]
    gold: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]
    labels: LabelSet

    def take(self, places: Sequence[int]) -> LabelledExamples:
        """Some of them."""
        return LabelledExamples(
            tuple(self.examples[place] for place in places),
            tuple(self.gold[place] for place in places),
            tuple(self.groups[place] for place in places),
            self.labels,
        )


@dataclass(frozen=True, slots=True)
class TrainedExpert:
    """An expert, and what it said about each example while its group was held out."""

    expert: FastExpert
    held_out: tuple[ExpertPrediction, ...]


def fit_expert(
    data: LabelledExamples, settings: FastSettings, embedder: Embedder | None = None
) -> TrainedExpert:
    """Train on labelled examples; every choice is made on groups held out inside them."""
    _check(data)
    classes, several = data.labels.classes, data.labels.several
    signs = np.array([[name in names for name in classes] for names in data.gold])
    strata = ["|".join(names) for names in data.gold]
    targets = Targets(classes, np.where(signs, 1, -1).astype(np.float32), _weigh(strata))
    first = {group: place for place, group in reversed(list(enumerate(data.groups)))}
    origins = [first[group] for group in data.groups]
    folds = split_inner([e.id for e in data.examples], strata, settings, origins)

    def rate(held_out: Singles) -> float:
        return max(
            nested.figure for nested in _decide_both_ways(held_out, signs, folds, several=several)
        )

    fitted = fit_heads(data.examples, targets, settings, folds, rate, embedder)
    plain, biased = _decide_both_ways(fitted.held_out, signs, folds, several=several)
    # Biases for rare classes must earn their place on memes that they were not chosen on.
    best = biased if biased.figure > plain.figure else plain
    table = np.asarray(fitted.held_out, float)
    decision = fit_class_decision(table, signs, several=several, biased=best is biased)
    expert = FastExpert(
        settings=settings,
        extractor=fitted.extractor,
        heads=classes,
        scorer=fitted.scorer,
        ridge=fitted.ridge,
        examples=len(data.examples),
        embedder=fitted.embedder,
        labels=data.labels,
        decision=decision,
    )
    said = expert.name_decisions(data.examples, best.chances, best.places)
    return TrainedExpert(expert, tuple(said))


@dataclass(frozen=True, slots=True)
class _Nested:
    """Decisions on each fold by what was calibrated on the others, and their macro-F1."""

    chances: Floats
    places: list[tuple[int, ...]]
    figure: float


def _decide_both_ways(
    held_out: Singles, signs: Flags, folds: Ints, *, several: bool
) -> tuple[_Nested, _Nested]:
    """Without biases, and with them."""
    table = np.asarray(held_out, float)
    plain = _decide_nested(table, signs, folds, several=several, biased=False)
    return plain, _decide_nested(table, signs, folds, several=several, biased=True)


def _decide_nested(
    table: Floats, signs: Flags, folds: Ints, *, several: bool, biased: bool
) -> _Nested:
    chances = np.zeros(signs.shape)
    places: list[tuple[int, ...]] = [()] * len(signs)
    for fold in range(_NESTED):
        out = folds % _NESTED == fold
        if not out.any() or out.all():
            continue
        decision = fit_class_decision(table[~out], signs[~out], several=several, biased=biased)
        chances[out], said = decision.decide(table[out])
        for place, numbers in zip(np.flatnonzero(out).tolist(), said, strict=True):
            places[place] = numbers
    held = np.array([[number in said for number in range(signs.shape[1])] for said in places])
    if several:
        pairs = [(signs[:, number], held[:, number]) for number in range(signs.shape[1])]
        figures = [
            macro_f1(gold.astype(np.int64), values.astype(np.int64), 2) for gold, values in pairs
        ]
        return _Nested(chances, places, float(np.mean(figures)))
    return _Nested(chances, places, macro_f1(_places(signs), _places(held), signs.shape[1]))


def _check(data: LabelledExamples) -> None:
    if len(data.examples) < FEWEST:
        raise InputError(
            f"{len(data.examples)} examples are too few", hint=f"give at least {FEWEST}"
        )
    if len(data.labels.classes) < 2 and not data.labels.several:
        raise InputError(
            f"{data.labels.name}: one class only", hint="give memes of at least two classes"
        )
    if len(set(data.groups)) < 4:
        raise InputError(
            f"{data.labels.name}: fewer than four groups of memes",
            hint="memes that hang together are held out together; give more",
        )


def _weigh(strata: Sequence[str]) -> Singles:
    """Rarer labels weigh more, by the root of their number."""
    counts = Counter(strata)
    weights = np.array([counts[key] ** -0.5 for key in strata])
    return np.asarray(weights / weights.mean(), np.float32)


def _places(signs: Flags) -> Ints:
    places: Ints = signs.argmax(axis=1).astype(np.int64)
    return places


def fit_class_decision(
    table: Floats, signs: Flags, *, several: bool, biased: bool = True
) -> ClassDecision:
    """Calibrate and choose biases or thresholds on scores of held-out examples.

    Without ``biased`` the likeliest class is said, and a label holds from one half on.
    """
    count = signs.shape[1]
    if not several:
        truth = _places(signs)
        whole = fit_types(table, truth, count)
        biases = choose_biases(whole.logits(table), truth) if biased else np.zeros(count)
        return ClassDecision((whole,), biases, False)
    made, thresholds = [], []
    for place in range(count):
        truth = signs[:, place].astype(np.int64)
        made.append(fit_softmax(table, truth, 2))
        chances = made[-1].probabilities(table)[:, 1]
        thresholds.append(choose_threshold(chances, truth) if biased else 0.5)
    return ClassDecision(tuple(made), np.array(thresholds), True)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Labelled memes as examples; ``skips`` were left out, ``notes`` say what was changed."""

    data: LabelledExamples
    skips: tuple[Skip, ...] = ()
    notes: tuple[str, ...] = ()


def gather_examples(
    memes: Iterable[LabelledMeme],
    name: str,
    *,
    several: bool = False,
    classes: Sequence[str] | None = None,
) -> Gathered:
    """Memes as examples with one label each, or with several.

    Without ``classes`` the labels with too few memes become ``other``, and those memes are left
    out where ``other`` has too few as well. With ``classes`` (of an expert that is to be judged),
    any other label is ``other`` where that is a class, else the meme is left out.
    """
    listed, skips = _keep_labelled(memes, name, several=several)
    counts = Counter(label for meme in listed for label in meme.labels)
    fewest = max(FEWEST_MEMBERS, math.ceil(_FEWEST_SHARE[several] * len(listed)))
    known = set(classes or (text for text, count in counts.items() if count >= fewest))
    rare = sum(count for text, count in counts.items() if text not in known)
    keeps_other = OTHER in known or (classes is None and rare >= fewest and not several)
    kept: list[tuple[LabelledMeme, tuple[str, ...]]] = []
    for meme in listed:
        gold = tuple(text for text in meme.labels if text in known)
        if not several and not gold and keeps_other:
            gold = (OTHER,)
        if gold or several:
            kept.append((meme, gold))
        else:
            skips.append(Skip(name, meme.id, f"too few memes are {meme.labels[0]}"))
    if not kept:
        raise InputError(f"{name}: no meme has a label that can be learnt", hint="give more memes")
    found = set(classes or ()) | {text for _, gold in kept for text in gold}
    ordered = (
        tuple(classes) if classes else tuple(sorted(found, key=lambda key: (-counts[key], key)))
    )
    notes = [f"{len(skips):,} memes were left out"] if skips else []
    if keeps_other and classes is None and rare:
        notes.append(f"{rare:,} memes with labels of fewer than {fewest} memes are {OTHER}")
    data = LabelledExamples(
        tuple(
            Example(
                labelled_meme.id,
                labelled_meme.text,
                labelled_meme.text_caption,
                labelled_meme.image_caption,
                labelled_meme.image,
            )
            for labelled_meme, _ in kept
        ),
        tuple(gold for _, gold in kept),
        tuple(
            labelled_meme.group or name_group(labelled_meme.text) or labelled_meme.id
            for labelled_meme, _ in kept
        ),
        LabelSet(name, ordered, several),
    )
    return Gathered(data, tuple(skips), tuple(notes))


def _keep_labelled(
    memes: Iterable[LabelledMeme], name: str, *, several: bool
) -> tuple[list[LabelledMeme], list[Skip]]:
    kept: list[LabelledMeme] = []
    skips: list[Skip] = []
    for meme in memes:
        said = meme.text + meme.text_caption + meme.image_caption
        if not said.strip():
            skips.append(Skip(name, meme.id, "no text"))
        elif not several and len(meme.labels) != 1:
            skips.append(Skip(name, meme.id, f"has {len(meme.labels)} labels"))
        else:
            kept.append(meme)
    return kept, skips
