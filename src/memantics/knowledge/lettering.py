"""Text in drawings: safe for XML, and broken into lines by an estimate of its width."""

from __future__ import annotations

import re
import unicodedata

from memantics.core.text import drop_unseen, mend_surrogates

_NARROW = frozenset("ijlftrI.,;:'’‘|!()[]{}·- ")
_BROAD = frozenset("mwMW@%—…")
_PIECES = re.compile(r"\s+|[^\s\u2e80-\uffef]+|[\u2e80-\uffef]")


def tame(text: str) -> str:
    """Text that cannot steer what stands around it: one line, no controls, no direction marks.

    >>> tame("a" + chr(0x202E) + "b" + chr(10) + "c" + chr(0))
    'ab c'
    """
    folded = mend_surrogates(" ".join(text.split()))
    return drop_unseen(folded, ("Cc", "Cf", "Cn", "Co"), keep="\u200d")


def measure_text(text: str, size: float) -> float:
    """About how wide a text is, rather too wide than too narrow.

    >>> measure_text("鱼鱼", 10) > measure_text("fish", 10)
    True
    """
    return size * sum(map(_width, text))


def _width(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.04
    if char in _NARROW:
        return 0.4
    if char in _BROAD:
        return 1.0
    return 0.76 if char.isupper() else 0.63


def wrap(text: str, width: float, size: float, most: int) -> tuple[str, ...]:
    """Break a text into at most so many lines; what does not fit ends in an ellipsis.

    >>> wrap("a caption under the keyboard", 90, 13, 2)
    ('a caption', 'under the…')
    """
    lines: list[str] = []
    line = ""
    for piece in _pieces(tame(text), width, size):
        if measure_text((line + piece).rstrip(), size) <= width:
            line += piece if line else piece.lstrip()
            continue
        lines.append(line.rstrip())
        line = piece.lstrip()
        if len(lines) == most:
            lines[-1] = _cut(lines[-1], width, size)
            return tuple(lines)
    return (*lines, line.rstrip()) if line.strip() or not lines else tuple(lines)


def _pieces(text: str, width: float, size: float) -> list[str]:
    """Words, spaces and Chinese characters; a word wider than a line is broken anywhere."""
    found = []
    for piece in _PIECES.findall(text):
        rest = piece
        while measure_text(rest, size) > width and len(rest) > 1:
            cut = len(rest)
            while cut > 1 and measure_text(rest[:cut], size) > width:
                cut -= 1
            found.append(rest[:cut])
            rest = rest[cut:]
        found.append(rest)
    return found


def _cut(line: str, width: float, size: float) -> str:
    while line and measure_text(line + "…", size) > width:
        line = line[:-1]
    return line.rstrip() + "…"
