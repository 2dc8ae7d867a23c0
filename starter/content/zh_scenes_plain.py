"""The drawings behind the plain captions of the Chinese pun groups."""

from __future__ import annotations

from starter.content.zh_scenes import WHITE
from starter.draw import (
    INK,
    Canvas,
    Look,
    Looks,
    Pen,
    Printed,
    animal,
    cup,
    desk,
    duck,
    gradient,
    head,
    laptop,
    person,
    plant,
    robot,
    room,
    shade,
    sky,
    sofa,
    water,
    window,
    write,
)


def digging_dog() -> Canvas:
    """A dog among three empty holes."""
    canvas = Canvas()
    sky(canvas, "#8fc26b", 0.5)
    pen = canvas.pen
    for x in range(20, 720, 100):
        pen.box((x, 270), (x + 56, 372), "#d9a86c", 4)
        pen.polygon([(x, 270), (x + 28, 236), (x + 56, 270)], "#d9a86c")
    pen.box((0, 300), (720, 322), "#c98f52", 0)
    for x, y in ((140, 520), (588, 500), (420, 566)):
        pen.blob([(x + 60, y), (x + 96, y - 44), (x + 130, y + 4), (x + 90, y + 14)], "#9a6a4b")
        pen.oval((x, y), (84, 26), "#7a5236")
        pen.oval((x, y + 5), (68, 18), "#4a3020", None)
    animal(canvas.at(310, 500, 1.55), "dog", "tense")
    for x, y, size in ((110, 110, 84), (500, 70, 104)):
        look = Look(colour="#ffffff", outline=INK, stroke=4, sizes=(size, size))
        write(canvas, "?", (x, y, x + size, y + size * 1.15), look)
    return canvas


def window_cat() -> Canvas:
    """A cat seen from behind, looking at the moon."""
    canvas = Canvas(colour="#3a3a66")
    pen = canvas.pen
    pen.box((110, 40), (610, 520), "#8a7bb5", 10)
    pen.box((132, 62), (588, 520), "#20244f", 0)
    for number in range(22):
        x, y = 140 + (number * 173) % 440, 70 + (number * 97) % 330
        pen.oval((x, y), (3, 3), "#fff6c9", None)
    pen.oval((470, 170), (74, 74), "#ffeaa0", None)
    for x, y, r in ((448, 150, 14), (494, 190, 18), (476, 128, 8)):
        pen.oval((x, y), (r, r), "#f0d683", None)
    pen.blob(
        [(132, 460), (230, 400), (330, 452), (450, 410), (588, 470), (588, 560), (132, 560)],
        "#151838",
        None,
    )
    pen.stroke([(360, 62), (360, 520)], "#8a7bb5", 14)
    pen.box((70, 510), (650, 552), "#a598cf", 6)
    cat_behind(canvas.at(290, 520, 1.7))
    return canvas


def cat_behind(pen: Pen, fur: str = "#f4a64a") -> None:
    """A sitting cat from behind, 200 tall."""
    pen.limb([(30, -8), (66, 6), (70, 40), (48, 66)], fur, 17)
    pen.blob([(-40, -104), (40, -104), (64, -30), (46, 0), (-46, 0), (-64, -30)], fur)
    for side in (-1, 1):
        ear = pen.at(0, -134, flip=side < 0)
        ear.polygon([(22, -54), (62, -88), (70, -20)], fur)
    head_shape = [(0, -62), (56, -44), (74, 8), (44, 48), (0, 56), (-44, 48), (-74, 8), (-56, -44)]
    pen.at(0, -134).blob(head_shape, fur)
    for y in (-176, -160, -144):
        pen.stroke([(-12, y), (12, y)], shade(fur, 0.75), 6)
    for y in (-70, -50):
        pen.stroke([(-16, y), (16, y)], shade(fur, 0.75), 6)


def desk_panic() -> Canvas:
    """A sweating person beside a laptop with a warning."""
    canvas = Canvas()
    room(canvas, "#dfe6f2", "#a98f7a", 0.8)
    window(canvas.at(590, 140), "#bfe6ff", 150)
    person(
        canvas.at(250, 556, 1.75), "tense", Looks(hair="messy", shirt="#6aa84f"), "cheeks", False
    )
    desk(canvas.at(360, 620, 1.25), 560)
    laptop(canvas.at(500, 470, 1.5), "#fff1ef")
    sign_pen = canvas.at(500, 386, 1.2)
    sign_pen.polygon([(0, -38), (44, 34), (-44, 34)], "#f2b134")
    sign_pen.stroke([(0, -12), (0, 10)], INK, 8)
    sign_pen.oval((0, 23), (5, 5), INK, None)
    for x, y in ((130, 156), (118, 206), (372, 166)):
        canvas.at(x, y).blob([(0, -16), (9, 4), (0, 14), (-9, 4)], "#7cc7f2", INK, 3)
    return canvas


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


def flat_cat() -> Canvas:
    """A cat spread flat on a carpet."""
    canvas = Canvas()
    room(canvas, "#f1e2cf", "#c9a27a", 0.5)
    window(canvas.at(180, 160), "#bfe6ff", 170)
    plant(canvas.at(610, 420, 1.5))
    pen = canvas.pen
    pen.oval((350, 500), (320, 104), "#d98a8a")
    pen.oval((350, 498), (276, 82), "#efb0a6", None)
    fur = "#9aa0ad"
    pen.limb([(520, 486), (600, 500), (640, 470)], fur, 24)
    for x, y in ((120, 548), (330, 574), (470, 566)):
        pen.oval((x, y), (46, 20), fur)
    pen.blob(
        [(150, 520), (200, 440), (340, 420), (480, 440), (540, 510), (470, 556), (230, 560)], fur
    )
    head(canvas.at(196, 464, 1.25), "cat", "bored", fur)
    return canvas


def two_dogs() -> Canvas:
    """Two dogs meet in a park."""
    canvas = Canvas()
    sky(canvas, "#8fc26b", 0.56)
    pen = canvas.pen
    for x in (80, 650):
        pen.box((x - 16, 300), (x + 16, 420), "#8d5f3c")
        pen.oval((x, 240), (82, 96), "#5fae62")
    pen.polygon([(260, 404), (460, 404), (720, 720), (0, 720)], "#e3cda4", None)
    animal(canvas.at(224, 572, 1.5), "dog", "excited")
    animal(canvas.at(500, 572, 1.5, flip=True), "dog", "happy", "#f2ece2")
    return canvas


def odd_duck() -> Canvas:
    """Three yellow ducks and a blue one with sunglasses."""
    canvas = Canvas()
    water(canvas, 0.52)
    for x in (110, 276, 620):
        duck(canvas.at(x, 540, 1.05), "bored" if x == 276 else "neutral")
    blue = canvas.at(446, 556, 1.25)
    duck(blue, "smug", "#7cc7f2")
    for side in (-1, 1):
        blue.box((side * 28 - 23, -152), (side * 28 + 23, -124), "#23252f", 10)
        blue.stroke([(side * 28 - 10, -146), (side * 28 + 2, -134)], "#8a8fa6", 4)
    blue.stroke([(-8, -142), (8, -142)], INK, 5)
    pen = canvas.pen
    waves = [(x, 536 + 9 * ((x // 24) % 2)) for x in range(-12, 744, 24)]
    pen.polygon([*waves, (740, 720), (-20, 720)], "#5cb3d9", None)
    pen.curve(waves, INK, 4)
    return canvas


def robot_waiter() -> Canvas:
    """A robot with coffee and towel in a living room."""
    canvas = Canvas()
    room(canvas, "#f6e3d8", "#b98a63", 0.72)
    sofa(canvas.at(560, 560, 1.0), "#5f9e8f", 340)
    machine = canvas.at(300, 590, 1.75)
    robot(machine, "happy")
    machine.oval((-84, -58), (48, 8), "#c7ccd6")
    cup(machine.at(-88, -62, 0.62))
    machine.polygon([(58, -86), (104, -72), (96, -4), (52, -18)], WHITE)
    machine.stroke([(56, -36), (98, -22)], "#e4572e", 4)
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
