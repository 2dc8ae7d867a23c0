"""All facts about a meme as one self-contained HTML page: graph, image and statements."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from memantics.core.data import inside
from memantics.core.errors import DataError
from memantics.core.files import write_text
from memantics.understanding.knowledge.drawing import draw, draw_narrow, read_style
from memantics.understanding.knowledge.layout import choose_cards, make_legend, read_fields, tame
from memantics.understanding.knowledge.ontology.vocabulary import RELATIONS, name_dimension
from memantics.understanding.knowledge.records import Individual, Knowledge, Provenance
from memantics.web.page import TemplateValues, Thumbnail, fill_page, make_thumbnail
from memantics.web.phrases import PageLanguage, read_phrases

# Names of columns, dimensions and relations, and the name of the drawing.
_HEADINGS = re.compile(r'(<text class="(?:column|kicker|row)"[^>]*>|aria-label=")([^<"]+)')
_SIDE = 640
_LISTED = 2_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A fact in the list below the graph; its links contain the numbers of other entries."""

    number: int
    individual: Individual
    dimension: str
    links: tuple[TemplateValues, ...]
    origin: str


def find_image(known: Knowledge, folder: Path | None) -> Path | None:
    """Find the image of a meme in the given folder, or in the sample data."""
    if folder is not None:
        if not folder.is_dir():
            raise DataError(
                folder, "is not a folder", hint="use --images with the folder of the images"
            )
        return inside(folder, known.image) if known.image else None
    if known.collection == "sample":
        from memantics.core.samples import IMAGES

        return inside(IMAGES, known.image) if known.image else None
    return None


def write_page(
    known: Knowledge, out: Path, image: Path | None, language: PageLanguage = "en"
) -> None:
    """Write the HTML page about a meme's facts atomically."""
    write_text(out, render_page(known, image, language))


def render_page(known: Knowledge, image: Path | None, language: PageLanguage = "en") -> str:
    """Render the page about a meme's facts as HTML text."""
    picture = make_thumbnail(image, _SIDE) if image else Thumbnail("", reason="no image available")
    return fill_page(
        "knowledge.html",
        (read_style(), "knowledge.css"),
        "knowledge.js",
        language=language,
        known=known,
        title=tame(known.meme),
        **draw_graphs(known, language),
        legend=make_legend(known),
        entries=make_entries(known),
        skipped=len(known.individuals) - sum(len(card.numbers) for card in choose_cards(known)),
        unlisted=max(0, len(known.individuals) - _LISTED),
        lost=tuple(known.dangling())[:_LISTED],
        picture=picture,
        blurred=bool(known.warning or known.of("Toxicity")),
        intents=[tell_intent(individual) for individual in known.of("OverallIntent")][:3],
    )


def draw_graphs(known: Knowledge | None, language: PageLanguage) -> dict[str, Markup]:
    """Draw the graph for wide screens and for phones; empty without individuals."""
    if known is None or not known.individuals:
        return {"wide": Markup(), "narrow": Markup()}
    drawn = {"wide": draw(known), "narrow": draw_narrow(known)}
    return {name: translate_drawing(drawing, language) for name, drawing in drawn.items()}


def translate_drawing(drawing: Markup, language: PageLanguage) -> Markup:
    """Translate the headings of a drawn graph; the labels of individuals are data."""
    say = read_phrases(language).say

    def translate(found: re.Match[str]) -> str:
        parts = html.unescape(found[2]).split(" · ")
        return found[1] + html.escape(" · ".join(map(say, parts)))

    return Markup(_HEADINGS.sub(translate, drawing))  # noqa: S704 - escaped above


def make_entries(known: Knowledge) -> list[Entry]:
    """List all statements about a meme for the page."""
    numbers = {individual.key: number for number, individual in enumerate(known.individuals)}
    return [_make_entry(known, number, numbers) for number in range(min(len(numbers), _LISTED))]


def _make_entry(known: Knowledge, number: int, numbers: Mapping[str, int]) -> Entry:
    individual = known.individuals[number]
    links = []
    for link in individual.relations:
        term, target = RELATIONS.get(link.relation), known.by_key.get(link.target)
        links.append(
            {
                "verb": term.label if term else tame(link.relation.replace("_", " ")),
                "target": tame(target.label or target.name) if target else tame(link.target),
                "number": numbers.get(link.target),
                "written": tame(link.written),
                "free": term is None,
            }
        )
    label = name_dimension(individual.dimension)
    return Entry(number, individual, label, tuple(links), _tell_origin(individual.provenance))


def tell_intent(individual: Individual) -> str:
    """Return an intent as one line."""
    told = read_fields(individual.description).get("overall-intent-description")
    return tame(told or individual.description or individual.label)


def _tell_origin(provenance: Provenance | None) -> str:
    """Return the provenance of a fact (model, source, people) as one line."""
    if provenance is None:
        return ""
    parts = [
        provenance.model,
        f"prompt {provenance.prompt[:12]}" if provenance.prompt else "",
        provenance.when[:16].replace("T", " "),
        provenance.source,
        f"confirmed by {', '.join(provenance.confirmed_by)}" if provenance.confirmed_by else "",
    ]
    return " · ".join(tame(part) for part in parts if part)
