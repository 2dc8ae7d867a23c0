"""Studies of puns on captions that OCR reads from images.

Pun detector and ranking are trained on the printed captions of the known groups, text roles on
their images. Test captions are the printed ones, the lines that text roles select, and all lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from memantics.metrics.weighted import Case, MetricSpec
from memantics.understanding.phonetics.detector import LEARNT, apply_pun, fit_pun
from memantics.understanding.phonetics.evaluation import (
    PUN_FEATURES,
    START,
    CaptionSample,
    fit_order,
    gather,
)
from memantics.understanding.phonetics.homophones import analyze_caption, load_lattice
from memantics.understanding.phonetics.reading import ModelName
from memantics.understanding.vision.roles import choose_roles, rate_lines
from research.data import read_puns
from research.protocol import Cases, Claim, Row, Study
from research.roles import Picture, clean, fit, read_chinese
from research.studies.puns import PLAIN, PUN, _embed_all, analyze

WAYS = ("printed", "roles", "all lines")


@dataclass(frozen=True, slots=True)
class Seen:
    """A caption with its image, if available."""

    sample: CaptionSample
    picture: Picture | None


@cache
def read_seen() -> list[Row[Seen]]:
    """Read all captions; about a third of the groups have images."""
    pictures = {row.id: row.content for row in read_chinese()}
    return [
        Row(row.id, row.group, Seen(row.content, pictures.get(row.id)), row.tags)
        for row in read_puns()
    ]


def measure(model: ModelName, known: Sequence[Row[Seen]], asked: Sequence[Row[Seen]]) -> Cases:
    """Measure readings and detection for each source of the caption."""
    samples = [row.content.sample for row in known]
    heard = [analyze(sample.caption, model) for sample in samples]
    order = fit_order(samples, heard)
    fitted = fit_pun(
        gather(samples, [found.reorder(order) for found in heard], _embed_all), PUN_FEATURES, LEARNT
    )
    roles = fit(
        [
            Row(row.id, row.group, row.content.picture, row.tags)
            for row in known
            if row.content.picture
        ]
    )
    rows = [row for row in asked if row.content.picture]
    cases: dict[str, list[Case]] = {}
    for way in WAYS:
        taken = [
            replace(row.content.sample, caption=_take(row.content, way, roles)) for row in rows
        ]
        found = [
            analyze_caption(sample.caption, load_lattice(model, None), order=START).reorder(order)
            for sample in taken
        ]
        chances, said = apply_pun(gather(taken, found, _embed_all), PUN_FEATURES, fitted)
        cases[f"{way}, detection"] = [
            Case(
                row.id,
                row.group,
                PLAIN if row.content.sample.intended is None else PUN,
                PUN if verdict else PLAIN,
                chance,
                row.tags,
            )
            for row, chance, verdict in zip(rows, chances.tolist(), said.tolist(), strict=True)
        ]
        for name, count in (("first reading", 1), ("first five", 5)):
            cases[f"{way}, {name}"] = [
                Case(row.id, row.group, "", "" if hit else None, None, row.tags)
                for row, analysis in zip(rows, found, strict=True)
                if row.content.sample.homophone
                for hit in [
                    clean(row.content.sample.intended or "")
                    in [clean(one.path.text) for one in analysis.candidates[:count]]
                ]
            ]
    return cases


def _take(seen: Seen, way: str, roles: dict[str, object]) -> str:
    picture = seen.picture
    if way == "printed" or picture is None:
        return seen.sample.caption
    lines = picture.lines
    if way == "roles":
        chances = rate_lines(picture.table, roles)
        chosen = choose_roles(lines, chances, picture.height, float(str(roles["threshold"])))
        lines = tuple(line for line in chosen if line.role == "caption")
    return " ".join(line.text for line in lines)


def _study(model: ModelName) -> Study[Seen]:
    return Study(
        f"puns from OCR/{model}",
        "punmemecn",
        read_seen,
        partial(measure, model),
        tuple(
            claim
            for way in WAYS
            for claim in (
                Claim(f"{way}, first reading", MetricSpec("accuracy")),
                Claim(f"{way}, first five", MetricSpec("accuracy")),
                Claim(f"{way}, detection", MetricSpec("f1", PUN)),
                Claim(f"{way}, detection", MetricSpec("false_positive_rate", PUN)),
                Claim(f"{way}, detection", MetricSpec("calibration_error", PUN)),
            )
        ),
        exposure="All captions were in view, and the images of 300 memes in an earlier study.",
    )


STUDIES = (_study("trigram"), _study("frequencies"))
