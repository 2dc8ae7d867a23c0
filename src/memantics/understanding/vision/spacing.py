"""Restore spaces that OCR missed, from wide gaps between letters or from word frequencies.

Wide gaps between letters give the number and widths of the words. The letters are then assigned to
words so that each word has the width that it would have in a known font. Without pixels, English
word frequencies are used.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from memantics.understanding.vision.typefaces import ANTON, BALOO, REGULAR, Typeface

InkProfile = NDArray[np.float64]
_EMPTY = 0.04  # maximum ink of a gap column, relative to the column with the most ink
_WIDE = 2.0  # minimum width of a word gap, relative to the usual letter gap
# minimum width of a word gap, relative to the line height; capitals have narrower gaps
_LEAST, _LEAST_CAPITAL = 0.15, 0.1
_WRONG = 0.16  # maximum width error, relative to the mean word width


_RUN = re.compile(r"(?<![@\w./])[A-Za-z]{7,}(?![\w.@/])")
# minimum word frequencies: alone, inside a run, inside a name
_RARE, _COMMON, _EVERYDAY = 1e-7, 3e-6, 1e-4
_SHORT = frozenset({"a", "i"})


def part_known_words(text: str) -> str:
    """Split joined English words, if the word-frequency list is installed.

    >>> part_known_words("internationalboxing day"), part_known_words("Feierabend! restless")
    ('international boxing day', 'Feierabend! restless')
    """
    return _RUN.sub(lambda run: _part_run(run.group()), text)


def _part_run(run: str) -> str:
    """Split a run of letters into words; return it unchanged if it is one word or unknown."""
    words, lower = _read_frequencies(), run.lower()
    # Place names consist of words, too (Oakfield), but rarely of everyday ones.
    least = _EVERYDAY if run.istitle() else _COMMON
    if not words or words.get(lower, 0.0) >= _RARE:
        return run
    # best[end]: the cost of the words that end there, and the last cut
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for end in range(1, len(run) + 1):
        made = [
            (round(best[start][0] + 1 - np.log10(words[part]), 9), (*best[start][1], end))
            for start in range(max(0, end - 18), end)
            if start in best
            and words.get(part := lower[start:end], 0.0) >= least
            and (len(part) > 2 or part in _SHORT or words[part] >= 100 * _COMMON)
        ]
        if made:
            best[end] = min(made)
    cuts = best[len(run)][1] if len(run) in best else ()
    return " ".join(run[a:b] for a, b in zip((0, *cuts), cuts, strict=False)) or run


@cache
def _read_frequencies() -> dict[str, float]:
    """Return English words with their frequencies; empty without the package."""
    try:
        found: dict[str, float] = import_module("wordfreq").get_frequency_dict("en", "small")
    except ImportError:
        return {}
    return found


def part_words(text: str, profile: InkProfile, height: float) -> str:
    """Restore missing spaces of a line; ``profile`` is the amount of ink per column."""
    text = " ".join(text.split())
    letters = text.replace(" ", "")
    least = _LEAST_CAPITAL if text.isupper() else _LEAST
    widths = _measure_words(profile, least * height)
    if not text.count(" ") + 1 < len(widths) <= len(letters):
        return text
    best, words = min(
        _deal(letters, widths, face, profile.size) for face in (ANTON, BALOO, REGULAR)
    )
    made = " ".join(words)
    # Spaces that OCR read must remain; otherwise the gaps were misjudged.
    return made if best <= _WRONG and _keeps_spaces(text, made) else text


def _measure_words(profile: InkProfile, least: float) -> list[int]:
    """Measure word widths from gaps that are much wider than letter gaps."""
    full = np.flatnonzero(profile > _EMPTY * max(1.0, float(profile.max(initial=0.0))))
    if len(full) < 2:
        return []
    gaps = np.diff(full) - 1
    between = [int(gap) for gap in gaps if gap > 0]
    # Short lines have as many word gaps as letter gaps: use the smaller ones.
    usual = float(np.percentile(between, 30)) if between else 0.0
    wide = np.flatnonzero(gaps >= max(2.0, _WIDE * usual, least))
    starts = [full[0], *(full[i + 1] for i in wide)]
    ends = [*(full[i] for i in wide), full[-1]]
    return [int(end - start + 1) for start, end in zip(starts, ends, strict=True)]


def _deal(
    letters: str, widths: list[int], face: Typeface, total: int
) -> tuple[float, tuple[str, ...]]:
    """Distribute letters to words of given widths; return the largest error and the words.

    A word with an error above ``_WRONG`` ends the attempt, so few positions are tried.
    """
    font = face.at(64)
    places = np.array([font.getlength(letters[:i]) for i in range(len(letters) + 1)])
    scale = sum(widths) / max(1.0, float(places[-1]))
    mean = sum(widths) / len(widths)
    # best[i]: the smallest error for the first i letters
    best: dict[int, tuple[float, tuple[str, ...]]] = {0: (0.0, ())}
    for number, width in enumerate(widths, 1):
        left = len(widths) - number
        reached: dict[int, tuple[float, tuple[str, ...]]] = {}
        for start, (error, words) in best.items():
            ends = places[start + 1 : len(letters) - left + 1]
            offs = np.abs((ends - places[start]) * scale - width) / mean
            for at in np.flatnonzero(offs <= _WRONG):
                end = start + 1 + int(at)
                made = (max(error, float(offs[at])), (*words, letters[start:end]))
                if end not in reached or made < reached[end]:
                    reached[end] = made
        best = reached
    return best.get(len(letters), (float(total), ()))


def _keeps_spaces(text: str, made: str) -> bool:
    return _list_spaces(text) <= _list_spaces(made)


def _list_spaces(text: str) -> set[int]:
    """Return the letter count before each space."""
    places, seen = set(), 0
    for c in text:
        if c == " ":
            places.add(seen)
        else:
            seen += 1
    return places
