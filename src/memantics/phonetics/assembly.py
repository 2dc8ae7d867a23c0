"""From candidates to the records that people and programs read."""

from __future__ import annotations

from collections.abc import Sequence

from memantics.phonetics.caption import Script, Slot
from memantics.phonetics.pronunciation import write_marked
from memantics.phonetics.ranking import Candidate, Difference
from memantics.phonetics.reading import Change, Reading
from memantics.phonetics.sound import MERGED, describe_difference, measure_distance


def write_sound(script: Script, differences: Sequence[Difference] = ()) -> str:
    """The caption in pinyin as it is said, with what a reading changes in it."""
    changed = {d.slot: d for d in differences}
    parts: list[str] = []
    for number, slot in enumerate(script.slots):
        change = changed.get(number)
        if change is not None:
            text = write_marked(change.sound) if change.sound else change.heard
        elif slot.main is None:
            text = script.tokens[slot.token].text.strip()
        elif slot.simple:
            text = write_marked(slot.main)
        else:
            text = slot.main.syllable
        # A loan covers several slots but is one word.
        if text and not (change and change.sound is None and parts and parts[-1] == text):
            parts.append(text)
    return " ".join(parts)


def build_reading(candidate: Candidate) -> Reading:
    """A reading with its changed spans."""
    script, differences = candidate.script, candidate.differences
    said = sum(bool(slot.sounds) for slot in script.slots)
    far = sum(d.distance > MERGED for d in differences)
    return Reading(
        text=candidate.path.text,
        sound=write_sound(script, differences),
        score=round(candidate.score, 4),
        gain=round(candidate.features["gain"], 3),
        distance=round(candidate.features["distance"], 3),
        syllables=said,
        syllables_matched=said - far,
        changes=tuple(_build_changes(script, differences)),
    )


def _build_changes(script: Script, differences: Sequence[Difference]) -> list[Change]:
    # Neighbouring slots make one span: slot minus rank is constant in a run.
    runs: dict[int, list[Difference]] = {}
    for rank, difference in enumerate(sorted(differences, key=lambda d: d.slot)):
        runs.setdefault(difference.slot - rank, []).append(difference)
    return [_build_change(script, run) for run in runs.values()]


def _build_change(script: Script, run: Sequence[Difference]) -> Change:
    tokens = [script.tokens[script.slots[d.slot].token] for d in run]
    written: list[str] = []
    heard: list[str] = []
    notes: list[str] = []
    for difference in run:
        slot = script.slots[difference.slot]
        nearest = _nearest(slot, difference)
        written.append(write_marked(slot.main) if slot.main and slot.simple else nearest)
        if difference.sound:
            heard.append(write_marked(difference.sound))
            notes.append(describe_difference(nearest, difference.sound.syllable))
    # A loan stands in each of its slots but is one word.
    pieces = [d.heard for i, d in enumerate(run) if d.sound or not i or run[i - 1].sound]
    return Change(
        start=tokens[0].start,
        end=tokens[-1].end,
        written="".join(token.text for token in dict.fromkeys(tokens)),
        heard="".join(pieces),
        written_sound=" ".join(written),
        heard_sound=" ".join(heard) or run[0].heard,
        distance=round(sum(d.distance for d in run), 3),
        tones_differ=sum(d.tone_differs for d in run),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
    )


def _nearest(slot: Slot, difference: Difference) -> str:
    """The sound of a slot that the heard one is nearest to."""
    if difference.sound is None:
        return slot.main.syllable if slot.main else ""
    heard = difference.sound.syllable
    sounds = slot.sounds
    return min(sounds, key=lambda s: measure_distance(s.syllable, heard) + sounds[s]).syllable
