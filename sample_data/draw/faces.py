"""Expressive faces. The pen's origin is the middle between the eyes."""

from __future__ import annotations

from typing import Literal

from sample_data.draw.canvas import INK, Pen, around

Mood = Literal[
    "happy",
    "excited",
    "calm",
    "relaxed",
    "neutral",
    "smug",
    "bored",
    "tired",
    "sleepy",
    "sad",
    "crying",
    "angry",
    "tense",
    "shocked",
]
WHITE, TONGUE, TEAR, BLUSH = "#ffffff", "#ef6f7a", "#7cc7f2", "#ff6f7f55"

_OPEN = {"happy", "neutral", "sad", "angry"}
_WIDE = {"tense", "shocked"}
_HALF = {"bored", "tired", "smug"}
_BROWS: dict[str, tuple[float, float]] = {
    # (inner end, outer end), in eye radii above the eye
    "angry": (1.15, 2.2),
    "sad": (2.5, 1.6),
    "crying": (2.4, 1.5),
    "tense": (2.8, 2.2),
    "shocked": (2.9, 2.9),
    "smug": (1.9, 2.6),
}


def face(pen: Pen, mood: Mood = "happy", gap: float = 34, eye: float = 11) -> None:
    """Eyes, brows, mouth and the small signs of a mood.

    ``gap`` is half the distance between the eyes, ``eye`` an eye's radius.
    """
    for side in (-1, 1):
        _draw_eye(pen.at(side * gap, 0, flip=side < 0), mood, eye)
    _draw_mouth(pen.at(0, gap * 0.62 + eye), mood, gap / 34)
    if mood in ("happy", "excited", "relaxed", "calm"):
        for side in (-1, 1):
            pen.oval((side * gap * 1.5, eye * 1.9), (eye * 0.95, eye * 0.6), BLUSH, None)
    if mood == "tense":
        _draw_drop(pen.at(gap * 1.85, -eye * 1.6, gap / 34))
    if mood == "angry":
        _draw_anger(pen.at(gap * 1.75, -eye * 3.0, gap / 34))


def _draw_eye(pen: Pen, mood: Mood, eye: float) -> None:
    """One eye; the local x axis points outwards."""
    if mood in _OPEN:
        pen.oval((0, 0), (eye, eye * 1.15), INK, None)
        pen.oval((-eye * 0.2, -eye * 0.4), (eye * 0.36, eye * 0.36), WHITE, None)
    elif mood == "excited":
        pen.oval((0, 0), (eye * 1.45, eye * 1.6), INK, None)
        pen.oval((-eye * 0.4, -eye * 0.55), (eye * 0.55, eye * 0.55), WHITE, None)
        pen.oval((eye * 0.45, eye * 0.55), (eye * 0.3, eye * 0.3), WHITE, None)
    elif mood in _WIDE:
        size = 1.5 if mood == "tense" else 1.75
        pen.oval((0, 0), (eye * size, eye * size), WHITE)
        pen.oval((0, 0), (eye * 0.42, eye * 0.42), INK, None)
    elif mood in _HALF:
        _draw_half_eye(pen, mood, eye)
    elif mood == "crying":
        pen.stroke([(eye, -eye * 0.9), (-eye * 0.9, 0), (eye, eye * 0.9)], INK, eye * 0.42)
        pen.box((-eye * 0.5, eye * 0.9), (eye * 0.7, eye * 4.2), TEAR, eye * 0.6, None)
    elif mood == "relaxed":
        pen.arc((0, eye * 0.5), (eye * 1.1, eye * 1.2), (195, 345), INK, eye * 0.45)
    else:
        pen.arc((0, -eye * 0.4), (eye * 1.1, eye), (15, 165), INK, eye * 0.45)
    if mood in _BROWS:
        inner, outer = _BROWS[mood]
        pen.stroke([(-eye * 1.1, -eye * inner), (eye * 1.2, -eye * outer)], INK, eye * 0.5)
    if mood == "sad":
        pen.oval((eye * 0.5, eye * 2.2), (eye * 0.5, eye * 0.8), TEAR, None)


def _draw_half_eye(pen: Pen, mood: Mood, eye: float) -> None:
    white = around((0, 0), (eye * 1.35, eye * 1.25), 0, 180)
    pen.polygon(white, WHITE, None)
    pen.polygon(around((0, 0), (eye * 0.78, eye * 0.95), 0, 180), INK, None)
    pen.stroke(white, INK, eye * 0.22)
    pen.stroke([(-eye * 1.5, 0), (eye * 1.5, 0)], INK, eye * 0.5)
    if mood == "tired":
        for drop in (2.0, 2.6):
            pen.arc((0, eye * (drop - 1)), (eye * 1.2, eye * 0.9), (35, 145), "#2b244066", 2.5)


def _draw_mouth(pen: Pen, mood: Mood, size: float) -> None:
    pen = pen.at(0, 0, size)
    if mood == "excited":
        mouth = [(-20, -6), (0, -2), (20, -6), (15, 14), (0, 21), (-15, 14)]
        pen.blob(mouth, "#8e2f4b", INK, 3.5)
        pen.oval((0, 13), (9, 5), TONGUE, None)
    elif mood in ("happy", "relaxed"):
        pen.arc((0, -6), (17, 14), (20, 160), INK, 4.5)
    elif mood == "calm":
        pen.arc((0, -4), (11, 8), (20, 160), INK, 4)
    elif mood == "smug":
        pen.curve([(-12, 3), (2, 5), (16, -5)], INK, 4.5)
    elif mood in ("sad", "crying"):
        pen.arc((0, 14), (14, 12), (205, 335), INK, 4.5)
    elif mood == "angry":
        pen.polygon([(-18, 9), (-13, -3), (13, -3), (18, 9)], WHITE, INK, 3.5)
        for x in (-7, 0, 7):
            pen.stroke([(x, -3), (x, 9)], INK, 2)
    elif mood == "tense":
        pen.curve([(-18, 6), (-10, 0), (-3, 7), (4, 0), (11, 7), (18, 1)], INK, 4)
    elif mood in ("shocked", "sleepy"):
        pen.oval((0, 8), (10, 13) if mood == "shocked" else (6, 5), "#8e2f4b", INK, 3.5)
    elif mood == "tired":
        pen.curve([(-12, 5), (-4, 2), (4, 6), (12, 3)], INK, 4)
    else:
        pen.stroke([(-11, 3), (11, 3)], INK, 4.5)


def _draw_drop(pen: Pen) -> None:
    pen.blob([(0, -14), (8, 4), (0, 13), (-8, 4)], TEAR, INK, 3)


def _draw_anger(pen: Pen) -> None:
    for turn in (0, 90, 180, 270):
        pen.at(0, 0, 1, turn).arc((12, 12), (9, 9), (170, 280), "#d93a4a", 5)
