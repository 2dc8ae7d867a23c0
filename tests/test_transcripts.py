"""All 217 replies of a strong model, replayed: which of them would be asked again today.

When they were recorded, 13 were: eight of the construction, five of the judge. Each of the replies
that followed is in the recording too, with the complaint in its prompt; that is how they count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pytest

from memantics.construction.questions.solver import read_letter
from memantics.core.images import load, read_bytes
from memantics.core.lines import TextLine
from memantics.core.memes import Meme
from memantics.core.samples import image_path
from memantics.core.task import Unparsed
from memantics.models.embedded.ocr import open_reader
from memantics.understanding.analysis.asking import ask_feeling, ask_harm
from memantics.understanding.intents.draft import read_background, read_intents
from memantics.understanding.reappraisal.records import MemeFeeling
from memantics.understanding.reappraisal.stages import read_feeling, read_plan
from memantics.understanding.vision.page import MemeStructure, read_page
from tests.construction.test_strong_model import list_complaints, replies
from tests.tasks.test_replay import ROWS, read
from tests.vision.pictures import BLACK, Print, photo, print_on

ASKED_AGAIN_WHEN_RECORDED = 13
WATERMARKED = "evaluation-144"
VALIDATORS_WORDS = ("extra inputs", "permitted", "pydantic", "validation", "input should", "type=")


@cache
def page_of(name: str) -> MemeStructure:
    """The structure of a sample meme; two memes that cannot be shipped are drawn."""
    if not name.isascii():
        image = photo(900, 600)
        return read_page(image, print_on(image, Print(name, 450, 500, 110, BLACK)))
    path = image_path(name)
    with open_reader() as ocr:
        lines = ocr.read(read_bytes(path), path.name).lines
    return read_page(load(path), [TextLine(line.text, line.box, line.score) for line in lines])


def read_other(row: dict[str, Any]) -> object:
    reply, meme = row["reply"], Meme("m", image_path("en-001"))
    match row["step"]:
        case "harm":
            return ask_harm(meme, "en", "m").read(reply)
        case "feeling":
            return ask_feeling(meme, "en", "m").read(reply)
        case "background":
            return read_background(reply)
        case "intents":
            return read_intents(reply, "en")
        case "reappraise feeling":
            return read_feeling(reply)
        case _:
            if row["id"] == WATERMARKED:  # its second region was a watermark, which is none today
                reply = reply.replace(', "2": "@idiein和m麻杭e"', "")
            feeling = MemeFeeling(
                emotion=row["emotion"],
                description="…",
                visual_type="Cartoon_Anime",
                polarity="Negative",
            )
            return read_plan(reply, page_of(row["meme"]), feeling)


def list_readers() -> Iterator[tuple[str, Callable[[], object]]]:
    """Every reply that is not of ``list_complaints``, with how it is read."""
    for row in ROWS:
        yield row["id"], partial(read, row)
    for name, said in replies()["letters"].items():
        yield name, partial(read_letter, said)
    for row in replies()["others"]:
        yield row["id"], partial(read_other, row)


@cache
def complaints() -> dict[str, str]:
    found = list_complaints()
    for name, reader in list_readers():
        try:
            reader()
        except Unparsed as error:
            found[name] = str(error)
    return found


def test_all_217_replies_are_replayed() -> None:
    drafted = [row["id"] for row in (*replies()["questions"], *replies()["individuals"])]
    every = [*drafted, *(name for name, _ in list_readers())]
    assert len(every) == len(set(every)) == 217


@pytest.mark.slow
def test_re_asks_are_at_most_a_tenth_of_those_recorded() -> None:
    assert 10 * len(complaints()) <= ASKED_AGAIN_WHEN_RECORDED, complaints()


@pytest.mark.slow
def test_the_one_that_is_refused_offers_single_words_beside_a_long_answer() -> None:
    """“Amused by its wise-sounding delivery” beside “Ashamed”: whoever looks knows the key."""
    assert list(complaints()) == ["construction-183"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["construction-183"])
def test_a_refusal_says_in_plain_words_what_to_change(name: str) -> None:
    said = complaints()[name]
    assert said.startswith(
        "'Ashamed' has 7 characters and the correct option 36: make them about equally long; "
    )
    assert not [word for word in VALIDATORS_WORDS if word in said.casefold()]
