"""An analysis in short lines, each with a title and a tone: for a terminal, a chat, a mail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from memantics.actions.analyze import Analysis, Harm
from memantics.actions.knowledge import Individual, outline
from memantics.core.opinion import Opinion
from memantics.core.retrieved import NearMeme
from memantics.knowledge.retrieval import SAME_PICTURE

_LISTED = 3
Tone = Literal["", "dim", "red", "yellow", "green"]
Line = tuple[str, str, Tone]


def describe(found: Analysis) -> Iterator[Line]:
    """What was found, in the order in which people want to know it."""
    yield "says", found.text or "nothing that could be read", ""
    yield "", found.form, "dim"
    for sound in found.sounds:
        yield "puns on", f"{sound.reading} ({sound.confidence:.0%} sure)", ""
    yield from _list("intends", found.intents)
    yield from _list("one must know", found.background)
    for harm in found.verdicts:
        yield ("harm, a guess" if harm.baseline else "harm", *tell_harm(harm))
        yield "", f"by {harm.by}" + (f"; {harm.reason}" if harm.reason else ""), "dim"
    for feeling in found.moods:
        yield ("feels, a guess" if feeling.baseline else "feels"), feeling.emotion, ""
        yield "", f"by {feeling.by}; {feeling.reason}".rstrip("; "), "dim"
    for opinion in found.opinions:
        if opinion.known:
            yield f"{opinion.topic}{', a guess' if opinion.sample else ''}", _chance(opinion), ""
        yield (
            "",
            f"by {opinion.source}" if opinion.known else f"{opinion.topic}: unknown; {opinion.why}",
            "dim",
        )
    yield from _list("like", (tell_near(own) for own in found.near))
    for own in found.contradictions:
        yield "contradiction", f"{own.about}: {own.text}", "red"
    for line in found.baselines:
        yield "baseline", line, "dim"
    if found.knowledge is not None:
        for title, members in outline(found.knowledge):
            yield from _list(title, (_tell(own) for own, _ in members))
    for line in found.gaps:
        yield "left out", line, "yellow"
    if found.statuses:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(found.statuses.items()))
        yield "asked", f"{found.model}: {counts}", "dim"


def _chance(opinion: Opinion) -> str:
    share = "" if opinion.probability is None else f" (chance {opinion.probability:.0%})"
    return f"{opinion.label}{share}"


def tell_near(own: NearMeme) -> str:
    """A known meme near this one, how near it is, and what it intends where that is told."""
    same = own.bits is not None and own.bits <= SAME_PICTURE
    near = "the same picture" if same else f"nearness {own.nearness or 0:.2f}"
    family = f", family {own.family}" if own.family else ""
    told = [said.text for said in own.statements if said.dimension in ("OverallIntent", "meaning")]
    return f"{own.meme} in {own.source} ({near}{family})" + (f": {told[0]}" if told else "")


def _list(title: str, lines: Iterable[str]) -> Iterator[Line]:
    """The first few lines below one title; the page and --json have all."""
    found = list(lines)
    for place, line in enumerate(found[:_LISTED]):
        yield (title if not place else ""), line, ""
    if len(found) > _LISTED:
        yield "", f"… and {len(found) - _LISTED} more", "dim"


def _tell(one: Individual) -> str:
    told = f"{one.label}: {one.description}" if one.description else one.label
    return f"{told} [{one.kind}]" if one.kind else told


def tell_harm(harm: Harm) -> tuple[str, Tone]:
    """The verdict in one line, and its tone."""
    parts = ["harmful" if harm.harmful else "not harmful"]
    if harm.score is not None:
        parts.append(f"chance {harm.score:.0%}")
    parts += [f"{harm.type}" if harm.type else "", f"against {harm.target}" if harm.target else ""]
    if harm.elements:
        parts.append("through " + ", ".join(f"“{part}”" for part in harm.elements[:4]))
    colour: Tone = "dim" if harm.baseline else "red" if harm.harmful else "green"
    return "; ".join(part for part in parts if part), colour
