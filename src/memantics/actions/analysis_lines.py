"""An analysis in short lines, each with a title and a tone: for a terminal, a chat, a mail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from memantics.actions.analyze import Analysis, Harm
from memantics.actions.knowledge import Individual, outline
from memantics.core.opinion import Opinion
from memantics.core.retrieved import BY_MEANING, BY_PICTURE

_LISTED = 3
Tone = Literal["", "dim", "red", "yellow", "green"]
Line = tuple[str, str, Tone]


def describe(found: Analysis) -> Iterator[Line]:
    """What was found, in the order in which people want to know it."""
    yield "says", found.text or "nothing that could be read", ""
    if found.beside:
        told = " · ".join(f"{line.text} ({line.role})" for line in found.beside)
        yield "not taken", told, "dim"
    yield "", found.form, "dim"
    yield from _list(
        "shows", (f"{sight.part}: {sight.says} (by {sight.by})" for sight in found.shows), 9
    )
    for sound in found.sounds:
        yield "puns on", f"{sound.reading} ({sound.confidence:.0%} sure)", ""
    if found.pun is not None and found.pun.is_pun:
        yield "puns on", f"{found.pun.word}: {found.pun.other} (by {found.pun.by})", ""
        yield "", found.pun.reason, "dim"
    yield from _list("intends", found.intents)
    yield from _list("one must know", found.background)
    yield from _judge(found)
    yield from _compare(found)
    for contradiction in found.contradictions:
        yield "contradiction", f"{contradiction.about}: {contradiction.text}", "red"
    for line in found.baselines:
        yield "baseline", line, "dim"
    if found.knowledge is not None:
        for title, members in outline(found.knowledge):
            yield from _list(title, (_tell(individual) for individual, _ in members))
    if found.gaps:
        yield "left out", found.gaps, "yellow"
    if found.statuses:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(found.statuses.items()))
        yield "asked", f"{found.model}: {counts}", "dim"


def _judge(found: Analysis) -> Iterator[Line]:
    """Harm, feelings and what experts say, each with its source."""
    for harm in found.verdicts:
        yield ("harm, a guess" if harm.baseline else "harm", *tell_harm(harm))
        yield "", f"by {harm.by}" + (f"; {harm.reason}" if harm.reason else ""), "dim"
    for feeling in found.moods:
        yield ("feels, a guess" if feeling.baseline else "feels"), feeling.emotion, ""
        yield "", f"by {feeling.by}; {feeling.reason}".rstrip("; "), "dim"
    for opinion in found.opinions:
        if opinion.known:
            yield f"{opinion.topic}{', a guess' if opinion.sample else ''}", _chance(opinion), ""
        unsaid = f"{opinion.topic}: unknown; {opinion.why}"
        yield "", f"by {opinion.source}" if opinion.known else unsaid, "dim"


def _compare(found: Analysis) -> Iterator[Line]:
    """Known memes on the same picture and near in meaning, and how often such memes agree."""
    if found.family is not None:
        yield "template", found.family.told, ""
        yield "", f"by {BY_PICTURE}", "dim"
    yield from _list("like", (meme.told for meme in found.near))
    if any(not meme.same_picture for meme in found.near):
        yield "", f"by {BY_MEANING}", "dim"


def _chance(opinion: Opinion) -> str:
    share = "" if opinion.probability is None else f" (chance {opinion.probability:.0%})"
    return f"{opinion.label}{share}"


def _list(title: str, lines: Iterable[str], most: int = _LISTED) -> Iterator[Line]:
    """The first few lines below one title; the page and --json have all."""
    found = list(lines)
    for place, line in enumerate(found[:most]):
        yield (title if not place else ""), line, ""
    if len(found) > most:
        yield "", f"… and {len(found) - most} more", "dim"


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
