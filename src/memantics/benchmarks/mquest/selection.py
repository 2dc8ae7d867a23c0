"""The recovered list of evaluated questions: the release does not hold it, its logs do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from memantics.core.errors import DataError

LIST_NAME = "toxmquest350.txt"
SHIPPED = Path(__file__).with_name(LIST_NAME)
LOG_CLONE = "VLMs_meme-inference"
_LOG_ENDINGS = (".out", ".log", ".txt")
_MAX_LOG_BYTES = 5_000_000
_STEM = r"[A-Za-z0-9_-]+_[A-Za-z]+_qa_[0-9a-f]{8}"
_FINISHED = re.compile(rf"^\[FINISH\]\s.*?({_STEM})\.jsonld\s*$", re.MULTILINE)


def find_selection(root: Path) -> tuple[str, ...]:
    """File stems of the selected questions, in the order in which they were evaluated.

    A list of the user's own in the release folder comes first. Otherwise the longest of the
    evaluation logs near the release and the list that ships with this package: a log may stem
    from a run that was broken off.
    """
    own = root / LIST_NAME
    if own.is_file():
        return read_list(own)
    candidates = [read_list(SHIPPED)] if SHIPPED.is_file() else []
    candidates += [read_log(path) for path in _logs(root)]
    best = max(candidates, key=len, default=())
    if not best:
        raise DataError(
            root,
            f"no list of the evaluated questions: no {LIST_NAME}, no log with [FINISH] lines",
            hint=f"clone {LOG_CLONE} beside the release, or write the file stems into {LIST_NAME}",
        )
    return best


def read_list(path: Path) -> tuple[str, ...]:
    """One file stem per line; ``#`` begins a comment. Each stem may stand only once."""
    stems: dict[str, int] = {}
    for row, line in enumerate(_text(path).splitlines(), 1):
        stem = line.partition("#")[0].strip().removesuffix(".jsonld")
        if stem and not re.fullmatch(_STEM, stem):
            raise DataError(path.name, f"{stem[:60]!r} is not the stem of a question file", row=row)
        if stem in stems:
            raise DataError(path.name, f"{stem} stands in row {stems[stem]} already", row=row)
        if stem:
            stems[stem] = row
    return tuple(stems)


def read_log(path: Path) -> tuple[str, ...]:
    """The questions that an evaluation log reports as finished, each once."""
    return tuple(dict.fromkeys(_FINISHED.findall(_text(path))))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DataError(path.name, f"cannot be read: {error.strerror}") from error


def _logs(root: Path) -> Iterator[Path]:
    for folder in (root, root / LOG_CLONE, root.parent / LOG_CLONE):
        for place in (folder, folder / "slurm_logs"):
            if place.is_dir():
                for path in sorted(place.iterdir()):
                    if (
                        path.suffix in _LOG_ENDINGS
                        and path.is_file()
                        and path.stat().st_size <= _MAX_LOG_BYTES
                    ):
                        yield path
