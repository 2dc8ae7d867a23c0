"""A pun detector from captions alone: a logistic regression over what reading aloud found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from memantics.core.result import Result, Table
from memantics.core.text import show_probability
from memantics.metrics.rounding import Floats
from memantics.understanding.phonetics.ranking import Linear
from memantics.understanding.phonetics.reading import (
    HomophoneReadings,
    Reading,
    SecondSense,
    explain,
)

_STEPS, _ENOUGH = 50, 1e-6


def _scale(rows: Floats) -> tuple[Floats, Floats]:
    spread = rows.std(axis=0)
    return rows.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)


def fit_logistic(
    rows: Floats, labels: npt.NDArray[np.bool_], names: Sequence[str], ridge: float = 1.0
) -> Linear:
    """Logistic regression; the ridge acts on standardised features, not on the bias.

    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = fit_logistic(rows, np.array([False, False, True, True]), ["x"])
    >>> model.probability({"x": 0.0}) < 0.5 < model.probability({"x": 3.0})
    True
    """
    middle, spread = _scale(rows)
    design = np.hstack([(rows - middle) / spread, np.ones((len(rows), 1))])
    penalty = np.full(design.shape[1], float(ridge))
    penalty[-1] = 1e-6
    weights = _climb(design, labels.astype(float), penalty, np.ones(len(rows)))
    raw = weights[:-1] / spread
    bias = float(weights[-1] - raw @ middle)
    return Linear(dict(zip(names, map(float, raw), strict=True)), bias)


def _climb(
    design: Floats, target: Floats, penalty: Floats, importance: Floats, renew: int = 1
) -> Floats:
    """Newton's steps to the top of a penalised logistic likelihood.

    The curvature, which is what costs with hundreds of features, is computed every ``renew`` steps.
    At the start it is as large as it can be, so that steps with an old one fall short, not beyond.
    """
    weights = np.zeros(design.shape[1])
    for number in range(_STEPS * renew):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (importance * (chance - target)) + penalty * weights
        if number % renew == 0:
            curve = (design * (importance * chance * (1 - chance))[:, None]).T @ design
            inverse = np.linalg.inv(curve + np.diag(penalty))
        step = inverse @ gradient
        weights -= step
        if np.abs(step).max() < _ENOUGH:
            break
    return weights


@dataclass(frozen=True, slots=True)
class PunData:
    """Captions to learn from: signals and sentence vectors in rows, labels, and folds of groups.

    ``homophone`` tells puns by sound from puns by sense.
    """

    signals: Floats
    vectors: Floats
    pun: npt.NDArray[np.bool_]
    homophone: npt.NDArray[np.bool_]
    folds: npt.NDArray[np.int64]

    def take(self, chosen: npt.NDArray[np.bool_]) -> PunData:
        """Some of the captions."""
        return PunData(
            self.signals[chosen],
            self.vectors[chosen],
            self.pun[chosen],
            self.homophone[chosen],
            self.folds[chosen],
        )

    def weigh(self, polysemy: float) -> Floats:
        """Weights under which puns by sense have this share of the puns."""
        sense = self.pun & ~self.homophone
        found = sense.sum() / max(self.pun.sum(), 1)
        if not 0 < found < 1:
            return np.ones(len(self.pun))
        shares = np.where(sense, polysemy / found, (1 - polysemy) / (1 - found))
        return np.where(self.pun, shares, 1.0)


# Puns by sense are 16 % of the whole release and 37 % of the groups that nobody here has seen. The
# first is learnt from, since most of these cannot be told by a caption; with the picture described
# they can. Chances are for a mixture between the two, so that they are not far off on either.
LEARNT, LEARNT_DESCRIBED, EXPECTED = 0.16, 0.37, 0.37
_CHANCES = 0.22
ALARMS = 0.045  # of captions that are no puns, while learning
_STRENGTH = 10.0
_VECTORS = (3.0, 4.0, 6.0)  # what a sentence vector may count; learning chooses one


def fit_pun(
    data: PunData, names: Sequence[str], learnt: float = LEARNT
) -> tuple[Linear, tuple[float, ...], float]:
    """Weights of signals and of sentence vectors, and the threshold.

    What a sentence vector counts, chances and threshold come from captions that were held out by
    their fold. ``learnt`` is the share of puns by sense that the weights are learnt for.
    """
    target, importance = data.pun.astype(float), data.weigh(_CHANCES)
    best: tuple[float, float, Floats, Floats] | None = None
    for vector in _VECTORS if data.vectors.shape[1] else _VECTORS[:1]:
        odds = _hold_out(data, learnt, vector)
        line = np.column_stack([odds, np.ones(len(odds))])
        fitted = _climb(line, target, np.full(2, 1e-3), importance)
        loss = float(importance @ np.logaddexp(0, np.where(data.pun, -1, 1) * (line @ fitted)))
        if best is None or loss < best[0]:
            best = loss, vector, odds, fitted
    assert best is not None
    _, vector, odds, (slope, shift) = best
    limit = np.quantile(odds[~data.pun], 1 - ALARMS) * slope + shift
    weights, bias = _fit_pun(data, learnt, vector)
    weights, bias = weights * slope, float(bias * slope + shift)
    signals, meaning = weights[: len(names)], weights[len(names) :]
    linear = Linear(dict(zip(names, map(float, signals), strict=True)), bias)
    return linear, tuple(map(float, meaning)), float(1 / (1 + np.exp(-limit)))


def _hold_out(data: PunData, learnt: float, vector: float) -> Floats:
    odds = np.zeros(len(data.pun))
    for fold in np.unique(data.folds):
        held = data.folds == fold
        weights, bias = _fit_pun(data.take(~held), learnt, vector)
        odds[held] = np.hstack([data.signals[held], data.vectors[held]]) @ weights + bias
    return odds


def _fit_pun(data: PunData, learnt: float, vector: float) -> tuple[Floats, float]:
    middle, spread = _scale(data.signals)
    shift = np.concatenate([middle, data.vectors.mean(axis=0)])
    # A sentence vector stays as long as it is: its telling directions are the wide ones.
    scale = np.concatenate([spread, np.full(data.vectors.shape[1], 1 / vector)])
    rows = (np.hstack([data.signals, data.vectors]) - shift) / scale
    design = np.column_stack([rows, np.ones(len(rows))])
    penalty = np.full(design.shape[1], _STRENGTH)
    penalty[-1] = 1e-6
    found = _climb(design, data.pun.astype(float), penalty, data.weigh(learnt), renew=20)
    weights = found[:-1] / scale
    return weights, float(found[-1] - weights @ shift)


def apply_pun(
    data: PunData, names: Sequence[str], fitted: tuple[Linear, tuple[float, ...], float]
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Chances and verdicts of captions under what ``fit_pun`` learnt from others."""
    linear, meaning, limit = fitted
    weights = np.array([linear.weights[name] for name in names])
    odds = data.signals @ weights + data.vectors @ np.array(meaning) + linear.bias
    chances: Floats = 1 / (1 + np.exp(-odds))
    return chances, chances >= limit


def fit_choice(
    groups: Sequence[tuple[Floats, int]], names: Sequence[str], ridge: float = 1.0
) -> Linear:
    """Weights under which the right one of each group's rows scores highest (softmax).

    >>> groups = [(np.array([[1.0], [0.0]]), 0), (np.array([[0.2], [0.9]]), 1)]
    >>> fit_choice(groups, ["x"]).weights["x"] > 0
    True
    """
    middle, spread = _scale(np.vstack([rows for rows, _ in groups]))
    scaled = [((rows - middle) / spread, right) for rows, right in groups]
    weights = np.zeros(len(names))
    for _ in range(_STEPS):
        gradient = ridge * weights
        curve = np.diag(np.full(len(names), float(ridge)))
        for rows, right in scaled:
            scores = rows @ weights
            chance = np.exp(scores - scores.max())
            chance /= chance.sum()
            mean = chance @ rows
            gradient = gradient - (rows[right] - mean)
            curve += (rows * chance[:, None]).T @ rows - np.outer(mean, mean)
        step = np.linalg.solve(curve, gradient)
        size = np.abs(step).max()
        weights -= step * min(1.0, 2.0 / max(size, 1e-9))  # damped: far from the top it overshoots
        if size < _ENOUGH:
            break
    return Linear(dict(zip(names, map(float, weights / spread), strict=True)))


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """Rates of a detector on labelled captions."""

    tpr: float
    tnr: float
    f1: float
    balanced_accuracy: float
    count: int


def score_detection(
    chances: Sequence[float] | Floats,
    labels: Sequence[bool] | npt.NDArray[np.bool_],
    threshold: float,
    weights: Floats | None = None,
) -> DetectionScores:
    """True positive rate, true negative rate, F1 of the pun class, balanced accuracy.

    >>> score_detection([0.9, 0.2, 0.8, 0.1], [True, True, False, False], 0.5)
    DetectionScores(tpr=0.5, tnr=0.5, f1=0.5, balanced_accuracy=0.5, count=4)
    """
    truth = np.asarray(labels, dtype=bool)
    said = np.asarray(chances, dtype=float) >= threshold
    caption_weights = np.ones(len(truth)) if weights is None else weights
    hits, alarms = float(caption_weights @ (said & truth)), float(caption_weights @ (said & ~truth))
    positives, negatives = float(caption_weights @ truth), float(caption_weights @ ~truth)
    tpr = hits / positives if positives else 0.0
    tnr = 1 - alarms / negatives if negatives else 0.0
    f1 = 2 * hits / (positives + hits + alarms) if hits else 0.0
    return DetectionScores(tpr, tnr, f1, (tpr + tnr) / 2, len(truth))


# Is a caption a pun? One chance from what was heard, what a dictionary says, and what it means.

PunKind = Literal["homophone", "polysemy", "none"]


@dataclass(frozen=True, slots=True)
class PunVerdict(Result):
    """Whether a caption is a pun, how likely, by which readings, and why.

    ``probability`` is calibrated for memes of which a third are puns. ``kind`` says whether the
    sound or the sense of a word is played with. ``readings`` are best first. ``seen_by`` names
    the model that looked at the picture, empty where none did.
    """

    caption: str
    is_pun: bool
    probability: float
    threshold: float
    kind: PunKind
    readings: tuple[Reading, ...]
    senses: tuple[SecondSense, ...]
    why: tuple[str, ...]
    seen_by: str = ""
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        rows = tuple(("", line) for line in self.why)
        title = f"{'a pun' if self.is_pun else 'no pun'}, {show_probability(self.probability)}"
        return Table((self.caption, title), rows)._repr_html_()


class PunWeights(NamedTuple):
    """What tells puns from the rest with one language model.

    ``meaning`` weighs the numbers of a sentence vector; nothing where there is none.
    """

    linear: Linear
    meaning: tuple[float, ...]
    threshold: float

    def score(
        self,
        readings: HomophoneReadings,
        vector: Sequence[float] | None,
        picture: Sequence[float] | None = None,
    ) -> float:
        """The log-odds that a caption is a pun."""
        if vector is None or len(vector) != len(self.meaning):
            return self.linear.score(readings.signals)
        similar = _multiply(vector, picture) if picture is not None else 0.0
        return self.linear.score({**readings.signals, "similar": similar}) + _multiply(
            self.meaning, vector
        )


def _multiply(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


SHOWN = ("shown_rarest", "shown_share", "shown_thing", "shown_word")


@cache
def load_pun_weights(model: str, described: bool = False) -> PunWeights:
    """The weights for a language model, for captions alone or with the picture described."""
    file = resources.files("memantics.understanding.phonetics") / "weights.json"
    entry = orjson.loads(file.read_bytes())[model]["described" if described else "pun"]
    linear = Linear(entry["weights"], entry["bias"])
    return PunWeights(linear, tuple(entry["meaning"]), entry["threshold"])


def judge_pun(
    readings: HomophoneReadings,
    vector: Sequence[float] | None = None,
    seen: bool | None = None,
    picture: Sequence[float] | None = None,
    *,
    trusted: bool = False,
) -> PunVerdict:
    """The verdict on a caption that was read aloud, alone or with a description of the picture.

    ``vector`` is its sentence vector where there is one, ``picture`` that of the description. A
    description counts where it names what the caption says, and then for a pun only: one that is
    silent, short, wrong or a list of tags is no evidence against it, unless it is ``trusted``.
    ``seen`` is what a model that sees the picture says; it counts as much as the published
    accuracy of such models has it, so neither the sound nor the model decides alone.
    """
    if readings.language != "zh" or readings.model == "none":
        odds, limit = _logit(readings.confidence), readings.threshold
    else:
        weights = load_pun_weights(readings.model)
        odds, limit = weights.score(readings, vector), weights.threshold
        shows = any(readings.signals.get(name, 0.0) > 0 for name in SHOWN)
        if shows or (trusted and SHOWN[0] in readings.signals):
            weights = load_pun_weights(readings.model, described=True)
            seen_odds, seen_limit = weights.score(readings, vector, picture), weights.threshold
            gain = (seen_odds - _logit(seen_limit)) - (odds - _logit(limit))
            if trusted or round(gain, 9) > 0:
                odds, limit = seen_odds, seen_limit
    if seen is not None:
        odds += _WITNESS if seen else -_WITNESS
    chance = round(1 / (1 + math.exp(-max(-30.0, min(30.0, odds)))), 4)
    is_pun = chance >= limit
    by_sound = readings.intended is not None or not (readings.senses or readings.double_meanings)
    kind: PunKind = "none" if not is_pun else "homophone" if by_sound else "polysemy"
    return PunVerdict(
        caption=readings.caption,
        is_pun=is_pun,
        probability=chance,
        threshold=limit,
        kind=kind,
        readings=readings.readings,
        senses=readings.senses,
        why=_list_reasons(readings, kind),
        notes=readings.notes,
    )


# Published models with image and caption are right about four times in five (F1 .61 to .76):
# what they say makes a pun four times likelier, or less likely.
_WITNESS = math.log(4.0)


def _logit(chance: float) -> float:
    bounded = min(max(chance, 1e-6), 1 - 1e-6)
    return math.log(bounded / (1 - bounded))


def _list_reasons(readings: HomophoneReadings, kind: PunKind) -> tuple[str, ...]:
    lines = explain(readings, alternatives=0)
    if kind == "homophone" or not readings.senses:
        return lines
    return (*(f"{sense.word}: {sense.why}" for sense in readings.senses[:3]), *lines)
