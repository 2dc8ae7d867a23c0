"""Whether an edited meme has the layout of its source, told from both images alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.core.images import decode, read_bytes
from memantics.vision.panels import count_panels
from memantics.vision.regions import PixelBox, Region, join_lines, share_matched

# Any OCR: the bytes of an image file and its name, to the boxes of its lines.
FindLines = Callable[[bytes, str], Sequence[PixelBox]]


@dataclass(frozen=True, slots=True)
class Layout:
    """One image's layout; ``captions`` is None where nobody read it."""

    panels: int
    captions: tuple[Region, ...] | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two layouts side by side; ``captions`` is the share of caption regions that stayed."""

    panels: tuple[int, int]
    captions: float | None = None

    def tag(self) -> Mapping[str, str]:
        """As tags of an item.

        >>> dict(Comparison((2, 1), 0.5).tag())
        {'panels': '2 1', 'captions': '0.5000'}
        """
        tags = {"panels": f"{self.panels[0]} {self.panels[1]}"}
        return tags if self.captions is None else tags | {"captions": f"{self.captions:.4f}"}


class LayoutCheck:
    """Compares layouts; each image is looked at once. Without ``find_lines`` only panels count."""

    def __init__(self, find_lines: FindLines | None = None) -> None:
        self._find_lines = find_lines
        self._known: dict[tuple[Path, int, int], Layout] = {}

    def compare(self, source: Path, edited: Path) -> Comparison:
        """Look at both images."""
        before, after = self.look(source), self.look(edited)
        captions = None
        if before.captions is not None and after.captions is not None:
            captions = share_matched(before.captions, after.captions)
        return Comparison((before.panels, after.panels), captions)

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
