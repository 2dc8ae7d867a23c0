"""Animals and a robot. Origins are on the ground, below the middle; about 200 units tall."""

from __future__ import annotations

from typing import Literal

from sample_data.draw.canvas import INK, Pen
from sample_data.draw.faces import Mood, face

SHADOW = "#1b15301f"
Kind = Literal[
    "cat", "dog", "bear", "panda", "rabbit", "pig", "fox", "mouse", "sheep", "frog", "tiger", "cow"
]
_FUR = {
    "cat": "#f4a64a",
    "dog": "#c98d5b",
    "bear": "#9a6a4b",
    "panda": "#fbf8f2",
    "rabbit": "#f2e6ea",
    "pig": "#f6b3b8",
    "fox": "#e9733a",
    "mouse": "#b9b5c6",
    "sheep": "#f7f1e3",
    "frog": "#7fbf5a",
    "tiger": "#f2a03d",
    "cow": "#f8f5ef",
}


def shade(colour: str, share: float) -> str:
    """A colour made darker (share < 1) or lighter (share > 1)."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    if share <= 1:
        mixed = [round(p * share) for p in parts]
    else:
        mixed = [round(p + (255 - p) * (share - 1)) for p in parts]
    return "#" + "".join(f"{min(255, p):02x}" for p in mixed)


def animal(pen: Pen, kind: Kind = "cat", mood: Mood = "happy", fur: str = "") -> None:
    """A sitting animal, 200 units tall, facing the viewer."""
    fur = fur or _FUR[kind]
    dark = shade(fur, 0.82)
    limbs = "#3a3547" if kind in ("panda", "sheep") else fur
    pen.oval((0, 0), (78, 13), SHADOW, None)
    _draw_tail(pen, kind, fur)
    pen.blob([(-44, -98), (44, -98), (62, -28), (44, 0), (-44, 0), (-62, -28)], fur)
    if kind not in ("panda", "frog"):
        pen.oval((0, -38), (30, 34), shade(fur, 1.5), None)
    if kind == "panda":
        pen.blob([(-47, -92), (47, -92), (50, -66), (0, -58), (-50, -66)], limbs, None)
    for side in (-1, 1):
        pen.oval((side * 32, -6), (24, 13), limbs)
        pen.limb([(side * 26, -70), (side * 24, -40), (side * 20, -16)], limbs, 20)
    head(pen.at(0, -134), kind, mood, fur)
    if kind in ("tiger", "cat"):
        for x in (-9, 0, 9):
            pen.stroke([(x, -186), (x * 0.8, -172)], dark if kind == "cat" else INK, 5)


def _draw_tail(pen: Pen, kind: Kind, fur: str) -> None:
    if kind in ("cat", "tiger", "mouse", "cow"):
        width = 8 if kind in ("mouse", "cow") else 17
        tail = "#f0a3ad" if kind == "mouse" else fur
        pen.limb([(48, -16), (92, -20), (98, -62), (80, -84)], tail, width)
    elif kind in ("dog", "fox"):
        points = [(44, -20), (84, -34), (104, -78), (86, -88), (66, -54)]
        pen.blob(points, fur)
    elif kind == "rabbit":
        pen.oval((58, -22), (16, 16), "#ffffff")


def head(pen: Pen, kind: Kind = "cat", mood: Mood = "happy", fur: str = "") -> None:
    """An animal's head alone, about 150 units wide, origin at its middle."""
    fur = fur or _FUR[kind]
    _draw_ears(pen, kind, fur)
    width = 74 if kind != "frog" else 80
    if kind == "sheep":
        for x, y in ((-58, -14), (-46, -44), (-18, -60), (16, -60), (46, -44), (58, -14), (0, -30)):
            pen.oval((x, y), (27, 25), "#fffdf6")
        for x, y in ((-40, -16), (-16, -34), (14, -34), (40, -16), (0, -12)):
            pen.oval((x, y), (30, 26), "#fffdf6", None)
        pen.oval((0, 6), (52, 50), "#f3d9c3")
    else:
        pen.blob(
            [
                (0, -62),
                (56, -44),
                (width, 8),
                (44, 54),
                (0, 62),
                (-44, 54),
                (-width, 8),
                (-56, -44),
            ],
            fur,
        )
    _draw_marks(pen, kind, fur)
    face(pen.at(0, -4 if kind != "frog" else -14), mood, 31 if kind != "frog" else 38, 10.5)
    _draw_muzzle(pen, kind)


def _draw_ears(pen: Pen, kind: Kind, fur: str) -> None:
    inner = shade(fur, 1.45)
    for side in (-1, 1):
        ear = pen.at(0, 0, flip=side < 0)
        if kind in ("cat", "tiger", "fox"):
            ear.polygon([(22, -54), (62, -88), (70, -20)], fur)
            ear.polygon([(36, -54), (57, -72), (61, -36)], "#f7b7b0", None)
        elif kind in ("bear", "panda", "mouse", "tiger"):
            size = 34 if kind == "mouse" else 23
            ear.oval((52, -50), (size, size), "#3a3547" if kind == "panda" else fur)
            if kind != "panda":
                ear.oval((52, -50), (size * 0.55, size * 0.55), inner, None)
        elif kind == "rabbit":
            ear.blob([(18, -50), (16, -110), (34, -134), (50, -110), (46, -44)], fur)
            ear.blob([(26, -58), (25, -104), (34, -120), (42, -104), (39, -54)], "#f5b9c4", None)
        elif kind == "pig":
            ear.blob([(28, -52), (64, -84), (72, -46), (58, -34)], shade(fur, 0.92))
        elif kind == "frog":
            ear.oval((38, -50), (27, 27), fur)
        elif kind in ("sheep", "cow"):
            ear.blob([(54, -20), (88, -34), (100, -14), (80, 0), (58, -2)], shade(fur, 0.88))
        if kind == "cow":
            ear.blob([(30, -54), (36, -84), (50, -82), (48, -48)], "#e8d7b5")


def _draw_marks(pen: Pen, kind: Kind, fur: str) -> None:
    for side in (-1, 1):
        half = pen.at(0, 0, flip=side < 0)
        if kind == "panda":
            half.blob([(12, -12), (30, -26), (50, -8), (48, 16), (28, 18)], "#3a3547", None)
            half.oval((31, -4), (16, 17), "#ffffff", None)
        elif kind == "dog":
            half.blob(
                [(40, -56), (72, -50), (92, -4), (82, 34), (66, 22), (58, -18)], shade(fur, 0.7)
            )
        elif kind == "fox":
            half.blob([(2, 20), (40, 14), (70, 12), (44, 52), (4, 60)], "#fff4e6", None)
    if kind == "cow":
        pen.blob([(8, -50), (48, -44), (58, -4), (30, 10), (14, -14)], "#3a3547", None)
        pen.oval((31, -4), (16, 16), "#f8f5ef", None)


def _draw_muzzle(pen: Pen, kind: Kind) -> None:
    if kind == "pig":
        pen.oval((0, 16), (21, 14), "#ee8f99", INK, 3.5)
        for side in (-1, 1):
            pen.oval((side * 7, 16), (3.4, 5), INK, None)
    elif kind in ("cat", "tiger", "mouse", "rabbit"):
        pen.polygon([(-6, 9), (6, 9), (0, 15)], "#e0697c", INK, 2)
        if kind in ("cat", "tiger", "mouse"):
            for side in (-1, 1):
                for drop in (0, 9):
                    pen.stroke([(side * 46, 20 + drop), (side * 88, 14 + drop * 2)], "#2b244099", 2)
    elif kind in ("dog", "bear", "panda", "fox", "sheep", "cow"):
        pen.oval((0, 11), (10, 7), INK, None)
        pen.oval((-3, 9), (3, 2), "#ffffff99", None)


def duck(pen: Pen, mood: Mood = "happy", body: str = "#ffd64f", beak: bool = True) -> None:
    """A round duck looking at the viewer, 180 units tall."""
    pen.oval((0, 0), (70, 12), SHADOW, None)
    for side in (-1, 1):
        pen.blob([(side * 12, -8), (side * 40, -10), (side * 48, 2), (side * 20, 4)], "#f08c2e")
    pen.blob([(-46, -96), (46, -96), (72, -44), (48, -6), (-48, -6), (-72, -44)], body)
    for side in (-1, 1):
        pen.blob(
            [(side * 54, -78), (side * 88, -52), (side * 78, -28), (side * 50, -42)],
            shade(body, 0.92),
        )
    pen.oval((0, -122), (58, 54), body)
    pen.curve([(0, -174), (-6, -190), (8, -192)], INK, 5)
    face(pen.at(0, -136), mood, 28, 9.5)
    if beak:
        pen.blob([(-26, -112), (0, -122), (26, -112), (18, -98), (-18, -98)], "#f08c2e", INK, 3.5)
        pen.stroke([(-22, -109), (22, -109)], INK, 2.5)


def chick(pen: Pen, mood: Mood = "happy", body: str = "#ffe27a") -> None:
    """A small chick, 120 units tall."""
    pen.oval((0, 0), (46, 9), SHADOW, None)
    for side in (-1, 1):
        pen.stroke([(side * 14, -16), (side * 14, -2), (side * 24, 0)], "#e7812c", 5)
    pen.oval((0, -62), (56, 54), body)
    for side in (-1, 1):
        pen.blob([(side * 48, -70), (side * 70, -54), (side * 50, -44)], shade(body, 0.93))
    pen.curve([(0, -114), (-6, -126), (7, -126)], INK, 4)
    face(pen.at(0, -70), mood, 24, 8)
    pen.polygon([(-9, -58), (9, -58), (0, -47)], "#f08c2e", INK, 3)


def fish(pen: Pen, mood: Mood = "neutral", body: str = "#f58f5b", pale: bool = False) -> None:
    """A fish seen from the side, facing right, 200 units long, origin at its middle."""
    fin = shade(body, 0.85)
    pen.blob([(-70, 0), (-118, -46), (-128, -30), (-112, 0), (-128, 32), (-116, 46)], fin)
    pen.blob([(-20, -52), (10, -84), (40, -50)], fin)
    pen.blob(
        [(-84, 0), (-40, -46), (30, -58), (92, -24), (100, 6), (70, 42), (10, 56), (-44, 42)], body
    )
    pen.blob([(-60, 22), (0, 30), (80, 20), (60, 40), (8, 51), (-36, 38)], shade(body, 1.6), None)
    pen.blob([(-6, 14), (26, 22), (8, 44), (-14, 34)], fin, INK, 3)
    if not pale:
        for x in (-40, -14):
            pen.arc((x, -8), (14, 20), (-60, 60), "#2b244055", 3)
    face(pen.at(58, -10, 0.82), mood, 24, 10)


def snail(pen: Pen, mood: Mood = "calm", shell: str = "#c98bd8") -> None:
    """A snail facing right, 190 units long."""
    pen.oval((0, 2), (100, 10), SHADOW, None)
    pen.blob(
        [(-100, 0), (-60, -22), (30, -26), (56, -92), (98, -92), (100, -40), (84, 0)], "#f0cf9c"
    )
    for x in (66, 92):
        pen.limb([(x, -88), (x + 4, -122)], "#f0cf9c", 5)
        pen.oval((x + 4, -126), (8, 8), "#f0cf9c", INK, 3.5)
    pen.oval((-22, -66), (62, 58), shell)
    for r in (40, 22):
        pen.arc((-22 + (62 - r) * 0.3, -62), (r, r * 0.95), (0, 290), shade(shell, 0.7), 6)
    face(pen.at(78, -68, 0.6), mood, 24, 10)


def robot(pen: Pen, mood: Mood = "neutral", body: str = "#a8c4d4") -> None:
    """A boxy robot with a screen face, 230 units tall."""
    dark = shade(body, 0.75)
    pen.oval((0, 0), (74, 12), SHADOW, None)
    for side in (-1, 1):
        pen.limb([(side * 26, -40), (side * 26, -10)], dark, 18)
        pen.box((side * 26 - 22, -16), (side * 26 + 22, 0), dark, 8)
        pen.limb([(side * 54, -102), (side * 84, -78), (side * 80, -48)], dark, 14)
        pen.oval((side * 80, -42), (14, 13), body)
    pen.box((-54, -118), (54, -34), body, 16)
    pen.box((-26, -98), (26, -66), "#f5e7b8", 6)
    for x, colour in ((-14, "#e4572e"), (0, "#f2b134"), (14, "#3ba55d")):
        pen.oval((x, -82), (5, 5), colour, None)
    pen.limb([(0, -128), (0, -118)], dark, 16)
    pen.stroke([(0, -216), (0, -236)], INK, 5)
    pen.oval((0, -240), (9, 9), "#e4572e")
    pen.box((-76, -218), (76, -126), body, 22)
    pen.box((-60, -205), (60, -139), "#e7fbff", 14)
    face(pen.at(0, -180), mood, 28, 9)


def ghost(pen: Pen, mood: Mood = "sad") -> None:
    """A small soul leaving a body, 150 units tall."""
    shape = [
        (-46, -80),
        (0, -140),
        (46, -80),
        (48, -10),
        (26, -24),
        (0, -4),
        (-26, -24),
        (-48, -10),
    ]
    pen.blob(shape, "#f6f8ff")
    face(pen.at(0, -84), mood, 20, 8)
