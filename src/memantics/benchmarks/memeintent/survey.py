"""What a copy of the MemeIntent release holds."""

from __future__ import annotations

from collections import Counter

from memantics.benchmarks.memeintent.load import Release
from memantics.core.data import Found, checksum

COMPLETE = 950


def survey(release: Release) -> Found:
    """Counts, repairs, and what follows from what is missing."""
    rows = release.rows
    splits = Counter(row.split for row in rows)
    found = sum(row.image is not None for row in rows)
    return Found(
        records=len(rows),
        counts={
            "memes": len(rows),
            "intents": sum(len(row.intents) for row in rows),
            "background sentences": sum(len(row.background) for row in rows),
            **{f"memes in {split}": count for split, count in sorted(splits.items())},
        },
        files=(release.index.relative_to(release.source.root).as_posix(),),
        checksum=checksum([release.index], release.source.root),
        images_found=found,
        images_expected=len(rows),
        repairs={name: count for name, count in release.repairs.items() if count},
        notes=tuple(_notes(release, found)),
    )


def _notes(release: Release, found: int) -> list[str]:
    notes = []
    total = len(release.rows)
    if release.source.kind == "release" and total < COMPLETE:
        notes.append(
            f"This copy holds {total} of the release's {COMPLETE} memes, so its counts differ from "
            "the paper's."
        )
    if not found:
        notes.append(
            "Images are not in this copy: tasks that need them cannot run. Request them from "
            "SemEval-2021 Task 6 and name their folder."
        )
    elif found < total:
        notes.append(f"{total - found} memes have no image in {release.images}.")
    return notes
