"""What a copy of the M-QUEST release holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from memantics.benchmarks.mquest.dimension import ALIASES
from memantics.benchmarks.mquest.load import Release, fault
from memantics.core.data import Found, Skip, checksum
from memantics.core.mquest import RAW, REFINED

COMPLETE_MEMES = 1000


def survey(release: Release) -> Found:
    """Read everything once: counts, faults, repairs, and what follows from what is missing."""
    skips: list[Skip] = []
    repairs: Counter[str] = Counter()
    grounded = 0
    for file in release.files:
        question = release.read_question(file)
        grounded += bool(question.related)
        repairs[f"{file.declared} read as {question.dimension}"] += file.declared in ALIASES
        if reason := fault(question):
            skips.append(Skip(_relative(release, file.path), question.id, reason))
    counts = {
        "memes": len(release.memes),
        "questions": len(release.files),
        "questions with related individuals": grounded,
        "knowledge bases": len(release.raw),
        "individuals": _count(release, "raw", repairs),
        "refined graphs": len(release.refined),
        "individuals in refined graphs": _count(release, "refined", repairs),
    }
    data = [file.path for file in release.files] + [*release.raw, *release.refined]
    found = sum(f"{meme}.png" in release.pictures for meme in release.memes)
    return Found(
        records=len(release.files),
        counts=counts,
        files=_files(release),
        checksum=checksum(data, release.source.root),
        images_found=found,
        images_expected=len(release.memes),
        skips=tuple(skips),
        repairs={name: count for name, count in sorted(repairs.items()) if count},
        notes=tuple(_notes(release, found)),
    )


def _count(release: Release, kind: Literal["raw", "refined"], repairs: Counter[str]) -> int:
    total = 0
    for own in release.individuals(kind):
        total += 1
        repairs[f"{own.declared} read as {own.dimension}"] += own.declared in ALIASES
    return total


def _relative(release: Release, path: Path) -> str:
    return path.relative_to(release.source.root).as_posix()


def _files(release: Release) -> tuple[str, ...]:
    """Patterns rather than thousands of names."""
    found = []
    if release.qa:
        found.append(_relative(release, release.qa / "*_qa/**/*.jsonld"))
    for paths, ending in ((release.raw, RAW), (release.refined, REFINED)):
        if paths:
            found.append(_relative(release, paths[0].with_name(f"*{ending}")))
    if release.ontology:
        found.append(_relative(release, release.ontology))
    return tuple(found)


def _notes(release: Release, images: int) -> list[str]:
    notes = []
    memes = len(release.memes)
    if release.source.kind == "release" and memes < COMPLETE_MEMES:
        notes.append(
            f"This copy holds {memes} of the release's {COMPLETE_MEMES:,} memes, so its counts "
            "differ from the paper's."
        )
    if not images:
        notes.append(
            "Images are not in this copy: tasks that need them cannot run. Request them from the "
            "Hateful Memes release and name their folder (<id>.png)."
        )
    elif images < memes:
        notes.append(f"{memes - images} memes have no image in {release.images}.")
    if not release.files:
        notes.append("Questions are not in this copy: no task can run on it.")
    if not release.raw:
        notes.append("Raw knowledge bases are not in this copy.")
    if not release.refined and release.source.kind == "release":
        notes.append("Refined graphs are not in this copy.")
    if release.source.kind == "release" and release.files:
        here = sum(file.id in release.selection for file in release.files)
        notes.append(
            f"Of the {len(release.selection)} questions behind the published toxicity figures "
            f"{here} are in this copy (split toxmquest350); the later extension to 609 was "
            "never released."
        )
    return notes
