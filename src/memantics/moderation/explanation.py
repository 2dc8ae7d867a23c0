"""Feature attributions: exact for fast detectors, occlusion for neural networks.

The explained score is the log-odds of "harmful", or of a label against the next most probable one.
The score of a fast detector is a polynomial of degree 1 or 2 in its features. Their Aumann-Shapley
attributions are exact: together with the base score they add up to the score. Neural networks are
explained by hiding words and image regions. Those attributions do not add up, since two redundant
words can each be hidden without changing the score.
"""

from __future__ import annotations

import re
import tempfile
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image

from memantics.core.errors import require_known
from memantics.core.images import encode_png, load
from memantics.core.result import Result, Table
from memantics.metrics.rounding import Floats
from memantics.moderation import features
from memantics.moderation.examples import LABELS, Example
from memantics.moderation.fast import FastDetector, LabelPrediction, Prediction
from memantics.moderation.heads import HeadModel, make_rows
from memantics.moderation.kernel import Singles, margin_places
from memantics.moderation.unseen_ngrams import OUTSIDE_NOTE

_ROUNDING = 0.01  # tolerance for sums of single-precision numbers
Predict = Callable[[Sequence[Example]], list[Prediction]]
Outcome = Literal["harmless", "review", "harmful"]
_TITLES = {"harmless": "Harmless", "review": "Needs human review", "harmful": "Harmful"}
_PIECE = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_MOST = 40  # segments per text; in longer texts a segment has several words
_SIDE = 4  # rows and columns of the grid of image regions


@dataclass(frozen=True, slots=True)
class FeatureContribution:
    """The contribution of one feature; positive means towards the label.

    ``start`` and ``end`` locate it in the text; None for features without a position.
    """

    field: str
    kind: str
    text: str
    contribution: float
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class FieldAttribution:
    """A field's text with the contribution of each character, and of the field as a whole."""

    field: features.TextField
    text: str
    characters: tuple[float, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Reasons(Result, ABC):
    """A score with its attributions. ``base`` is the score of an empty meme.

    The score is the log-odds of ``label`` against ``against`` (if empty, against its absence).
    ``needed`` is the decision threshold on that scale. ``gap`` is the part of the score that the
    contributions do not explain; it is 0 for kernels of degree 1 or 2, except for rounding. With
    ``hiding``, a contribution is the score drop when the feature is hidden.
    """

    score: float
    base: float
    needed: float
    parts: tuple[FeatureContribution, ...]
    fields: tuple[FieldAttribution, ...]
    label: str
    against: str
    _: KW_ONLY
    hiding: bool = False

    @property
    def gap(self) -> float:
        """The part of the score that the contributions do not explain."""
        return self.score - self.base - sum(part.contribution for part in self.parts)

    @property
    def sense(self) -> str:
        """One sentence on how to read the contributions."""
        if self.hiding:
            return "each value is the score drop when that part is hidden; values need not add up"
        if abs(self.gap) < _ROUNDING:
            return "all contributions add up to the score"
        return f"the contributions leave {self.gap:+.2f} of the score unexplained"

    def strongest(self, count: int = 10) -> tuple[FeatureContribution, ...]:
        """Return the largest contributions by absolute value, without overlapping features."""
        kept: list[FeatureContribution] = []
        for part in sorted(self.parts, key=lambda p: -abs(p.contribution)):
            if len(kept) == count:
                break
            if not any(_covers(stronger, part) for stronger in kept):
                kept.append(part)
        return tuple(kept)

    def table(self, count: int = 12) -> Table:
        """Show the largest contributions as a table."""
        rows = tuple(
            (part.text, part.field.replace("_", " "), part.kind, f"{part.contribution:+.3f}")
            for part in self.strongest(count)
        )
        return Table(("feature", "field", "kind", ">contribution"), rows)

    @property
    def sum(self) -> str:
        """The score as base score plus contributions of this meme, in words."""
        moved = f"{self.base:+.2f} (empty meme) {self.score - self.base:+.2f} (this meme)"
        return f"score {self.score:+.2f} = {moved}"

    @property
    @abstractmethod
    def lines(self) -> tuple[str, str]:
        """The verdict, and how its score is composed."""

    def _repr_html_(self) -> str:
        return "".join(f"<p>{line}</p>" for line in self.lines) + self.table()._repr_html_()


@dataclass(frozen=True, slots=True)
class Explanation(Reasons):
    """Attributions of a harm score; ``needed`` is the threshold as log-odds."""

    prediction: Prediction

    @property
    def outcome(self) -> Outcome:
        """What happens to the meme at the operating point: a label, or ``review`` by a person."""
        said = self.prediction
        if said.review or said.not_scored:
            return "review"
        return "harmful" if said.label else "harmless"

    @property
    def title(self) -> str:
        """The outcome in words, such as ``Needs human review``."""
        return _TITLES[self.outcome]

    @property
    def review_reason(self) -> str:
        """Why the meme needs human review; empty if it does not."""
        said = self.prediction
        return f"not scored: {said.not_scored}" if said.not_scored else said.review

    @property
    def lines(self) -> tuple[str, str]:
        """The outcome at the operating point, and how its score is composed."""
        said = self.prediction
        facts = [f"probability of harm {said.probability:.2f}"] if not said.not_scored else []
        if said.label and not said.not_scored and said.type not in (None, "none"):
            facts.append(f"type {said.type}")
        doubt = OUTSIDE_NOTE if said.out_of_domain and OUTSIDE_NOTE not in said.review else ""
        told = "; ".join(filter(None, (self.review_reason, doubt)))
        return (
            ", ".join((self.title.lower(), *facts)) + (f": {told}" if told else ""),
            f"{self.sum}; harmful from {self.needed:+.2f}",
        )


@dataclass(frozen=True, slots=True)
class LabelExplanation(Reasons):
    """Attributions of a classifier's score for one label."""

    prediction: LabelPrediction

    @property
    def lines(self) -> tuple[str, str]:
        """The verdict, and how its score is composed."""
        chance = self.prediction.chances[self.label]
        rest = f" rather than {self.against}" if self.against else ""
        return (
            f"{self.label}{rest}, probability {chance:.2f}",
            f"{self.sum}; from {self.needed:+.2f}",
        )


def _covers(part: FeatureContribution, other: FeatureContribution) -> bool:
    if part.field != other.field or part.start is None or other.start is None:
        return False
    same = (part.contribution > 0) == (other.contribution > 0)
    return same and part.start <= other.start and (part.end or 0) >= (other.end or 0)


class _Lean(NamedTuple):
    """Log-odds of a label, their derivative by each head's score, and the decision threshold."""

    label: str
    against: str
    score: float
    mix: Singles
    needed: float


def explain(
    detector: FastDetector,
    example: Example,
    embedder: features.Embedder | None = None,
    threshold: float | None = None,
) -> Explanation:
    """Compute attributions of a harm score; ``threshold`` replaces the trained threshold."""
    needed = detector.decision.threshold if threshold is None else threshold
    lean = _lean_harm(detector, detector.score([example], embedder), needed or 0.0)
    (said,) = detector.predict([example], embedder)
    return Explanation(*_reason(detector, example, embedder, lean), said)


def explain_label(
    classifier: FastDetector,
    example: Example,
    embedder: features.Embedder | None = None,
    label: str = "",
) -> LabelExplanation:
    """Compute attributions of a label's score, by default of the most probable label."""
    (said,) = classifier.classify([example], embedder)
    label = label or said.label
    require_known("label", label, classifier.labels.classes)
    lean = _lean_label(classifier, np.asarray(classifier.score([example], embedder), float), label)
    return LabelExplanation(*_reason(classifier, example, embedder, lean), said)


def _reason(
    model: FastDetector, example: Example, embedder: features.Embedder | None, lean: _Lean
) -> tuple[
    float, float, float, tuple[FeatureContribution, ...], tuple[FieldAttribution, ...], str, str
]:
    parts, moved = _attribute(model, example, embedder, lean.mix)
    fields = tuple(_share(parts, example))
    score = lean.score
    return score, score - moved, lean.needed, parts, fields, lean.label, lean.against


def _lean_harm(detector: FastDetector, raw: Singles, threshold: float) -> _Lean:
    """Compute the log-odds of harm.

    The margin of the highest harmful type over the type none also contributes to these two heads.
    """
    harm = detector.decision.softmaxes[0]
    slopes = (harm.weights[:, 1] - harm.weights[:, 0]) / harm.deviation
    places = margin_places(detector.heads)
    mix = slopes
    if places is not None:
        none, others = places
        mix = slopes[:-1].copy()
        mix[others[int(raw[0, others].argmax())]] += slopes[-1]
        mix[none] -= slopes[-1]
    (logits,) = harm.logits(detector.widen(raw))
    threshold = min(max(threshold, 1e-9), 1 - 1e-9)
    score, needed = float(logits[1] - logits[0]), float(np.log(threshold / (1 - threshold)))
    return _Lean(LABELS[1], LABELS[0], score, np.asarray(mix, np.float32), needed)


def _lean_label(classifier: FastDetector, raw: Floats, label: str) -> _Lean:
    place, decision = classifier.labels.classes.index(label), classifier.decision
    if classifier.labels.several:
        softmax, other, against = decision.softmaxes[place], 0, ""
        place, needed = 1, float(np.log(decision.biases[place] / (1 - decision.biases[place])))
    else:
        (softmax,) = decision.softmaxes
        rivals = softmax.logits(raw)[0] + decision.biases
        rivals[place] = -np.inf
        other = int(rivals.argmax())
        against = classifier.labels.classes[other]
        needed = float(decision.biases[other] - decision.biases[place])
    (logits,) = softmax.logits(raw)
    slopes = (softmax.weights[:, place] - softmax.weights[:, other]) / softmax.deviation
    score = float(logits[place] - logits[other])
    return _Lean(label, against, score, np.asarray(slopes, np.float32), needed)


def _attribute(
    model: HeadModel, example: Example, embedder: features.Embedder | None, mix: Singles
) -> tuple[tuple[FeatureContribution, ...], float]:
    """Compute the contribution of each feature to a weighted sum of heads, and their sum."""
    rows = make_rows(model.extractor, [example], embedder)
    sparse, dense = model.scorer.attribute(rows, mix)
    parts = tuple(_list_parts(model, example, sparse, dense))
    blank = make_rows(model.extractor, [Example("", "")], _Silent(embedder))
    moved = (model.scorer.score(rows)[0] - model.scorer.score(blank)[0]) @ mix
    return parts, float(moved)


class _Silent:
    """An embedder that returns zeros, for empty examples."""

    def __init__(self, embedder: features.Embedder | None) -> None:
        self.version = embedder.version if embedder is not None else ""
        self._seer = embedder if isinstance(embedder, features.Seer) else None
        self._width = embedder.encode(["a"]).shape[1] if embedder is not None else 1

    def encode(self, texts: Sequence[str]) -> Singles:
        """Return zeros."""
        return np.zeros((len(texts), self._width), np.float32)

    def see(self, images: Sequence[Path | None]) -> Singles:
        """Return zeros."""
        width = 0 if self._seer is None else self._seer.see([None]).shape[1]
        return np.zeros((len(images), width), np.float32)


def _list_parts(
    detector: HeadModel, example: Example, sparse: Singles, dense: Singles
) -> Iterator[FeatureContribution]:
    offsets = detector.extractor.offsets()
    for place, vocabulary in enumerate(detector.extractor.vocabularies):
        block, index = vocabulary.block, detector.extractor.indices[place]
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for piece in features.cut(block.kind, _read(block, example)):
            if piece.name in index:
                found[piece.name].append((piece.start, piece.end))
        for name, spans in found.items():
            # A repeated feature counts once: its contribution is split among its positions.
            value = float(sparse[offsets[place] + index[name]]) / len(spans)
            for start, end in spans:
                yield _place(block, name, value, start, end)
    start = 0
    factors = detector.extractor.dense_factors(len(dense))
    for dense_block, (width, _) in zip(detector.extractor.dense, factors, strict=True):
        value = float(dense[start : start + width].sum())
        start += width
        yield FeatureContribution(
            dense_block.source, dense_block.name.split("/")[1], "(as a whole)", value
        )


def _read(block: features.FeatureBlock, example: Example) -> str:
    text = features.read_field(example, block.field)
    return features.read_intended(text) if block.kind == "readings" else text


def _place(
    block: features.FeatureBlock, name: str, value: float, start: int, end: int
) -> FeatureContribution:
    kind: features.FeatureKind = block.kind
    if kind == "readings":
        # Positions refer to the homophone reading (words that sound like the printed ones), not to
        # the printed text.
        return FeatureContribution(block.field, kind, name, value)
    return FeatureContribution(block.field, kind, name, value, start, end)


def _share(parts: Sequence[FeatureContribution], example: Example) -> Iterator[FieldAttribution]:
    for field in features.FIELDS:
        text = features.read_field(example, field)
        field_parts = [part for part in parts if part.field == field]
        if not text or not field_parts:
            continue
        characters = np.zeros(len(text))
        for part in field_parts:
            if part.start is not None and part.end is not None:
                characters[part.start : part.end] += part.contribution / (part.end - part.start)
        total = sum(part.contribution for part in field_parts)
        yield FieldAttribution(field, text, tuple(characters.tolist()), total)


def explain_by_occlusion(
    predict: Predict, example: Example, threshold: float, *, texts: bool, pictures: bool
) -> Explanation:
    """Explain a harm score by occlusion of words and image regions."""
    with tempfile.TemporaryDirectory() as folder:
        hidden = list(_hide_words(example)) if texts else []
        bare = replace(example, text="") if texts else example
        if pictures and example.image is not None:
            cut = list(_hide_parts(example, example.image, Path(folder)))
            bare = replace(bare, image=cut.pop()[1].image)
            hidden += cut
        said = predict([example, bare, *(changed for _, changed in hidden)])
    score, base, *scores = (_make_odds(one.probability) for one in said)
    parts = tuple(
        replace(part, contribution=score - other)
        for (part, _), other in zip(hidden, scores, strict=True)
    )
    fields = tuple(_share_hidden(example, parts))
    needed = _make_odds(threshold)
    return Explanation(
        score, base, needed, parts, fields, LABELS[1], LABELS[0], said[0], hiding=True
    )


def _make_odds(chance: float) -> float:
    chance = min(max(chance, 1e-9), 1 - 1e-9)
    return float(np.log(chance / (1 - chance)))


def _hide_words(example: Example) -> Iterator[tuple[FeatureContribution, Example]]:
    found = list(_PIECE.finditer(example.text))
    size = -(-len(found) // _MOST) or 1
    for place in range(0, len(found), size):
        start, end = found[place].start(), found[place : place + size][-1].end()
        text = example.text
        part = FeatureContribution("text", "hidden", text[start:end], 0.0, start, end)
        yield part, replace(example, text=text[:start] + text[end:])


def _hide_parts(
    example: Example, path: Path, folder: Path
) -> Iterator[tuple[FeatureContribution, Example]]:
    """Yield the image with each region filled by its mean colour; last, the whole image."""
    image = load(path)
    mean = np.asarray(image.resize((1, 1), Image.Resampling.BOX)).ravel().tolist()
    wide, high = image.size
    places = [(row, column) for row in range(_SIDE) for column in range(_SIDE)]
    for row, column in places:
        corners = (column, row, column + 1, row + 1)
        left, top, right, low = (
            corner * (high if place % 2 else wide) // _SIDE for place, corner in enumerate(corners)
        )
        made = image.copy()
        made.paste((mean[0], mean[1], mean[2]), (left, top, right, low))
        name = f"row {row + 1}, column {column + 1} of {_SIDE}"
        yield (
            FeatureContribution("image", "hidden", name, 0.0),
            _put(example, made, folder, f"{row}{column}"),
        )
    blank = Image.new("RGB", image.size, (mean[0], mean[1], mean[2]))
    yield FeatureContribution("image", "hidden", "all", 0.0), _put(example, blank, folder, "all")


def _put(example: Example, image: Image.Image, folder: Path, name: str) -> Example:
    place = folder / f"{name}.png"
    place.write_bytes(encode_png(image))
    return replace(example, image=place)


def _share_hidden(
    example: Example, parts: Sequence[FeatureContribution]
) -> Iterator[FieldAttribution]:
    characters = np.zeros(len(example.text))
    for part in parts:
        if part.start is not None and part.end is not None:
            characters[part.start : part.end] = part.contribution / (part.end - part.start)
    if any(part.field == "text" for part in parts):
        yield FieldAttribution(
            "text", example.text, tuple(characters.tolist()), float(characters.sum())
        )
