"""Make a gallery of edited memes: each source beside all edits, with their scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memantics.core import rundir
from memantics.core.records import Item, Score, Status, format_value, show_span
from memantics.web.page import TemplateValues, Thumbnail, fill_page, make_thumbnails
from memantics.web.phrases import PageLanguage

# The judge's ratings in the order of its form, with their labels.
RATINGS = {
    "vgq": "image quality",
    "vea": "image emotion",
    "tgq": "text quality",
    "tea": "text emotion",
    "hgq": "overall quality",
    "pes": "emotional shift",
}
_MAX_BYTES = 48 * 1024 * 1024
JudgementValues = Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True, slots=True)
class Output:
    """One editor's version of one meme. ``ratings`` are the ratings by the judge model, by name."""

    editor: str
    picture: Thumbnail
    status: Status
    reason: str
    rfs: float | None
    label: str
    kept_layout: bool | None
    ratings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A meme with all its edits; ``best`` is the sort key of the gallery."""

    meme: str
    source: str
    target: str
    picture: Thumbnail
    caption: str
    outputs: tuple[Output, ...]

    @property
    def best(self) -> float:
        """The highest score among the edits of the meme."""
        return max((output.rfs or 0.0 for output in self.outputs), default=0.0)


class Gallery(NamedTuple):
    """A run with judged edits, ready to render; ``editors`` are the metrics of each editor."""

    facts: rundir.RunFacts
    scores: rundir.Scores
    editors: tuple[TemplateValues, ...]
    exhibits: tuple[Exhibit, ...]
    views: tuple[tuple[str, tuple[Score, ...]], ...]


def make_gallery(folder: Path, metrics: JudgementValues, places: Sequence[Path]) -> Gallery:
    """Read a run with judged edits; ``metrics`` are each item's metrics, such as ``rfs``.

    Only images in the folders ``places`` are shown, since a run folder may come from an untrusted
    source.
    """
    facts, scores = rundir.read_facts(folder), rundir.read_scores(folder)
    items = [line.item for line in rundir.read_items(folder)]
    pictures = _shrink(items, places)
    answers = rundir.last_answers(folder)
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    exhibits = []
    for meme, members in groups.items():
        outputs = []
        for item in members:
            answer = answers.get(item.id)
            value = answer.value if answer is not None else None
            said = value if isinstance(value, dict) else {}
            kept = said.get("lc")
            outputs.append(
                Output(
                    item.tags.get("editor", item.id),
                    pictures[item.images[1].path],
                    answer.status if answer is not None else "failed",
                    answer.reason if answer is not None else "not asked",
                    metrics.get(item.id, {}).get("rfs"),
                    str(said.get("label") or ""),
                    kept if isinstance(kept, bool) else None,
                    tuple((title, f"{said[key]}") for key, title in RATINGS.items() if key in said),
                )
            )
        first = members[0]
        exhibits.append(
            Exhibit(
                meme,
                first.tags.get("source", ""),
                first.tags.get("target", ""),
                pictures[first.images[0].path],
                first.form.context.get("rewritten", ""),
                tuple(sorted(outputs, key=lambda output: output.editor)),
            )
        )
    exhibits.sort(key=lambda exhibit: (-exhibit.best, exhibit.meme))
    lines, views = tuple(_list_editors(scores)), tuple(_list_views(scores))
    return Gallery(facts, scores, lines, tuple(exhibits), views)


def _shrink(items: Sequence[Item], places: Sequence[Path]) -> dict[Path, Thumbnail]:
    paths = list(dict.fromkeys(image.path for item in items for image in item.images))
    return dict(zip(paths, make_thumbnails(paths, _MAX_BYTES, places), strict=True))


def _list_editors(scores: rundir.Scores) -> Iterator[TemplateValues]:
    """List each editor's RFS (overall score) with interval and three components, best first."""
    found: dict[str, dict[str, Score]] = {}
    for score in scores.scores:
        if score.by == "editor":
            found.setdefault(score.label, {})[score.key] = score
    ordered = sorted(found.items(), key=lambda entry: -(_value(entry[1].get("rfs")) or 0.0))
    for editor, by_metric in ordered:
        rfs = by_metric.get("rfs")
        if rfs is None:
            continue
        parts = tuple(format_value(_value(by_metric.get(key))) for key in ("tas", "cfs", "sss"))
        shown = {"rfs": format_value(rfs.value), "span": show_span(rfs), "parts": parts}
        yield {"editor": editor, "n": rfs.n, **shown}


def _list_views(scores: rundir.Scores) -> Iterator[tuple[str, tuple[Score, ...]]]:
    """List RFS (overall score) by category of meme."""
    titles = {
        "target": "by target emotion",
        "visual_type": "by kind of image",
        "layout": "by layout",
        "polarity": "by polarity",
    }
    for by, title in titles.items():
        view_scores = tuple(
            score for score in scores.scores if score.by == by and score.key == "rfs"
        )
        if view_scores:
            yield title, view_scores


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value


def render_gallery(gallery: Gallery, language: PageLanguage = "en") -> str:
    """Render the gallery as an HTML page."""
    return fill_page(
        "gallery.html",
        ("page.css", "gallery.css"),
        "gallery.js",
        language=language,
        gallery=gallery,
        facts=gallery.facts,
        counts=gallery.scores.counts,
        decimal=format_value,
        span=show_span,
        blurred=bool(gallery.facts.warning),
    )
