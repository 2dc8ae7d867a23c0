"""Where captions stand, and whether an edited meme has the layout of its source.

Boxes come from any OCR, as plain numbers; sizes are taken out, so that an edit of another size
can still be compared with its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.core.images import decode, read_bytes
from memantics.vision.panels import Region, count_panels

PixelBox = tuple[int, int, int, int]
# Any OCR: the bytes of an image file and its name, to the boxes of its lines.
FindLines = Callable[[bytes, str], Sequence[PixelBox]]


@dataclass(frozen=True, slots=True)
class Layout:
    """One image's layout; ``captions`` is None where nobody read it."""

    panels: int
    captions: tuple[Region, ...] | None = None


class LayoutCheck:
    """Compares layouts; each image is looked at once. Without ``find_lines`` only panels count."""

    def __init__(self, find_lines: FindLines | None = None) -> None:
        self._find_lines = find_lines
        self._known: dict[tuple[Path, int, int], Layout] = {}

    def compare(self, source: Path, edited: Path) -> Mapping[str, str]:
        """Two images as tags of an item: their panels, and the share of captions that stayed."""
        before, after = self.look(source), self.look(edited)
        tags = {"panels": f"{before.panels} {after.panels}"}
        if before.captions is not None and after.captions is not None:
            tags["captions"] = f"{share_matched(before.captions, after.captions):.4f}"
        return tags

    def look(self, path: Path) -> Layout:
        """The layout of one image."""
        data = read_bytes(path)
        key = (path, path.stat().st_mtime_ns, len(data))
        if key not in self._known:
            image = decode(data, path.name)
            captions = None
            if self._find_lines is not None:
                captions = join_lines(self._find_lines(data, path.name), image.size)
            self._known[key] = Layout(count_panels(image), captions)
        return self._known[key]


_GAP = 0.9  # of a line's height: lines nearer than that belong to one caption
MATCH = 0.25  # a rewritten caption is longer or shorter, so half an overlap is too much to ask


def measure_overlap(one: Region, other: Region) -> float:
    """Intersection over union.

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
    """Caption regions from the boxes of lines: near ones below or beside each other are joined.

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
    """Whether two boxes overlap once each has grown by half the gap that a caption may have."""
    (a, line_a), (b, line_b) = one, other
    gap = _GAP * min(line_a, line_b)
    apart = (max(a[0], b[0]) - min(a[2], b[2]), max(a[1], b[1]) - min(a[3], b[3]))
    return apart[0] < gap and apart[1] < gap


def enclose(boxes: Sequence[PixelBox]) -> PixelBox:
    """The smallest box around some.

    >>> enclose([(0, 0, 5, 9), (3, 2, 8, 4)])
    (0, 0, 8, 9)
    """
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def share_matched(before: Sequence[Region], after: Sequence[Region]) -> float:
    """The share of regions of both images that have a partner; 1 where neither has any.

    Pairs are made from the best overlap down, each region once; a pair needs an overlap of
    :data:`MATCH`.

    >>> top, bottom = Region(0, 0, 1, 0.2), Region(0, 0.8, 1, 1)
    >>> share_matched([top, bottom], [top, bottom]), share_matched([top], [bottom])
    (1.0, 0.0)
    >>> round(share_matched([top, bottom], [top]), 4)
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
