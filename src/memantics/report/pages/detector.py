"""Pages about detectors: an evaluation with its error browser, and one explained decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from memantics.core.journal import replace_file
from memantics.detector.evaluation import Evaluation, name_figure
from memantics.detector.examples import Example, Loaded
from memantics.detector.explanation import Explanation, FieldShare
from memantics.detector.fast import Prediction
from memantics.detector.novelty import OUTSIDE_NOTE
from memantics.detector.operating_points import ThresholdFigures
from memantics.detector.robustness import Robustness
from memantics.report.page import fill_page
from memantics.report.thumbnails import Thumbnail, make_thumbnails

_MOST_ERRORS = 400
_MOST_IMAGES = 24 * 1024 * 1024
_SIDE = 320.0


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
    width = abs(share) * 60
    left = 60 if share > 0 else 60 - width
    tone = "harm" if share > 0 else "good"
    return Markup(
        '<svg class="bar" viewBox="0 0 120 10" aria-hidden="true">'
        '<line x1="60" y1="0" x2="60" y2="10"/>'
        '<rect class="{}" x="{:.1f}" y="2" width="{:.1f}" height="6"/></svg>'
    ).format(tone, left, width)


def draw_curve(points: Sequence[tuple[float, float, int]]) -> Markup:
    """The calibration curve: on the diagonal, a chance of 0.7 means 7 of 10 memes are harmful."""

    def at(x: float, y: float) -> tuple[float, float]:
        return 44 + x * (_SIDE - 60), 12 + (1 - y) * (_SIDE - 60)

    grid = Markup("").join(
        Markup(
            '<line class="grid" x1="{0:.1f}" y1="{1:.1f}" x2="{2:.1f}" y2="{1:.1f}"/>'
            '<text x="36" y="{3:.1f}" text-anchor="end">{4:.1f}</text>'
            '<text x="{5:.1f}" y="{6:.1f}" text-anchor="middle">{4:.1f}</text>'
        ).format(
            at(0, v)[0], at(0, v)[1], at(1, v)[0], at(0, v)[1] + 4, v, at(v, 0)[0], at(0, 0)[1] + 16
        )
        for v in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    )
    diagonal = Markup('<line class="ideal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')
    places = [at(chance, share) for chance, share, _ in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = Markup("").join(
        Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>').format(
            x, y, f"chance {c:.2f}: {100 * s:.0f} % of {n} memes are harmful"
        )
        for (x, y), (c, s, n) in zip(places, points, strict=True)
    )
    return Markup(
        '<svg class="curve" viewBox="0 0 {0:.0f} {1:.0f}" role="img"'
        ' aria-label="Calibration curve">{2}{3}<polyline points="{4}"/>{5}'
        '<text x="{6:.0f}" y="{7:.0f}" text-anchor="middle">chance that the detector gives</text>'
        "</svg>"
    ).format(
        _SIDE, _SIDE, grid, diagonal.format(*at(0, 0), *at(1, 1)), path, dots, _SIDE / 2 + 14,
        _SIDE - 10,
    )  # fmt: skip


def draw_thresholds(rows: Sequence[ThresholdFigures]) -> str:
    """Precision and recall of harmful memes along thresholds, with 95 % bands, as a whole SVG."""
    if not rows:
        return ""
    side = _SIDE - 60

    def at(x: float, y: float) -> str:
        return f"{44 + x * side:.1f},{12 + (1 - y) * side:.1f}"

    lines = []
    for value in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        (left, y), (x, base) = at(0, value).split(","), at(value, 0).split(",")
        grid = f'<path d="M{left},{y}H{44 + side}" stroke="#8886" fill="none"/>'
        words = f'<text x="38" y="{y}" text-anchor="end" dy="4">{value:.1f}</text>'
        below = f'<text x="{x}" y="{base}" text-anchor="middle" dy="16">{value:.1f}</text>'
        lines += [grid, words, below]
    for name, colour, dash in (("precision", "#0868ac", ""), ("recall", "#b35806", "6 3")):
        known = [
            (row.threshold, rate.value, rate.low, rate.high)
            for row in rows
            for rate in (row.precision if name == "precision" else row.recall,)
            if rate.value is not None and rate.low is not None and rate.high is not None
        ]
        if not known:
            continue
        band = [at(x, low) for x, _, low, _ in known]
        band += [at(x, high) for x, _, _, high in reversed(known)]
        path = " ".join(at(x, value) for x, value, _, _ in known)
        ink, place = f'stroke="{colour}" stroke-dasharray="{dash}"', 38 if dash else 24
        words = f'text-anchor="end" fill="{colour}">{name}{" (dashed)" if dash else ""}'
        lines += [
            f'<polygon points="{" ".join(band)}" fill="{colour}" fill-opacity=".15"/>',
            f'<polyline points="{path}" fill="none" stroke-width="2" {ink}/>',
            f'<text x="{40 + side}" y="{place}" {words}</text>',
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIDE:.0f} {_SIDE:.0f}" role="img"'
        ' font-family="sans-serif" font-size="11" fill="#666" class="tradeoff">'
        "<title>Precision and recall of harmful memes along thresholds, with 95 % bands</title>"
        f'{"".join(lines)}<text x="{_SIDE / 2 + 14:.0f}" y="{_SIDE - 10:.0f}"'
        ' text-anchor="middle">threshold</text></svg>'
    )


def _write(out: Path, name: str, values: dict[str, object]) -> None:
    body = fill_page(name, ("page.css", "detector.css"), "", **values)
    replace_file(out, body.encode("utf-8", "replace"), "page", "--page")
