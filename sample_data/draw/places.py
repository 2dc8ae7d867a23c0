"""Backgrounds; each fills its canvas."""

from __future__ import annotations

import math

from sample_data.draw.canvas import INK, SAMPLING, Canvas, Point, around
from sample_data.draw.creatures import shade


def gradient(canvas: Canvas, top: str, bottom: str, bands: int = 14) -> None:
    """Soft horizontal bands from one colour to another."""
    high = [int(top[i : i + 2], 16) for i in (1, 3, 5)]
    low = [int(bottom[i : i + 2], 16) for i in (1, 3, 5)]
    for band in range(bands):
        share = band / max(1, bands - 1)
        mixed = "#" + "".join(
            f"{round(a + (b - a) * share):02x}" for a, b in zip(high, low, strict=True)
        )
        start, end = band / bands * canvas.height, (band + 1) / bands * canvas.height
        canvas.brush.rectangle(
            (0, start * SAMPLING, canvas.width * SAMPLING, end * SAMPLING), fill=mixed
        )


def burst(canvas: Canvas, colour: str, rays: int = 16) -> None:
    """Rays from the middle, as behind a strong reaction."""
    x, y = canvas.width / 2, canvas.height / 2
    pen, reach = canvas.pen, canvas.width + canvas.height
    pen.box((0, 0), (canvas.width, canvas.height), colour, 0, None)
    for ray in range(rays):
        a, b = (math.radians(360 / rays * (ray + o)) for o in (0, 0.5))
        corners = [(x, y)] + [(x + reach * math.cos(t), y + reach * math.sin(t)) for t in (a, b)]
        pen.polygon(corners, shade(colour, 1.25), None)


def room(canvas: Canvas, wall: str = "#f3e3cf", floor: str = "#c99b6d", line: float = 0.72) -> None:
    """A wall, a skirting board and a floor; ``line`` is where the floor begins (0 to 1)."""
    width, height = canvas.width, canvas.height
    edge = height * line
    pen = canvas.pen
    pen.box((0, 0), (width, edge), wall, 0, None)
    pen.box((0, edge), (width, height), floor, 0, None)
    pen.box((0, edge - 14), (width, edge), shade(wall, 1.5), 0, None)
    pen.stroke([(0, edge), (width, edge)], INK, 3)
    for step in (0.3, 0.66):
        y = edge + (height - edge) * step
        pen.stroke([(0, y), (width, y)], shade(floor, 0.88), 3)


def sky(canvas: Canvas, ground: str = "#8fc26b", line: float = 0.74) -> None:
    """A day sky with clouds over a meadow (or street: choose ``ground``)."""
    gradient(canvas, "#8fd0f5", "#dff3fb")
    pen, width, height = canvas.pen, canvas.width, canvas.height
    for x, y, size in ((0.2, 0.16, 1.0), (0.78, 0.26, 0.75)):
        puff = canvas.at(width * x, height * y, size * width / 720)
        for dx, dy, r in ((-52, 6, 30), (-16, -14, 38), (28, -6, 34), (60, 10, 24)):
            puff.oval((dx, dy), (r, r * 0.8), "#ffffff", None)
    pen.box((0, height * line), (width, height), ground, 0, None)
    pen.stroke([(0, height * line), (width, height * line)], INK, 3)


def night(
    canvas: Canvas, ground: str = "#3c4a6e", line: float = 0.76, moon: Point = (0.87, 0.15)
) -> None:
    """A starry night with a moon at a share of width and height."""
    gradient(canvas, "#1d2148", "#4a4f86")
    pen, width, height = canvas.pen, canvas.width, canvas.height
    for step in range(26):
        x, y = (step * 0.381966) % 1, (step * 0.2763 + 0.07) % max(0.2, line - 0.08)
        pen.oval((x * width, y * height), (2.2, 2.2), "#fff6c9", None)
    reach = width * 0.055
    crescent = [
        *around((0, 0), (reach, reach), 60, 300),
        *around((reach * 0.5, 0), (reach * 0.866, reach * 0.866), 270, 90),
    ]
    canvas.at(width * moon[0], height * moon[1], 1, -30).polygon(crescent, "#ffeaa0", None)
    if line < 1:
        pen.box((0, height * line), (width, height), ground, 0, None)
        pen.stroke([(0, height * line), (width, height * line)], INK, 3)


def water(canvas: Canvas, line: float = 0.3) -> None:
    """Sky above, water below, with waves and bubbles."""
    gradient(canvas, "#c9ecfa", "#f2fbff")
    pen, width, height = canvas.pen, canvas.width, canvas.height
    edge = height * line
    waves = [(x, edge + 8 * math.sin(x / 34)) for x in range(0, width + 12, 12)]
    pen.polygon([*waves, (width, height), (0, height)], "#5cb3d9", None)
    pen.polygon(
        [(0, height * 0.72), (width, height * 0.66), (width, height), (0, height)], "#4798c2", None
    )
    pen.stroke(waves, INK, 4)
    for x, y, r in (
        (0.12, 0.55, 9),
        (0.16, 0.48, 6),
        (0.87, 0.62, 10),
        (0.9, 0.54, 6),
        (0.6, 0.85, 7),
    ):
        pen.arc((width * x, height * y), (r, r), (0, 360), "#d5f1fb", 3)


def kitchen(canvas: Canvas) -> None:
    """Tiles and a worktop whose edge lies at 70 % of the height."""
    width, height = canvas.width, canvas.height
    pen = canvas.pen
    pen.box((0, 0), (width, height), "#e7f1ea", 0, None)
    side = width / 9
    for step in range(10):
        pen.stroke([(step * side, 0), (step * side, height * 0.7)], "#cddfd4", 3)
        if step * side < height * 0.7:
            pen.stroke([(0, step * side), (width, step * side)], "#cddfd4", 3)
    pen.box((0, height * 0.7), (width, height), "#b98252", 0, None)
    pen.box((0, height * 0.7), (width, height * 0.75), "#dba873", 0, None)
    for y in (0.7, 0.75):
        pen.stroke([(0, height * y), (width, height * y)], INK, 3)
