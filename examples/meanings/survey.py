"""What a copy holds."""

from __future__ import annotations

from memantics.core.data import Found, checksum

from .load import FILE, Release


def survey(release: Release) -> Found:
    """Counts, checksum, and what is missing."""
    found = sum(meme.image is not None for meme in release.memes)
    missing = len(release.memes) - found
    return Found(
        records=len(release.memes),
        counts={"memes": len(release.memes), "statements": 4 * len(release.memes)},
        files=(FILE,),
        checksum=checksum([release.source.root / FILE], release.source.root),
        images_found=found,
        images_expected=len(release.memes),
        notes=(f"{missing} memes have no image: they cannot be asked about.",) if missing else (),
    )
