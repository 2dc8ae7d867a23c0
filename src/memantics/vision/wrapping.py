"""Breaking a caption into lines: English between words, Chinese between characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from memantics.vision.captions import has_chinese

_NO_START = frozenset("，。！？、；：）》】”’…—～·,.!?;:)]}%")
_NO_END = frozenset("（《【“‘([{")
_LATIN = re.compile(r"[^\s\u2e80-\uffef]")


def split_pieces(text: str) -> tuple[str, ...]:
    """The smallest parts between which a line may break; a space stays with the part before it.

    >>> split_pieces("so am I"), split_pieces("（好）吧，OK 的")
    (('so ', 'am ', 'I'), ('（好）', '吧，', 'OK ', '的'))
    """
    text = " ".join(text.split())
    if not has_chinese(text):
        return tuple(re.findall(r"\S+ ?", text))
    pieces: list[str] = []
    for c in text:
        last = pieces[-1][-1] if pieces else " "
        word = _LATIN.match(c) is not None and _LATIN.match(last) is not None
        if pieces and (c == " " or c in _NO_START or last in _NO_END or word):
            pieces[-1] += c
        else:
            pieces.append(c)
    return tuple(pieces)


def break_lines(
    pieces: Sequence[str], count: int, measure: Callable[[str], float]
) -> tuple[str, ...] | None:
    """Break into exactly ``count`` lines, the longest as short as can be; None: too few pieces.

    >>> break_lines(split_pieces("one two three four"), 2, len)
    ('one two', 'three four')
    """
    if count < 1 or count > len(pieces):
        return None
    widths = [measure(piece) for piece in pieces]
    low, high = max(widths), sum(widths)
    for _ in range(24):
        middle = (low + high) / 2
        if len(_fill(pieces, widths, middle)) <= count:
            high = middle
        else:
            low = middle
    lines = _fill(pieces, widths, high)
    while len(lines) < count:
        # Fewer were needed: cut the longest that can be cut.
        longest = max(
            (line for line in lines if len(line) > 1), key=lambda line: sum(map(measure, line))
        )
        place = lines.index(longest)
        half = _halve(longest, measure)
        lines[place : place + 1] = [longest[:half], longest[half:]]
    return tuple("".join(line).strip() for line in lines)


def _fill(pieces: Sequence[str], widths: Sequence[float], limit: float) -> list[list[str]]:
    lines: list[list[str]] = []
    used = 0.0
    for piece, width in zip(pieces, widths, strict=True):
        if not lines or used + width > limit + 1e-6:
            lines.append([])
            used = 0.0
        lines[-1].append(piece)
        used += width
    return lines


def _halve(line: Sequence[str], measure: Callable[[str], float]) -> int:
    total, used = sum(map(measure, line)), 0.0
    for place, piece in enumerate(line[:-1], 1):
        used += measure(piece)
        if used >= total / 2:
            return place
    return len(line) - 1
