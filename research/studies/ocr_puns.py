"""Studies of puns on captions that OCR reads from images.

Pun detector and ranking are trained on the printed captions of the known groups, text roles on
their images. Test captions are the printed ones, the lines that text roles select (joined by
blanks, or read together and alone, also with the characters that OCR considered), and all lines.
The cost of such a character is chosen on the known rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from memantics.core.lines import Alternatives, ImageReading, TextLine
from memantics.metrics.weighted import Case, MetricSpec
from memantics.understanding.phonetics.caption import (
    NO_ALTERNATIVES,
    clean_text,
    join_fragments,
)
from memantics.understanding.phonetics.detector import LEARNT, apply_pun, fit_pun
from memantics.understanding.phonetics.evaluation import (
    PUN_FEATURES,
    START,
    CaptionSample,
    fit_first_right,
    fit_order,
    gather,
)
from memantics.understanding.phonetics.homophones import (
    HomophoneSearch,
    analyze_caption,
    build_reading,
    load_lattice,
)
from memantics.understanding.phonetics.lines import (
    choose_lines,
    move_alternatives,
    place_lines,
)
from memantics.understanding.phonetics.ranking import Linear
from memantics.understanding.phonetics.reading import HomophoneReadings, ModelName
from memantics.understanding.vision.roles import choose_roles, rate_lines
from research.data import read_puns
from research.protocol import Cases, Claim, Row, Study
from research.roles import Picture, clean, fit, read_chinese
from research.studies.puns import PLAIN, PUN, _embed_all, analyze

WAYS = ("printed", "roles", "lines", "alternatives", "all lines")
BY_LINE = ("lines", "alternatives")
# Costs of a character that OCR considered, relative to the shipped one; None: leave them out.
COSTS = (None, 4.0, 2.0, 1.0, 0.5)
FIVE = 5
LAST = "CN00250"  # the last group with an image


@dataclass(frozen=True, slots=True)
class Found:
    """The readings of a caption, and the search whose signals the pun detector gets."""

    texts: tuple[str, ...]
    search: HomophoneSearch


@dataclass(frozen=True, slots=True)
class Seen:
    """A caption with its image, if available."""

    sample: CaptionSample
    picture: Picture | None


@cache
def read_seen() -> list[Row[Seen]]:
    """Read all captions; about a third of the groups have images."""
    pictures = {row.id: row.content for row in read_chinese(last=LAST)}
    return [
        Row(row.id, row.group, Seen(row.content, pictures.get(row.id)), row.tags)
        for row in read_puns()
    ]


def measure(model: ModelName, known: Sequence[Row[Seen]], asked: Sequence[Row[Seen]]) -> Cases:
    """Measure readings and detection for each source of the caption."""
    samples = [row.content.sample for row in known]
    heard = [analyze(sample.caption, model) for sample in samples]
    order = fit_order(samples, heard)
    ordered = [found.reorder(order) for found in heard]
    fitted = fit_pun(gather(samples, ordered, _embed_all), PUN_FEATURES, LEARNT)
    right = fit_first_right(samples, ordered)
    roles = fit(
        [
            Row(row.id, row.group, row.content.picture, row.tags)
            for row in known
            if row.content.picture
        ]
    )
    rows = [row for row in asked if row.content.picture]
    cases: dict[str, list[Case]] = {}
    scorers = Scorers(model, order, right)
    cost = choose_cost([row for row in known if row.content.picture], scorers, roles)
    for way in WAYS:
        readings = [_take(row.content, way, roles) for row in rows]
        taken = [
            replace(row.content.sample, caption=said.caption)
            for row, said in zip(rows, readings, strict=True)
        ]
        if way in BY_LINE:
            used = cost if way == "alternatives" else None
            found = [_read_lines(said, scorers, used) for said in readings]
        else:
            found = [_read_whole(said.caption.replace("\n", " "), scorers) for said in readings]
        searches = [one.search for one in found]
        chances, said = apply_pun(gather(taken, searches, _embed_all), PUN_FEATURES, fitted)
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
        for name, count in (("first reading", 1), ("first five", FIVE)):
            cases[f"{way}, {name}"] = [
                Case(row.id, row.group, "", "" if hit else None, None, row.tags)
                for row, one in zip(rows, found, strict=True)
                if row.content.sample.homophone
                for hit in [
                    clean(row.content.sample.intended or "") in map(clean, one.texts[:count])
                ]
            ]
    return cases


@dataclass(frozen=True, slots=True)
class Scorers:
    """The language model, and the fitted weights of the ranking and of the first reading."""

    model: ModelName
    order: Linear
    right: Linear


def choose_cost(
    rows: Sequence[Row[Seen]], scorers: Scorers, roles: dict[str, object]
) -> float | None:
    """Choose the cost of characters that OCR considered: most readings found in the known rows."""
    unsure = [
        (row.content.sample, said)
        for row in rows
        if row.content.sample.homophone
        for said in [_take(row.content, "alternatives", roles)]
        if said.caption_alternatives
    ]
    counts = {}
    for cost in COSTS:
        ranks = [
            [_is_right(one, text) for text in _read_lines(said, scorers, cost).texts]
            for one, said in unsure
        ]
        counts[cost] = sum(any(hits[:1]) + any(hits) for hits in ranks)
    best = max(COSTS, key=lambda cost: counts[cost])
    print(f"{len(unsure)} captions with alternatives, hits by cost {counts}: {best}", flush=True)
    return best


def _is_right(sample: CaptionSample, text: str) -> bool:
    return clean(sample.intended or "") == clean(text)


def _read_whole(
    caption: str, scorers: Scorers, alternatives: Alternatives = NO_ALTERNATIVES
) -> Found:
    lattice = load_lattice(scorers.model, None)
    found = analyze_caption(caption, lattice, order=START, alternatives=alternatives)
    search = found.reorder(scorers.order)
    return Found(tuple(one.path.text for one in search.candidates[:FIVE]), search)


def _read_lines(said: ImageReading, scorers: Scorers, cost: float | None) -> Found:
    """Read the lines together and alone, as ``read_homophones`` does, with fitted weights."""
    caption = said.caption
    unsure: Alternatives = {}
    if cost is not None:
        unsure = {
            place: {other: score**cost for other, score in others.items()}
            for place, others in said.caption_alternatives.items()
        }
    whole = join_fragments(clean_text(caption))
    parts = [(whole, 0), *place_lines(caption)]
    searches = {
        text: _read_whole(text, scorers, move_alternatives(caption, text, unsure, start)).search
        for text, start in reversed(parts)
    }
    texts = list(dict.fromkeys(text for text, _ in parts))
    records = [
        HomophoneReadings(
            caption=text,
            language="zh",
            model=scorers.model,
            pronunciation="",
            readings=tuple(build_reading(one) for one in search.candidates[:FIVE]),
            confidence=0.0,
            threshold=0.5,
            signals=search.signals,
            reading_probability=(
                scorers.right.probability(search.signals) if search.candidates else 0.0
            ),
        )
        for text in texts
        for search in [searches[text]]
    ]
    chosen = choose_lines(records[0], records[1:], FIVE)
    best = next(one for one in searches.values() if one.signals is chosen.signals)
    return Found(tuple(reading.text for reading in chosen.readings), best)


def _take(seen: Seen, way: str, roles: dict[str, object]) -> ImageReading:
    picture = seen.picture
    if way == "printed" or picture is None:
        return ImageReading((TextLine(seen.sample.caption, (0, 0, 0, 0)),))
    if way == "all lines":
        return ImageReading(picture.lines)
    chances = rate_lines(picture.table, roles)
    chosen = choose_roles(picture.lines, chances, picture.height, float(str(roles["threshold"])))
    return ImageReading(tuple(chosen))


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
        exposure="All captions were in view, and the images of the development set.",
    )


STUDIES = (_study("trigram"), _study("frequencies"))
