"""Readings in words: lines for a terminal, a prompt or a page."""

from __future__ import annotations

from memantics.phonetics.caption import simplify
from memantics.phonetics.reading import Change, Reading, Readings


def explain(readings: Readings, *, alternatives: int = 2) -> tuple[str, ...]:
    """Say what was heard, how near it is, and what supports it.

    The first line is the verdict; every line stands for itself and holds no line break.
    """
    lines, english = [_head(readings)], readings.language == "en"
    if readings.readings:
        lines.append(_details(readings.readings[0], "sounds" if english else "syllables"))
        lines += [f"span: {_span(change)}" for change in readings.readings[0].changes]
        others = [f"{r.text} ({r.sound})" for r in readings.readings[1 : 1 + alternatives]]
        if others:
            lines.append("or: " + "; ".join(others))
    if readings.evidence:
        quoted = ", ".join(f"'{word}'" for word in readings.evidence)
        lines.append(f"literal reading supported by {quoted} in the picture")
    for double in readings.double_meanings:
        inside = f" inside {double.inside}" if double.inside else ""
        seen = f" as '{double.seen_as}'" if double.seen_as != double.word else ""
        lines.append(f"perhaps a double meaning: {double.word}{inside} is in the picture{seen}")
    lines += [f"note: {note}" for note in readings.notes]
    return tuple(" ".join(line.split()) for line in lines)


def hint(readings: Readings, *, limit: int = 3) -> str:
    """One line for a prompt: how sure the engine is that something else is meant, and what.

    Empty where it hears nothing else. Script variants of the caption and readings less than ten
    times as common as what is written are left out, the meant one apart.
    """
    if readings.meant is None:
        return ""
    plain = "".join(map(simplify, readings.caption))
    likely = [
        own
        for own in readings.readings
        if (own is readings.meant or own.gain >= 1) and "".join(map(simplify, own.text)) != plain
    ]
    heard = "; ".join(f"{own.text} ({own.sound})" for own in likely[:limit])
    return f"{readings.confidence:.0%}: {heard}" if heard else ""


def _head(readings: Readings) -> str:
    said = f"{readings.caption} ({readings.sound})" if readings.sound else readings.caption
    percent = f"{readings.confidence:.0%}"
    if not readings.readings:
        return f"{said or '(empty)'}: no other reading"
    first = readings.readings[0]
    if readings.meant:
        return f"{said} → {first.text} ({first.sound}), {percent} sure"
    return f"{said}: probably just what it says; nearest other reading {first.text}, {percent} sure"


def _details(reading: Reading, unit: str) -> str:
    notes = [note for change in reading.changes for note in change.notes]
    tones = sum(change.tones_differ for change in reading.changes)
    parts = [f"{reading.syllables_matched} of {reading.syllables} {unit} match"]
    parts += dict.fromkeys(notes)
    if tones:
        parts.append(f"{tones} tone{'s' if tones > 1 else ''} differ{'s' if tones == 1 else ''}")
    parts.append(_commonness(reading.gain))
    return "; ".join(parts)


def _commonness(gain: float) -> str:
    if abs(gain) < 0.3:
        return "as common as what is written"
    word = "more" if gain > 0 else "less"
    times = 10 ** min(abs(gain), 9)
    rounded = f"{times:.0f}" if times < 100 else f"10^{abs(gain):.0f}"
    return f"{rounded} times {word} common than what is written"


def _span(change: Change) -> str:
    return (
        f"{change.written} ({change.written_sound}) → {change.heard} ({change.heard_sound}),"
        f" sound distance {change.distance:g}"
    )
