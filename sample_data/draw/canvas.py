"""Canvas and pen: outlined flat shapes in local coordinates, drawn large and sampled down."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

Point = tuple[float, float]
SAMPLING = 3
INK = "#2b2440"
COLOURS = 224


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of text that was printed on a canvas."""

    text: str
    style: str
    panel: int = 0


class Canvas:
    """A picture being drawn. Coordinates are final pixels, y grows downwards.

    Everything that prints text notes it in ``printed``, so that the annotations can never differ
    from what is seen.
    """

    def __init__(self, width: int = 720, height: int = 720, colour: str = "#ffffff") -> None:
        self.width, self.height = width, height
        self.image = Image.new("RGB", (width * SAMPLING, height * SAMPLING), colour)
        self.brush = ImageDraw.Draw(self.image, "RGBA")
        self.printed: list[Printed] = []
        self.panels = 1

    def at(
        self, x: float, y: float, size: float = 1.0, angle: float = 0.0, flip: bool = False
    ) -> Pen:
        """A pen whose origin is at (x, y), scaled, turned clockwise by degrees, maybe mirrored."""
        return Pen(self, (1, 0, 0, 1, 0, 0), 1.0).at(x, y, size, angle, flip)

    @property
    def pen(self) -> Pen:
        """A pen in plain pixels."""
        return self.at(0, 0)

    def finish(self) -> Image.Image:
        """Sample down and reduce to a palette."""
        small = self.image.reduce(SAMPLING)
        return small.quantize(COLOURS, Image.Quantize.MEDIANCUT, 2, dither=Image.Dither.NONE)

    def png(self) -> bytes:
        """The finished picture as PNG bytes."""
        buffer = io.BytesIO()
        self.finish().save(buffer, "PNG", optimize=True)
        return buffer.getvalue()


class Pen:
    """Draws shapes in local coordinates; ``at`` gives a pen for a part."""

    def __init__(self, canvas: Canvas, matrix: Sequence[float], scale: float) -> None:
        self.canvas, self.matrix, self.scale = canvas, tuple(matrix), scale

    def at(
        self, x: float, y: float, size: float = 1.0, angle: float = 0.0, flip: bool = False
    ) -> Pen:
        """A pen with its origin at (x, y) of this one."""
        turn = math.radians(angle)
        mirror = -1 if flip else 1
        cos, sin = math.cos(turn) * size, math.sin(turn) * size
        a, b, c, d, e, f = self.matrix
        p, q, r, s = cos * mirror, sin * mirror, -sin, cos
        matrix = (
            a * p + c * q,
            b * p + d * q,
            a * r + c * s,
            b * r + d * s,
            a * x + c * y + e,
            b * x + d * y + f,
        )
        return Pen(self.canvas, matrix, self.scale * size)

    def spot(self, x: float, y: float) -> Point:
        """Where a local point lies on the canvas, in final pixels."""
        a, b, c, d, e, f = self.matrix
        return a * x + c * y + e, b * x + d * y + f

    def _map(self, points: Sequence[Point]) -> list[Point]:
        spots = (self.spot(x, y) for x, y in points)
        return [(x * SAMPLING, y * SAMPLING) for x, y in spots]

    def _width(self, width: float) -> float:
        return width * min(max(self.scale, 0.5), 1.6) * SAMPLING

    def polygon(
        self, points: Sequence[Point], fill: str, line: str | None = INK, width: float = 4
    ) -> None:
        """A closed shape with straight sides; ``line=None`` leaves the outline out."""
        spots = self._map(points)
        self.canvas.brush.polygon(spots, fill=fill)
        if line:
            self._trace([*spots, spots[0]], line, self._width(width))

    def blob(
        self, points: Sequence[Point], fill: str, line: str | None = INK, width: float = 4
    ) -> None:
        """A closed smooth shape through the points."""
        self.polygon(smooth(points, closed=True), fill, line, width)

    def oval(
        self,
        centre: Point,
        radii: Point,
        fill: str,
        line: str | None = INK,
        width: float = 4,
    ) -> None:
        """An ellipse."""
        self.polygon(around(centre, radii, 0, 360), fill, line, width)

    def box(
        self,
        first: Point,
        last: Point,
        fill: str,
        radius: float = 0,
        line: str | None = INK,
    ) -> None:
        """A rectangle between two corners, with rounded corners if asked."""
        self.polygon(rounded(first, last, radius), fill, line)

    def stroke(self, points: Sequence[Point], line: str = INK, width: float = 4) -> None:
        """An open line with round ends and straight pieces."""
        self._trace(self._map(points), line, self._width(width))

    def curve(self, points: Sequence[Point], line: str = INK, width: float = 4) -> None:
        """An open smooth line through the points."""
        self.stroke(smooth(points, closed=False), line, width)

    def limb(self, points: Sequence[Point], fill: str, width: float, line: str = INK) -> None:
        """An outlined thick smooth line: an arm, a leg, a tail, a pipe."""
        self.curve(points, line, width + 8)
        self.curve(points, fill, width)

    def arc(
        self, centre: Point, radii: Point, ends: Point, line: str = INK, width: float = 4
    ) -> None:
        """Part of an ellipse's outline, from one angle to another (0 = right, 90 = down)."""
        self.stroke(around(centre, radii, *ends), line, width)

    def _trace(self, spots: Sequence[Point], line: str, width: float) -> None:
        # Pillow's own joints leave notches at sharp corners; a disc at each point does not.
        brush, thick = self.canvas.brush, max(1, round(width))
        half = (thick - 1) / 2
        if len(line) == 9:
            brush.line(list(spots), fill=line, width=thick, joint="curve")
            return
        brush.line(list(spots), fill=line, width=thick)
        for x, y in spots:
            brush.ellipse((x - half, y - half, x + half, y + half), fill=line)


def around(centre: Point, radii: Point, start: float, end: float) -> list[Point]:
    """Points along an ellipse."""
    steps = max(8, round(abs(end - start) / 5))
    angles = (math.radians(start + (end - start) * i / steps) for i in range(steps + 1))
    return [
        (centre[0] + radii[0] * math.cos(t), centre[1] + radii[1] * math.sin(t)) for t in angles
    ]


def rounded(first: Point, last: Point, radius: float) -> list[Point]:
    """The corners of a rectangle, rounded."""
    (x0, y0), (x1, y1) = first, last
    radius = min(radius, abs(x1 - x0) / 2, abs(y1 - y0) / 2)
    if radius <= 0:
        return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    corners = (
        ((x1 - radius, y0 + radius), 270),
        ((x1 - radius, y1 - radius), 0),
        ((x0 + radius, y1 - radius), 90),
        ((x0 + radius, y0 + radius), 180),
    )
    return [
        p for centre, turn in corners for p in around(centre, (radius, radius), turn, turn + 90)
    ]


def smooth(points: Sequence[Point], *, closed: bool, steps: int = 10) -> list[Point]:
    """A Catmull-Rom curve through the points."""
    count = len(points)
    if count < 3:
        return list(points)

    def pick(i: int) -> Point:
        return points[i % count] if closed else points[min(max(i, 0), count - 1)]

    result: list[Point] = []
    for i in range(count if closed else count - 1):
        a, b, c, d = pick(i - 1), pick(i), pick(i + 1), pick(i + 2)
        for k in range(steps):
            t = k / steps
            x, y = (
                0.5
                * (
                    2 * b[n]
                    + (c[n] - a[n]) * t
                    + (2 * a[n] - 5 * b[n] + 4 * c[n] - d[n]) * t**2
                    + (3 * b[n] - a[n] - 3 * c[n] + d[n]) * t**3
                )
                for n in (0, 1)
            )
            result.append((x, y))
    if not closed:
        result.append(points[-1])
    return result


def grid(panels: Sequence[Canvas], columns: int = 2, gap: int = 8, colour: str = INK) -> Canvas:
    """Lay equally large canvases out as panels; texts remember their panel."""
    width, height = panels[0].width, panels[0].height
    rows = -(-len(panels) // columns)
    whole = Canvas(columns * width + (columns - 1) * gap, rows * height + (rows - 1) * gap, colour)
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        corner = (column * (width + gap) * SAMPLING, row * (height + gap) * SAMPLING)
        whole.image.paste(panel.image, corner)
        whole.printed += [Printed(p.text, p.style, number) for p in panel.printed]
    whole.panels = len(panels)
    return whole
