"""Caption regions: join OCR lines into captions, and compare the layout of an edit with its source.

Boxes from any OCR are plain numbers. Sizes are normalised, so that images of different size can be
compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.core.images import decode, read_bytes
from memantics.core.lines import TextLine
from memantics.understanding.vision.panels import Region, count_panels

PixelBox = tuple[int, int, int, int]
# OCR function: image bytes and name to line boxes.
FindLines = Callable[[bytes, str], Sequence[PixelBox]]
_GAP = 0.9  # maximum gap between boxes of one caption, relative to the line height
# minimum overlap (intersection over union) of two matching captions; a rewritten caption may be
# longer or shorter
MATCH = 0.25
_LINE_GAP = 0.75  # maximum line gap within a caption, relative to the line height
_BESIDE = 0.9
_ALIKE = 1.65  # maximum height ratio of lines in one caption
_ASKEW = 1.5  # alignment tolerance of rows, relative to the line height
# minimum OCR confidence of a line; the second value is for lines with few letters
_SURE, _SURER = 0.72, 0.82
_SIGNATURE = 0.07  # relative to the image height
_SITE = re.compile(
    r"@\s?\w{2,}|https?:|www\.|\w\.(?:com|net|org|cn|io|me|tv)\b|[©®]|\bmade with\b|\bimgflip\b"
    r"|\bmematic\b|\b9gag\b|\breddit\b|\bu/\w+|\br/\w+|微博|小红书|抖音|快手|知乎|公众号",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[^\W\d_]")
_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
# OCR function: image bytes and name to lines in reading order.
ReadLines = Callable[[bytes, str], Sequence[TextLine]]


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """The layout of one image; ``captions`` is None if no OCR was run."""

    panels: int
    captions: tuple[Region, ...] | None = None


class LayoutCheck:
    """Compare layouts; each image is analysed once. Without ``find_lines`` only panels count."""

    def __init__(self, find_lines: FindLines | None = None) -> None:
        self._find_lines = find_lines
        self._known: dict[tuple[Path, int, int], ImageLayout] = {}

    def compare(self, source: Path, edited: Path) -> Mapping[str, str]:
        """Compare the layouts of two images: panels, and the proportion of captions in place.

        The result is returned as tags of an item.
        """
        before, after = self.look(source), self.look(edited)
        tags = {"panels": f"{before.panels} {after.panels}"}
        if before.captions is not None and after.captions is not None:
            tags["captions"] = f"{measure_match(before.captions, after.captions):.4f}"
        return tags

    def look(self, path: Path) -> ImageLayout:
        """Return the layout of one image."""
        data = read_bytes(path)
        key = (path, path.stat().st_mtime_ns, len(data))
        if key not in self._known:
            image = decode(data, path.name)
            captions = None
            if self._find_lines is not None:
                captions = join_lines(self._find_lines(data, path.name), image.size)
            self._known[key] = ImageLayout(count_panels(image), captions)
        return self._known[key]


def measure_overlap(one: Region, other: Region) -> float:
    """Compute the intersection over union of two regions.

    >>> measure_overlap(Region(0, 0, 1, 1), Region(0, 0, 0.5, 1))
    0.5
    """
    shared = Region(
        max(one.left, other.left),
        max(one.top, other.top),
        min(one.right, other.right),
        min(one.bottom, other.bottom),
    ).area
    union = one.area + other.area - shared
    return shared / union if union > 0 else 0.0


def join_lines(boxes: Iterable[PixelBox], size: tuple[int, int]) -> tuple[Region, ...]:
    """Join neighbouring line boxes into caption regions.

    >>> [region.bottom for region in join_lines([(10, 0, 90, 10), (12, 14, 80, 24)], (100, 100))]
    [0.24]
    >>> len(join_lines([(10, 0, 90, 10), (10, 80, 90, 90)], (100, 100)))
    2
    """
    width, height = size
    groups: list[tuple[PixelBox, int]] = [
        (box, box[3] - box[1]) for box in sorted(boxes) if box[2] > box[0] and box[3] > box[1]
    ]
    joined = True
    while joined:
        joined = False
        for place, (box, line) in enumerate(groups):
            near = next((i for i in range(place) if _near(groups[i], (box, line))), None)
            if near is not None:
                other, its_line = groups[near]
                groups[near] = (enclose((other, box)), max(line, its_line))
                del groups[place]
                joined = True
                break
    return tuple(
        Region(box[0] / width, box[1] / height, box[2] / width, box[3] / height)
        for box, _ in sorted(groups, key=lambda group: (group[0][1], group[0][0]))
    )


def _near(one: tuple[PixelBox, int], other: tuple[PixelBox, int]) -> bool:
    """Tell whether two boxes overlap when enlarged by half of the allowed gap."""
    (a, line_a), (b, line_b) = one, other
    gap = _GAP * min(line_a, line_b)
    apart = (max(a[0], b[0]) - min(a[2], b[2]), max(a[1], b[1]) - min(a[3], b[3]))
    return apart[0] < gap and apart[1] < gap


def enclose(boxes: Sequence[PixelBox]) -> PixelBox:
    """Return the smallest box around several boxes.

    >>> enclose([(0, 0, 5, 9), (3, 2, 8, 4)])
    (0, 0, 8, 9)
    """
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def measure_match(before: Sequence[Region], after: Sequence[Region]) -> float:
    """Return the proportion of regions with a match in the other image; 1 if both have none.

    Pairs are matched greedily by overlap, each region once, with an overlap of at least
    :data:`MATCH`.

    >>> top, bottom = Region(0, 0, 1, 0.2), Region(0, 0.8, 1, 1)
    >>> measure_match([top, bottom], [top, bottom]), measure_match([top], [bottom])
    (1.0, 0.0)
    >>> round(measure_match([top, bottom], [top]), 4)
    0.6667
    """
    if not before and not after:
        return 1.0
    ranked = sorted(
        (
            (measure_overlap(one, other), i, j)
            for i, one in enumerate(before)
            for j, other in enumerate(after)
        ),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    first, second = set[int](), set[int]()
    for overlap, i, j in ranked:
        if overlap >= MATCH and i not in first and j not in second:
            first.add(i)
            second.add(j)
    return 2 * len(first) / (len(before) + len(after))


@dataclass(frozen=True, slots=True)
class CaptionBlock:
    """The lines of one caption; ``panel`` is the index of its panel."""

    lines: tuple[TextLine, ...]
    panel: int = 0

    @property
    def box(self) -> PixelBox:
        """The box around all lines."""
        return enclose([line.box for line in self.lines])

    @property
    def text(self) -> str:
        """The text in one line; vertical characters are joined."""
        glue = "" if self.vertical else " "
        return glue.join(line.text.strip() for line in self.lines)

    @property
    def vertical(self) -> bool:
        """Whether the text is vertical Chinese.

        >>> column = [TextLine(c, (0, 40 * i, 36, 40 * i + 36)) for i, c in enumerate("不能笑")]
        >>> CaptionBlock(tuple(column)).vertical, CaptionBlock(tuple(column[:1])).vertical
        (True, False)
        """
        left, top, right, bottom = self.box
        count = sum(len(line.text.strip()) for line in self.lines)
        tall = bottom - top > 1.6 * (right - left)
        return tall and count > 1 and has_chinese("".join(line.text for line in self.lines))

    @property
    def line_height(self) -> int:
        """The height of the tallest line, or of one character in vertical text."""
        if self.vertical:
            return self.box[2] - self.box[0]
        return max(line.height for line in self.lines)


def has_chinese(text: str) -> bool:
    """Tell whether a text contains a Chinese character.

    >>> has_chinese("ok 好"), has_chinese("ok")
    (True, False)
    """
    return _CHINESE.search(text) is not None


def find_blocks(
    lines: Sequence[TextLine], panels: Sequence[Region], size: tuple[int, int]
) -> tuple[CaptionBlock, ...]:
    """Group caption lines into captions from top to bottom; other lines are ignored.

    Lines of different panels never share a caption.

    >>> one, two = TextLine("to be", (10, 0, 90, 20)), TextLine("or not", (12, 24, 80, 44))
    >>> far = TextLine("that is it", (10, 150, 90, 170))
    >>> [block.text for block in find_blocks([one, two, far], (), (100, 200))]
    ['to be or not', 'that is it']
    """
    kept = [line for line in lines if line.role == "caption" and _is_clear(line)]
    places = [_find_panel(line.box, panels, size) for line in kept]
    group = list(range(len(kept)))
    for i, line in enumerate(kept):
        for j in range(i):
            if places[i] == places[j] and belong(kept[j], line):
                old, new = group[i], group[j]
                group = [new if each == old else each for each in group]
    blocks = [
        CaptionBlock(tuple(kept[i] for i in range(len(kept)) if group[i] == root), places[root])
        for root in dict.fromkeys(group)
    ]
    blocks = [block for block in blocks if _says_something(block)]
    return tuple(sorted(blocks, key=lambda block: (block.panel, block.box[1], block.box[0])))


def _is_clear(line: TextLine) -> bool:
    wide, high = line.box[2] - line.box[0], line.box[3] - line.box[1]
    few = len(_LETTER.findall(line.text)) <= 3
    return line.score >= (_SURER if few else _SURE) and min(wide, high) >= 6


def _says_something(block: CaptionBlock) -> bool:
    """Tell whether a block contains letters; a single letter is mostly part of a drawing."""
    return len(_LETTER.findall(block.text)) >= 2


def is_signature(text: str, line_height: float, height: int) -> bool:
    """Tell whether a line is small and names a site or an account."""
    return line_height <= _SIGNATURE * height and bool(_SITE.search(text))


def _find_panel(box: PixelBox, panels: Sequence[Region], size: tuple[int, int]) -> int:
    """Return the panel that contains the centre of a box, or the nearest one."""
    x, y = (box[0] + box[2]) / 2 / size[0], (box[1] + box[3]) / 2 / size[1]

    def measure_way(number: int) -> float:
        panel = panels[number]
        across = max(panel.left - x, 0.0, x - panel.right)
        return across + max(panel.top - y, 0.0, y - panel.bottom)

    return min(range(len(panels)), key=measure_way, default=0)


def belong(one: TextLine, other: TextLine) -> bool:
    """Tell whether two lines may belong to one caption: near, aligned and of similar height."""
    a, b = one.box, other.box
    low, high = sorted((measure_thickness(one), measure_thickness(other)))
    if one.tilted or other.tilted:
        return False  # overlapping boxes are separate captions
    if high > _ALIKE * low or _differ(one.text, other.text) or _is_stray(one, other):
        return False
    across = max(a[0], b[0]) - min(a[2], b[2])  # gap between the boxes; negative if they overlap
    down = max(a[1], b[1]) - min(a[3], b[3])
    narrow = min(a[2] - a[0], b[2] - b[0])
    edges = (abs(a[0] - b[0]), abs(a[2] - b[2]), abs(a[0] + a[2] - b[0] - b[2]) / 2)
    stacked = down < _LINE_GAP * low and -across > 0.3 * narrow and min(edges) <= _ASKEW * high
    beside = across < _BESIDE * low and -down > 0.5 * min(one.height, other.height)
    return stacked or beside


def _is_stray(one: TextLine, other: TextLine) -> bool:
    """Tell whether a single character beside a line is a misread part of the drawing."""
    few, many = sorted(len(_LETTER.findall(line.text)) for line in (one, other))
    return few <= 1 and many >= 3


def _differ(one: str, other: str) -> bool:
    """Tell whether only one of two texts is in capitals."""
    return {_shouts(one), _shouts(other)} == {True, False}


def _shouts(text: str) -> bool | None:
    """Tell whether a text is in capitals; None if it has too few letters."""
    letters = [c for c in text if c.upper() != c.lower()]
    return all(c.isupper() for c in letters) if len(letters) >= 3 else None


def measure_thickness(line: TextLine) -> int:
    """Return the height of a line, or the width of a vertical one."""
    return min(line.box[2] - line.box[0], line.height) if len(line.text) > 1 else line.height
