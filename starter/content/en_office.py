"""Meetings, mail, deadlines and study."""

from __future__ import annotations

from starter.content.sheets import load
from starter.draw import (
    Canvas,
    Looks,
    Mood,
    add_bar,
    animal,
    books,
    bubble,
    burst,
    clock,
    desk,
    flame,
    ghost,
    gradient,
    grid,
    head,
    label,
    laptop_back,
    overlay,
    person,
    plant,
    pot,
    room,
    sign,
    steam,
    traffic_light,
    window,
)

WORKER = Looks(hair="ponytail", hair_colour="#5b3a29", shirt="#5f9e8f", skin="#eebf94")
STUDENT = Looks(hair="curly", hair_colour="#3b2a4a", shirt="#f2b134", skin="#c98f63")
SPEAKER = Looks(hair="grey", shirt="#6d6a8f", glasses=True)


def draw_meeting() -> Canvas:
    parts: tuple[tuple[int, Mood, str], ...] = (
        (10, "happy", "Just a five-minute meeting"),
        (11, "bored", "One more slide"),
        (12, "tired", "Quick round of opinions"),
        (1, "sleepy", "Any other questions?"),
    )
    panels = []
    for hour, mood, text in parts:
        panel = Canvas(356, 356)
        room(panel, "#dfe6ee", "#9fb0c2", 0.8)
        clock(panel.at(296, 150, 0.72), hour)
        person(
            panel.at(150, 350, 0.98), mood, WORKER, "cheeks" if hour != 10 else "wave", legs=False
        )
        if hour == 1:
            ghost(panel.at(44, 232, 0.72, -12), "sad")
        desk(panel.at(178, 400, 0.8), 460)
        overlay(panel, text, "top", 0.27)
        panels.append(panel)
    return grid(panels)


def draw_lights() -> Canvas:
    parts: tuple[tuple[str, str, Mood], ...] = (
        ("Monday", "red", "bored"),
        ("Tuesday", "red", "bored"),
        ("Wednesday", "yellow", "neutral"),
        ("Friday, 5 pm", "green", "excited"),
    )
    panels = []
    for text, lit, mood in parts:
        panel = Canvas(356, 356)
        gradient(panel, "#bfe0ee", "#eef6ea")
        panel.pen.box((0, 300), (356, 356), "#8c93a3", 0, None)
        traffic_light(panel.at(270, 318, 0.95), lit)
        animal(panel.at(120, 330, 1.0), "dog", mood)
        overlay(panel, text, "top", 0.22)
        panels.append(panel)
    return add_bar(grid(panels), "My motivation this week", 76)


def draw_introductions() -> Canvas:
    c = Canvas(720, 620)
    room(c, "#e9ddc9", "#b08a63", 0.78)
    person(c.at(160, 600, 1.2), "happy", SPEAKER, "wave")
    person(c.at(540, 600, 1.2), "shocked", WORKER, "down")
    ghost(c.at(600, 330, 1.0, 16), "crying")
    bubble(c, "Let us go round and introduce ourselves!", (40, 30, 420, 170), (170, 270))
    return add_bar(c, "My soul, leaving the room", 90, "bottom")


def draw_reply_all() -> Canvas:
    c = Canvas()
    room(c, "#d8dcec", "#8d8fb3", 0.52)
    crowd: tuple[tuple[int, int, Mood], ...] = (
        (90, 420, "angry"),
        (250, 400, "tired"),
        (470, 400, "bored"),
        (630, 420, "angry"),
    )
    for x, y, mood in crowd:
        animal(c.at(x, y, 0.8), "mouse", mood)
    desk(c.at(360, 660, 1.1), 420)
    animal(c.at(360, 560, 1.3), "dog", "happy")
    laptop_back(c.at(360, 540, 1.2))
    overlay(c, "People who hit reply all", "top")
    overlay(c, "We see you, and so does everyone", "bottom", 0.26)
    return c


def draw_frog() -> Canvas:
    c = Canvas()
    gradient(c, "#f6e2c4", "#f3c9a4")
    c.pen.box((0, 640), (720, 720), "#8d6a55", 0, None)
    for x in (200, 290, 380, 470, 540):
        flame(c.at(x, 660, 1.05))
    head(c.at(360, 318, 1.7), "frog", "calm")
    pot(c.at(360, 590, 2.3))
    label(c, "The deadline", (220, 430, 500, 540))
    for x in (150, 570):
        steam(c.at(x, 330, 0.9))
    overlay(c, "It is only getting warm", "top", 0.16)
    return c


def draw_exam() -> Canvas:
    one, two, three, four = (Canvas(356, 356) for _ in range(4))
    for panel, wall in ((one, "#f7ecd2"), (two, "#f7ecd2"), (three, "#e9e3d2")):
        room(panel, wall, "#c99b6d", 0.82)
    burst(four, "#f3b0a0")
    sign(one, "1 + 1 = 2", (196, 120, 342, 196))
    person(one.at(96, 402, 1.0), "happy", STUDENT, "wave", legs=False)
    overlay(one, "In class", "top", 0.24)
    sign(two, "2 + 3 = 5", (196, 120, 342, 196))
    person(two.at(96, 402, 1.0), "calm", STUDENT, "hold", legs=False)
    overlay(two, "Homework", "top", 0.24)
    books(three.at(270, 346, 0.85), 4)
    person(three.at(96, 402, 1.0), "smug", STUDENT, "hips", legs=False)
    overlay(three, "Revision: too easy", "top", 0.24)
    sign(four, "Weigh the sun. You have a spoon.", (178, 96, 346, 236))
    person(four.at(90, 402, 1.0), "shocked", STUDENT, "cheeks", legs=False)
    overlay(four, "The exam", "top", 0.24)
    return grid([one, two, three, four])


def draw_tomorrow() -> Canvas:
    c = Canvas(720, 600)
    room(c, "#e4e9d8", "#b9a06b", 0.76)
    window(c.at(130, 170, 1.0))
    plant(c.at(640, 560, 1.1))
    books(c.at(200, 570, 1.1), 3)
    animal(c.at(400, 570, 1.75), "cat", "bored", "#9a94a8")
    sign(c, "How to stop putting things off", (110, 400, 290, 486), "#f2b134")
    return add_bar(c, "I bought this book in March. I will open it tomorrow.", 110)


MEMES = load(
    "en_office",
    {
        "en-009": draw_meeting,
        "en-010": draw_lights,
        "en-011": draw_introductions,
        "en-012": draw_reply_all,
        "en-013": draw_frog,
        "en-014": draw_exam,
        "en-015": draw_tomorrow,
    },
)
