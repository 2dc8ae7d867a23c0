"""Open a copy of PunMemeCN, in any of its official layouts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from memantics.benchmarks.punmemecn import records
from memantics.benchmarks.punmemecn.rows import ReadingFindings, read_chats, read_memes
from memantics.core.data import Skip, Source
from memantics.core.errors import DataError, UnknownName
from memantics.releases.punmemecn import META, find_folder

CHATS: Mapping[records.Level, str] = MappingProxyType(
    {"easy": "_Chat(easy).json", "hard": "_Chat(hard).json"}
)


@dataclass(frozen=True, slots=True)
class PunRelease:
    """A copy of PunMemeCN: all memes in file order, their conversations, the chats by level."""

    folder: Path
    files: tuple[Path, ...]
    memes: tuple[records.PunMeme, ...]
    conversations: tuple[records.Conversation, ...]
    easy: tuple[records.ChatRecord, ...]
    hard: tuple[records.ChatRecord, ...]
    skips: tuple[Skip, ...]
    repairs: Mapping[str, int]

    def chats(self, level: str) -> tuple[records.ChatRecord, ...]:
        """The chats of a level whose four options lie in this copy."""
        if level not in records.LEVELS:
            raise UnknownName("level", level, records.LEVELS)
        return self.easy if level == "easy" else self.hard

    def by_id(self) -> dict[str, records.PunMeme]:
        """The memes by id."""
        return {meme.id: meme for meme in self.memes}


def open_release(source: Source) -> PunRelease:
    """Read a copy of the release; what is not as it should be is named with file and row."""
    folder = find_folder(source.root)
    images = _list_images(folder, source.images)
    findings = ReadingFindings()
    memes, conversations = read_memes(folder / META, images.get, findings)
    puns = frozenset(meme.id for meme in memes if meme.is_pun)
    # The same slips stand in the metadata and in both chat files: count each file by itself.
    repairs = Counter({f"{META}: {what}": n for what, n in (+findings.repairs).items()})
    chats: dict[records.Level, tuple[records.ChatRecord, ...]] = {"easy": (), "hard": ()}
    files = [folder / META]
    for level, name in CHATS.items():
        if (folder / name).is_file():
            files.append(folder / name)
            findings.repairs = Counter()
            chats[level] = read_chats(folder / name, level, puns, findings)
            repairs.update({f"{name}: {what}": n for what, n in findings.repairs.items()})
    return PunRelease(
        folder=folder,
        files=tuple(files),
        memes=memes,
        conversations=conversations,
        easy=chats["easy"],
        hard=chats["hard"],
        skips=tuple(findings.skips),
        repairs=MappingProxyType(dict(repairs)),
    )


def _list_images(folder: Path, given: Path | None) -> dict[str, Path]:
    """The PNG files by name: in the folder given, else beside the metadata or in ``images``."""
    if given is not None and not given.is_dir():
        raise DataError(given, "no such folder of images", hint="check the path")
    places = (given,) if given is not None else (folder, folder / "images")
    found: dict[str, Path] = {}
    for place in places:
        if place.is_dir():
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name.endswith(".png") and entry.is_file():
                        found.setdefault(entry.name, place / entry.name)
    return found
