"""Kinder versions of a meme: the contact sheet page, tables of checks, and stored choices."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import mean

from memantics.core import labels as preferences
from memantics.core.files import write_text
from memantics.core.images import read_bytes
from memantics.core.result import Table
from memantics.understanding.reappraisal.messages import translate
from memantics.understanding.reappraisal.records import BROKEN, PAGE, SHEET, KinderVersion
from memantics.understanding.reappraisal.workshop import Reappraisal
from memantics.web.page import fill_page, make_thumbnail
from memantics.web.phrases import PageLanguage


def tabulate_results(results: Sequence[Reappraisal]) -> Table:
    """Tabulate the finished memes with the measured checks."""
    columns = ("meme", "emotion", ">panels", ">region IoU", ">text read", ">changed outside")
    return Table(columns, tuple(_measure(result) for result in results if result.drawn))


def tell_flaws(results: Sequence[Reappraisal]) -> list[str]:
    """List the flaws of each flawed result and what a person can do about them."""
    return [
        f"{result.meme} flawed: {flaw.what}. {flaw.advice}."
        for result in results
        for flaw in (result.checks.flaws if result.checks else ())
    ]


def tell_sources(results: Sequence[Reappraisal]) -> list[str]:
    """List the source of each meme's emotion, one line per source other than the model."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.feeling is not None and result.feeling.source:
            found.setdefault(result.feeling.source, []).append(result.meme)
    return [f"emotion of {', '.join(memes)}: {source}" for source, memes in found.items()]


def _measure(result: Reappraisal) -> tuple[str, ...]:
    checks, plan, feeling = result.checks, result.plan, result.feeling
    if checks is None or plan is None or feeling is None:
        return (result.meme, *"–––––")
    captions = checks.captions
    return (
        result.meme,
        f"{feeling.emotion} -> {plan.target}",
        f"{checks.panels_before} -> {checks.panels_after}",
        f"{mean(c.overlap for c in captions):.2f}" if captions else "–",
        f"{mean(c.read for c in captions):.2f}" if captions else "–",
        f"{checks.changed_outside:.1%}",
    )


def none_read(results: Sequence[Reappraisal]) -> bool:
    """Tell whether none of the memes could be read, which means that the input is wrong."""
    return all(result.status == "failed" and result.stage == "reading" for result in results)


def tell_versions(made: Reappraisal, wanted: int) -> list[str]:
    """Report the number of versions, and why there are not more."""
    if not made.versions or made.plan is None:
        return []
    good = sum(version.status == "done" for version in made.versions)
    flawed = len(made.versions) - good
    candidates = 1 + sum(not offer.lost.startswith(BROKEN) for offer in made.plan.others)
    said = f"{made.meme}: {good} of {wanted} versions passed every check"
    said += f", {flawed} flawed versions follow" if flawed else ""
    few = f"; candidates to draw: {candidates}" if good < wanted else ""
    return [said + few, f"contact sheet: {made.folder / PAGE} and {SHEET}"]


_SIDE = 560


def write_page(made: Reappraisal, image: Path, line: str, language: PageLanguage = "en") -> None:
    """Write the contact sheet page beside its images, atomically.

    ``line`` reports the number of versions.
    """
    page = fill_page(
        "versions.html",
        ("page.css", "versions.css"),
        language=language,
        made=made,
        original=make_thumbnail(image, _SIDE),
        versions=[
            (version, make_thumbnail(version.path(made.folder), _SIDE)) for version in made.versions
        ],
        line=line,
        tell=partial(translate, language=language),
    )
    write_text(made.folder / PAGE, page)


def show_versions(
    made: Reappraisal, image: Path, wanted: int, language: PageLanguage = "en"
) -> None:
    """Write the contact sheet page of a meme."""
    if made.versions:
        write_page(made, image, tell_versions(made, wanted)[0], language)


def offer_version(version: KinderVersion, by: str) -> preferences.OfferedVersion:
    """Describe a version of a meme in one line, for a list to choose from."""
    return preferences.OfferedVersion(
        captions=version.plan.texts,
        by=by,
        status=version.status,
        kindness=version.checks.kindness[1] if version.checks.kindness else None,
    )


def keep_choice(made: Reappraisal, image: Path, choose: int, by: str) -> preferences.Preference:
    """Append a chosen version to the preferences file; 0 reverts the last choice."""
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
