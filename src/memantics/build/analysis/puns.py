"""One structured question about puns: which word has two readings, and which of them is seen?"""

from __future__ import annotations

from functools import partial
from typing import get_args

from memantics.build.analysis.asking import find_prompts
from memantics.build.analysis.records import PunSeen, Seen
from memantics.build.drafts import choice, make_request, name_language, record, show_material, text
from memantics.core.closed import Closed
from memantics.core.memes import HEARD, Meme
from memantics.core.reply import read_object
from memantics.core.step import Step
from memantics.core.task import Unparsed
from memantics.core.text import clean_line


class _Reply(Closed):
    picture: str
    word: str
    written: str
    other: str
    seen: Seen
    pun: bool
    reason: str


def ask_pun(meme: Meme, language: str, model: str, heard: str) -> Step[PunSeen]:
    """Is it a pun? ``heard`` is what the caption sounds like, empty for nothing else."""
    body = find_prompts()["pun"].fill(
        material=show_material({"caption": meme.text, HEARD: heard}),
        language=name_language(language),
    )
    schema = record(
        picture=text(),
        word=text(),
        written=text(),
        other=text(),
        seen=choice(*get_args(Seen)),
        pun={"type": "boolean"},
        reason=text(),
    )
    request = make_request(body, schema, meme=meme, language=language)
    return Step(f"{meme.id}/pun", request, partial(_read, model))


def _read(model: str, reply: str) -> PunSeen:
    said = read_object(reply, _Reply)
    if said.pun and not (said.word.strip() and said.other.strip()):
        raise Unparsed("a pun needs a word and its other reading: name both, or say pun is false")
    if said.pun and said.seen == "neither":
        raise Unparsed("a pun shows one of its readings: say which is seen, or say pun is false")
    return PunSeen(
        said.pun,
        clean_line(said.picture, 1000),
        clean_line(said.word, 200),
        clean_line(said.written, 200),
        clean_line(said.other, 200),
        said.seen,
        clean_line(said.reason, 1000),
        model,
    )
