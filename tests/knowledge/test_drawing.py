"""Drawings: nothing overlaps, nothing is lost, nothing from data becomes markup."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.core.meaning import DIMENSIONS
from memantics.understanding.kb import read_sample_knowledge
from memantics.understanding.knowledge.drawing import WIDTH, draw, draw_narrow, read_style
from memantics.understanding.knowledge.layout import (
    GAP,
    PAD,
    Box,
    CardLine,
    arrange,
    assign_tracks,
    choose_cards,
    make_legend,
    measure_text,
    tame,
    wrap,
)
from memantics.understanding.knowledge.records import Individual, Knowledge, Relation, tell_apart
from tests.knowledge.samples import DUEL, UNTIDY

SVG = "{http://www.w3.org/2000/svg}"


def test_a_drawing_without_links_has_neither_links_nor_names() -> None:
    for make in (draw, draw_narrow):
        assert 'href="#i-0"' in make(DUEL)
        alone = make(DUEL, linked=False)
        assert not re.search(r"<a |href|\sid=", alone)
        assert alone.count('class="card') == make(DUEL).count('class="card')
        ElementTree.fromstring(alone)


@st.composite
def graphs(make: st.DrawFn) -> tuple[list[Box], list[CardLine]]:
    count = make(st.integers(1, 14))
    boxes = [
        Box(make(st.integers(0, 3)), make(st.integers(40, 120)), (25.0, 35.0)) for _ in range(count)
    ]
    ends = st.integers(0, count - 1)
    lines = make(st.lists(st.builds(CardLine, ends, st.integers(0, 1), ends), max_size=16))
    return boxes, lines


@settings(max_examples=120, deadline=None)
@given(graphs())
def test_cards_and_lanes_of_a_column_keep_their_distance(
    graph: tuple[list[Box], list[CardLine]],
) -> None:
    boxes, lines = graph
    plan = arrange(boxes, lines)
    for column in range(4):
        spans = [
            (top, top + box.height)
            for box, top in zip(boxes, plan.tops, strict=True)
            if box.column == column
        ]
        spans += [(y, y) for route in plan.routes for at, y in route.lanes if at == column]
        spans.sort()
        for (_, bottom), (top, _) in pairwise(spans):
            assert top >= bottom + GAP / 2 or bottom == top, spans
    assert min(plan.tops) == 0
    for line, route in zip(lines, plan.routes, strict=True):
        top = plan.tops[line.target]
        assert top <= route.end <= top + boxes[line.target].height


@given(st.lists(st.tuples(st.floats(0, 99), st.floats(0, 99)).map(lambda one: tuple(sorted(one)))))
def test_spans_of_one_track_do_not_touch(spans: list[tuple[float, float]]) -> None:
    tracks = assign_tracks(spans)
    for place, (low, high) in enumerate(spans):
        for other in range(place):
            if tracks[other] == tracks[place]:
                assert high < spans[other][0] or spans[other][1] < low


@given(st.text(max_size=200), st.integers(1, 4))
def test_lines_of_text_fit(text: str, most: int) -> None:
    lines = wrap(text, 150, 13, most)
    assert 1 <= len(lines) <= most
    assert all(measure_text(line, 13) <= 150 or len(line) <= 1 for line in lines)
    whole = "".join(tame(text).split())
    shown = "".join("".join(lines).split())
    assert shown == whole or shown.endswith("…")


def parse(knowledge: Knowledge) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(str(make(knowledge))) for make in (draw, draw_narrow)]


@pytest.mark.parametrize("own", read_sample_knowledge()[::8], ids=lambda each: each.meme)
def test_every_individual_and_link_of_a_sample_meme_is_drawn(own: Knowledge) -> None:
    links = sum(len(one.relations) for one in own.individuals)
    for root in parse(own):
        shown = [card.get("data-shows", "") for card in root.iter(f"{SVG}a")]
        numbers = sorted(int(number) for entry in shown for number in entry.split())
        assert numbers == list(range(len(own.individuals)))
        lines = [
            group for group in root.iter(f"{SVG}g") if group.get("class", "").startswith("line")
        ]
        assert len(lines) == links
        text = " ".join("".join(element.itertext()) for element in root.iter(f"{SVG}text"))
        for one in own.individuals:
            if one.dimension != "TextualMaterial":
                assert one.label.split()[0] in text


def test_data_never_becomes_markup() -> None:
    evil = "</text><script>alert(1)</script>\"'&\u202e\0"
    own = Knowledge(
        evil,
        (
            Individual("Scene", evil, evil, evil, (Relation(evil, evil),)),
            Individual("Toxicity", evil, evil, evil, (), evil),
        ),
    )
    for root in parse(own):
        assert not list(root.iter(f"{SVG}script"))
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            "svg", "a", "title", "rect", "text", "circle", "g", "path", "polygon",
        }  # fmt: skip
        assert not any("\u202e" in text or "\0" in text for text in root.itertext())


def test_references_to_nothing_are_shown_as_such() -> None:
    for root in parse(UNTIDY):
        rows = {"".join(one.itertext()): one for one in root.iter(f"{SVG}text")}
        assert rows["expressed by → the squire ?"].get("class") == "row lost"


def test_many_individuals_stay_a_picture() -> None:
    many = tell_apart(
        Individual(DIMENSIONS[number % 10], f"n{number}", f"number {number}")
        for number in range(10_000)
    )
    own = Knowledge("1", many)
    cards = choose_cards(own)
    assert 20 <= sum(len(card.numbers) for card in cards) <= 100
    assert len(str(draw(own))) < 200_000
    assert sum(entry.count for entry in make_legend(own)) == 10_000


def test_alike_background_shares_a_card_unless_pointed_at() -> None:
    caption = Individual("TextualMaterial", "caption", "caption", "Me on Monday")
    about = (Relation("about", "TextualMaterial/caption"),)
    known = tuple(
        Individual("BackgroundKnowledge", f"b{number}", f"fact {number}", relations=about)
        for number in range(12)
    )
    blame = Individual(
        "Toxicity", "t", "t", relations=(Relation("hasToxicElement", "BackgroundKnowledge/b3"),)
    )
    cards = choose_cards(Knowledge("1", (caption, *known, blame)))
    background = [card for card in cards if card.individual.dimension == "BackgroundKnowledge"]
    assert sorted(len(card.numbers) for card in background) == [1, 11]
    alone = next(card for card in background if len(card.numbers) == 1)
    assert alone.titles == ("fact 3",)
    few = choose_cards(Knowledge("1", (caption, *known[:5])))
    assert len(few) == 6


def test_text_in_the_meme_is_quoted() -> None:
    titles = {card.individual.key: card.titles[0] for card in choose_cards(DUEL)}
    assert titles["TextualMaterial/caption"] == "“Me on Monday”"
    assert titles["VisualMaterial/knight"] == "tired knight"
    long = dataclasses.replace(DUEL.individuals[0], description="word " * 40)
    assert choose_cards(Knowledge("1", (long,)))[0].titles == ("caption",)


def test_text_stays_inside_its_card() -> None:
    for card in (card for one in read_sample_knowledge() for card in choose_cards(one)):
        for line in card.lines(WIDTH):
            assert measure_text(line, 13.5) <= WIDTH - 2 * PAD


def test_every_dimension_has_a_colour() -> None:
    style = read_style()
    for name in DIMENSIONS:
        hue = re.search(rf"\.d-{name} {{ --hue: var\((--k-\w+)\)", style)
        assert hue
        assert style.count(f"{hue.group(1)}: #") == 2
