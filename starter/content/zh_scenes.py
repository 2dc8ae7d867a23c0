"""The drawings of the Chinese pun groups, without their captions. Things stay above y = 590."""

from __future__ import annotations

import math

from starter.draw import (
    INK,
    Canvas,
    Look,
    Pen,
    animal,
    cloud,
    door,
    face,
    fruit,
    gradient,
    head,
    kitchen,
    room,
    shade,
    sky,
    window,
    write,
)

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


def dish(pen: Pen, colour: str, filling: str, rim: str = WHITE) -> None:
    """A wide bowl, 240 across, level filling at y = -110, origin on the ground."""
    pen.blob([(-120, -110), (120, -110), (92, -34), (52, -6), (-52, -6), (-92, -34)], colour)
    pen.box((-46, -10), (46, 6), shade(colour, 0.85), 5)
    pen.oval((0, -110), (120, 30), rim)
    pen.oval((0, -108), (106, 23), filling, None)


def wisps(pen: Pen, colour: str = "#ffffffd0") -> None:
    """Steam rising from the origin."""
    for x in (-38, 0, 38):
        pen.curve([(x, 0), (x - 12, -20), (x + 10, -40), (x - 4, -64)], colour, 8)


def soup_in_bed() -> Canvas:
    """A bowl of soup in bed, seen from the foot end."""
    canvas = Canvas()
    room(canvas, "#f3d9d3", "#c49a7a", 0.78)
    window(canvas.at(118, 170), "#bfe6ff", 150)
    pen = canvas.pen
    pen.box((170, 150), (620, 560), "#8d5f3c", 50)
    pen.box((196, 176), (594, 560), "#a8744a", 40, None)
    pen.blob([(214, 420), (230, 300), (395, 278), (560, 300), (576, 420), (395, 460)], "#fbf7f0")
    bowl = canvas.at(395, 440, 1.5)
    dish(bowl, "#5b8fc9", "#eeb45e")
    for x, y, colour in ((-50, -112, "#6cb35d"), (-20, -100, "#e4572e"), (34, -114, "#6cb35d")):
        bowl.oval((x, y), (11, 5), colour, None)
    face(bowl.at(0, -68), "relaxed", 34, 11)
    wisps(canvas.at(395, 218, 1.1), "#fff6ead0")
    pen.blob(
        [
            (128, 452),
            (250, 424),
            (395, 436),
            (540, 424),
            (662, 452),
            (680, 620),
            (395, 650),
            (110, 620),
        ],
        "#7fbf8a",
    )
    pen.curve([(136, 476), (250, 454), (395, 464), (540, 454), (654, 476)], "#e4f5e6", 18)
    for x in (220, 395, 560):
        pen.curve([(x, 510), (x + 14, 556), (x + 4, 610)], "#5f9e6c", 4)
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


def porridge_waiter() -> Canvas:
    """A bowl of porridge walks in with a tray."""
    canvas = Canvas()
    room(canvas, "#e9f0dd", "#c99b6d", 0.74)
    pen = canvas.pen
    pen.box((70, 90), (300, 534), "#8d5f3c", 4)
    pen.box((90, 110), (280, 534), "#fff3c4", 0)
    door(canvas.at(30, 560, 1.35))
    pen = canvas.at(370, 580, 1.3)
    pen.oval((0, 0), (100, 12), "#1b15301f", None)
    for side in (-1, 1):
        pen.limb([(side * 36, -70), (side * 38, -8)], "#3a3547", 13)
        pen.blob([(side * 26, -12), (side * 58, -12), (side * 62, 2), (side * 24, 2)], "#3a3547")
    pen.limb([(-96, -110), (-140, -84), (-112, -60)], "#e8756a", 15)
    pen.limb([(98, -120), (140, -104), (160, -136)], "#e8756a", 15)
    bowl = pen.at(0, -60)
    dish(bowl, "#e8756a", "#fffaf0")
    face(bowl.at(0, -66), "happy", 34, 11)
    tie = bowl.at(0, -12)
    for side in (-1, 1):
        tie.polygon([(0, 0), (side * 32, -18), (side * 32, 18)], "#33364a")
    tie.oval((0, 0), (9, 9), "#4a4e63")
    wisps(bowl.at(0, -140), "#b9a88cb0")
    tray = pen.at(186, -144)
    tray.oval((0, 0), (84, 13), "#c7ccd6")
    fruit(tray.at(-38, -4, 0.44), "egg", None)
    tray.blob([(0, -34), (64, -34), (52, -6), (12, -6)], "#7cc7f2")
    tray.oval((32, -34), (32, 8), "#8fb04a")
    return canvas


def teacup(pen: Pen, tea: str) -> None:
    """A cup without handle, 110 across."""
    wisps(pen.at(0, -104, 0.8), "#8a7f74a0")
    pen.blob([(-54, -84), (54, -84), (42, -20), (24, -2), (-24, -2), (-42, -20)], "#fbfbf5")
    pen.oval((0, -84), (54, 14), WHITE)
    pen.oval((0, -83), (45, 10), tea, None)
    pen.curve([(-40, -44), (-14, -36), (14, -50), (40, -42)], "#5b8fc9", 5)


def tea_inspector() -> Canvas:
    """A dog looks at tea through a magnifying glass."""
    canvas = Canvas()
    room(canvas, "#d9e8d3", "#c99b6d", 0.8)
    dog = canvas.at(360, 512, 1.9)
    animal(dog, "dog", "neutral")
    dog.stroke([(-48, -164), (-16, -152)], INK, 7)
    pen = canvas.pen
    pen.box((30, 486), (690, 530), "#8d5f3c", 8)
    pen.box((70, 530), (650, 720), "#a8744a", 0)
    for x, tea in ((150, "#8fb04a"), (360, "#b5703a"), (570, "#d9a94e")):
        teacup(canvas.at(x, 490, 1.15), tea)
    lens = dog.at(31, -138)
    lens.limb([(26, 34), (52, 72)], "#8d5f3c", 12)
    lens.oval((0, 0), (43, 43), "#e8f6ffee", INK, 8)
    lens.arc((0, 0), (43, 43), (0, 360), "#f2c84b", 5)
    lens.oval((0, 2), (21, 24), INK, None)
    lens.oval((-7, -7), (8, 8), WHITE, None)
    lens.stroke([(-30, -22), (22, -34)], INK, 7)
    return canvas


def low_glass() -> Canvas:
    """A tall glass with hardly any water, and a ruler."""
    canvas = Canvas()
    gradient(canvas, "#fde6c8", "#fff6e8")
    canvas.pen.box((0, 540), (720, 720), "#b9804f", 0, None)
    canvas.pen.stroke([(0, 540), (720, 540)], INK, 3)
    pen = canvas.at(300, 572)
    pen.oval((0, 0), (120, 16), "#1b15302a", None)
    pen.polygon([(-128, -480), (128, -480), (98, 0), (-98, 0)], "#eaf7ffd8", INK, 6)
    pen.polygon([(-101, -54), (101, -54), (97, -4), (-97, -4)], "#5cb3d9", None)
    pen.oval((0, -54), (101, 12), "#8fd0f0", INK, 3)
    pen.oval((0, -480), (128, 20), "#f6fcff", INK, 6)
    pen.stroke([(-100, -430), (-84, -120)], WHITE, 12)
    face(pen.at(0, -270, 1.2), "calm", 44, 14)
    scale = canvas.at(540, 572)
    scale.box((-40, -490), (40, 0), "#f7cf52", 6)
    for step in range(1, 24):
        reach = 38 if step % 4 == 0 else 20
        scale.stroke([(-38, -step * 20), (-38 + reach, -step * 20)], INK, 4)
    for x in range(-132, -48, 18):
        scale.stroke([(x, -54), (x + 8, -54)], "#e4572e", 5)
    return canvas
