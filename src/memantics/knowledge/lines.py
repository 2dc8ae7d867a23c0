"""``knowledge.jsonl``: what is known about memes as plain JSON, one meme a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import DataError, first_fault
from memantics.knowledge.records import Knowledge

KNOWLEDGE = "knowledge.jsonl"
_KNOWLEDGE = TypeAdapter(Knowledge)


def dump_knowledge(knowledge: Knowledge) -> bytes:
    """One line of ``knowledge.jsonl``.

    >>> dump_knowledge(Knowledge("1", ()))[:23]
    b'{"meme":"1","individual'
    """
    return _KNOWLEDGE.dump_json(knowledge, exclude_defaults=True) + b"\n"


def read_knowledge(folder: Path) -> Iterator[Knowledge]:
    """The knowledge of a build, meme by meme; a bad line is an error that names it."""
    path = folder / KNOWLEDGE
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(
            folder, f"holds no {KNOWLEDGE}", hint="run 'memantics build knowledge' first"
        ) from error
    with file:
        for row, line in enumerate(file, 1):
            if line.strip():
                yield _read_line(line, path, row)


def _read_line(line: bytes, path: Path, row: int) -> Knowledge:
    try:
        return _KNOWLEDGE.validate_json(line)
    except ValidationError as error:
        raise DataError(path, first_fault(error), row=row, hint="mend that line") from error
