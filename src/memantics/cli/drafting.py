"""What the commands that draft captions, intents and chats share: memes with notes, and a desk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from memantics.build.captions import CAPTIONS, read_captions, with_captions
from memantics.build.drafts import Miss
from memantics.build.extract import Adopted, adopt_memes
from memantics.cli.build import STARTER
from memantics.cli.terminal import console, plain
from memantics.core.errors import InputError
from memantics.core.memes import Meme, read_memes
from memantics.core.records import Status
from memantics.starter import image_path, read_starter

_SHOWN = 5
CaptionFile = Annotated[
    Path | None,
    typer.Option(
        "--captions", help="What words mean and pictures show. Default: captions.jsonl of --out."
    ),
]
Written = Annotated[str, typer.Option("--language", help="Write in this language.")]


def find_place(folder: Path | None, out: Path | None) -> tuple[Path, Path]:
    """The folder of memes, which must be named, and that of the build."""
    if folder is None:
        raise InputError(
            "no folder of memes was named", hint="name one, or 'starter' for the pack that ships"
        )
    return folder, out or Path("builds") / folder.resolve().name


def find_noted_memes(folder: Path) -> tuple[Meme, ...]:
    """The memes of a folder with their notes; those of the starter pack where it is named."""
    if str(folder) != STARTER or folder.exists():
        return read_memes(folder)
    return tuple(
        Meme(
            own.id,
            image_path(own.id),
            own.text,
            own.language,
            {
                "meaning": own.meaning,
                "description": own.description,
                "sentiment": f"{own.sentiment.target}-{own.sentiment.type}",
                "reading": own.pun.reading or "" if own.pun else "",
            },
        )
        for own in read_starter()
    )


def adopt(memes: tuple[Meme, ...], place: Path, captions: Path | None) -> Adopted:
    """Copy memes into a build, with captions that were mined before."""
    found = captions or place / CAPTIONS
    if captions is not None and not found.is_file():
        raise InputError(f"{captions}: no such file", hint="memantics build captions makes one")
    known: Mapping[str, Mapping[str, str]] = read_captions(found) if found.is_file() else {}
    return adopt_memes(with_captions(memes, known), place)


def show_end(
    statuses: Mapping[Status, int], misses: list[Miss] | tuple[Miss, ...], adopted: Adopted
) -> None:
    """Say what did not come; exit 1 where calls failed."""
    out = console()
    counts = ", ".join(f"{count} {status}" for status, count in statuses.items())
    out.print(plain(f"steps: {counts}"))
    for skip in adopted.skips[:_SHOWN]:
        out.print(plain(f"left out {skip.row}: {skip.reason}"[:300]))
    for miss in misses[:_SHOWN]:
        out.print(plain(f"{miss.status} {miss.step}: {miss.reason}"[:300]))
    if len(misses) > _SHOWN:
        out.print(f"… and {len(misses) - _SHOWN} more")


def stop_at_failures(statuses: Mapping[Status, int]) -> None:
    """Exit code 1 where calls failed."""
    if statuses.get("failed"):
        raise typer.Exit(1)
