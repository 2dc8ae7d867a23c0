"""What is said of reappraised memes, line by line: checks, flaws, sources, versions."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from memantics.core.result import Table
from memantics.reappraise.folder import PAGE, SHEET
from memantics.reappraise.records import BROKEN
from memantics.reappraise.workshop import Reappraisal


def tabulate_results(results: Sequence[Reappraisal]) -> Table:
    """The memes that were drawn, and what the checks of each measured."""
    columns = ("meme", "emotion", ">panels", ">region IoU", ">text read", ">changed outside")
    return Table(columns, tuple(_measure(result) for result in results if result.drawn))


def tell_flaws(results: Sequence[Reappraisal]) -> list[str]:
    """What is wrong with each flawed result, and what a person may do about it."""
    return [
        f"{result.meme} flawed: {flaw.what}. {flaw.advice}."
        for result in results
        for flaw in (result.checks.flaws if result.checks else ())
    ]


def tell_sources(results: Sequence[Reappraisal]) -> list[str]:
    """Who says what each meme feels like, one line for each source that is not the model."""
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
    """Whether no meme could even be read: what was named is wrong, and the user can fix it."""
    return all(result.status == "failed" and result.stage == "reading" for result in results)


def tell_versions(made: Reappraisal, wanted: int) -> list[str]:
    """How many versions there are, and why not more."""
    if not made.versions or made.plan is None:
        return []
    good = sum(version.status == "done" for version in made.versions)
    flawed = len(made.versions) - good
    candidates = 1 + sum(not offer.lost.startswith(BROKEN) for offer in made.plan.others)
    said = f"{made.meme}: {good} of {wanted} versions passed every check"
    said += f", {flawed} flawed ones follow" if flawed else ""
    few = f"; candidates to draw: {candidates}" if good < wanted else ""
    return [said + few, f"contact sheet: {made.folder / PAGE} and {SHEET}"]
