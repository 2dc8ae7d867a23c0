"""Kitchen, bed and sofa."""

from __future__ import annotations

from starter.content.sheets import load
from starter.draw import (
    INK,
    Canvas,
    Looks,
    Pen,
    add_bar,
    alarm,
    animal,
    bed,
    blanket_lump,
    burst,
    bust,
    cake,
    clock,
    cup,
    desk,
    flame,
    fruit,
    gradient,
    grid,
    head,
    kettle,
    kitchen,
    laptop_back,
    night,
    overlay,
    person,
    plant,
    pot,
    room,
    sofa,
    spark,
    steam,
    window,
)

COOK = Looks(hair="chef", shirt="#f4f1ea", skin="#e8b48a")
HERMIT = Looks(hair="messy", hair_colour="#6b4a2e", shirt="#8e9aaf", skin="#f2c9a1")


def draw_kettle() -> Canvas:
    c = Canvas()
    kitchen(c)
    kettle(c.at(330, 520, 2.2), "angry")
    steam(c.at(560, 260, 1.0))
    overlay(c, "I am perfectly calm", "top", 0.2)
    overlay(c, "I just need to let off steam", "bottom")
    return c


def draw_potato() -> Canvas:
    before, after = Canvas(356, 520), Canvas(356, 520)
    room(before, "#d9d2c5", "#a58a6d", 0.76)
    sofa(before.at(178, 480, 0.9), "#8a8fa6")
    fruit(before.at(178, 420, 1.25), "potato", "tired")
    overlay(before, "Before coffee: potato", "top")
    burst(after, "#ffd98a", 18)
    for y in (250, 310, 370):
        after.pen.stroke([(10, y), (78, y)], "#ffffff", 8)
    fruit(after.at(200, 450, 1.45, 14), "potato", "excited")
    cup(after.at(300, 500, 0.65), "#e07a5f")
    overlay(after, "After coffee: fast potato", "top")
    return grid([before, after])


def draw_alarm() -> Canvas:
    early, late = Canvas(356, 520), Canvas(356, 520)
    room(early, "#c7cfe8", "#7f87ad", 0.8)
    window(early.at(270, 210, 0.7), "#e6e9f7")
    blanket_lump(early.at(150, 500, 1.05))
    head(early.at(150, 400, 0.85), "cat", "calm")
    alarm(early.at(296, 490, 0.85))
    overlay(early, "7:00. Five more minutes", "top")
    burst(late, "#f7c3b0")
    animal(late.at(178, 480, 1.3), "cat", "shocked")
    clock(late.at(288, 210, 0.8), 11)
    overlay(late, "11:00. Oh no", "top")
    return grid([early, late])


def _draw_burnt_cake(pen: Pen) -> None:
    pen.blob([(-80, 0), (-74, -52), (-30, -40), (0, -66), (34, -36), (78, -58), (80, 0)], "#4a3b36")
    for x, y in ((-40, -20), (10, -30), (46, -16)):
        pen.oval((x, y), (9, 6), "#2f2523", None)


def draw_recipe() -> Canvas:
    plan, real = Canvas(356, 520), Canvas(356, 520)
    gradient(plan, "#fde3ea", "#fff6f0")
    plan.pen.box((0, 420), (356, 520), "#f2b8c6", 0, None)
    cake(plan.at(178, 440, 1.7), 3)
    for x, y in ((50, 250), (310, 270), (290, 170)):
        spark(plan.at(x, y, 0.8))
    overlay(plan, "The recipe", "top")
    kitchen(real)
    person(real.at(108, 440, 1.05), "crying", COOK, "cheeks", legs=False)
    real.pen.box((0, 390), (356, 520), "#b98252", 0, None)
    real.pen.stroke([(0, 390), (356, 390)], INK, 3)
    flame(real.at(230, 420, 0.9))
    flame(real.at(300, 424, 1.1))
    _draw_burnt_cake(real.at(262, 440, 1.0))
    overlay(real, "My kitchen", "top")
    return grid([plan, real])


def draw_sheep() -> Canvas:
    c = Canvas()
    night(c, "#4a4270", 0.82, (0.1, 0.34))
    bed(c.at(360, 640, 1.5), "#8e7cc3")
    head(c.at(140, 470, 1.0), "sheep", "tired")
    for x, y, r in ((262, 330, 8), (290, 300, 12)):
        c.pen.oval((x, y), (r, r), "#ffffff")
    c.pen.box((310, 190), (680, 330), "#ffffff", 46)
    people = (Looks(hair="short"), Looks(hair="long"), Looks(hair="curly"), Looks(hair="cap"))
    for number, looks in enumerate(people):
        bust(c.at(370 + 85 * number, 262, 0.5), "happy", looks)
    overlay(c, "Could not sleep", "top", 0.2)
    overlay(c, "so I counted people", "bottom", 0.2)
    return c


def draw_bowl() -> Canvas:
    c = Canvas()
    room(c, "#cfe3dc", "#8fae9f", 0.66)
    animal(c.at(240, 545, 1.75), "cat", "crying", "#b8b2a7")
    pen = c.at(550, 545, 1.5)
    pen.oval((0, -50), (74, 18), "#a36a43")
    pen.polygon([(-74, -50), (74, -50), (58, 0), (-58, 0)], "#4f86c6")
    pen.polygon([(-73, -51), (73, -51), (70, -40), (-70, -40)], "#4f86c6", None)
    for x, y in ((-40, -60), (-10, -66), (24, -62), (48, -56)):
        pen.oval((x, y), (14, 9), "#8a5636")
    overlay(c, "The bowl is half empty", "top", 0.2)
    overlay(c, "Tell my family I was hungry", "bottom", 0.26)
    return c


def draw_outside() -> Canvas:
    c = Canvas(720, 600)
    room(c, "#dcd7cf", "#9c8b7a", 0.8)
    window(c.at(360, 170, 1.05), "#a9dcf7")
    plant(c.at(590, 480, 1.5), "tired", wilted=True)
    person(c.at(220, 532, 1.3), "tired", HERMIT, "down", legs=False)
    desk(c.at(360, 620, 1.15), 600)
    laptop_back(c.at(230, 482, 1.1))
    return add_bar(c, "Week three of working from home: we both forgot to go outside")


def draw_egg() -> Canvas:
    c = Canvas()
    kitchen(c)
    pot(c.at(510, 560, 1.6), "#8a95ad", "happy")
    for x in (430, 520):
        steam(c.at(x, 390, 0.9))
    fruit(c.at(190, 570, 1.9), "egg", "tense")
    c.at(190, 570, 1.9).stroke([(-26, -112), (-16, -100), (-24, -92), (-12, -80)], INK, 3)
    overlay(c, "I am no good under pressure", "top", 0.2)
    overlay(c, "I crack", "bottom", 0.2)
    return c


MEMES = load(
    "en_home",
    {
        "en-016": draw_kettle,
        "en-017": draw_potato,
        "en-018": draw_alarm,
        "en-019": draw_recipe,
        "en-020": draw_sheep,
        "en-021": draw_bowl,
        "en-022": draw_outside,
        "en-023": draw_egg,
    },
)
