"""People with expressive faces. Origins are on the ground; a person is about 260 units tall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sample_data.draw.canvas import INK, Pen, Point
from sample_data.draw.creatures import SHADOW, shade
from sample_data.draw.faces import Mood, face

Hair = Literal["short", "long", "bun", "curly", "bald", "cap", "messy", "ponytail", "chef", "grey"]
Pose = Literal["stand", "up", "shrug", "hips", "point", "cheeks", "wave", "down", "hold"]
_HANDS: dict[str, tuple[tuple[Point, Point], tuple[Point, Point]]] = {
    # (elbow, hand) of the left and the right arm
    "stand": (((-56, -84), (-50, -56)), ((56, -84), (50, -56))),
    "down": (((-50, -80), (-40, -44)), ((50, -80), (40, -44))),
    "up": (((-66, -120), (-78, -176)), ((66, -120), (78, -176))),
    "shrug": (((-66, -92), (-90, -116)), ((66, -92), (90, -116))),
    "hips": (((-76, -92), (-40, -66)), ((76, -92), (40, -66))),
    "point": (((-56, -84), (-50, -56)), ((66, -118), (106, -130))),
    "wave": (((-56, -84), (-50, -56)), ((70, -112), (88, -164))),
    "cheeks": (((-66, -100), (-58, -148)), ((66, -100), (58, -148))),
    "hold": (((-58, -88), (-22, -84)), ((58, -88), (22, -84))),
}


@dataclass(frozen=True, slots=True)
class Looks:
    """What a person looks like."""

    skin: str = "#f2c9a1"
    hair: Hair = "short"
    hair_colour: str = "#4a3328"
    shirt: str = "#4f86c6"
    trousers: str = "#3d4a6b"
    glasses: bool = False


PLAIN = Looks()


def person(
    pen: Pen, mood: Mood = "neutral", looks: Looks = PLAIN, pose: Pose = "stand", legs: bool = True
) -> None:
    """A standing person; ``legs=False`` ends at the waist (y = -44), for desks and beds."""
    if legs:
        pen.oval((0, 0), (62, 11), SHADOW, None)
        for side in (-1, 1):
            pen.limb([(side * 19, -50), (side * 20, -12)], looks.trousers, 25)
            pen.blob([(side * 8, -12), (side * 34, -12), (side * 40, 2), (side * 6, 2)], "#3a3040")
    if pose in ("cheeks", "up"):
        _draw_torso(pen, looks)
        bust(pen.at(0, -180), mood, looks)
        _draw_arms(pen, looks, pose)
    else:
        _draw_arms(pen, looks, pose)
        _draw_torso(pen, looks)
        if pose == "hold":
            _draw_arms(pen, looks, pose)
        bust(pen.at(0, -180), mood, looks)


def _draw_torso(pen: Pen, looks: Looks) -> None:
    pen.blob([(-30, -128), (30, -128), (48, -96), (44, -44), (-44, -44), (-48, -96)], looks.shirt)
    pen.blob([(-14, -130), (14, -130), (0, -114)], looks.skin, INK, 3)


def _draw_arms(pen: Pen, looks: Looks, pose: Pose) -> None:
    for side, (elbow, hand) in zip((-1, 1), _HANDS[pose], strict=True):
        pen.limb([(side * 36, -114), elbow, hand], shade(looks.shirt, 0.93), 19)
        pen.oval(hand, (13, 13), looks.skin)


def bust(pen: Pen, mood: Mood = "neutral", looks: Looks = PLAIN) -> None:
    """A head alone, about 130 units wide, origin at its middle."""
    colour = looks.hair_colour if looks.hair != "grey" else "#c9c6cf"
    _draw_hair_behind(pen, looks.hair, colour)
    for side in (-1, 1):
        pen.oval((side * 61, 8), (12, 14), looks.skin)
    pen.blob(
        [(0, -62), (48, -46), (62, 2), (42, 48), (0, 62), (-42, 48), (-62, 2), (-48, -46)],
        looks.skin,
    )
    face(pen.at(0, 2), mood, 25, 9)
    if looks.glasses:
        for side in (-1, 1):
            pen.arc((side * 25, 2), (20, 19), (0, 360), INK, 3.5)
        pen.stroke([(-5, 0), (5, 0)], INK, 3.5)
    _draw_hair_front(pen, looks.hair, colour)


def _draw_hair_behind(pen: Pen, hair: Hair, colour: str) -> None:
    if hair == "long":
        pen.blob(
            [(0, -78), (66, -50), (76, 20), (64, 78), (-64, 78), (-76, 20), (-66, -50)], colour
        )
    elif hair == "bun":
        pen.oval((0, -80), (27, 25), colour)
    elif hair == "ponytail":
        pen.blob([(40, -60), (96, -40), (104, 20), (84, 62), (74, 10), (56, -24)], colour)
    elif hair == "curly":
        for x, y in ((-62, -14), (-58, -46), (-30, -66), (4, -74), (36, -64), (60, -44), (64, -12)):
            pen.oval((x, y), (27, 26), colour)


def _draw_hair_front(pen: Pen, hair: Hair, colour: str) -> None:
    fringe = [
        (-64, -6),
        (-60, -50),
        (0, -76),
        (60, -50),
        (64, -6),
        (46, -28),
        (14, -40),
        (-30, -28),
    ]
    if hair in ("short", "long", "bun", "ponytail", "grey"):
        pen.blob(fringe, colour)
    elif hair == "messy":
        spikes = [(-66, 0), (-74, -38), (-54, -40), (-52, -76), (-26, -62), (-6, -88), (10, -64)]
        spikes += [
            (40, -80),
            (46, -54),
            (72, -54),
            (62, -26),
            (66, 0),
            (44, -26),
            (8, -34),
            (-36, -22),
        ]
        pen.polygon(spikes, colour)
    elif hair == "curly":
        for x, y in ((-44, -36), (-22, -50), (4, -54), (28, -48), (46, -34)):
            pen.oval((x, y), (20, 18), colour, None)
    elif hair == "cap":
        pen.blob([(-62, -22), (-52, -62), (0, -78), (52, -62), (62, -22)], colour)
        pen.blob([(-10, -30), (70, -30), (96, -16), (60, -14), (-10, -18)], shade(colour, 0.8))
    elif hair == "chef":
        pen.blob(
            [(-48, -44), (-70, -92), (-34, -116), (0, -124), (34, -116), (70, -92), (48, -44)],
            "#ffffff",
        )
        pen.box((-52, -58), (52, -32), "#ffffff", 6)
