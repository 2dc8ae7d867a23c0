"""A pun detector from captions alone: a logistic regression over what reading aloud found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memantics.core.errors import DataError, InputError, first_fault
from memantics.core.journal import replace_file
from memantics.phonetics.ranking import CAPTION_FEATURES, Linear
from memantics.phonetics.reading import Heard

Matrix = npt.NDArray[np.float64]
_STEPS, _ENOUGH = 50, 1e-8


def _scale(rows: Matrix) -> tuple[Matrix, Matrix]:
    spread = rows.std(axis=0)
    return rows.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)


def fit_logistic(
    rows: Matrix, labels: npt.NDArray[np.bool_], names: Sequence[str], ridge: float = 1.0
) -> Linear:
    """Logistic regression; the ridge acts on standardised features, not on the bias.

    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = fit_logistic(rows, np.array([False, False, True, True]), ["x"])
    >>> model.probability({"x": 0.0}) < 0.5 < model.probability({"x": 3.0})
    True
    """
    middle, spread = _scale(rows)
    design = np.hstack([(rows - middle) / spread, np.ones((len(rows), 1))])
    target = labels.astype(float)
    penalty = np.full(design.shape[1], float(ridge))
    penalty[-1] = 1e-6
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (chance - target) + penalty * weights
        curve = (design * (chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(curve, gradient)
        weights -= step
        if np.abs(step).max() < _ENOUGH:
            break
    raw = weights[:-1] / spread
    bias = float(weights[-1] - raw @ middle)
    return Linear(dict(zip(names, map(float, raw), strict=True)), bias)


def fit_choice(
    groups: Sequence[tuple[Matrix, int]], names: Sequence[str], ridge: float = 1.0
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


FEATURES = (*CAPTION_FEATURES, "evidence")
_RIDGE = 3.0


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """Rates of a detector on labelled captions."""

    tpr: float
    tnr: float
    f1: float
    balanced_accuracy: float
    count: int


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    language_model: str
    threshold: float = Field(ge=0, le=1)
    bias: float
    weights: dict[str, float] = Field(min_length=1)


def extract_features(readings: Heard) -> tuple[float, ...]:
    """The feature block of a caption, in the order of ``FEATURES``; zeros where it has none.

    Other detectors may take the same block, so that a pun is judged by what it says aloud.
    """
    return tuple(readings.signals.get(name, 0.0) for name in FEATURES)


@dataclass(frozen=True, slots=True)
class PunDetector:
    """Tells puns from other captions. ``threshold`` is on the probability."""

    linear: Linear
    language_model: str
    threshold: float = 0.4

    @classmethod
    def train(
        cls, readings: Sequence[Heard], labels: Sequence[bool], *, threshold: float = 0.4
    ) -> PunDetector:
        """Fit on captions that were read aloud, all with the same language model."""
        models = {r.model for r in readings}
        if len(models) != 1 or len(readings) != len(labels) or len(set(labels)) != 2:
            raise InputError(
                "a pun detector needs puns and other captions, read with one language model",
                hint=f"got {len(readings)} captions, {len(labels)} labels, models {sorted(models)}",
            )
        rows = np.array([extract_features(r) for r in readings])
        linear = fit_logistic(rows, np.array(labels, dtype=bool), FEATURES, _RIDGE)
        return cls(linear, models.pop(), threshold)

    def predict(self, readings: Heard) -> float:
        """The probability that a caption is a pun."""
        if readings.model != self.language_model:
            raise InputError(
                f"this detector was trained on readings of model {self.language_model!r},"
                f" not {readings.model!r}",
                hint=f"read with Settings(model={self.language_model!r}), or train again",
            )
        return self.linear.probability(dict(zip(FEATURES, extract_features(readings), strict=True)))

    def evaluate(self, readings: Sequence[Heard], labels: Sequence[bool]) -> DetectionScores:
        """Rates on labelled captions."""
        chances = [self.predict(r) for r in readings]
        return score_detection(chances, labels, self.threshold)

    def save(self, path: Path) -> None:
        """Write the detector as JSON."""
        body = _Stored(
            language_model=self.language_model,
            threshold=self.threshold,
            bias=self.linear.bias,
            weights=dict(self.linear.weights),
        )
        text = orjson.dumps(body.model_dump(), option=orjson.OPT_INDENT_2)
        replace_file(path, text, "pun detector")

    @classmethod
    def load(cls, path: Path) -> PunDetector:
        """Read a detector that ``save`` wrote."""
        try:
            stored = _Stored.model_validate_json(path.read_bytes())
        except OSError as error:
            raise DataError(path.name, f"cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise DataError(
                path.name, f"not a pun detector: {first_fault(error)}", hint="train it again"
            ) from error
        return cls(Linear(stored.weights, stored.bias), stored.language_model, stored.threshold)


def score_detection(
    chances: Sequence[float], labels: Sequence[bool], threshold: float
) -> DetectionScores:
    """True positive rate, true negative rate, F1 of the pun class, balanced accuracy.

    >>> score_detection([0.9, 0.2, 0.8, 0.1], [True, True, False, False], 0.5)
    DetectionScores(tpr=0.5, tnr=0.5, f1=0.5, balanced_accuracy=0.5, count=4)
    """
    said = [chance >= threshold for chance in chances]
    hits = sum(s and bool(label) for s, label in zip(said, labels, strict=True))
    positives = sum(map(bool, labels))
    negatives = len(labels) - positives
    alarms = sum(said) - hits
    tpr = hits / positives if positives else 0.0
    tnr = 1 - alarms / negatives if negatives else 0.0
    f1 = 2 * hits / (positives + hits + alarms) if hits else 0.0
    return DetectionScores(tpr, tnr, f1, (tpr + tnr) / 2, len(labels))


def cross_validate(
    rows: Sequence[Matrix], labels: Sequence[bool], folds: Sequence[int]
) -> list[float]:
    """Probabilities for each caption from a detector that has not seen its fold.

    ``rows`` has one matrix of features per fold: what reading aloud gives when that fold is held
    out of every fitted part, the order of readings too.
    """
    truth = np.array(labels, dtype=bool)
    fold = np.array(folds)
    chances = np.zeros(len(truth))
    for number, matrix in enumerate(rows):
        held = fold == number
        linear = fit_logistic(matrix[~held], truth[~held], CAPTION_FEATURES, _RIDGE)
        for i in np.flatnonzero(held):
            named = dict(zip(CAPTION_FEATURES, matrix[i].tolist(), strict=True))
            chances[i] = linear.probability(named)
    return [float(chance) for chance in chances]
