"""Things of work and home. Origins are on the ground, below the middle, unless a line says else."""

from __future__ import annotations

import math

from sample_data.draw.canvas import INK, Pen
from sample_data.draw.creatures import SHADOW, shade
from sample_data.draw.faces import Mood, face


def desk(pen: Pen, width: float = 420, colour: str = "#b9804f") -> None:
    """A desk 120 units high; put things at y = -120."""
    half = width / 2
    for side in (-1, 1):
        pen.box((side * (half - 26) - 13, -112), (side * (half - 26) + 13, 0), shade(colour, 0.8))
    pen.box((-half, -126), (half, -100), colour, 8)


def laptop(pen: Pen, screen: str = "#d6efff", face_on: Mood | None = None) -> None:
    """An open laptop with its screen to the viewer, 150 wide; a mood gives it a face."""
    pen.box((-72, -106), (72, -8), "#4a4e63", 10)
    pen.box((-62, -96), (62, -18), screen, 5, None)
    pen.polygon([(-74, -8), (74, -8), (92, 6), (-92, 6)], "#8a8fa6")
    if face_on:
        face(pen.at(0, -66, 0.8), face_on, 26, 9)


def laptop_back(pen: Pen, lid: str = "#8a8fa6") -> None:
    """A laptop seen from behind its lid, for people who sit at it."""
    pen.box((-76, -104), (76, 0), lid, 10)
    pen.oval((0, -54), (12, 12), shade(lid, 1.5), None)
    pen.box((-92, -6), (92, 6), shade(lid, 0.8), 5)


def monitor(pen: Pen, screen: str = "#263248", lines: bool = True) -> None:
    """A large screen, 240 wide, 200 high; with coloured lines of code, or empty."""
    pen.box((-18, -40), (18, -6), "#6d7188")
    pen.box((-64, -12), (64, 0), "#6d7188", 6)
    pen.box((-124, -196), (124, -36), "#4a4e63", 12)
    pen.box((-112, -184), (112, -48), screen, 6, None)
    if lines:
        rows = ((0, 60, "#f2b134"), (16, 110, "#7cc7f2"), (16, 84, "#e07a8b"), (32, 120, "#9bd17f"))
        for number in range(7):
            indent, length, colour = rows[(number * 3) % 4]
            y = -170 + number * 18
            pen.stroke([(-96 + indent, y), (-96 + indent + length, y)], colour, 6)


def phone(pen: Pen, screen: str = "#bfe6ff", face_on: Mood | None = None) -> None:
    """A phone, 70 wide, 130 high, origin at the middle."""
    pen.box((-36, -66), (36, 66), "#33364a", 12)
    pen.box((-29, -54), (29, 52), screen, 5, None)
    pen.oval((0, 59), (4, 4), "#8a8fa6", None)
    if face_on:
        face(pen.at(0, -8, 0.55), face_on, 24, 10)


def clock(pen: Pen, hour: float = 3, colour: str = "#fffdf5") -> None:
    """A wall clock, 120 wide, origin at the middle; ``hour`` may have a fraction."""
    pen.oval((0, 0), (60, 60), colour, INK, 6)
    for mark in range(12):
        a = math.radians(mark * 30)
        pen.stroke(
            [(48 * math.cos(a), 48 * math.sin(a)), (53 * math.cos(a), 53 * math.sin(a))], INK, 4
        )
    for turn, length, width in ((hour * 30, 27, 7), ((hour % 1) * 360, 42, 5)):
        a = math.radians(turn - 90)
        pen.stroke([(0, 0), (length * math.cos(a), length * math.sin(a))], INK, width)
    pen.oval((0, 0), (5, 5), "#e4572e", None)


def alarm(pen: Pen, mood: Mood | None = "angry", colour: str = "#e4572e") -> None:
    """An alarm clock that rings, 130 high; a mood gives it a face, None gives hands."""
    for side in (-1, 1):
        pen.stroke([(side * 34, -20), (side * 46, 0)], INK, 9)
        pen.oval((side * 38, -116), (24, 18), colour)
        pen.arc((side * 66, -118), (14, 22), (-60, 60) if side > 0 else (120, 240), INK, 4)
    pen.oval((0, -62), (56, 56), colour)
    pen.oval((0, -62), (44, 44), "#fffdf5", INK, 3)
    if mood:
        face(pen.at(0, -70, 0.78), mood, 22, 9)
    else:
        pen.stroke([(0, -94), (0, -62), (20, -52)], INK, 5)


def bed(pen: Pen, blanket: str = "#7d8fd1", width: float = 420) -> None:
    """A bed from the side, head on the left, mattress top at y = -86."""
    half = width / 2
    pen.box((-half - 14, -170), (-half + 14, 0), "#8d5f3c", 8)
    pen.box((half - 10, -110), (half + 12, 0), "#8d5f3c", 8)
    pen.box((-half, -60), (half, -22), "#a8744a")
    pen.box((-half + 8, -92), (half - 6, -48), "#fbf7f0", 14)
    pen.blob(
        [
            (-half + 20, -100),
            (-half + 66, -124),
            (-half + 116, -104),
            (-half + 104, -84),
            (-half + 28, -84),
        ],
        "#ffffff",
    )
    pen.blob(
        [
            (-half + 130, -100),
            (-half + 210, -116),
            (half - 30, -108),
            (half - 4, -70),
            (half - 8, -34),
            (-half + 130, -34),
        ],
        blanket,
    )


def blanket_lump(pen: Pen, colour: str = "#7d8fd1") -> None:
    """A blanket from which only a face should look: draw a head at (0, -70) first or after."""
    pen.blob([(-130, 0), (-112, -60), (-50, -108), (50, -108), (112, -60), (130, 0)], colour)
    for x in (-60, 66):
        pen.curve([(x, -20), (x * 0.8, -46), (x * 0.5, -62)], shade(colour, 0.75), 4)


def sofa(pen: Pen, colour: str = "#5f9e8f", width: float = 380) -> None:
    """A sofa, seat at y = -80."""
    half = width / 2
    pen.box((-half + 20, -168), (half - 20, -40), colour, 30)
    pen.box((-half + 30, -92), (half - 30, -30), shade(colour, 1.25), 14)
    for side in (-1, 1):
        pen.box(
            (side * (half - 24) - 26, -116), (side * (half - 24) + 26, -14), shade(colour, 0.9), 22
        )
        pen.box((side * (half - 40) - 8, -14), (side * (half - 40) + 8, 0), "#5b3d2a")


def plant(pen: Pen, mood: Mood | None = None, wilted: bool = False) -> None:
    """A potted plant, 170 high; it may hang its leaves or have a face on its pot."""
    leaf = "#5fae62" if not wilted else "#a9a35a"
    for turn in (-58, -28, 0, 28, 58):
        angle = turn if not wilted else turn * 2.1 + (24 if turn >= 0 else -24)
        blade = pen.at(0, -74, 1, angle)
        blade.blob(
            [(0, 4), (-17, -44), (0, -98), (17, -44)], leaf if turn % 56 else shade(leaf, 0.88)
        )
    pen.polygon([(-46, -76), (46, -76), (34, 0), (-34, 0)], "#d9764a")
    pen.box((-52, -88), (52, -68), "#e58a5e", 5)
    if mood:
        face(pen.at(0, -48, 0.62), mood, 24, 10)


def books(pen: Pen, count: int = 5, colours: tuple[str, ...] = ()) -> None:
    """A pile of books, 26 units each."""
    tones = colours or ("#e07a5f", "#3d85c6", "#f2b134", "#6aa84f", "#8e6bbf")
    for number in range(count):
        shift = (-10, 8, -4, 12, 0)[number % 5]
        y = -26 * number
        pen.box((-74 + shift, y - 26), (74 + shift, y), tones[number % len(tones)], 5)
        pen.box((48 + shift, y - 20), (74 + shift, y - 6), "#fbf7ea", 0)


def papers(pen: Pen, count: int = 8) -> None:
    """A leaning pile of papers, 16 units each."""
    for number in range(count):
        shift = 9 * math.sin(number * 1.7)
        y = -15 * number
        pen.polygon(
            [(-60 + shift, y - 14), (60 + shift, y - 16), (62 + shift, y), (-58 + shift, y + 2)],
            "#fdfbf4",
        )
        pen.stroke([(-44 + shift, y - 7), (20 + shift, y - 8)], "#b9b6c6", 3)


def window(pen: Pen, view: str = "#bfe6ff", width: float = 170) -> None:
    """A window, origin at its middle."""
    half = width / 2
    pen.box((-half, -half), (half, half), "#fffdf5", 6)
    pen.box((-half + 12, -half + 12), (half - 12, half - 12), view, 0)
    pen.stroke([(0, -half + 12), (0, half - 12)], "#fffdf5", 9)
    pen.stroke([(-half + 12, 0), (half - 12, 0)], "#fffdf5", 9)


def door(pen: Pen, colour: str = "#a8744a", height: float = 300) -> None:
    """A closed door."""
    pen.box((-78, -height - 12), (78, 0), shade(colour, 0.7), 4)
    pen.box((-66, -height), (66, 0), colour, 2)
    for top, low in ((0.9, 0.56), (0.46, 0.1)):
        pen.box((-44, -height * top), (44, -height * low), shade(colour, 1.15), 4)
    pen.oval((50, -height * 0.5), (8, 8), "#f2c84b")


def lamp(pen: Pen, on: bool = True) -> None:
    """A desk lamp, 150 high."""
    pen.oval((0, -4), (36, 8), "#4a4e63")
    pen.stroke([(0, -6), (-16, -70), (14, -122)], INK, 8)
    if on:
        pen.polygon([(-6, -104), (70, -104), (110, -6), (-20, -6)], "#ffef9a66", None)
    pen.polygon([(4, -142), (48, -136), (68, -100), (-8, -108)], "#e4572e")


def dumbbell(pen: Pen, colour: str = "#4a4e63") -> None:
    """A dumbbell, 160 long, origin at its middle."""
    pen.stroke([(-50, 0), (50, 0)], INK, 18)
    pen.stroke([(-50, 0), (50, 0)], "#b9bccb", 10)
    for side in (-1, 1):
        pen.box((side * 56 - 12, -38), (side * 56 + 12, 38), colour, 8)
        pen.box((side * 76 - 8, -26), (side * 76 + 8, 26), shade(colour, 1.2), 6)


def box_parcel(pen: Pen, colour: str = "#d3a26c") -> None:
    """A closed cardboard box, 130 wide, 110 high."""
    pen.box((-66, -110), (66, 0), colour, 4)
    pen.box((-14, -110), (14, 0), shade(colour, 1.35), 0, None)
    pen.stroke([(-66, -80), (66, -80)], INK, 3)


def trophy(pen: Pen) -> None:
    """A golden cup, 140 high."""
    for side in (-1, 1):
        pen.arc((side * 44, -104), (22, 24), (0, 360), INK, 14)
        pen.arc((side * 44, -104), (22, 24), (0, 360), "#f2c84b", 7)
    pen.box((-38, -18), (38, 0), "#8d5f3c", 4)
    pen.box((-8, -60), (8, -16), "#f2c84b")
    pen.blob([(-46, -140), (46, -140), (44, -92), (0, -52), (-44, -92)], "#f7cf52")
    pen.stroke([(-24, -126), (-22, -96)], "#fff3c4", 7)


def battery(pen: Pen, share: float = 0.1, mood: Mood | None = None) -> None:
    """A battery, 190 long and 90 high, origin at its middle; ``share`` is how full it is."""
    colour = "#e4572e" if share < 0.3 else "#5fb760"
    pen.box((88, -18), (104, 18), "#4a4e63", 4)
    pen.box((-92, -45), (92, 45), "#f4f4f7", 14)
    pen.box((-82, -35), (-82 + 164 * share, 35), colour, 6, None)
    if mood:
        face(pen.at(6, -8, 0.8), mood, 28, 9)


def traffic_light(pen: Pen, lit: str = "red") -> None:
    """A traffic light on a pole, 260 high; ``lit`` is red, yellow or green."""
    pen.box((-8, -120), (8, 0), "#5d6175")
    pen.box((-38, -264), (38, -112), "#3a3d4f", 16)
    for number, (name, colour) in enumerate(
        (("red", "#ef4b4b"), ("yellow", "#f7cf52"), ("green", "#4fc26b"))
    ):
        pen.oval((0, -238 + number * 50), (20, 20), colour if name == lit else "#23252f", INK, 3)


def car(pen: Pen, colour: str = "#d9534f", mood: Mood | None = None) -> None:
    """A small car from the side, facing right, 240 long."""
    pen.oval((0, 2), (120, 10), SHADOW, None)
    pen.blob(
        [
            (-116, -30),
            (-104, -66),
            (-66, -74),
            (-36, -116),
            (44, -116),
            (78, -74),
            (112, -62),
            (118, -28),
            (100, -18),
            (-104, -18),
        ],
        colour,
    )
    pen.polygon([(-50, -76), (-28, -104), (0, -104), (0, -76)], "#d6efff", INK, 3)
    pen.polygon([(10, -76), (10, -104), (38, -104), (62, -76)], "#d6efff", INK, 3)
    for x in (-64, 68):
        pen.oval((x, -18), (26, 26), "#33364a")
        pen.oval((x, -18), (11, 11), "#b9bccb", None)
    if mood:
        face(pen.at(88, -50, 0.5), mood, 16, 9)


def umbrella(pen: Pen, colour: str = "#e4572e") -> None:
    """An open umbrella, 200 wide, handle end at the origin."""
    pen.stroke([(0, -150), (0, -6)], INK, 7)
    pen.arc((-12, -6), (12, 12), (0, 180), INK, 7)
    shape = [(-100, -140), (-84, -186), (-44, -220), (0, -230), (44, -220), (84, -186), (100, -140)]
    pen.polygon([*shape, (66, -152), (34, -140), (0, -152), (-34, -140), (-66, -152)], colour)
    for x in (-34, 34):
        pen.curve([(x, -142), (x * 0.7, -190), (0, -228)], INK, 3)


def bug(pen: Pen, mood: Mood = "happy", colour: str = "#d9534f") -> None:
    """A beetle seen from above, 110 high, origin at its middle."""
    for side in (-1, 1):
        for y, reach in ((-14, -26), (8, 8), (28, 40)):
            pen.stroke([(side * 34, y), (side * 58, reach)], INK, 5)
        pen.curve([(side * 12, -50), (side * 18, -72), (side * 30, -78)], INK, 4)
    pen.oval((0, 8), (44, 50), colour)
    pen.stroke([(0, -20), (0, 56)], INK, 4)
    for x, y in ((-20, 8), (20, 8), (-16, 34), (16, 34)):
        pen.oval((x, y), (8, 8), INK, None)
    pen.oval((0, -34), (32, 26), "#4a4152")
    for side in (-1, 1):
        pen.oval((side * 12, -38), (10, 10), "#ffffff", None)
        pen.oval((side * 12, -37), (4, 4), INK, None)
    if mood == "happy":
        pen.arc((0, -27), (9, 6), (20, 160), "#ffffff", 3)
