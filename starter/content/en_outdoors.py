"""Weather, roads, sport, weekends."""

from __future__ import annotations

from starter.content.sheets import load
from starter.draw import (
    INK,
    Canvas,
    Looks,
    animal,
    blanket_lump,
    bubble,
    burst,
    car,
    chick,
    cloud,
    desk,
    duck,
    dumbbell,
    fruit,
    gradient,
    grid,
    head,
    heart,
    night,
    overlay,
    papers,
    person,
    phone,
    pizza,
    room,
    sky,
    snooze,
    sun,
    umbrella,
    water,
    window,
)

WALKER = Looks(hair="long", hair_colour="#2f2a3d", shirt="#d9764a", skin="#f2c9a1")
SKEPTIC = Looks(hair="bald", shirt="#6aa84f", skin="#b97f54")


def draw_umbrella() -> Canvas:
    dry, wet = Canvas(356, 540), Canvas(356, 540)
    sky(dry, "#a9cf82", 0.8)
    sun(dry.at(296, 140, 0.55), "smug")
    umbrella(dry.at(222, 396, 1.0))
    person(dry.at(121, 510, 0.95), "bored", WALKER, "point")
    overlay(dry, "I take the umbrella", "top", 0.24)
    gradient(wet, "#7f8ea3", "#b9c4cf")
    wet.pen.box((0, 440), (356, 540), "#6f8391", 0, None)
    cloud(wet.at(178, 190, 1.1), "smug", rain=True, colour="#e8ecf2")
    person(wet.at(178, 510, 0.95), "sad", WALKER, "down")
    overlay(wet, "I leave it at home", "top", 0.24)
    return grid([dry, wet])


def draw_route() -> Canvas:
    c = Canvas()
    water(c, 0.62)
    car(c.at(300, 480, 1.7, -6), "#d9534f")
    head(c.at(318, 330, 0.42), "dog", "shocked")
    c.pen.polygon([(0, 470), (720, 450), (720, 560), (0, 560)], "#5cb3d9cc", None)
    phone(c.at(610, 330, 1.0, 10), face_on="happy")
    bubble(c, "You have arrived!", (420, 160, 690, 240), (610, 268))
    overlay(c, "Trust the short cut", "top", 0.2)
    return c


def draw_gym() -> Canvas:
    first, third = Canvas(356, 520), Canvas(356, 520)
    burst(first, "#bfe3c0")
    animal(first.at(178, 480, 1.25), "panda", "excited")
    dumbbell(first.at(178, 170, 1.0, -8))
    overlay(first, "Day 1: a new me", "top", 0.2)
    room(third, "#f1dcc4", "#b58b66", 0.78)
    animal(third.at(150, 480, 1.25), "panda", "relaxed")
    pizza(third.at(290, 440, 1.0, 10))
    dumbbell(third.at(280, 494, 0.55))
    overlay(third, "Day 3: lifting pizza", "top", 0.2)
    return grid([first, third])


def draw_weekend() -> Canvas:
    friday, saturday = Canvas(356, 520), Canvas(356, 520)
    burst(friday, "#ffe0a0")
    animal(friday.at(178, 480, 1.3), "bear", "excited")
    overlay(friday, "Friday: a hundred plans", "top")
    night(saturday, "#4a4270", 0.84, (0.16, 0.36))
    blanket_lump(saturday.at(178, 490, 1.2), "#7f9f8f")
    head(saturday.at(178, 370, 0.95), "bear", "sleepy")
    snooze(saturday.at(250, 300, 1.0), "#e8e6ff")
    overlay(saturday, "Saturday: winter sleep", "top")
    return grid([friday, saturday])


def draw_morning() -> Canvas:
    c = Canvas()
    room(c, "#fde8c2", "#b98d68", 0.76)
    sun(c.at(600, 250, 0.9), "excited")
    chick(c.at(520, 590, 1.6), "excited")
    blanket_lump(c.at(200, 600, 1.35), "#7d8fd1")
    head(c.at(200, 470, 1.0), "fox", "angry")
    bubble(c, "Good morning!!!", (300, 250, 510, 340), (500, 440))
    overlay(c, "Morning people should", "top", 0.2)
    overlay(c, "come with a volume knob", "bottom", 0.2)
    return c


def draw_winging() -> Canvas:
    c = Canvas()
    room(c, "#dbe7ee", "#9db2bf", 0.78)
    window(c.at(130, 290, 0.9))
    duck(c.at(360, 590, 2.0), "tense")
    for side, angle in ((-1, -38), (1, 38)):
        wing = c.at(360 + side * 120, 450, 1.2, angle, flip=side > 0)
        wing.blob([(0, 10), (-26, -40), (-70, -64), (-92, -40), (-60, 4), (-20, 24)], "#eec23f")
    desk(c.at(360, 700, 1.1), 560)
    papers(c.at(560, 562, 0.9), 9)
    overlay(c, "First day as a manager", "top", 0.2)
    overlay(c, "I am winging it", "bottom", 0.2)
    return c


def draw_pear() -> Canvas:
    c = Canvas(720, 640)
    gradient(c, "#ffe3e3", "#fff5ec")
    c.pen.box((0, 540), (720, 640), "#f3b9a7", 0, None)
    fruit(c.at(240, 540, 2.1), "pear", "happy")
    fruit(c.at(480, 540, 2.1, flip=True), "pear", "relaxed", "#b5c95a")
    for x, y, size in ((360, 150, 0.9), (290, 90, 0.45), (436, 80, 0.5)):
        heart(c.at(x, y, size))
    overlay(c, "We make a great pear", "bottom", 0.2)
    return c


def draw_lemons() -> Canvas:
    c = Canvas()
    room(c, "#dfeaf0", "#9fb5a0", 0.76)
    person(c.at(250, 620, 1.75), "bored", SKEPTIC, "shrug")
    for x, y in ((480, 620), (590, 620), (535, 545)):
        fruit(c.at(x, y, 0.95), "lemon", "happy")
    c.pen.stroke([(420, 624), (650, 624)], INK, 4)
    overlay(c, "When life gives you lemons", "top", 0.2)
    overlay(c, "ask for the receipt", "bottom", 0.2)
    return c


MEMES = load(
    "en_outdoors",
    {
        "en-024": draw_umbrella,
        "en-025": draw_route,
        "en-026": draw_gym,
        "en-027": draw_weekend,
        "en-028": draw_morning,
        "en-029": draw_winging,
        "en-030": draw_pear,
        "en-031": draw_lemons,
    },
)
