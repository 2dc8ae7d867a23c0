"""Scenes that are computed rather than laid out: loops, curves and turned parts."""

from __future__ import annotations

import math

from sample_data.draw.canvas import INK, Canvas, Pen, Printed
from sample_data.draw.creatures import animal, head, shade
from sample_data.draw.faces import face
from sample_data.draw.letters import Look, write
from sample_data.draw.people import Looks, person
from sample_data.draw.places import gradient, kitchen, room, sky
from sample_data.draw.table import cloud, fruit
from sample_data.draw.things import window

WHITE = "#ffffff"


def keyboard() -> Canvas:
    """A puzzled keyboard that has lost some of its caps."""
    canvas = Canvas()
    gradient(canvas, "#cfe4f2", "#eef6fa")
    canvas.pen.box((0, 430), (720, 720), "#c99b6d", 0, None)
    canvas.pen.stroke([(0, 430), (720, 430)], INK, 3)
    pen = canvas.at(360, 360)
    pen.box((-290, -110), (290, 160), shade("#b9bccb", 0.78), 26)
    pen.box((-290, -122), (290, 146), "#d5d8e3", 26)
    face(pen.at(0, -72, 1.15), "tense", 40, 13)
    gone = {(0, 2), (0, 8), (1, 5), (2, 1), (2, 7), (1, 9)}
    for row in range(3):
        for column in range(11):
            x, y = -264 + column * 48, -2 + row * 46
            if (row, column) in gone:
                pen.box((x + 3, y + 3), (x + 41, y + 37), "#6d7188", 6, None)
                pen.box((x + 17, y + 12), (x + 27, y + 28), "#4a4e63", 2, None)
                pen.box((x + 13, y + 16), (x + 31, y + 24), "#4a4e63", 2, None)
            else:
                pen.box((x, y), (x + 44, y + 40), "#fbfbfd", 8)
    for x, y, turn, colour in (
        (56, 500, -24, "#fbfbfd"),
        (150, 556, 18, "#f7cf52"),
        (392, 546, 30, "#fbfbfd"),
        (520, 566, -14, "#fbfbfd"),
        (660, 520, 40, "#e58a9a"),
        (282, 574, -36, "#fbfbfd"),
    ):
        cap = canvas.at(x, y, 1.0, turn)
        cap.box((-25, -19), (25, 27), shade(colour, 0.75), 9)
        cap.box((-25, -24), (25, 16), colour, 9)
    for x, y, size in ((150, 66, 96), (320, 20, 120), (510, 70, 88)):
        look = Look(colour="#f2883a", outline=INK, stroke=4, sizes=(size, size))
        write(canvas, "?", (x, y, x + size, y + size * 1.15), look)
    return canvas


def mane(pen: Pen, colour: str = "#a8622c") -> None:
    """A ring of tufts for a head of animal size."""
    for step in range(16):
        turn = math.radians(step * 22.5)
        pen.oval((88 * math.cos(turn), 2 + 82 * math.sin(turn)), (31, 31), colour)
    pen.oval((0, 2), (92, 86), colour, None)


def sleepless_lion() -> Canvas:
    """A lion in bed with wide eyes, the moon in the window."""
    canvas = Canvas()
    room(canvas, "#39406e", "#2b2f54", 0.74)
    night_window(canvas.at(560, 170), 210)
    pen = canvas.pen
    pen.box((76, 190), (440, 560), "#8d5f3c", 40)
    pen.box((100, 214), (416, 560), "#a8744a", 30, None)
    pen.blob([(96, 392), (120, 296), (258, 276), (396, 296), (420, 392), (258, 440)], "#fbf7f0")
    mane(canvas.at(258, 336, 1.2))
    head(canvas.at(258, 336, 1.2), "bear", "tense", "#f2b95a")
    pen.blob(
        [
            (52, 470),
            (150, 432),
            (258, 448),
            (366, 432),
            (640, 500),
            (660, 620),
            (360, 640),
            (60, 620),
        ],
        "#6f86d6",
    )
    pen.curve([(58, 492), (150, 460), (258, 474), (372, 462), (610, 524)], "#dfe6ff", 16)
    for x in (160, 300, 450):
        pen.curve([(x, 520), (x + 18, 560), (x + 10, 610)], "#5468b3", 4)
    return canvas


def night_window(pen: Pen, size: float) -> None:
    """A window with moon and stars, origin at its middle."""
    window(pen, "#23275a", size)
    pen.oval((size * 0.2, -size * 0.2), (size * 0.13, size * 0.13), "#ffeaa0", None)
    pen.oval((size * 0.25, -size * 0.23), (size * 0.11, size * 0.11), "#23275a", None)
    for x, y in (
        (-0.3, -0.3),
        (-0.14, -0.16),
        (-0.32, 0.2),
        (0.3, 0.14),
        (0.12, 0.3),
        (-0.1, 0.32),
    ):
        pen.oval((size * x, size * y), (3, 3), "#fff6c9", None)


def fridge_cat() -> Canvas:
    """A cat on the shelf of an open fridge."""
    canvas = Canvas()
    kitchen(canvas)
    pen = canvas.pen
    pen.polygon([(470, 60), (620, 20), (620, 640), (470, 610)], "#dfe7ee")
    pen.polygon([(484, 90), (604, 60), (604, 330), (484, 336)], "#c9d6e2")
    pen.polygon([(484, 360), (604, 356), (604, 600), (484, 582)], "#c9d6e2")
    for y in (300, 560):
        pen.polygon([(484, y), (604, y - 6), (604, y + 10), (484, y + 14)], WHITE)
    for x, y, colour in ((512, 290, "#f2b134"), (556, 286, "#e4572e"), (520, 552, "#7cc7f2")):
        pen.box((x - 13, y - 66), (x + 13, y + 6), colour, 6)
        pen.box((x - 7, y - 82), (x + 7, y - 64), "#fbf7f0", 3)
    pen.box((140, 40), (480, 616), "#eef3f8", 24)
    pen.box((166, 66), (458, 592), "#bfe0f5", 14)
    pen.box((176, 76), (448, 582), "#d9f0fc", 10, None)
    for y in (196, 486):
        pen.box((168, y), (456, y + 12), "#f4fbff", 0)
    fruit(canvas.at(226, 194, 0.62), "apple", None)
    fruit(canvas.at(304, 194, 0.62), "lemon", None)
    pen.box((352, 112), (420, 194), WHITE, 6)
    pen.polygon([(352, 112), (366, 88), (406, 88), (420, 112)], "#7cc7f2")
    animal(canvas.at(306, 484, 1.3), "cat", "shocked")
    for x, radius in ((228, 26), (276, 32), (330, 28), (382, 24)):
        pen.oval((x, 572), (radius, radius * 0.6), "#8fc26b" if x % 4 else "#e58a5e")
    for x, y, r in ((150, 560, 40), (206, 594, 46), (290, 606, 50), (380, 600, 44), (450, 576, 38)):
        pen.oval((x, y), (r, r * 0.55), "#f4fcffd0", None)
    return canvas


def six_clock() -> Canvas:
    """A laughing wall clock at six, with confetti."""
    canvas = Canvas()
    room(canvas, "#fbe3b5", "#b98a63", 0.86)
    for number in range(34):
        x, y = (number * 137.5) % 700 + 10, (number * 89.3) % 560 + 12
        colour = ("#e4572e", "#3ba55d", "#3d85c6", "#8e6bbf", "#f2b134")[number % 5]
        canvas.at(x, y, 1, number * 47).box((-9, -5), (9, 5), colour, 2, None)
    pen = canvas.at(360, 312)
    pen.oval((8, 12), (236, 236), "#2b244026", None)
    pen.oval((0, 0), (232, 232), "#e4572e", INK, 6)
    pen.oval((0, 0), (200, 200), "#fffdf5", INK, 5)
    for mark in range(12):
        turn = math.radians(mark * 30)
        start = 164 if mark % 3 else 152
        ends = [(r * math.cos(turn), r * math.sin(turn)) for r in (start, 186)]
        pen.stroke(ends, INK, 6 if mark % 3 else 11)
    pen.stroke([(0, 0), (0, -140)], "#f2883a", 15)
    pen.stroke([(0, 0), (0, 122)], "#f2883a", 21)
    pen.polygon([(-21, 110), (21, 110), (0, 142)], "#f2883a", None)
    face(pen.at(0, -34), "excited", 76, 22)
    return canvas


def lotus_root(pen: Pen, mood: str, colour: str = "#f3ddc3") -> None:
    """A standing lotus root of three sections with one waving arm, 330 tall."""
    pen.oval((0, 0), (74, 12), "#1b15301f", None)
    for side in (-1, 1):
        pen.limb([(side * 26, -22), (side * 28, -6)], shade(colour, 0.85), 16)
    pen.limb([(50, -214), (92, -240), (104, -300)], colour, 18)
    pen.limb([(-50, -206), (-82, -176), (-70, -140)], colour, 18)
    pen.blob([(-40, -96), (40, -96), (62, -56), (40, -16), (-40, -16), (-62, -56)], colour)
    pen.blob([(-46, -290), (46, -290), (80, -190), (48, -92), (-48, -92), (-80, -190)], colour)
    pen.stroke([(-42, -94), (42, -94)], "#a5784f", 9)
    pen.oval((0, -292), (48, 19), "#fff3e2")
    for x, y in (
        (0, -292),
        (-24, -292),
        (24, -292),
        (-12, -301),
        (12, -301),
        (-12, -284),
        (12, -284),
    ):
        pen.oval((x, y), (6.5, 4), "#c79a72", None)
    for x, y in ((-46, -150), (40, -128), (-30, -46), (34, -60)):
        pen.stroke([(x, y), (x + 12, y + 2)], "#cfa87f", 4)
    face(pen.at(0, -212), "excited" if mood == "excited" else "happy", 34, 11)


def lotus_roots() -> Canvas:
    """Two lotus roots meet at a pond."""
    canvas = Canvas()
    sky(canvas, "#69b5d6", 0.5)
    pen = canvas.pen
    for x, y, r in ((70, 420, 62), (244, 396, 46), (420, 424, 58), (600, 398, 52), (690, 440, 50)):
        pen.oval((x, y), (r, r * 0.34), "#5fae62")
        pen.polygon(
            [(x, y), (x + r * 0.55, y - r * 0.34), (x + r * 0.2, y - r * 0.4)], "#69b5d6", None
        )
    lotus_flower(canvas.at(362, 440, 1.15))
    pen.blob(
        [(-40, 520), (180, 484), (400, 498), (620, 480), (780, 520), (760, 800), (-40, 800)],
        "#a9cf7a",
    )
    lotus_root(canvas.at(206, 572, 1.18), "happy")
    lotus_root(canvas.at(520, 572, 1.18, flip=True), "excited", "#f6e2d2")
    return canvas


def lotus_flower(pen: Pen) -> None:
    """A small pink lotus flower, origin at its base."""
    for turn in (-56, 56, -28, 28, 0):
        pen.at(0, 0, 1, turn).blob([(0, 4), (-15, -26), (0, -56), (15, -26)], "#f7a9bd")


def odd_cloud() -> Canvas:
    """Two grey clouds and a pink one with coloured rain."""
    canvas = Canvas()
    gradient(canvas, "#8fa3b8", "#dbe6ee")
    meadow(canvas)
    cloud(canvas.at(142, 190, 1.05), "bored", True, "#aab4c0")
    cloud(canvas.at(578, 190, 1.05, flip=True), "tired", True, "#aab4c0")
    colours = ("#e4572e", "#f2b134", "#3ba55d", "#3d85c6", "#8e6bbf")
    pen = canvas.at(360, 280)
    for number in range(15):
        x, y = -96 + (number % 5) * 48, 76 + (number // 5) * 74 + (number % 2) * 26
        pen.at(x, y).blob([(0, -24), (13, 4), (0, 18), (-13, 4)], colours[number % 5], INK, 3)
    cloud(canvas.at(360, 280, 1.35), "excited", False, "#f9b9cf")
    return canvas


def meadow(canvas: Canvas) -> None:
    """A wet meadow with flowers where the coloured rain falls."""
    pen = canvas.pen
    pen.blob(
        [(-60, 590), (160, 566), (360, 556), (560, 566), (780, 590), (780, 800), (-60, 800)],
        "#8fae7f",
    )
    for x, y, colour in (
        (282, 572, "#e4572e"),
        (334, 580, "#f2b134"),
        (390, 574, "#8e6bbf"),
        (440, 580, "#f7a9bd"),
    ):
        pen.stroke([(x, y), (x, y - 34)], "#4d7d4a", 5)
        for turn in range(0, 360, 72):
            pen.at(x, y - 40, 1, turn).oval((0, -11), (8, 9), colour, INK, 2)
        pen.oval((x, y - 40), (6, 6), "#fff3c4", None)


def going_home() -> Canvas:
    """A cheerful walk home at sunset."""
    canvas = Canvas()
    gradient(canvas, "#f78f6a", "#ffe3a3")
    pen = canvas.pen
    pen.oval((520, 330), (92, 92), "#fff0b3", None)
    for x, width, height, colour in (
        (0, 150, 300, "#8c5a7a"),
        (140, 110, 220, "#7a4f74"),
        (430, 120, 190, "#7a4f74"),
        (560, 170, 290, "#8c5a7a"),
    ):
        pen.box((x, 500 - height), (x + width, 500), colour, 0)
        for row in range(int(height / 56)):
            for column in range(int(width / 46)):
                left, top = x + 18 + column * 44, 500 - height + 20 + row * 54
                pen.box((left, top), (left + 22, top + 28), "#ffdf8a", 2, None)
    pen.box((0, 500), (720, 720), "#b9806b", 0, None)
    pen.stroke([(0, 500), (720, 500)], INK, 3)
    looks = Looks(hair="ponytail", shirt="#3d85c6", trousers="#4a4e63")
    walker = canvas.at(330, 590, 1.6)
    walker.box((-104, -66), (-34, -12), "#8d5f3c", 8)
    walker.arc((-69, -66), (16, 14), (180, 360), INK, 6)
    person(walker, "excited", looks, "wave")
    return canvas


def exam_paper() -> Canvas:
    """A sad student with a failed paper."""
    canvas = Canvas()
    room(canvas, "#efe6d2", "#b98a63", 0.8)
    pen = canvas.pen
    pen.box((60, 40), (660, 320), "#8d5f3c", 8)
    pen.box((78, 58), (642, 302), "#3f7158", 4)
    person(canvas.at(360, 600, 1.75), "crying", Looks(hair="short", shirt="#e58a5e"), "hold")
    paper = canvas.at(360, 470, 1, -4)
    paper.box((-92, -104), (92, 96), "#fffdf5", 4)
    for y in (18, 40, 62):
        paper.stroke([(-66, y), (60, y)], "#b9b6c6", 4)
    write(canvas, "59", (280, 372, 440, 478), Look(colour="#d93a4a", sizes=(60, 92)))
    canvas.printed.append(Printed("59", "label"))
    return canvas


def two_cats() -> Canvas:
    """Two cats glare at each other."""
    canvas = Canvas()
    gradient(canvas, "#9ecfe8", "#d9eef7")
    pen = canvas.pen
    for row in range(6):
        for column in range(-1, 7):
            x, y = column * 120 + (row % 2) * 60, 200 + row * 52
            pen.box(
                (x, y), (x + 116, y + 48), "#d98f73" if (row + column) % 3 else "#cf8166", 4, None
            )
    pen.box((-10, 182), (730, 206), "#b56f57", 0)
    pen.box((0, 510), (720, 720), "#a8a39a", 0, None)
    pen.stroke([(0, 510), (720, 510)], INK, 3)
    for x, fur, flip in ((200, "#f4a64a", False), (520, "#9aa0ad", True)):
        cat = canvas.at(x, 576, 1.6, flip=flip)
        bristle(cat, fur)
        animal(cat, "cat", "angry", fur)
    pen.stroke([(338, 236), (356, 268), (344, 280), (366, 316)], "#f7cf52", 9)
    pen.stroke([(388, 236), (372, 268), (384, 280), (366, 316)], "#f7cf52", 9)
    return canvas


def bristle(pen: Pen, fur: str) -> None:
    """Raised hair behind a sitting animal."""
    spikes = []
    for step in range(11):
        y = -12 - step * 9
        spikes += [(-60 - 26, y - 4), (-56, y - 9)]
    pen.polygon([(-40, -4), *spikes, (-30, -110)], shade(fur, 0.85), INK, 3)
