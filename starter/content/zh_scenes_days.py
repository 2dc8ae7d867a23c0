"""The drawings of the other Chinese memes; the ones with panels print their own captions."""

from __future__ import annotations

from starter.content.zh_scenes import WHITE
from starter.draw import (
    INK,
    Canvas,
    Looks,
    Pen,
    alarm,
    animal,
    blanket_lump,
    bust,
    chick,
    clock,
    cloud,
    desk,
    duck,
    dumbbell,
    face,
    flame,
    gradient,
    grid,
    head,
    kitchen,
    laptop,
    laptop_back,
    monitor,
    overlay,
    papers,
    person,
    phone,
    pizza,
    plant,
    robot,
    room,
    sofa,
    steam,
    sun,
    umbrella,
    window,
)

HALF = (356, 500)
QUARTER = (356, 356)
SPORTY = Looks(hair="short", shirt="#e4572e", trousers="#33364a")
PLANNER = Looks(hair="bun", shirt="#8e6bbf", glasses=True)
CODER = Looks(hair="messy", shirt="#6aa84f", glasses=True)
DRIFTER = Looks(hair="messy", shirt="#f2b134", trousers="#5f9e8f", hair_colour="#6b4a2e")


def saved_workouts() -> Canvas:
    """Saving workout videos, and not doing one."""
    left, right = Canvas(*HALF), Canvas(*HALF)
    gradient(left, "#ffe0b8", "#fff3df")
    person(left.at(150, 430, 1.15), "excited", SPORTY, "up")
    phone(left.at(282, 250, 1.15), "#c8f0d0")
    dumbbell(left.at(282, 244, 0.32, -20))
    dumbbell(left.at(286, 400, 0.6))
    overlay(left, "收藏视频：二百个", "top", 0.3)
    room(right, "#e6dcec", "#a98f7a", 0.74)
    sofa(right.at(178, 440, 0.95), "#5f9e8f", 360)
    person(right.at(178, 410, 1.05), "relaxed", SPORTY, "stand", False)
    pizza(right.at(270, 376, 0.6, 20))
    overlay(right, "练完视频：零个", "top", 0.3)
    return grid([left, right])


def office_week() -> Canvas:
    """A cat at its desk from Monday to Friday."""
    days = (
        ("周一：我能行", "happy", "#cfe4f2"),
        ("周三：我是谁", "tired", "#d9d6e8"),
        ("周四：还不到周五？", "crying", "#b9c2d6"),
        ("周五：我又能行了", "excited", "#ffe5a8"),
    )
    panels = []
    for text, mood, wall in days:
        canvas = Canvas(*QUARTER)
        room(canvas, wall, "#a98f7a", 0.8)
        animal(canvas.at(140, 284, 1.0), "cat", mood)  # type: ignore[arg-type]
        desk(canvas.at(178, 370, 0.8), 420)
        laptop_back(canvas.at(270, 272, 0.75))
        overlay(canvas, text, "top", 0.28)
        panels.append(canvas)
    return grid(panels)


def stuck_robot() -> Canvas:
    """A sad robot under a bar that does not fill."""
    canvas = Canvas()
    gradient(canvas, "#1d2148", "#4a4f86")
    canvas.pen.box((0, 560), (720, 720), "#30375a", 0, None)
    canvas.pen.stroke([(0, 560), (720, 560)], INK, 3)
    for number in range(24):
        spot = ((number * 173) % 700 + 10, (number * 97) % 420 + 120)
        canvas.pen.oval(spot, (2.4, 2.4), "#fff6c9", None)
    robot(canvas.at(360, 594, 1.5), "crying", "#8fa0b8")
    pen = canvas.at(360, 190)
    pen.box((-250, -30), (250, 30), "#f4f4f7", 26)
    pen.box((-240, -20), (-196, 20), "#e4572e", 18, None)
    for step in range(3):
        pen.oval((-24 + step * 24, 0), (6, 6), "#8a8fa6", None)
    return canvas


def dog_review() -> Canvas:
    """A dog shocked by a screen of code."""
    canvas = Canvas()
    room(canvas, "#dbe6df", "#a98f7a", 0.78)
    plant(canvas.at(640, 560, 1.0), None, True)
    desk(canvas.at(480, 640, 1.1), 420)
    monitor(canvas.at(480, 508, 1.35))
    animal(canvas.at(180, 590, 1.6), "dog", "shocked")
    return canvas


def packing() -> Canvas:
    """One traveller with a pile of plans, one without anything."""
    left, right = Canvas(*HALF), Canvas(*HALF)
    room(left, "#e9e2f3", "#b98a63", 0.78)
    person(left.at(130, 450, 1.15), "smug", PLANNER, "hips")
    papers(left.at(276, 450, 0.95), 16)
    overlay(left, "J人出门：攻略二十页", "top", 0.32)
    room(right, "#dff0e4", "#b98a63", 0.78)
    person(right.at(178, 450, 1.2), "happy", DRIFTER, "shrug")
    slipper(right.at(84, 462))
    overlay(right, "P人出门：脑子忘了带", "top", 0.32)
    return grid([left, right])


def slipper(pen: Pen) -> None:
    """One lost slipper."""
    pen.blob([(-40, 0), (-34, -14), (10, -14), (40, -8), (40, 2), (0, 6)], "#e58a9a")
    pen.blob([(4, -12), (24, -26), (40, -6)], "#f7cf52")


def duck_engineer() -> Canvas:
    """A proud duck beside a burning laptop."""
    canvas = Canvas()
    room(canvas, "#e3eaf2", "#a98f7a", 0.8)
    window(canvas.at(120, 190), "#bfe6ff", 160)
    flame(canvas.at(520, 400, 1.5))
    flame(canvas.at(590, 404, 1.0))
    flame(canvas.at(452, 404, 0.9))
    bird = canvas.at(250, 500, 1.7)
    duck(bird, "smug")
    for side in (-1, 1):
        bird.arc((side * 28, -136), (20, 18), (0, 360), INK, 5)
    bird.stroke([(-8, -138), (8, -138)], INK, 5)
    bird.polygon([(-9, -72), (9, -72), (13, -30), (0, -16), (-13, -30)], "#c7565b")
    desk(canvas.at(360, 640, 1.25), 540)
    laptop(canvas.at(520, 484, 1.3), "#ffd9c2", "crying")
    return canvas


def late_dinner() -> Canvas:
    """A cat, an empty bowl and a clock."""
    canvas = Canvas()
    kitchen(canvas)
    clock(canvas.at(580, 240, 1.5), 6.05)
    animal(canvas.at(270, 580, 1.9), "cat", "angry", "#8f949f")
    bowl = canvas.at(560, 590)
    bowl.blob([(-92, -64), (92, -64), (112, 0), (-112, 0)], "#3d85c6")
    bowl.oval((0, -64), (92, 20), "#d6efff")
    bowl.oval((0, -60), (74, 12), "#9fc4df", None)
    return canvas


def trusting_forecast() -> Canvas:
    """A person in sunglasses under the only rain cloud."""
    canvas = Canvas()
    gradient(canvas, "#8ea0b4", "#cfdae2")
    canvas.pen.box((0, 540), (720, 720), "#7f8a94", 0, None)
    canvas.pen.stroke([(0, 540), (720, 540)], INK, 3)
    canvas.pen.oval((360, 590), (220, 24), "#a9c7dc", None)
    looks = Looks(hair="long", shirt="#f7cf52", trousers="#e58a5e")
    cloud(canvas.at(360, 230, 1.4), None, True, "#5d6b7d")
    cloud(canvas.at(110, 190, 0.8), None, True, "#76859a")
    cloud(canvas.at(620, 196, 0.8), None, True, "#76859a")
    person(canvas.at(360, 590, 1.2), "crying", looks, "shrug")
    for x, y in ((220, 420), (496, 452), (250, 500), (470, 360), (60, 380), (660, 420)):
        canvas.pen.stroke([(x, y), (x - 9, y + 28)], "#4f9bd1", 7)
    return canvas


def fried_egg(pen: Pen, burnt: bool) -> None:
    """A fried egg with a face, 220 across, origin at its middle."""
    white, yolk = ("#fffdf6", "#f9b93b") if not burnt else ("#4a4047", "#6b4a3a")
    edge = [
        (-112, 6),
        (-84, -44),
        (-24, -56),
        (40, -66),
        (104, -30),
        (110, 30),
        (52, 58),
        (-20, 50),
        (-84, 56),
    ]
    pen.blob(edge, white)
    pen.oval((0, -4), (58, 46), yolk)
    face(pen.at(0, -14), "happy" if not burnt else "crying", 22, 8)


def egg_lesson() -> Canvas:
    """The egg of the recipe and the egg in my pan."""
    panels = []
    for text, burnt in (("教程里的煎蛋", False), ("我锅里的煎蛋", True)):
        canvas = Canvas(356, 500)
        if burnt:
            gradient(canvas, "#8a8590", "#cfc8c4")
        else:
            gradient(canvas, "#fdeec9", "#fff8ea")
        pan = canvas.at(168, 320)
        pan.limb([(120, 20), (190, 56)], "#5b3d2a", 22)
        pan.oval((0, 12), (150, 92), "#33364a")
        pan.oval((0, 2), (150, 92), "#565b70")
        pan.oval((0, 4), (128, 74), "#3f4356", None)
        fried_egg(pan.at(0, 2, 1.0), burnt)
        if burnt:
            for x in (90, 168, 246):
                steam(canvas.at(x, 236, 0.9), "#8e8a93")
        else:
            for x, y in ((54, 190), (300, 180), (180, 168)):
                canvas.at(x, y, 0.8).polygon(
                    [(0, -26), (6, -6), (26, 0), (6, 6), (0, 26), (-6, 6), (-26, 0), (-6, -6)],
                    WHITE,
                )
        overlay(canvas, text, "top", 0.3)
        panels.append(canvas)
    return grid(panels)


def silent_dream() -> Canvas:
    """An alarm rings beside somebody who does not get up."""
    canvas = Canvas()
    room(canvas, "#c9cfe0", "#8f7f78", 0.7)
    window(canvas.at(580, 190), "#f7c9a3", 170)
    pen = canvas.pen
    pen.box((40, 470), (520, 600), "#fbf7f0", 20)
    pen.box((26, 380), (60, 620), "#8d5f3c", 8)
    pen.blob([(70, 480), (90, 410), (200, 392), (290, 420), (290, 490)], WHITE)
    bust(canvas.at(196, 416, 1.15, -8), "tired", Looks(hair="messy"))
    blanket_lump(canvas.at(330, 606, 1.55), "#7d8fd1")
    pen.box((560, 470), (690, 610), "#a8744a", 6)
    pen.oval((625, 530), (8, 8), "#f2c84b")
    alarm(canvas.at(625, 472, 1.15), "angry")
    return canvas


def dawn_runner() -> Canvas:
    """Somebody runs at sunrise; a panda in a blanket looks on."""
    canvas = Canvas()
    gradient(canvas, "#f9a878", "#ffe9b0")
    sun(canvas.at(160, 366, 1.3), "happy")
    canvas.pen.box((0, 420), (720, 720), "#9cc47a", 0, None)
    canvas.pen.stroke([(0, 420), (720, 420)], INK, 3)
    person(canvas.at(300, 486, 1.15), "excited", SPORTY, "up")
    chick(canvas.at(420, 490, 0.8), "excited")
    blanket_lump(canvas.at(566, 600, 1.15), "#8e9bd6")
    head(canvas.at(566, 470, 0.95), "panda", "tired")
    return canvas


def small_change() -> Canvas:
    """One small note, and the work it makes."""
    left, right = Canvas(*HALF), Canvas(*HALF)
    room(left, "#e6ecf5", "#a98f7a", 0.8)
    suit = Looks(hair="short", shirt="#33364a", trousers="#33364a", hair_colour="#2b2440")
    person(left.at(140, 450, 1.15), "smug", suit, "point")
    note = left.at(300, 286, 1, 6)
    note.box((-34, -40), (34, 34), "#fff3a8", 3)
    for y in (-18, -2, 14):
        note.stroke([(-20, y), (18, y)], "#b9a65a", 4)
    overlay(left, "产品经理：小改动", "top", 0.3)
    room(right, "#d9dfe8", "#a98f7a", 0.8)
    papers(right.at(262, 456, 1.1), 21)
    person(right.at(116, 450, 1.1), "crying", CODER, "cheeks")
    overlay(right, "他的数学谁教的", "top", 0.3)
    return grid([left, right])


def shelter() -> Canvas:
    """A duck holds an umbrella over a small plant."""
    canvas = Canvas(720, 640)
    gradient(canvas, "#a9bccb", "#e3edf2")
    canvas.pen.box((0, 540), (720, 720), "#8fae7f", 0, None)
    canvas.pen.stroke([(0, 540), (720, 540)], INK, 3)
    cloud(canvas.at(180, 130, 1.0), "bored", True, "#8b99a8")
    cloud(canvas.at(540, 110, 1.0), "tired", True, "#8b99a8")
    plant(canvas.at(440, 590, 1.2), "happy")
    duck(canvas.at(250, 590, 1.3), "happy")
    umbrella(canvas.at(352, 500, 1.45))
    return canvas
