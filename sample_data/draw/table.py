"""Food, drink, weather and small signs. Origins on the ground unless a line says else."""

from __future__ import annotations

import math
from typing import Literal

from sample_data.draw.canvas import INK, Pen, Point
from sample_data.draw.creatures import SHADOW, shade
from sample_data.draw.faces import Mood, face

Fruit = Literal["apple", "pear", "orange", "peach", "mango", "lemon", "tomato", "egg", "potato"]
_FRUIT = {
    "apple": "#e4574f",
    "pear": "#c7d05a",
    "orange": "#f79b3c",
    "peach": "#f9b09a",
    "mango": "#f7bd47",
    "lemon": "#f6df58",
    "tomato": "#e6503f",
    "egg": "#fbeede",
    "potato": "#cda06a",
}

_SHAPES: dict[str, list[Point]] = {
    "pear": [
        (0, -132),
        (26, -112),
        (34, -76),
        (58, -36),
        (36, -2),
        (-36, -2),
        (-58, -36),
        (-34, -76),
        (-26, -112),
    ],
    "mango": [(-20, -112), (34, -104), (66, -58), (44, -10), (-10, 0), (-52, -26), (-56, -74)],
    "lemon": [
        (-70, -54),
        (-44, -92),
        (0, -106),
        (44, -92),
        (70, -54),
        (44, -16),
        (0, -2),
        (-44, -16),
    ],
    "egg": [(0, -128), (40, -88), (52, -44), (30, -4), (-30, -4), (-52, -44), (-40, -88)],
    "potato": [
        (-30, -108),
        (28, -112),
        (58, -70),
        (54, -20),
        (18, 0),
        (-40, -4),
        (-60, -46),
        (-50, -88),
    ],
    "apple": [
        (0, -104),
        (34, -116),
        (62, -76),
        (46, -18),
        (16, 0),
        (0, -4),
        (-16, 0),
        (-46, -18),
        (-62, -76),
        (-34, -116),
    ],
    "peach": [
        (0, -112),
        (44, -102),
        (64, -58),
        (40, -10),
        (0, 0),
        (-40, -10),
        (-64, -58),
        (-44, -102),
    ],
}
_ROUND_SHAPE: list[Point] = [
    (0, -112),
    (44, -96),
    (60, -54),
    (42, -10),
    (0, 0),
    (-42, -10),
    (-60, -54),
    (-44, -96),
]


def cup(pen: Pen, colour: str = "#ffffff", mood: Mood | None = None, steam: bool = True) -> None:
    """A mug of coffee, 110 high without its steam."""
    pen.arc((50, -46), (24, 26), (-90, 90), INK, 15)
    pen.arc((50, -46), (24, 26), (-90, 90), colour, 7)
    pen.blob([(-50, -92), (50, -92), (48, -24), (32, 0), (-32, 0), (-48, -24)], colour)
    pen.oval((0, -92), (50, 12), "#7a4b2e")
    if mood:
        face(pen.at(0, -54, 0.72), mood, 24, 9)
    if steam:
        for x in (-20, 4, 26):
            pen.curve([(x, -112), (x - 8, -128), (x + 6, -142), (x - 2, -158)], "#ffffffcc", 5)


def kettle(pen: Pen, mood: Mood | None = "angry", colour: str = "#d95d4a") -> None:
    """A whistling kettle, 150 high; a mood gives it a face."""
    pen.limb([(54, -64), (86, -84), (100, -112)], colour, 16)
    pen.arc((0, -112), (48, 52), (180, 360), INK, 13)
    pen.blob([(-50, -108), (50, -108), (76, -34), (56, 0), (-56, 0), (-76, -34)], colour)
    pen.oval((0, -110), (40, 11), shade(colour, 0.8))
    pen.oval((0, -124), (9, 8), "#33364a")
    if mood:
        face(pen.at(0, -62), mood, 26, 9)


def steam(pen: Pen, colour: str = "#ffffff") -> None:
    """Three puffs, 60 wide, rising from the origin."""
    for x, y, r in ((0, -16, 14), (16, -40, 18), (-4, -66, 22)):
        pen.oval((x, y), (r, r * 0.9), colour, INK, 3)


def pot(pen: Pen, colour: str = "#6d7a96", mood: Mood | None = None) -> None:
    """A cooking pot, 190 wide, 100 high."""
    for side in (-1, 1):
        pen.box((side * 96 - 14, -78), (side * 96 + 14, -60), "#3a3d4f", 8)
    pen.blob([(-88, -96), (88, -96), (86, -24), (62, 0), (-62, 0), (-86, -24)], colour)
    pen.box((-96, -106), (96, -88), shade(colour, 1.3), 8)
    if mood:
        face(pen.at(0, -56), mood, 30, 10)


def flame(pen: Pen, size: float = 1.0) -> None:
    """A fire, 110 high."""
    pen = pen.at(0, 0, size)
    pen.blob(
        [(0, 0), (-40, -22), (-34, -66), (-14, -52), (-4, -112), (26, -70), (32, -84), (42, -30)],
        "#f0622d",
    )
    pen.blob([(0, -4), (-20, -20), (-12, -44), (2, -62), (20, -40), (20, -16)], "#fbc54a", None)


def bowl(
    pen: Pen, kind: Literal["noodles", "rice", "soup"] = "noodles", mood: Mood | None = None
) -> None:
    """A bowl of food with chopsticks, 180 wide, 130 high."""
    fill = {"noodles": "#f6dd92", "rice": "#fffdf6", "soup": "#e59a4f"}[kind]
    if kind == "rice":
        pen.blob([(-74, -80), (-40, -124), (0, -134), (40, -124), (74, -80)], fill)
    pen.oval((0, -80), (86, 20), fill)
    if kind == "noodles":
        for x in (-52, -22, 10, 42):
            pen.arc((x, -80), (22, 10), (0, 300), "#d9a94e", 4)
        pen.oval((34, -84), (20, 11), "#fff7e8", INK, 3)
        pen.oval((34, -85), (9, 5), "#f7a93b", None)
    pen.blob([(-88, -80), (88, -80), (62, -22), (34, -4), (-34, -4), (-62, -22)], "#d9534f")
    pen.polygon([(-88, -82), (88, -82), (86, -74), (-86, -74)], "#d9534f", None)
    pen.box((-34, -8), (34, 4), "#b8433f", 3)
    if mood:
        face(pen.at(0, -50, 0.85), mood, 28, 9)
    for x in (60, 76):
        pen.stroke([(x - 34, -86), (x + 44, -164)], "#7a4b2e", 7)


def fruit(pen: Pen, kind: Fruit = "apple", mood: Mood | None = "happy", colour: str = "") -> None:
    """A fruit (or egg, potato) with a face, about 130 high."""
    fill = colour or _FRUIT[kind]
    pen.oval((0, 0), (52, 9), SHADOW, None)
    pen.blob(_SHAPES.get(kind, _ROUND_SHAPE), fill)
    if kind not in ("egg", "potato"):
        top = -112 if kind != "pear" else -132
        pen.curve([(0, top + 6), (2, top - 8), (8, top - 20)], "#6b4a2e", 7)
        pen.blob([(6, top - 8), (28, top - 26), (48, top - 18), (28, top - 4)], "#6cb35d", INK, 3)
    if kind == "peach":
        pen.curve([(0, -108), (10, -80), (4, -50)], shade(fill, 0.85), 4)
    if kind == "potato":
        for x, y in ((-30, -90), (34, -30), (-38, -26), (24, -96)):
            pen.oval((x, y), (4, 3), shade(fill, 0.75), None)
    if mood:
        face(pen.at(0, -60, 0.85), mood, 24, 9)


def garlic(pen: Pen, mood: Mood | None = "sad") -> None:
    """A bulb of garlic, 130 high."""
    pen.oval((0, 0), (50, 9), SHADOW, None)
    pen.blob(
        [
            (0, -140),
            (10, -104),
            (52, -70),
            (54, -24),
            (24, 0),
            (-24, 0),
            (-54, -24),
            (-52, -70),
            (-10, -104),
        ],
        "#f8f2ec",
    )
    for side in (-1, 1):
        pen.curve([(side * 4, -108), (side * 26, -70), (side * 18, -4)], "#cdb7c9", 4)
    if mood:
        face(pen.at(0, -48, 0.8), mood, 24, 9)


def carrot(pen: Pen, mood: Mood | None = "happy") -> None:
    """A carrot standing on its tip, 180 high."""
    for turn in (-26, 0, 26):
        pen.at(0, -118, 1, turn).blob([(0, 6), (-11, -26), (0, -62), (11, -26)], "#6cb35d")
    pen.blob([(-40, -116), (0, -128), (40, -116), (34, -60), (0, 0), (-34, -60)], "#f28a3a")
    for y, side in ((-40, 1), (-28, -1)):
        pen.stroke([(side * 8, y), (side * 20, y - 2)], "#c9641f", 4)
    if mood:
        face(pen.at(0, -88, 0.72), mood, 24, 9)


def cake(pen: Pen, candles: int = 1) -> None:
    """A small cake, 150 wide."""
    pen.box((-74, -64), (74, 0), "#f5d7a6", 8)
    pen.box((-74, -40), (74, -28), "#e58a9a", 0)
    pen.blob(
        [
            (-78, -70),
            (0, -84),
            (78, -70),
            (74, -50),
            (44, -44),
            (20, -56),
            (-8, -42),
            (-38, -54),
            (-72, -46),
        ],
        "#fff4f6",
    )
    for number in range(candles):
        x = (number - (candles - 1) / 2) * 30
        pen.box((x - 5, -118), (x + 5, -78), "#7cc7f2", 2)
        pen.blob([(x, -142), (x + 7, -126), (x, -119), (x - 7, -126)], "#fbc54a", INK, 3)


def pizza(pen: Pen) -> None:
    """A slice of pizza, 150 high, tip down at the origin."""
    pen.polygon([(0, 0), (-64, -120), (64, -120)], "#f9cf62")
    pen.blob([(-72, -120), (0, -146), (72, -120), (60, -108), (0, -126), (-60, -108)], "#d39a52")
    for x, y in ((-22, -92), (22, -84), (0, -48)):
        pen.oval((x, y), (14, 13), "#d9534f", INK, 3)


def cloud(pen: Pen, mood: Mood | None = None, rain: bool = False, colour: str = "#ffffff") -> None:
    """A cloud, 220 wide, origin at its middle; it may rain and have a face."""
    if rain:
        for x in (-70, -35, 0, 35, 70):
            for y in (58, 104):
                drop = y + (18 if x % 70 else 0)
                pen.stroke([(x, drop), (x - 8, drop + 24)], "#4f9bd1", 6)
    pen.blob(
        [
            (-110, 26),
            (-104, -12),
            (-66, -24),
            (-46, -66),
            (8, -76),
            (46, -50),
            (88, -40),
            (112, 2),
            (100, 36),
            (0, 44),
            (-92, 42),
        ],
        colour,
    )
    if mood:
        face(pen.at(0, -8), mood, 32, 10)


def sun(pen: Pen, mood: Mood | None = "happy", colour: str = "#ffcf4a") -> None:
    """A sun with rays, 200 wide, origin at its middle."""
    for ray in range(12):
        a = math.radians(ray * 30)
        pen.stroke(
            [(76 * math.cos(a), 76 * math.sin(a)), (98 * math.cos(a), 98 * math.sin(a))],
            "#f2a93b",
            10,
        )
    pen.oval((0, 0), (64, 64), colour)
    if mood:
        face(pen.at(0, -6), mood, 27, 9)


def heart(pen: Pen, colour: str = "#ef5d6c", mood: Mood | None = None) -> None:
    """A heart, 110 high, origin at its middle."""
    pen.blob(
        [
            (0, -26),
            (22, -54),
            (54, -46),
            (58, -8),
            (28, 32),
            (0, 56),
            (-28, 32),
            (-58, -8),
            (-54, -46),
            (-22, -54),
        ],
        colour,
    )
    if mood:
        face(pen.at(0, -10, 0.75), mood, 24, 9)


def arrow(pen: Pen, colour: str = "#e4572e") -> None:
    """A bold arrow pointing right, 120 long, origin at its middle."""
    pen.polygon([(-60, -14), (14, -14), (14, -38), (62, 0), (14, 38), (14, 14), (-60, 14)], colour)


def spark(pen: Pen, colour: str = "#ffd95a") -> None:
    """A four-pointed sparkle, 60 high, origin at its middle."""
    pen.polygon(
        [(0, -30), (7, -7), (30, 0), (7, 7), (0, 30), (-7, 7), (-30, 0), (-7, -7)], colour, INK, 3
    )


def snooze(pen: Pen, colour: str = "#6b6fa8") -> None:
    """Three Z shapes rising to the right from the origin."""
    for x, y, size in ((0, 0, 12), (26, -30, 16), (58, -68, 21)):
        pen.stroke([(x, y - size), (x + size, y - size), (x, y), (x + size, y)], colour, 5)


def scribble(pen: Pen, colour: str = INK) -> None:
    """A cross dark scribble over a head, origin at its middle."""
    points = [
        (30 * math.sin(i * 2.2) * (1 - i / 40), -i * 1.2 + 14 * math.cos(i * 2.9))
        for i in range(22)
    ]
    pen.curve(points, colour, 5)
