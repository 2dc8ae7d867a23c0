"""What a copy of the MER-Bench release holds."""

from __future__ import annotations

from memantics.benchmarks.mer_bench.load import Release
from memantics.core.data import Found, checksum

COMPLETE = 3117


def survey(release: Release) -> Found:
    """Counts, repairs, and what follows from what is missing."""
    found = sum(row.image is not None for row in release.rows)
    silent = sum(not row.caption for row in release.rows)
    editors = release.editors()
    return Found(
        records=len(release.rows),
        counts={
            "memes": len(release.rows),
            "memes without text": silent,
            "models with edited images": len(editors),
        },
        files=(release.index.relative_to(release.source.root).as_posix(),),
        checksum=checksum([release.index], release.source.root),
        images_found=found,
        images_expected=len(release.rows),
        repairs={name: count for name, count in release.repairs.items() if count},
        notes=tuple(_notes(release, found, editors)),
    )


def _notes(release: Release, found: int, editors: tuple[str, ...]) -> list[str]:
    notes = []
    total = len(release.rows)
    if release.source.kind == "release" and total < COMPLETE:
        notes.append(
            f"This copy holds {total:,} of the release's {COMPLETE:,} memes, so its counts differ "
            "from the paper's."
        )
    if not found:
        notes.append(
            "Images are not in this copy: tasks that need them cannot run. They are a data set of "
            "their own (LeoReverse/17nie on the Hugging Face hub): unpack it into data/Original."
        )
    elif found < total:
        notes.append(f"{total - found:,} memes have no image in {release.images}.")
    if not editors and release.source.kind == "release":
        notes.append(
            "Edited images are not in this copy: there is nothing to judge until "
            "data/EditedResults holds a folder per model."
        )
    return notes
