"""Which files of a folder are to be looked at, under which ids, and what is known about them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from memantics.core.data import conform, inside, read_jsonl
from memantics.core.errors import DataError
from memantics.core.memes import MEMES, SUFFIXES, MemeLine

OWN = "collect"  # our own folder beside the images
# What we wrote ourselves in an earlier run is no knowledge about the meme.
_MADE = ("kept", "rule", "reason", "family", "hash", "copy_of", "width", "height", "collected")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file. ``text`` and ``language`` are "" where nobody gave them.

    ``extra`` holds fields of the user's own line, which come out again as they went in.
    ``refused`` is set for memes that the user had taken out before.
    """

    id: str
    file: str
    path: Path
    text: str
    language: str
    extra: Mapping[str, JsonValue]
    refused: bool = False


def list_entries(folder: Path) -> list[Entry]:
    """The lines of ``memes.jsonl`` where there is one, then every other image below the folder."""
    if not folder.is_dir():
        raise DataError(folder, "is no folder", hint="name a folder of images")
    entries = list(_read_lines(folder))
    known = {entry.file for entry in entries}
    taken = {entry.id for entry in entries}
    if len(taken) < len(entries):
        raise DataError(folder / MEMES, "two memes have one id", hint="rename one")
    for file in _walk(folder):
        if file not in known:
            own = _make_id(file, taken)
            taken.add(own)
            entries.append(Entry(own, file, folder / file, "", "", {}))
    if not entries:
        raise DataError(folder, "holds no images", hint="PNG, JPEG, WebP, GIF and BMP are read")
    return entries


def _read_lines(folder: Path) -> Iterator[Entry]:
    path = folder / MEMES
    if not path.is_file():
        return
    for row, line in read_jsonl(path):
        own = conform(MemeLine, line, path, row)
        fields = dict(line) if isinstance(line, dict) else {}
        made = fields.get("collected")
        ours = made if isinstance(made, dict) else {}
        yield Entry(
            own.id,
            own.image,
            inside(folder, own.image),
            "" if ours.get("text") == "read" else own.text,
            "" if ours.get("language") == "guessed" else own.language,
            {
                k: v
                for k, v in fields.items()
                if k not in (*_MADE, "id", "image", "text", "language")
            },
            refused=bool(ours.get("refused")) if ours else not own.kept,
        )


def _walk(folder: Path) -> Iterator[str]:
    """Images below a folder in a fixed order; hidden folders, our own, and links are passed by."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != OWN)
        here = Path(place)
        for name in sorted(files):
            path = here / name
            if path.suffix.lower() in SUFFIXES and not path.is_symlink() and path.is_file():
                yield path.relative_to(folder).as_posix()


def _make_id(file: str, taken: set[str]) -> str:
    """An id from a file name: letters, digits and ``_.-``, and nobody else's.

    >>> _make_id("cats/my cat (1).png", set()), _make_id("a.png", {"a"})
    ('cats-my_cat_1', 'a-2')
    """
    plain = re.sub(r"[^\w.\-]+", "_", file.rpartition(".")[0].replace("/", "-"))
    plain = plain.strip("_.-")[:180] or "meme"
    own, number = plain, 1
    while own in taken:
        number += 1
        own = f"{plain}-{number}"
    return own
