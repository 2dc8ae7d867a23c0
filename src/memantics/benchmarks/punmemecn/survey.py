"""What a copy of PunMemeCN holds, and what is missing from it."""

from __future__ import annotations

from memantics.benchmarks.punmemecn.load import CHATS, META, Release
from memantics.core.data import Found, checksum

COMPLETE = 1959


def survey(release: Release) -> Found:
    """Count the parts of a copy and say in plain sentences what follows from what is missing."""
    images = sum(meme.image is not None for meme in release.memes)
    return Found(
        records=len(release.memes),
        counts={
            "memes": len(release.memes),
            "puns": sum(meme.is_pun for meme in release.memes),
            "groups": len({meme.group for meme in release.memes}),
            "conversations": len(release.conversations),
            "easy chats": len(release.easy),
            "hard chats": len(release.hard),
        },
        files=tuple(path.name for path in release.files),
        checksum=checksum(release.files, release.folder),
        images_found=images,
        images_expected=len(release.memes),
        skips=release.skips,
        repairs=dict(release.repairs),
        notes=tuple(_notes(release, images)),
    )


def _notes(release: Release, images: int) -> list[str]:
    notes: list[str] = []
    memes = len(release.memes)
    if memes < COMPLETE:
        notes.append(
            f"This copy has {memes:,} of the {COMPLETE:,} memes of the official release:"
            " figures of the paper are not expected to come out."
        )
    if images == 0:
        notes.append(
            "Images are not in this copy: tasks that need them cannot run;"
            " they lie beside _Meta.json in the official repository."
        )
    elif images < memes:
        notes.append(
            f"{memes - images:,} of {memes:,} images are not in this copy:"
            " tasks that need images can run on the rest only."
        )
    present = {path.name for path in release.files}
    notes += [
        f"{name} is not in this copy: there are no chats of the {level} level."
        for level, name in CHATS.items()
        if name not in present
    ]
    told = len(release.conversations)
    for level, name in CHATS.items():
        chats = len(release.chats(level)) + sum(skip.file == name for skip in release.skips)
        if name in present and chats < told:
            notes.append(f"{name} has {chats:,} of the {told:,} conversations that {META} names.")
    return notes
