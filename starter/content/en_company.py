"""Animals with opinions, and gently teased groups."""

from __future__ import annotations

from starter.content.sheets import load
from starter.draw import (
    INK,
    Canvas,
    Pen,
    animal,
    battery,
    cup,
    fish,
    gradient,
    kitchen,
    laptop,
    overlay,
    room,
    sky,
    snail,
    snooze,
    sofa,
    steam,
    window,
)


def _draw_lens(pen: Pen) -> None:
    """A magnifying glass, origin at the middle of the lens."""
    pen.stroke([(30, 30), (72, 72)], INK, 20)
    pen.stroke([(30, 30), (72, 72)], "#a8744a", 11)
    pen.oval((0, 0), (44, 44), "#d6f0ffaa", INK, 8)
    pen.arc((0, 0), (28, 28), (190, 260), "#ffffff", 6)


def draw_detective() -> Canvas:
    c = Canvas()
    gradient(c, "#c9d6cf", "#eef0e2")
    c.pen.box((0, 590), (720, 720), "#a3a98b", 0, None)
    animal(c.at(330, 630, 2.0), "dog", "smug")
    hat = c.at(330, 290, 1.6)
    hat.blob([(-52, -6), (-40, -54), (0, -66), (40, -54), (52, -6)], "#7a6a5a")
    hat.blob([(-92, 6), (-50, -10), (50, -10), (92, 6), (0, 12)], "#6a5b4d")
    _draw_lens(c.at(540, 430, 1.2))
    overlay(c, "Who is a good boy?", "top", 0.18)
    overlay(c, "I have a suspect", "bottom", 0.18)
    return c


def draw_snail() -> Canvas:
    c = Canvas(720, 620)
    sky(c, "#9bc878", 0.7)
    snail(c.at(300, 500, 2.0), "smug")
    battery(c.at(600, 200, 0.9), 0.9)
    overlay(c, "I am not slow", "top", 0.2)
    overlay(c, "I am saving energy", "bottom", 0.2)
    return c


def draw_milk_first() -> Canvas:
    c = Canvas()
    kitchen(c)
    cup(c.at(250, 570, 2.3), "#f7efe0", "shocked", steam=False)
    c.at(250, 570, 2.3).oval((0, -92), (50, 12), "#fffdf6")
    jug = c.at(540, 330, 1.6, -38)
    jug.arc((56, -8), (30, 36), (-80, 80), INK, 16)
    jug.arc((56, -8), (30, 36), (-80, 80), "#ffffff", 8)
    jug.blob([(-46, -70), (46, -70), (54, 40), (34, 66), (-34, 66), (-54, 40)], "#ffffff")
    jug.polygon([(-46, -70), (-74, -84), (-40, -46)], "#ffffff")
    jug.box((-44, -10), (46, 22), "#9cc9e8", 0, None)
    c.pen.limb([(412, 316), (352, 336), (300, 380)], "#ffffff", 14)
    overlay(c, "People who pour the milk first", "top", 0.2)
    overlay(c, "scare me", "bottom", 0.16)
    return c


def draw_fish_lunch() -> Canvas:
    c = Canvas()
    kitchen(c)
    animal(c.at(110, 520, 1.05), "mouse", "shocked")
    animal(c.at(300, 520, 1.05), "mouse", "angry")
    c.pen.box((420, 280), (700, 500), "#6d7188", 14)
    c.pen.box((440, 300), (620, 480), "#ffeaa0", 8)
    for y in (320, 360, 400):
        c.pen.oval((662, y), (12, 12), "#33364a")
    fish(c.at(530, 400, 0.7), "smug", "#7fb3c4")
    steam(c.at(520, 272, 0.8))
    overlay(c, "To whoever heats up fish at work", "top", 0.2)
    overlay(c, "You are a menace", "bottom", 0.2)
    return c


def draw_home_won() -> Canvas:
    c = Canvas()
    room(c, "#e7dcc9", "#b08a63", 0.76)
    window(c.at(120, 270, 0.9))
    sofa(c.at(380, 610, 1.6), "#b5697a")
    animal(c.at(380, 500, 1.35), "dog", "sleepy", "#e0b077")
    snooze(c.at(500, 260, 1.3))
    laptop(c.at(130, 620, 0.9), "#bfe6ff", "sad")
    overlay(c, "I worked from home", "top", 0.18)
    overlay(c, "Home won", "bottom", 0.18)
    return c


MEMES = load(
    "en_company",
    {
        "en-032": draw_detective,
        "en-033": draw_snail,
        "en-034": draw_milk_first,
        "en-035": draw_fish_lunch,
        "en-036": draw_home_won,
    },
)
