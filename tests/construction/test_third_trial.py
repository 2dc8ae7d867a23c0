"""The replies of the third trial, replayed: no gate refuses one that a reader calls good.

They quote memes that may not be committed, so they lie beside the shared data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter

from memantics.construction.questions.assembly import read_sound
from memantics.construction.questions.records import Slot
from memantics.construction.questions.solver import SaidLetters, read_letter
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.understanding.extraction.reading import read_individuals
from memantics.understanding.knowledge.records import Individual, Knowledge
from tests.construction.questions.scripts import one_step
from tests.places import SHARED_DATA

TRIAL = SHARED_DATA.resolve().parents[1] / "trial"
ROUNDS = {"out": 4, "out2": 2}
needs_trial = pytest.mark.skipif(
    not (TRIAL / "out2").is_dir(), reason="the replies of the third trial are not on this machine"
)


def lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def list_refused(folder: Path) -> Iterator[tuple[str, str]]:
    """Replies of one set that would be asked again today, by the step, and why."""
    known = {
        row["meme"]: Knowledge(
            row["meme"],
            TypeAdapter(tuple[Individual, ...]).validate_python(row["individuals"]),
        )
        for row in lines(folder / "knowledge.jsonl")
    }
    settings = one_step(language="zh" if folder.name.startswith("zh") else "en")
    for row in lines(folder / "calls.jsonl"):
        meme, *rest = row["step"].split("/")
        try:
            if rest[0] == "knowledge":
                read_individuals(row["reply"]["text"], rest[1], known[meme].individuals)
            else:
                said = orjson.loads(row["reply"]["text"])
                slot = Slot("/".join((meme, *rest[:2])), meme, rest[0], said["about"], "wrong")
                read_sound(row["reply"]["text"], slot, known[meme], settings)
        except Unparsed as error:
            yield row["step"], str(error)
    for row in lines(folder / "critic" / "calls.jsonl"):
        try:
            for letter in read_object(row["reply"]["text"], SaidLetters).answers:
                read_letter(letter)
        except Unparsed:
            try:
                read_letter(row["reply"]["text"])
            except Unparsed as error:
                yield row["step"], str(error)


@needs_trial
@pytest.mark.parametrize("place", ROUNDS)
def test_every_reply_is_read(place: str) -> None:
    folders = sorted((TRIAL / place).iterdir())
    assert len(folders) == ROUNDS[place]
    assert [refused for folder in folders for refused in list_refused(folder)] == []
