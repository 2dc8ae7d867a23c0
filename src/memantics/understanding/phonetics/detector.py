"""A pun detector for captions: logistic regression over homophone-reading features."""

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
from memantics.metrics.classification import f1_by_class
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
    """Fit a logistic regression; the ridge penalty applies to standardised features, not the bias.

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
    """Maximise a penalised logistic likelihood by Newton's method.

    The Hessian is expensive with hundreds of features, so it is computed every ``renew`` steps. The
    Hessian is largest at the start, so steps with an old one are too short rather than too long.
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
    """Training captions: rows of features and sentence embeddings, labels, and folds by group.

    ``homophone`` is True for homophone puns (words of equal sound) and False for polysemy puns (one
    word, two senses).
    """

    signals: Floats
    vectors: Floats
    pun: npt.NDArray[np.bool_]
    homophone: npt.NDArray[np.bool_]
    folds: npt.NDArray[np.int64]

    def take(self, chosen: npt.NDArray[np.bool_]) -> PunData:
        """Select some of the captions."""
        return PunData(
            self.signals[chosen],
            self.vectors[chosen],
            self.pun[chosen],
            self.homophone[chosen],
            self.folds[chosen],
        )

    def weigh(self, polysemy: float) -> Floats:
        """Return caption weights with which polysemy puns have the given proportion among puns."""
        sense = self.pun & ~self.homophone
        found = sense.sum() / max(self.pun.sum(), 1)
        if not 0 < found < 1:
            return np.ones(len(self.pun))
        shares = np.where(sense, polysemy / found, (1 - polysemy) / (1 - found))
        return np.where(self.pun, shares, 1.0)


# Polysemy puns (one word, two senses) are 16 % of the puns in the whole PunMemeCN release and 37 %
# in the groups not used for training. Training uses 16 %, since most polysemy puns cannot be
# detected from the caption alone; a description of the image makes them detectable. Probabilities
# are calibrated for a proportion between 16 % and 37 %.
LEARNT, LEARNT_DESCRIBED, EXPECTED = 0.16, 0.37, 0.37
_CHANCES = 0.22
ALARMS = 0.045  # maximum false positive rate on held-out folds
_STRENGTH = 10.0
_VECTORS = (3.0, 4.0, 6.0)  # candidate scales of the sentence embedding


def fit_pun(
    data: PunData, names: Sequence[str], learnt: float = LEARNT
) -> tuple[Linear, tuple[float, ...], float]:
    """Fit weights for features and sentence embeddings, and the decision threshold.

    The embedding scale, the calibration and the threshold come from held-out folds. ``learnt`` is
    the proportion of polysemy puns that the weights are fitted for.
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
    # Embeddings are not standardised: their informative directions have the largest variance.
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
    """Compute probabilities and decisions with weights fitted on other captions."""
    linear, meaning, limit = fitted
    weights = np.array([linear.weights[name] for name in names])
    odds = data.signals @ weights + data.vectors @ np.array(meaning) + linear.bias
    chances: Floats = 1 / (1 + np.exp(-odds))
    return chances, chances >= limit


def fit_choice(
    groups: Sequence[tuple[Floats, int]], names: Sequence[str], ridge: float = 1.0
) -> Linear:
    """Fit weights that give the correct row of each group the highest score (softmax).

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
        # damped, since full steps far from the optimum overshoot
        weights -= step * min(1.0, 2.0 / max(size, 1e-9))
        if size < _ENOUGH:
            break
    return Linear(dict(zip(names, map(float, weights / spread), strict=True)))


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """Detection scores on labelled captions."""

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
    """Compute true positive rate, true negative rate, F1 of the pun class and balanced accuracy.

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
    table = (np.array(count) for count in (hits, hits + alarms, positives))
    f1 = float(f1_by_class(*table)) if hits else 0.0
    return DetectionScores(tpr, tnr, f1, (tpr + tnr) / 2, len(truth))


# The pun probability combines homophone readings, dictionary senses and the sentence embedding.

PunKind = Literal["homophone", "polysemy", "none"]


@dataclass(frozen=True, slots=True)
class PunVerdict(Result):
    """A pun verdict: decision, probability, readings and reasons.

    ``probability`` is calibrated for a set in which a third of the memes are puns. ``kind`` is
    ``homophone``, ``polysemy`` or ``none``. ``readings`` are sorted, best first. ``seen_by`` names
    the model that was given the image; it is empty without a model.
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
        title = f"{'a pun' if self.is_pun else 'not a pun'}, {show_probability(self.probability)}"
        return Table((self.caption, title), rows)._repr_html_()


class PunWeights(NamedTuple):
    """Weights of the pun detector for one language model.

    ``meaning`` has the weights of the sentence embedding; it is empty if none is used.
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
        """Compute the log-odds that a caption is a pun."""
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
    """Load the detector weights of a language model, with or without image descriptions."""
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
    """Decide whether a caption is a pun, from its readings and an optional image description.

    ``vector`` is the sentence embedding of the caption, ``picture`` that of the description. A
    description only counts as evidence for a pun, and only if it mentions words of the caption. It
    counts as evidence against a pun only if it is ``trusted``, since a short or wrong description
    mentions little. ``seen`` is the decision of a vision-language model; it shifts the log-odds by
    the published accuracy of such models, so that neither the caption nor the model decides alone.
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


# Published models that get image and caption are right about four times in five (F1 .61 to .76).
# Their decision therefore multiplies or divides the odds by four.
_WITNESS = math.log(4.0)


def _logit(chance: float) -> float:
    bounded = min(max(chance, 1e-6), 1 - 1e-6)
    return math.log(bounded / (1 - bounded))


def _list_reasons(readings: HomophoneReadings, kind: PunKind) -> tuple[str, ...]:
    lines = explain(readings, alternatives=0)
    if kind == "homophone" or not readings.senses:
        return lines
    return (*(f"{sense.word}: {sense.why}" for sense in readings.senses[:3]), *lines)
