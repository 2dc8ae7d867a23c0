"""Pages about detectors: an evaluation with its error browser, and one explained decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from memantics.core.journal import write_text
from memantics.detector.evaluation import Evaluation, name_figure
from memantics.detector.examples import Example, Loaded
from memantics.detector.explanation import Explanation, FieldShare
from memantics.detector.fast import Prediction
from memantics.detector.novelty import OUTSIDE_NOTE
from memantics.detector.operating_points import ThresholdFigures
from memantics.detector.robustness import Robustness
from memantics.report.kit import fill_page
from memantics.report.plot import draw
from memantics.report.thumbnails import Thumbnail, make_thumbnails

_MOST_ERRORS = 400
_MOST_IMAGES = 24 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Mistake:
    """A meme that was judged wrongly; ``sure`` is how far the chance is from its label."""

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
    found: Evaluation,
    report: Robustness | None,
) -> None:
    """Write figures, calibration curve and error browser as one page."""
    mistakes = find_mistakes(loaded.examples, said)
    shown = mistakes[:_MOST_ERRORS]
    _write(
        out,
        "detector.html",
        {
            "title": title,
            "loaded": loaded,
            "found": found,
            "report": report,
            "targets": found.target_table,
            "curve": draw_curve(found.curve),
            "tradeoff": Markup(draw_thresholds(found.thresholds)),  # noqa: S704 - numbers alone
            "thresholds": found.threshold_table,
            "name_figure": name_figure,
            "mistakes": _add_images(shown),
            "total": len(mistakes),
        },
    )


def write_explanation(out: Path, example: Example, found: Explanation, *, sample: bool) -> None:
    """Write one decision with its reasons as a page."""
    fields = [
        {"name": share.field.replace("_", " "), "total": share.total, "letters": letters}
        for share, letters in colour_letters(found)
    ]
    strongest = found.strongest(20)
    widest = max((abs(part.contribution) for part in strongest), default=0.0) or 1.0
    bars = [(part, draw_bar(part.contribution / widest)) for part in strongest]
    shown = {"example": example, "found": found, "fields": fields, "bars": bars, "sample": sample}
    _write(out, "explanation.html", {**shown, "outside": OUTSIDE_NOTE})


def colour_letters(found: Explanation) -> list[tuple[FieldShare, list[tuple[str, str, str]]]]:
    """The characters of each field with a class of the style sheet and their contribution."""
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


def find_mistakes(examples: Sequence[Example], said: Sequence[Prediction]) -> list[Mistake]:
    """Wrong decisions, the surest first."""
    wrong = [
        Mistake(
            example=example,
            prediction=prediction,
            kind="missed" if example.label else "false alarm",
            sure=abs(prediction.probability - int(example.label or 0)),
        )
        for example, prediction in zip(examples, said, strict=True)
        if prediction.label != example.label
    ]
    return sorted(wrong, key=lambda mistake: -mistake.sure)


def _add_images(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """With small copies of the images, as long as they fit into the page."""
    paths = [mistake.example.image for mistake in mistakes if mistake.example.image is not None]
    small = dict(zip(paths, make_thumbnails(paths, _MOST_IMAGES), strict=True))
    return [
        replace(mistake, image=small[mistake.example.image])
        if mistake.example.image is not None
        else mistake
        for mistake in mistakes
    ]


def _level(share: float) -> str:
    """A class of the style sheet: h1-h4 for harm, g1-g4 against it, n for hardly any."""
    size = min(4, int(abs(share) * 5))
    return "n" if size == 0 else f"{'h' if share > 0 else 'g'}{size}"


def draw_bar(share: float) -> Markup:
    """A bar to the right for harm, to the left against it.

    >>> "rect" in draw_bar(0.5)
    True
    """
    return draw("bar", share)


def _across(value: float) -> float:
    return 44 + value * 260.0


def _up(value: float) -> float:
    return 12 + (1 - value) * 260.0


def draw_curve(points: Sequence[tuple[float, float, int]]) -> Markup:
    """The calibration curve: on the diagonal, a chance of 0.7 means 7 of 10 memes are harmful."""
    return draw("calibration", points, _across, _up)


def draw_thresholds(rows: Sequence[ThresholdFigures]) -> str:
    """Precision and recall of harmful memes along thresholds, with 95 % bands, as a whole SVG."""
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
    return str(draw("thresholds", drawn, _across, _up)) if rows else ""


def _join(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_across(x):.1f},{_up(y):.1f}" for x, y in points)


def _write(out: Path, name: str, values: dict[str, object]) -> None:
    write_text(out, fill_page(name, ("page.css", "detector.css"), "", **values), flag="--page")
