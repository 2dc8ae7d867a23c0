"""HTML pages of moderation: evaluations, explanations, screening summaries and drift.

An evaluation page has metrics, a calibration curve and an error browser. A screening page has
proportions, scores, types and notable memes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from markupsafe import Markup

from memantics.core.files import write_text
from memantics.core.parameters import Flag
from memantics.core.result import Result, Table
from memantics.metrics.rounding import Floats
from memantics.moderation.evaluation import DetectorEvaluation, name_metric
from memantics.moderation.examples import Example, Loaded
from memantics.moderation.explanation import Explanation, FieldAttribution
from memantics.moderation.fast import Prediction
from memantics.moderation.operating_points import OperatingPoint, ThresholdMetrics
from memantics.moderation.review_reasons import translate_reasons
from memantics.moderation.robustness import Robustness
from memantics.moderation.unseen_ngrams import OUTSIDE_NOTE
from memantics.web.page import Thumbnail, fill_page, make_thumbnails
from memantics.web.phrases import PageLanguage, read_phrases
from memantics.web.plot import draw

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ERRORS = 400
_MOST_IMAGES = 24 * 1024 * 1024
# Verdict columns that the summary page reads.
COLUMNS = (
    "id", "status", "reason", "text", "language", "label", "probability", "type", "readings",
    "phash", "template_cluster", "out_of_domain",
)  # fmt: skip
STYLES = ("page.css", "screening.css")
_BINS = 20
_SHOWN = 12
_Kept = tuple[float, int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A misclassified meme; ``sure`` is the distance of its probability from the threshold."""

    example: Example
    prediction: Prediction
    kind: str
    sure: float
    image: Thumbnail | None = None


def write_evaluation(
    out: Path,
    title: str,
    loaded: Loaded,
    said: Sequence[Prediction],
    found: DetectorEvaluation,
    report: Robustness | None,
    *,
    point: OperatingPoint | None = None,
    language: PageLanguage = "en",
) -> None:
    """Write metrics, calibration curve and error browser as one page.

    ``point`` is the operating point of the predictions; by default it has only the threshold of
    ``found``.
    """
    point = point or OperatingPoint(0.5 if found.threshold is None else found.threshold)
    mistakes = find_mistakes(loaded.examples, said, point.threshold)
    shown = mistakes[:_MOST_ERRORS]
    _write(
        out,
        "detector.html",
        {
            "language": language,
            "title": title,
            "loaded": loaded,
            "found": found,
            "report": report,
            "targets": found.target_table,
            "curve": draw_curve(found.curve, language),
            "tradeoff": Markup(draw_thresholds(found.thresholds, language)),  # noqa: S704 - numbers alone
            "thresholds": found.threshold_table,
            "name_metric": name_metric,
            "mistakes": _add_images(shown),
            "total": len(mistakes),
            "doubtful": find_doubtful(loaded.examples, said, point),
            "limits": list_thresholds(point),
        },
    )


def write_explanation(
    out: Path,
    example: Example,
    found: Explanation,
    *,
    sample: bool,
    language: PageLanguage = "en",
) -> None:
    """Write the attributions of one meme as an HTML page."""
    fields = [
        {"name": share.field.replace("_", " "), "total": share.total, "letters": letters}
        for share, letters in colour_letters(found)
    ]
    strongest = found.strongest(20)
    widest = max((abs(part.contribution) for part in strongest), default=0.0) or 1.0
    bars = [(part, draw_bar(part.contribution / widest)) for part in strongest]
    shown = {"example": example, "found": found, "fields": fields, "bars": bars, "sample": sample}
    notes = {
        "outside": OUTSIDE_NOTE,
        "review": translate_reasons(found.review_reason, language),
        "language": language,
    }
    _write(out, "explanation.html", {**shown, **notes})


def colour_letters(found: Explanation) -> list[tuple[FieldAttribution, list[tuple[str, str, str]]]]:
    """Return each field's characters with a CSS class and their contribution."""
    top = max((abs(v) for share in found.fields for v in share.characters), default=0.0) or 1.0
    return [
        (
            share,
            [
                (letter, _level(value / top), f"{value:+.3f}")
                for letter, value in zip(share.text, share.characters, strict=True)
            ],
        )
        for share in found.fields
    ]


def find_doubtful(
    examples: Sequence[Example], said: Sequence[Prediction], point: OperatingPoint
) -> list[tuple[Example, Prediction]]:
    """List the memes whose probability is nearest to a threshold of the operating point."""
    if not said:
        return []
    chances = np.array([one.probability for one in said])
    order = np.argsort(measure_doubt(chances, list_thresholds(point)), kind="stable")
    return [(examples[place], said[place]) for place in order[:_SHOWN].tolist()]


def find_mistakes(
    examples: Sequence[Example], said: Sequence[Prediction], threshold: float = 0.5
) -> list[Mistake]:
    """List errors, the most confident first: those farthest from the threshold."""
    wrong = [
        Mistake(
            example=example,
            prediction=prediction,
            kind="false negative" if example.label else "false positive",
            sure=abs(prediction.probability - threshold),
        )
        for example, prediction in zip(examples, said, strict=True)
        if prediction.label != example.label
    ]
    return sorted(wrong, key=lambda mistake: -mistake.sure)


def _add_images(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Add thumbnails until the size limit of the page is reached."""
    paths = [mistake.example.image for mistake in mistakes if mistake.example.image is not None]
    small = dict(zip(paths, make_thumbnails(paths, _MOST_IMAGES), strict=True))
    return [
        replace(mistake, image=small[mistake.example.image])
        if mistake.example.image is not None
        else mistake
        for mistake in mistakes
    ]


def _level(share: float) -> str:
    """Return a CSS class: h1-h4 towards harmful, g1-g4 towards harmless, n near zero."""
    size = min(4, int(abs(share) * 5))
    return "n" if size == 0 else f"{'h' if share > 0 else 'g'}{size}"


def draw_bar(share: float) -> Markup:
    """Draw a bar: to the right towards harmful, to the left towards harmless.

    >>> "rect" in draw_bar(0.5)
    True
    """
    return draw("bar", share)


def _across(value: float) -> float:
    return 44 + value * 260.0


def _up(value: float) -> float:
    return 12 + (1 - value) * 260.0


def draw_curve(points: Sequence[tuple[float, float, int]], language: PageLanguage = "en") -> Markup:
    """Draw the calibration curve; on the diagonal, probabilities are calibrated."""
    return draw("calibration", points, _across, _up, read_phrases(language))


def draw_thresholds(rows: Sequence[ThresholdMetrics], language: PageLanguage = "en") -> str:
    """Draw precision and recall by threshold with 95 % confidence bands, as an SVG."""
    drawn = []
    for name, colour, dash in (("precision", "#0868ac", ""), ("recall", "#b35806", "6 3")):
        known = [
            (row.threshold, rate.value, rate.low, rate.high)
            for row in rows
            for rate in (row.precision if name == "precision" else row.recall,)
            if rate.value is not None and rate.low is not None and rate.high is not None
        ]
        if known:
            path = _join((x, value) for x, value, _, _ in known)
            upper = [(x, high) for x, _, _, high in reversed(known)]
            band = _join([*((x, low) for x, _, low, _ in known), *upper])
            drawn.append((name, colour, dash, path, band))
    return str(draw("thresholds", drawn, _across, _up, read_phrases(language))) if rows else ""


def _join(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_across(x):.1f},{_up(y):.1f}" for x, y in points)


def _write(out: Path, name: str, values: dict[str, object]) -> None:
    write_text(out, fill_page(name, ("page.css", "detector.css"), "", **values), flag="--page")


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all verdicts and a few examples, in constant memory.

    ``template_clusters`` are clusters of similar images among flagged memes; ``templates`` are
    matches with known templates. ``thresholds`` are the limits of the bands of the operating point,
    and ``doubtful`` the memes nearest to one of them.
    """

    rows: int
    statuses: Mapping[str, int]
    labels: Mapping[str, int]
    types: Mapping[str, int]
    languages: Mapping[str, int]
    reasons: Mapping[str, int]
    templates: Mapping[str, int]
    scores: tuple[int, ...]
    outside: int
    template_clusters: tuple[tuple[str, int], ...]
    certain: tuple[Mapping[str, Any], ...] = ()
    doubtful: tuple[Mapping[str, Any], ...] = ()
    homophones: tuple[Mapping[str, Any], ...] = ()
    thresholds: tuple[float, ...] = ()


def list_thresholds(point: OperatingPoint) -> tuple[float, ...]:
    """List the probabilities at which the band of an operating point changes.

    >>> list_thresholds(OperatingPoint(0.5)), list_thresholds(OperatingPoint(0.9, (0.3, 0.5)))
    ((0.5,), (0.3, 0.9))
    """
    return tuple(dict.fromkeys(point.review_band or (point.threshold,)))


def measure_doubt(chances: Floats, thresholds: Sequence[float]) -> Floats:
    """Compute the distance of each probability from the nearest threshold.

    >>> measure_doubt(np.array([0.5, 0.85]), (0.3, 0.9)).round(2).tolist()
    [0.2, 0.05]
    """
    limits = np.asarray(thresholds, float)
    return np.asarray(np.abs(chances[:, None] - limits[None, :]).min(axis=1), float)


def summarize(
    tables: Iterable[pa.Table], template_clusters: Mapping[str, str], point: OperatingPoint
) -> Summary:
    """Count verdicts in one pass over the parts.

    ``template_clusters`` maps each perceptual hash to the name of its template cluster. ``point``
    is the operating point of the verdicts.
    """
    import pyarrow.compute as pc

    tally = _VerdictTally(template_clusters, list_thresholds(point))
    for table in tables:
        tally.count("statuses", table["status"])
        tally.rows += table.num_rows
        judged = pc.equal(table["status"], "scored")
        rest = table.filter(pc.invert(judged)).select(["status", "reason"]).to_pylist()
        tally.counts["reasons"].update(
            f"{row['status']}: {_shorten(row['reason'])}" for row in rest
        )
        tally.add_judged(table.filter(judged))
    return tally.close()


class _VerdictTally:
    def __init__(self, template_clusters: Mapping[str, str], thresholds: Sequence[float]) -> None:
        names = (
            "statuses",
            "labels",
            "types",
            "languages",
            "reasons",
            "templates",
            "template_clusters",
        )
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        self.counts["labels"].update(dict.fromkeys(("harmless", "harmful", "review"), 0))
        self.rows = self.outside = 0
        self._clusters, self._thresholds = template_clusters, tuple(thresholds)
        self._scores = np.zeros(_BINS, np.int64)
        self._certain: list[_Kept] = []
        self._doubtful: list[_Kept] = []
        self._homophones: list[Mapping[str, Any]] = []
        self._judged = 0

    def count(self, name: str, column: pa.ChunkedArray) -> None:
        for pair in column.value_counts().to_pylist():
            self.counts[name][pair["values"] or "none"] += pair["counts"]

    def add_judged(self, table: pa.Table) -> None:
        import pyarrow.compute as pc

        chances = table["probability"].to_numpy()
        places = np.minimum(_BINS - 1, (chances * _BINS).astype(np.int64))
        self._scores += np.bincount(places, minlength=_BINS)
        self.count("labels", table["label"])
        self.count("languages", table["language"])
        self.outside += pc.sum(table["out_of_domain"]).as_py() or 0
        flagged = table.filter(pc.not_equal(table["label"], "harmless"))
        self.count("types", flagged["type"])
        self.count("templates", flagged["template_cluster"].drop_null())
        looks = [look for look in flagged["phash"].to_pylist() if look]
        self.counts["template_clusters"].update(
            self._clusters[look] for look in looks if look in self._clusters
        )
        near = -measure_doubt(chances, self._thresholds)
        for heap, order in ((self._certain, chances), (self._doubtful, near)):
            first = np.lexsort((np.arange(len(order)), -order))[:_SHOWN]
            for place, row in zip(first.tolist(), table.take(first).to_pylist(), strict=True):
                _keep(heap, (float(order[place]), -(self._judged + place), row))
        if len(self._homophones) < _SHOWN:
            found = table.filter(pc.greater(pc.list_value_length(table["readings"]), 0))
            self._homophones += found.slice(0, _SHOWN - len(self._homophones)).to_pylist()
        self._judged += table.num_rows

    def close(self) -> Summary:
        counts = self.counts
        return Summary(
            rows=self.rows,
            statuses=dict(counts["statuses"]),
            labels=dict(counts["labels"]),
            types=dict(counts["types"].most_common()),
            languages=dict(counts["languages"].most_common()),
            reasons=dict(counts["reasons"].most_common(20)),
            templates=dict(counts["templates"].most_common(_SHOWN)),
            scores=tuple(self._scores.tolist()),
            outside=self.outside,
            template_clusters=tuple(
                (n, k) for n, k in counts["template_clusters"].most_common(_SHOWN) if k > 1
            ),
            certain=_unload(self._certain),
            doubtful=_unload(self._doubtful),
            homophones=tuple(self._homophones),
            thresholds=self._thresholds,
        )


def _unload(heap: list[_Kept]) -> tuple[Mapping[str, Any], ...]:
    return tuple(row for _, _, row in sorted(heap, key=lambda kept: kept[:2])[::-1])


def _keep(heap: list[_Kept], new: _Kept) -> None:
    """Keep the items with the largest values in a heap; of equal values, the earlier item."""
    if len(heap) < _SHOWN:
        heapq.heappush(heap, new)
    elif new[:2] > heap[0][:2]:
        heapq.heapreplace(heap, new)


def _shorten(reason: str) -> str:
    """Remove the meme's name from a reason, so that equal reasons are counted together."""
    head, _, tail = reason.partition(": ")
    return (tail if head.startswith("image ") and tail else reason)[:120]


def write_summary(
    summary: Summary, facts: Mapping[str, Any], out: Path, language: PageLanguage = "en"
) -> None:
    """Write the summary page atomically."""
    most = max((*summary.scores, 1))
    bars = [
        (place / _BINS, count, round(100 * count / most))
        for place, count in enumerate(summary.scores)
    ]
    values: dict[str, Any] = {
        "summary": summary,
        "facts": facts,
        "bars": bars,
        "language": language,
    }
    reasons = [(_tell_status(told, language), count) for told, count in summary.reasons.items()]
    page = fill_page("screening.html", STYLES, **values, reasons=dict(reasons))
    write_text(out, page, "summary")


def _tell_status(told: str, language: PageLanguage) -> str:
    """Translate ``STATUS: REASON``."""
    if language == "en":
        return told
    status, _, reason = told.partition(": ")
    say = read_phrases(language).say
    return f"{say(status)}：{say(translate_reasons(reason, language))}"


# The drift page: two screenings side by side, with charts, tests and example memes.

_MOST_BARS = 20


@dataclass(frozen=True, slots=True)
class DriftLimits:
    """Limits for reporting a shift: it must be significant and at least ``min_shift``."""

    alpha: Annotated[
        float, Flag("Family-wise error rate over all comparisons (Holm).", min=0, max=1)
    ] = 0.01
    min_shift: Annotated[
        float, Flag("Minimum total variation distance to report.", min=0, max=1)
    ] = 0.1


@dataclass(frozen=True, slots=True)
class DriftedAspect:
    """One distribution in both folders; ``counts`` are rows of category, count now, count then.

    ``distance`` is the total variation distance. ``p`` is corrected for multiple comparisons.
    ``drivers`` are memes of the category that grew most.
    """

    name: str
    p: float | None
    distance: float
    beyond: bool
    counts: tuple[tuple[str, int, int], ...]
    grown: str = ""
    drivers: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Drift(Result):
    """Shifts between two screenings, with the limits for reporting them.

    ``note`` warns if the two screenings used different detectors. ``grown`` names the group (label,
    type, language or template cluster) that grew most; it is empty if no such group shifted beyond
    the limits.
    """

    now: Path
    then: Path
    memes: tuple[int, int]
    aspects: tuple[DriftedAspect, ...]
    alpha: float
    min_shift: float
    note: str = ""
    grown: str = ""

    @property
    def beyond(self) -> tuple[str, ...]:
        """Names of the distributions that shifted beyond the limits."""
        return tuple(aspect.name for aspect in self.aspects if aspect.beyond)

    @property
    def table(self) -> Table:
        """Show one row per distribution."""
        return Table(
            ("aspect", ">p (Holm)", ">shift", "grew most", "beyond the limits"),
            tuple(
                (
                    aspect.name,
                    "–" if aspect.p is None else f"{aspect.p:.2g}",
                    f"{aspect.distance:.1%}",
                    aspect.grown or "–",
                    "yes" if aspect.beyond else "no",
                )
                for aspect in self.aspects
            ),
        )

    def save(self, page: str | Path, language: PageLanguage = "en") -> Path:
        """Write one self-contained HTML page, and return its path."""
        pictures = {aspect.name: _draw(aspect.counts) for aspect in self.aspects}
        values: dict[str, Any] = {"found": self, "pictures": pictures, "language": language}
        return write_text(page, fill_page("drift.html", STYLES, **values))


def _draw(counts: tuple[tuple[str, int, int], ...]) -> list[tuple[str, float, float, int, int]]:
    """Compute the proportion of each category in both screenings, and relative bar widths."""
    total_now = max(1, sum(now for _, now, _ in counts))
    total_then = max(1, sum(then for _, _, then in counts))
    shares = [(name, now / total_now, then / total_then) for name, now, then in counts]
    most = max((max(pair[1:]) for pair in shares), default=1.0) or 1.0
    kept = sorted(shares, key=lambda row: -max(row[1:]))[:_MOST_BARS]
    kept.sort(key=lambda row: row[0])
    return [(n, a, b, round(100 * a / most), round(100 * b / most)) for n, a, b in kept]
