"""Readings of captions with several lines: of all lines together, and of each line alone.

OCR finds more lines than the caption has: labels of drawn things, repetitions, stray strokes. A pun
then stands on one line, and the text of the others hides it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memantics.core.lines import Alternatives
from memantics.understanding.phonetics.caption import clean_text, join_fragments
from memantics.understanding.phonetics.reading import HomophoneReadings, Reading

MOST_LINES = 4  # number of lines that are also read alone; a bound on the time per caption
# Log-odds subtracted for each letter or character that a line alone leaves out. Chosen on the
# development set; 0.3 to 1.0 differ by one pun in 187 (docs/research/puns-ocr.md).
LEFT_OUT = 0.5
_LEAST = 1e-4
# Numbers of characters with alternatives, and of alternatives for each; bounds on the time.
MOST_UNSURE, MOST_OTHERS = 6, 2


def place_lines(caption: str) -> list[tuple[str, int]]:
    r"""Return the lines that may be read alone, with the offset of each in the caption.

    >>> place_lines("COLA\n生汽\n0")
    [('COLA', 0), ('生汽', 5)]
    """
    starts: dict[str, int] = {}
    start, count = 0, 0
    for part in caption.splitlines(keepends=True):
        line = join_fragments(clean_text(part))
        count += bool(line)
        starts.setdefault(line, start)
        start += len(part)
    readable = [pair for pair in starts.items() if _measure(pair[0]) > 1] if count > 1 else []
    return sorted(readable, key=lambda pair: -_measure(pair[0]))[:MOST_LINES]


def move_alternatives(
    caption: str, cleaned: str, alternatives: Alternatives, start: int = 0
) -> Alternatives:
    r"""Move alternatives from offsets in a caption to offsets in its cleaned text.

    Cleaning removes characters and keeps the order of the others, so each Chinese character is
    found by walking through both texts. At most six characters keep two alternatives each.

    >>> move_alternatives("A\n“元”宝", "A 元宝", {3: {"无": 0.4}})
    {2: {'无': 0.4}}
    """
    if not alternatives:
        return {}
    moved: dict[int, Mapping[str, float]] = {}
    for place, character in enumerate(cleaned):
        if character >= "\u3400":
            found = caption.find(character, start)
            if found < 0:
                break
            if alternatives.get(found):
                moved[place] = alternatives[found]
            start = found + 1
    return _bound(moved)


def _bound(alternatives: Alternatives) -> Alternatives:
    """Keep the likeliest alternatives of the least sure characters, which bounds the search."""
    places = sorted(alternatives, key=lambda place: (-max(alternatives[place].values()), place))
    return {
        place: dict(
            sorted(alternatives[place].items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_OTHERS]
        )
        for place in sorted(places[:MOST_UNSURE])
    }


def choose_lines(
    whole: HomophoneReadings, alone: Sequence[HomophoneReadings], limit: int
) -> HomophoneReadings:
    """Rank the readings of the whole caption and of single lines together.

    The confidence and the signals are those of the better arrangement. Spans are offsets into the
    whole caption.
    """
    size = _measure(whole.caption)
    arranged: list[tuple[float, HomophoneReadings]] = [(_rate(whole, 0), whole)]
    for line in alone:
        start = whole.caption.find(line.caption)
        if start >= 0 and line.readings:
            shifted = replace(line, readings=tuple(_shift(r, start) for r in line.readings))
            arranged.append((_rate(line, size - _measure(line.caption)), shifted))
    best = max(arranged, key=lambda pair: pair[0])[1]
    pooled: dict[str, tuple[float, Reading]] = {}
    for rate, found in arranged:
        for reading in found.readings:
            value = rate + reading.score - found.readings[0].score
            if reading.text not in pooled or pooled[reading.text][0] < value:
                pooled[reading.text] = value, reading
    ranked = sorted(pooled.values(), key=lambda pair: (-pair[0], pair[1].text))
    return replace(
        best,
        caption=whole.caption,
        pronunciation=whole.pronunciation,
        readings=tuple(reading for _, reading in ranked[:limit]),
        notes=whole.notes,
    )


def _rate(found: HomophoneReadings, left_out: int) -> float:
    """Return the log-odds that the first reading is right, less the cost of the omitted text."""
    probability = min(max(found.reading_probability, _LEAST), 1 - _LEAST)
    return math.log(probability / (1 - probability)) - LEFT_OUT * left_out


def _measure(text: str) -> int:
    return sum(character.isalnum() for character in text)


def _shift(reading: Reading, start: int) -> Reading:
    changes = (
        replace(change, start=change.start + start, end=change.end + start)
        for change in reading.changes
    )
    return replace(reading, changes=tuple(changes))
