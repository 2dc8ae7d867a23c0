"""What a copy of ToxiCN MM holds, and what is missing from it."""

from __future__ import annotations

from memantics.benchmarks.toxicn_mm.load import NAMES, SPLITS, VERSIONS, Release
from memantics.core.data import Found, checksum

SIZES = {"train": 9_600, "test": 2_400}


def survey(release: Release) -> Found:
    """Count the parts of a copy and say in plain sentences what follows from what is missing."""
    ids: dict[str, bool] = {}
    for memes in release.parts.values():
        ids.update({meme.id: meme.image is not None for meme in memes})
    images = sum(ids.values())
    counts = {"memes": len(ids)}
    for (version, split), memes in release.parts.items():
        counts[f"{version} {split}"] = len(memes)
        counts[f"harmful in {version} {split}"] = sum(meme.harmful for meme in memes)
    return Found(
        records=len(ids),
        counts=counts,
        files=tuple(path.name for path in release.files),
        checksum=checksum(release.files, release.folder),
        images_found=images,
        images_expected=len(ids),
        repairs=dict(release.repairs),
        notes=tuple(_notes(release, images, len(ids))),
    )


def _notes(release: Release, images: int, memes: int) -> list[str]:
    notes: list[str] = []
    if images == 0:
        notes.append(
            "Images are not in this copy: tasks that need them cannot run;"
            " request them through the form that the official README names."
        )
    elif images < memes:
        notes.append(
            f"{memes - images:,} of {memes:,} images are not in this copy:"
            " tasks that need images can run on the rest only."
        )
    for version in VERSIONS:
        missing = [split for split in SPLITS if (version, split) not in release.parts]
        if len(missing) == len(SPLITS):
            notes.append(f"Labels of version {version} are not in this copy.")
        elif missing:
            name = NAMES[version, missing[0]]
            notes.append(
                f"Labels {version} have no {missing[0]} split in this copy ({name} is missing):"
                " totals of the paper's tables cannot be recomputed."
            )
    notes += [
        f"{NAMES[version, split]} has {len(part):,} memes; the official file has {SIZES[split]:,}."
        for (version, split), part in release.parts.items()
        if len(part) != SIZES[split]
    ]
    return notes
