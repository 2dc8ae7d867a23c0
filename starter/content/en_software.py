"""Computers and the people who talk to them."""

from __future__ import annotations

from starter.content.sheets import load
from starter.draw import (
    INK,
    Canvas,
    Looks,
    add_bar,
    animal,
    battery,
    bubble,
    bug,
    burst,
    cup,
    desk,
    gradient,
    grid,
    label,
    laptop,
    monitor,
    night,
    overlay,
    person,
    robot,
    room,
    window,
)

CODER = Looks(hair="messy", glasses=True, shirt="#4f86c6")
REVIEWER = Looks(hair="bun", hair_colour="#7a3b2e", shirt="#c7565b", skin="#e8b48a")


def draw_captcha() -> Canvas:
    c = Canvas()
    gradient(c, "#cfe3ee", "#eef6f4")
    c.pen.box((0, 600), (720, 720), "#b9c9c4", 0, None)
    robot(c.at(220, 650, 1.75), "tense")
    c.pen.box((400, 350), (704, 450), "#ffffff", 10)
    c.pen.box((422, 382), (458, 418), "#ffffff", 4)
    label(c, "I am not a robot", (474, 356, 694, 444), INK)
    overlay(c, "Well, this is awkward", "top")
    return c


def draw_quick_fix() -> Canvas:
    morning, late = Canvas(356, 560), Canvas(356, 560)
    room(morning, "#fbe9c8", "#c99b6d", 0.7)
    window(morning.at(80, 200, 0.8))
    bug(morning.at(262, 200, 0.8))
    person(morning.at(150, 510, 1.05), "happy", CODER, "wave", legs=False)
    desk(morning.at(178, 570, 0.85), 400)
    overlay(morning, "9 am: just one quick bug", "top")
    night(late, "#5b4a66", 0.7, (0.88, 0.24))
    crowd = ((60, 230, 0.55), (178, 178, 0.6), (300, 240, 0.55), (306, 350, 0.4), (50, 340, 0.4))
    for x, y, size in crowd:
        bug(late.at(x, y, size))
    person(late.at(178, 510, 1.05), "tired", CODER, "cheeks", legs=False)
    desk(late.at(178, 570, 0.85), 400)
    overlay(late, "2 am: meet the family", "top")
    return grid([morning, late])


def draw_deploy() -> Canvas:
    c = Canvas()
    room(c, "#d7e4dc", "#b98d68", 0.78)
    monitor(c.at(200, 520, 1.25))
    desk(c.at(360, 660, 1.2), 560)
    laptop(c.at(500, 516, 1.4))
    animal(c.at(500, 522, 1.3), "cat", "smug")
    cup(c.at(330, 516, 0.6), "#e07a5f")
    overlay(c, "Deployed to production", "top")
    overlay(c, "Nobody asked me to", "bottom")
    return c


def draw_review() -> Canvas:
    c = Canvas(720, 660)
    room(c, "#e3e0f0", "#9d8fb5", 0.8)
    person(c.at(180, 620, 1.35), "angry", REVIEWER, "point")
    person(c.at(560, 620, 1.35), "neutral", CODER, "shrug")
    bubble(c, "Your code is garbage!", (30, 24, 330, 150), (180, 250))
    bubble(c, "You wrote it last year.", (390, 60, 700, 180), (560, 260))
    return c


def draw_update() -> Canvas:
    c = Canvas(720, 600)
    room(c, "#cfd8e6", "#8793ab", 0.8)
    laptop(c.at(300, 462, 3.0), "#2d6fb0")
    label(c, "Update 1 of 214", (140, 200, 460, 280))
    c.pen.box((170, 310), (430, 336), "#ffffff", 8)
    c.pen.box((174, 314), (192, 332), "#5fb760", 6, None)
    person(c.at(610, 560, 1.2), "angry", Looks(hair="short", shirt="#f2b134"), "cheeks", legs=False)
    desk(c.at(360, 612, 1.1), 660)
    return add_bar(c, "My presentation starts in two minutes")


def draw_battery() -> Canvas:
    c = Canvas()
    burst(c, "#fbe3a8")
    battery(c.at(360, 420, 2.6), 0.06, "tired")
    overlay(c, "My phone is at one percent", "top")
    overlay(c, "So am I", "bottom")
    return c


def draw_light_mode() -> Canvas:
    dark, bright = Canvas(356, 500), Canvas(356, 500)
    night(dark, "#3c4a6e", 0.8, (0.86, 0.3))
    animal(dark.at(178, 450, 1.35), "cat", "calm", "#8f95b5")
    overlay(dark, "Me in dark mode", "top")
    burst(bright, "#fff6cf", 20)
    animal(bright.at(178, 450, 1.35), "cat", "shocked", "#d9dcec")
    overlay(bright, "Someone shares a white page", "top")
    return grid([dark, bright])


def draw_training() -> Canvas:
    c = Canvas()
    night(c, "#3c4a6e", 0.78, (0.86, 0.42))
    robot(c.at(360, 640, 1.7), "crying", "#b5c7c9")
    overlay(c, "I read the whole internet", "top")
    overlay(c, "Please hold my hand", "bottom", 0.18)
    return c


MEMES = load(
    "en_software",
    {
        "en-001": draw_captcha,
        "en-002": draw_quick_fix,
        "en-003": draw_deploy,
        "en-004": draw_review,
        "en-005": draw_update,
        "en-006": draw_battery,
        "en-007": draw_light_mode,
        "en-008": draw_training,
    },
)
