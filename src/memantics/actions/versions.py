"""Several versions of a meme: the page to choose from, and choices as preferences of people."""

from __future__ import annotations

import hashlib
from pathlib import Path

from memantics.actions.reappraise_lines import tell_versions
from memantics.core import preferences
from memantics.core.images import read_bytes
from memantics.reappraise.records import KinderVersion
from memantics.reappraise.workshop import Reappraisal
from memantics.report.pages.versions import write_page


def show_versions(made: Reappraisal, image: Path, wanted: int) -> None:
    """Write the page of a meme whose versions were drawn."""
    if made.versions:
        command = f"memantics reappraise {image} --versions {wanted} --choose N"
        command += f" --out {made.folder.parent}"
        write_page(made, image, tell_versions(made, wanted)[0], command)


def offer_version(version: KinderVersion, by: str) -> preferences.OfferedVersion:
    """A version as somebody could choose it."""
    return preferences.OfferedVersion(
        captions=version.plan.texts,
        by=by,
        status=version.status,
        score=version.plan.score,
        kindness=version.checks.kindness[1] if version.checks.kindness else None,
    )


def keep_choice(made: Reappraisal, image: Path, choose: int, by: str) -> preferences.Preference:
    """Add a choice to the preferences beside the folders of memes; 0 takes the last one back."""
    path = made.folder.parent / preferences.PREFERENCES
    offered = [offer_version(version, by) for version in made.versions]
    digest = hashlib.sha256(read_bytes(image)).hexdigest()[:16]
    key = hashlib.sha256(f"{digest} {offered}".encode()).hexdigest()[:16]
    before = preferences.read_choices(path).get(key) if path.is_file() else None
    undone = before.undone if before else []
    if before and before.chosen not in (None, choose):
        undone = [*undone, before.chosen]
    preference = preferences.Preference(
        id=key, meme=made.meme, candidates=offered, chosen=choose or None, undone=undone
    )
    if preference != before:
        preferences.append_preference(path, preference)
    return preference
