"""What can be imported: official knowledge bases, our own builds, or exported files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from memantics.core.errors import DataError
from memantics.core.mquest import RAW, REFINED
from memantics.knowledge.adoption import Account, adopt
from memantics.knowledge.confirmation import read_confirmed
from memantics.knowledge.formats import SUFFIXES, guess_format, parse
from memantics.knowledge.lines import KNOWLEDGE
from memantics.knowledge.official import OfficialFiles, find_official
from memantics.knowledge.records import Knowledge
from memantics.knowledge.store import GraphStore

_CHUNK = 500


def import_path(store: GraphStore, path: Path) -> Account:
    """Import whatever lies at a path into a store, and say what was found."""
    if not path.exists():
        raise DataError(
            path, "no such file or folder", hint="give a folder or file of knowledge, or 'starter'"
        )
    account = Account()
    if official := _official(path):
        import_all(store, adopt(official, account))
    elif built := _built(path):
        import_all(store, _count(read_confirmed(built), account))
    else:
        for file in _files(path):
            memes = store.add_quads(parse(_read(file), guess_format(file), file.name))
            if not memes:
                raise DataError(
                    file.name,
                    "says nothing about any meme",
                    hint="files of knowledge come from 'kb export' or 'build knowledge'",
                )
            for meme in memes:
                account.add(store.get(meme))
    return account


def import_all(store: GraphStore, knowledge: Iterable[Knowledge]) -> None:
    """Put knowledge into a store, some hundred memes at a time."""
    rest = iter(knowledge)
    while chunk := list(islice(rest, _CHUNK)):
        store.add(chunk)


def _count(knowledge: Iterable[Knowledge], account: Account) -> Iterator[Knowledge]:
    for own in knowledge:
        account.add(own)
        yield own


def _official(path: Path) -> tuple[OfficialFiles, ...]:
    if path.is_dir():
        return find_official(path)
    if path.name.endswith(RAW):
        return (OfficialFiles(path.name.removesuffix(RAW), raw=path),)
    if path.name.endswith(REFINED):
        return (OfficialFiles(path.name.removesuffix(REFINED), refined=path),)
    return ()


def _built(path: Path) -> Path | None:
    """The folder of a build, where the path is one or its file."""
    if path.name == KNOWLEDGE:
        return path.parent
    return path if (path / KNOWLEDGE).is_file() else None


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(own for own in path.iterdir() if own.suffix.lower() in SUFFIXES)
    if not found:
        raise DataError(
            path,
            "holds no knowledge",
            hint=f"looked for <id>{RAW}, <id>{REFINED}, {KNOWLEDGE} and files that end in "
            f"{', '.join(SUFFIXES)}",
        )
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error
