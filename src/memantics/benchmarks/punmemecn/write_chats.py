"""Chats that end in a meme, added to published puns: PunMemeCN's two files of chats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from memantics.core.data import read_jsonl
from memantics.core.errors import DataError
from memantics.core.review import Review, Reviewed
from memantics.core.writing import Made, Record, pack
from memantics.tasks import chats

_SPOKEN = re.compile(r"([ABab甲乙])\s*[:：]\s*(.+)")
_SPEAKERS: dict[str, Literal["A", "B"]] = {"A": "A", "B": "B", "甲": "A", "乙": "B"}
_UNFIT = "chats with a meme that is not published as a pun"


class _Options(BaseModel):
    model_config = ConfigDict(extra="ignore")

    easy: list[str]
    hard: dict[str, str]
    candidates: dict[str, list[str]]


class _Line(BaseModel):
    """What is read of a line of ``chats.jsonl``."""

    model_config = ConfigDict(extra="ignore")

    id: str
    meme: str
    topic: chats.Topic
    turns: list[chats.Turn]
    sender: str
    options: _Options


def add_chats(made: Made, review: Review) -> Made:
    """The published puns with the chats that were kept and whose memes are all published.

    A wrong answer that was not published would be no option: such a chat stays out.
    """
    # The format takes chats about puns only, wrong answers included.
    puns = [row for row in made.tables["puns"] if row["pun"] == "yes"]
    names = {str(row["known_as"]): f"{row['meme']}.png" for row in puns}
    kept = {reviewed.item.id: reviewed for reviewed in review.items if reviewed.kept}
    wanted = [_edit(line, kept[line.id]) for line in _read(review.folder) if line.id in kept]
    lines = [line for line in wanted if _fits(line, names)]
    if not lines:
        raise DataError(
            review.folder,
            "no chat was kept whose meme and wrong answers are all published as puns",
            hint="build chats and fill in the pun form for the same memes",
        )
    files = {file: pack(_write(lines, names, level)) for level, file in chats.LEVELS.items()}
    table: list[Record] = [
        {"id": line.id, "meme": names[line.meme].removesuffix(".png"), "topic": line.topic}
        for line in lines
    ]
    return replace(
        made,
        tasks=(*made.tasks, "chat"),
        files={**made.files, **files},
        tables={**made.tables, "chats": table},
        left_out={**made.left_out, _UNFIT: len(wanted) - len(lines)},
    )


def _edit(line: _Line, reviewed: Reviewed) -> _Line:
    """The chat as people left it: lines that say who speaks, the meme's own not among them."""
    written = reviewed.values.get("turns")
    if not isinstance(written, str) or written == reviewed.item.values.get("turns", written):
        return line
    turns = []
    for text in filter(None, map(str.strip, written.splitlines())):
        found = _SPOKEN.fullmatch(text)
        if found is None:
            raise DataError(
                reviewed.item.id,
                f"{text[:40]!r} does not begin with who speaks",
                hint="write every message as 'A: …' or 'B: …'",
            )
        turns.append(chats.Turn(speaker=_SPEAKERS[found[1].upper()], text=found[2]))
    if not turns:
        raise DataError(reviewed.item.id, "nothing is left of the chat", hint="drop it instead")
    return line.model_copy(update={"turns": turns})


def _read(queue: Path) -> Iterator[_Line]:
    for place in (queue, queue.parent):
        path = place / chats.CHATS
        if path.is_file():
            for row, value in read_jsonl(path):
                yield _check(value, path, row)
            return
    raise DataError(queue, f"neither it nor the folder around it holds {chats.CHATS}")


def _check(value: JsonValue, path: Path, row: int) -> _Line:
    try:
        return _Line.model_validate(value)
    except ValueError as error:
        raise DataError(path, str(error).splitlines()[-1].strip(), row=row) from error


def _fits(line: _Line, names: Mapping[str, str]) -> bool:
    wrong = [*line.options.easy, *(line.options.hard.get(kind, "") for kind in chats.KINDS)]
    return all(meme in names for meme in (line.meme, *wrong))


def _write(
    lines: list[_Line], names: Mapping[str, str], level: str
) -> dict[str, dict[str, JsonValue]]:
    rows = {}
    for number, line in enumerate(lines, 1):
        said = chats.WrittenChat(tuple(line.turns), "A" if line.sender == "A" else "B")
        value = line.options
        options = chats.Options(
            tuple(value.easy),
            {kind: value.hard[kind] for kind in chats.KINDS},
            {kind: tuple(value.candidates.get(kind, ())) for kind in chats.KINDS},
        )
        entry = chats.make_entry(line.meme, line.topic, said, options, names, level)
        rows[f"chat_{number:05}"] = entry
    return rows
