"""Lines of text in an image, and their reading order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

TextRole = Literal["caption", "scene", "watermark", "interface"]
TextChoice = Literal["caption", "all"]  # choice of the lines of an image that form its caption

_TILTED, _STEEPEST = (
    4.0,
    40.0,
)  # degrees: smaller angles are OCR noise, larger ones do not occur in text lines
_SPELT = 3  # maximum number of single letters that may spell a word (toy letters, tiles)
_LONG = 1.5  # minimum width-to-height ratio of a line; the angle of shorter lines is unreliable


# Alternative characters by offset into a text: each with its probability relative to the read one.
Alternatives = Mapping[int, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class CharacterAlternative:
    """A character that OCR considered instead of the one that it read.

    ``place`` is an offset into the text of the line, ``score`` the probability of the alternative
    divided by that of the character that was read.
    """

    place: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of text found by OCR: its box (left, top, right, bottom) in pixels and its score.

    ``tilt`` is the angle of the line in degrees (positive: rising to the right). ``span`` is the
    width and height along the line; (0, 0) if unknown. ``role`` is the function of the line in the
    image, with its ``probability``; OCR itself sets all roles to caption. ``alternatives`` are the
    characters that OCR considered where it was unsure.
    """

    text: str
    box: tuple[int, int, int, int]
    score: float = 1.0
    tilt: float = 0.0
    span: tuple[int, int] = (0, 0)
    role: TextRole = "caption"
    probability: float = 1.0
    alternatives: tuple[CharacterAlternative, ...] = ()

    @property
    def height(self) -> int:
        """The height of the line's box in pixels."""
        return self.box[3] - self.box[1]

    @property
    def tilted(self) -> bool:
        """Whether the line is tilted; False for short lines, whose angle is unreliable.

        >>> TextLine("so am I", (0, 0, 99, 40), 1.0, 12.0, (100, 20)).tilted
        True
        >>> TextLine("I", (0, 0, 30, 30), 1.0, 12.0, (20, 20)).tilted
        False
        """
        return _TILTED <= abs(self.tilt) <= _STEEPEST and self.span[0] >= _LONG * self.span[1] > 0


@dataclass(frozen=True, slots=True)
class ImageReading:
    """The text of an image, in reading order.

    ``unread`` counts text regions that were skipped because the image has too many. With ``taken``
    set to ``all`` every line counts as caption, regardless of its role.
    """

    lines: tuple[TextLine, ...] = ()
    unread: int = 0
    taken: TextChoice = "caption"

    @property
    def text(self) -> str:
        """All lines, joined with line breaks."""
        return "\n".join(line.text for line in self.lines)

    @property
    def captions(self) -> tuple[TextLine, ...]:
        """The lines that are captions."""
        return tuple(line for line in self.lines if line.role == "caption")

    @property
    def caption(self) -> str:
        """The captions, joined with line breaks."""
        return "\n".join(line.text for line in self.captions)

    @property
    def caption_alternatives(self) -> Alternatives:
        """The characters that OCR considered, by offset into :attr:`caption`.

        >>> from dataclasses import replace
        >>> other = CharacterAlternative(1, "无", 0.4)
        >>> first, second = TextLine("好", (0, 0, 9, 9)), TextLine("元元", (0, 9, 9, 18))
        >>> ImageReading((first, replace(second, alternatives=(other,)))).caption_alternatives
        {3: {'无': 0.4}}
        """
        found: dict[int, dict[str, float]] = {}
        start = 0
        for line in self.captions:
            for one in line.alternatives:
                found.setdefault(start + one.place, {})[one.text] = one.score
            start += len(line.text) + 1
        return found

    @property
    def other_text(self) -> str:
        """All text outside the captions; a few isolated characters are treated as noise."""
        return "\n".join(line.text for line in self._say_something() if line.role != "caption")

    @property
    def said(self) -> str:
        """Captions and other text in reading order, without isolated noise characters."""
        return "\n".join(line.text for line in self._say_something())

    def _say_something(self) -> list[TextLine]:
        others = [line.text.strip() for line in self.lines if line.role != "caption"]
        spelt = sum(len(text) == 1 and text.isalpha() for text in others) >= _SPELT
        return [
            line
            for line in self.lines
            if line.role == "caption"
            or (
                any(char.isalnum() for char in line.text)
                and (len(line.text.strip()) > 1 or (spelt and line.text.strip().isalpha()))
            )
        ]


def explain_unread(unread: int) -> str:
    """Explain that only a part of an image's text was read; empty if all of it was read.

    >>> explain_unread(1), explain_unread(0)
    ('1 region of text was not read: the image holds more text than is read', '')
    """
    if not unread:
        return ""
    regions = "1 region of text was" if unread == 1 else f"{unread} regions of text were"
    return f"{regions} not read: the image holds more text than is read"


class Ocr(Protocol):
    """The interface of OCR engines. ``version`` changes whenever results may change."""

    version: str

    def read(self, data: bytes, name: str) -> ImageReading:
        """Read the text in the bytes of an image file; error messages use ``name``."""
        ...


def order_lines(lines: Iterable[TextLine]) -> tuple[TextLine, ...]:
    """Sort lines into rows from top to bottom, each row from left to right.

    Boxes that overlap by more than half their height are in the same row.

    >>> right, left = TextLine("b", (60, 2, 90, 22), 1.0), TextLine("a", (0, 0, 50, 20), 1.0)
    >>> below = TextLine("c", (0, 40, 50, 60), 1.0)
    >>> "".join(line.text for line in order_lines([below, right, left]))
    'abc'
    """
    rows: list[list[TextLine]] = []
    for line in sorted(lines, key=lambda each: (each.box[1] + each.box[3], each.box, each.text)):
        if rows and _same_row(rows[-1][0], line):
            rows[-1].append(line)
        else:
            rows.append([line])
    return tuple(line for row in rows for line in sorted(row, key=lambda each: each.box))


def _same_row(one: TextLine, other: TextLine) -> bool:
    shared = min(one.box[3], other.box[3]) - max(one.box[1], other.box[1])
    lower = min(one.box[3] - one.box[1], other.box[3] - other.box[1])
    return shared > lower / 2
