"""Rendered memes for the study of text roles: captions over images that contain other text.

Captions appear as in memes: outlined at top and bottom, on a bar, as labels, subtitles or in a
bubble. Signs, number plates, keys, maps, watermarks and status bars are drawn into the image first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFilter, ImageFont

from memantics.understanding.vision.typefaces import ANTON, BALOO, BLACK, REGULAR, Typeface

Box = tuple[int, int, int, int]
Draw = Callable[[Image.Image, random.Random, "Words"], None]
SIDE = 640


@dataclass(frozen=True, slots=True)
class Words:
    """Texts for signs, maps, keys, number plates and watermarks."""

    signs: Sequence[str]
    places: Sequence[str]
    keys: Sequence[str]
    handles: Sequence[str]
    plates: Sequence[str]


# fmt: off
ENGLISH = Words(
    ("STOP", "OPEN", "EXIT", "SALE", "PHARMACY", "BAKERY", "Main Street", "NO PARKING", "CAUTION",
     "WET FLOOR", "Coffee", "Pizza", "HOTEL", "Library", "Platform 9", "Gate B12", "PUSH", "PULL",
     "Est. 1987", "Fresh Milk", "ORGANIC", "Whole Grain", "500 ml", "NET WT 12 OZ", "SHAMPOO",
     "Ketchup", "Chapter 4", "Physics", "The Daily News", "BREAKING", "Team 23", "POLICE", "TAXI",
     "SCHOOL BUS", "Central Bank"),
    ("Oakfield", "Northgate", "River Road", "Elm St", "Mill Lane", "Harbour", "West End",
     "Old Town", "Station", "Park Ave", "Bridge St", "Lakeside", "Hilltop", "Church Rd", "Airport",
     "Stadium", "Museum", "Hospital", "University", "East Side", "Mall", "Zoo"),
    ("7", "8", "9", "4", "5", "6", "1", "2", "3", "0", "sin", "cos", "tan", "log", "AC", "Esc",
     "Tab", "Ctrl", "Alt", "Q", "W", "E", "R", "T", "Y"),
    ("@memedaily", "@funny_pics", "imgflip.com", "www.lolpics.example", "@cat.tweets"),
    ("AB12 XYZ", "KL98 4711", "TX 5821 88", "B MW 2040"),
)
CHINESE = Words(
    ("出口", "入口", "超市", "药店", "医院", "小心地滑", "禁止停车", "人民路", "银行", "学校",
     "酱油", "生抽", "洗发水", "牛奶", "矿泉水", "500g", "净含量", "语文", "数学", "第三章",
     "公安", "校车", "快递", "地铁站", "营业中", "打折", "面包", "奶茶", "火锅", "停", "药"),
    ("人民公园", "火车站", "文化路", "新华书店", "南湖", "中山路", "大学城", "东门", "北山",
     "体育馆", "博物馆", "机场", "老城区", "河东", "江南大道", "第一医院", "动物园", "工业区"),
    ("7", "8", "9", "4", "5", "6", "1", "2", "3", "0", "清除", "等于", "开", "关", "中", "发",
     "西", "北", "一", "二", "三", "五"),
    ("@小猫日常", "微博 小狗", "抖音号", "www.pic.example", "小红书"),
    ("京A 88888", "沪B 12345", "粤C 6D789", "川A 5K210"),
)
# fmt: on
STATUS = ("9:41", "12:07", "100%", "87%", "LTE", "5G", "4G")


@dataclass(frozen=True, slots=True)
class Meme:
    """A rendered meme: the image and its caption."""

    image: Image.Image
    caption: str


def draw_meme(
    ground: Image.Image, text: str, seed: int, scenes: Sequence[Draw] | None = None
) -> Meme:
    """Render a caption over an image that contains other text, deterministic per seed."""
    rng = random.Random(seed)
    image = _scale(ground)
    for draw in rng.sample(scenes or SCENES, rng.choice((0, 1, 1, 1, 2))):
        draw(image, rng, ENGLISH)
    image, caption = rng.choice(STYLES)(image, text, rng)
    return Meme(_finish(image, rng, ENGLISH), caption)


def crowd_meme(
    meme: Image.Image, captions: Sequence[Box], seed: int, scenes: Sequence[Draw] | None = None
) -> Image.Image:
    """Draw other text into the image of a Chinese meme and leave its captions unchanged."""
    rng = random.Random(seed)
    image = _scale(meme)
    share, plain = image.width / meme.width, image.copy()
    for draw in rng.sample(scenes or SCENES, rng.choice((1, 1, 2))):
        draw(image, rng, CHINESE)
    for box in captions:
        left, top, right, bottom = (round(value * share) for value in box)
        edge = (bottom - top) // 5
        spot = (max(0, left - edge), max(0, top - edge), right + edge, bottom + edge)
        image.paste(plain.crop(spot), spot[:2])
    return _finish(image, rng, CHINESE)


def _scale(image: Image.Image) -> Image.Image:
    share = SIDE / max(image.size)
    return image.convert("RGB").resize((round(image.width * share), round(image.height * share)))


def _finish(image: Image.Image, rng: random.Random, words: Words) -> Image.Image:
    if rng.random() < 0.35:
        add_watermark(image, rng, words)
    if rng.random() < 0.15:
        image = add_status(image, rng)
    if rng.random() < 0.5:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.7)))
    return image


def add_signs(image: Image.Image, rng: random.Random, words: Words) -> None:
    """Draw one to four tilted signs or labels in random colours."""
    for _ in range(rng.randint(1, 4)):
        size = round(image.height * rng.uniform(0.025, 0.09))
        _paste_sign(image, rng, rng.choice(words.signs), size, rng.uniform(-14, 14))


def add_plate(image: Image.Image, rng: random.Random, words: Words) -> None:
    """Draw a number plate, often larger than the caption."""
    size = round(image.height * rng.uniform(0.06, 0.13))
    _paste_sign(image, rng, rng.choice(words.plates), size, rng.uniform(-4, 4))


def _paste_sign(image: Image.Image, rng: random.Random, text: str, size: int, tilt: float) -> None:
    faces = (REGULAR, BLACK, BALOO, ANTON) if text.isascii() else (REGULAR, BLACK)
    font = rng.choice(faces).at(max(9, size))
    left, top, right, bottom = (int(value) for value in font.getbbox(text))
    plate = Image.new("RGBA", (right - left + size, bottom - top + size // 2), _any_colour(rng))
    ink = _any_colour(rng)
    if rng.random() < 0.3:
        plate.putalpha(0)  # printed on the thing itself
    ImageDraw.Draw(plate).text((size // 2 - left, size // 4 - top), text, ink, font)
    turned = plate.rotate(tilt, expand=True, resample=Image.Resampling.BICUBIC)
    turned = turned.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.2)))
    x = rng.randint(0, max(1, image.width - turned.width))
    y = rng.randint(
        round(0.15 * image.height), max(round(0.2 * image.height), image.height - turned.height)
    )
    image.paste(turned, (x, y), turned)


def add_map(image: Image.Image, rng: random.Random, words: Words) -> None:
    """Draw a map with many labels."""
    pen = ImageDraw.Draw(image)
    width, height = image.size
    box = (round(0.05 * width), round(0.2 * height), round(0.95 * width), round(0.85 * height))
    pen.rectangle(box, fill=rng.choice(("#e8e4d8", "#dfe9da", "#f2efe9")))
    for _ in range(9):
        ends = [(rng.randint(box[0], box[2]), rng.randint(box[1], box[3])) for _ in range(2)]
        pen.line(ends, fill=rng.choice(("#ffffff", "#f7d774", "#b9d3ee")), width=rng.randint(3, 9))
    taken: list[tuple[float, float, float, float]] = []
    for name in rng.sample(words.places, rng.randint(7, 18)):
        font = REGULAR.at(rng.randint(11, 22))
        spot = (rng.randint(box[0], box[2] - 90), rng.randint(box[1], box[3] - 24))
        room = pen.textbbox(spot, name, font)
        if not any(_meets(room, other) for other in taken):
            taken.append(room)
            pen.text(spot, name, rng.choice(("#333333", "#6b6b6b", "#2a5db0")), font)


def add_keys(image: Image.Image, rng: random.Random, words: Words) -> None:
    """Draw the keys of a calculator or keyboard."""
    pen = ImageDraw.Draw(image)
    columns, rows = rng.randint(3, 5), rng.randint(2, 4)
    side = round(min(image.size) * rng.uniform(0.09, 0.14))
    x0 = rng.randint(0, max(1, image.width - columns * side))
    y0 = rng.randint(
        round(0.2 * image.height), max(round(0.25 * image.height), image.height - rows * side)
    )
    fill, ink = rng.choice((("#222222", "#eeeeee"), ("#f4f4f4", "#222222"), ("#e58a2f", "#ffffff")))
    for place in range(columns * rows):
        x, y = x0 + place % columns * side, y0 + place // columns * side
        pen.rounded_rectangle((x + 2, y + 2, x + side - 3, y + side - 3), 6, fill)
        key = rng.choice(words.keys)
        pen.text((x + side / 2, y + side / 2), key, ink, REGULAR.at(side * 0.4), "mm")


def add_tiles(image: Image.Image, rng: random.Random, words: Words) -> None:
    """Draw a row of tiles with one character each, often as large as the caption."""
    pen = ImageDraw.Draw(image)
    letters = "".join(words.signs).replace(" ", "").upper()
    count, side = rng.randint(3, 7), round(image.height * rng.uniform(0.07, 0.13))
    pitch = round(side * rng.uniform(1.15, 1.6))
    x = rng.randint(0, max(1, image.width - count * pitch))
    y = rng.randint(
        round(0.15 * image.height), max(round(0.2 * image.height), image.height - 2 * side)
    )
    fill, ink = rng.choice((("#f7f3e3", "#b02a2a"), ("#e8c98a", "#222222"), ("#ffffff", "#1d6b3a")))
    face = rng.choice((REGULAR, BLACK))
    for place in range(count):
        left = x + place * pitch
        pen.rounded_rectangle((left, y, left + round(1.1 * side), y + round(1.3 * side)), 6, fill)
        spot = (left + 0.55 * side, y + 0.65 * side)
        pen.text(spot, rng.choice(letters), ink, face.at(side * 0.75), "mm")


def add_watermark(image: Image.Image, rng: random.Random, words: Words) -> None:
    """Draw a site or account name into a corner."""
    layer = Image.new("RGBA", image.size, (0, 0, 0, 0))
    font = REGULAR.at(rng.randint(12, 20))
    corner = rng.choice(("la", "ra", "ls", "rs"))
    x = 8 if corner[0] == "l" else image.width - 8
    y = 6 if corner[1] == "a" else image.height - 6
    tone = rng.choice((255, 0, 200))
    anchor = corner.replace("s", "d")
    ImageDraw.Draw(layer).text(
        (x, y), rng.choice(words.handles), (tone, tone, tone, rng.randint(120, 255)), font, anchor
    )
    image.paste(layer, (0, 0), layer)


def add_status(image: Image.Image, rng: random.Random) -> Image.Image:
    """Add the status bar of a phone above the image."""
    bar = round(0.05 * image.height)
    whole = Image.new("RGB", (image.width, image.height + bar), rng.choice(("white", "black")))
    whole.paste(image, (0, bar))
    pen = ImageDraw.Draw(whole)
    ink = "black" if whole.getpixel((1, 1)) == (255, 255, 255) else "white"
    font = REGULAR.at(bar * 0.6)
    pen.text((14, bar / 2), rng.choice(STATUS[:2]), ink, font, "lm")
    pen.text((whole.width - 14, bar / 2), "  ".join(rng.sample(STATUS[2:], 2)), ink, font, "rm")
    return whole


def set_classic(image: Image.Image, text: str, rng: random.Random) -> tuple[Image.Image, str]:
    """Set white capitals with a dark outline at top and bottom."""
    words = text.upper().split()
    cut = (
        len(words) if len(words) < 4 else rng.choice((len(words) // 2, len(words), len(words) // 3))
    )
    alone_below = cut == len(words) and rng.random() < 0.6
    for part, low in ((words[:cut], alone_below), (words[cut:], True)):
        if part:
            _set(image, " ".join(part), rng, (ANTON, rng.uniform(9, 15), "white"), low=low)
    return image, " ".join(words)


def set_subtitle(image: Image.Image, text: str, rng: random.Random) -> tuple[Image.Image, str]:
    """Set a small white or yellow subtitle at the bottom."""
    look = (
        rng.choice((BALOO, REGULAR, BLACK)),
        rng.uniform(15, 22),
        rng.choice(("white", "#ffe14d")),
    )
    _set(image, text, rng, look, low=True)
    return image, text


def set_bar(image: Image.Image, text: str, rng: random.Random) -> tuple[Image.Image, str]:
    """Set dark letters on a plain bar above the image."""
    font = rng.choice((REGULAR, BALOO, BLACK)).at(image.width / rng.uniform(14, 22))
    lines = _wrap(text, font, image.width * 0.92)
    pitch = font.size * 1.25
    bar = round(pitch * len(lines) + font.size)
    dark = rng.random() < 0.25
    whole = Image.new("RGB", (image.width, image.height + bar), "black" if dark else "white")
    whole.paste(image, (0, bar))
    pen, left = ImageDraw.Draw(whole), rng.random() < 0.5
    for row, line in enumerate(lines):
        x = image.width * 0.04 if left else image.width / 2
        y = font.size * 0.5 + pitch * (row + 0.5)
        pen.text((x, y), line, "white" if dark else "black", font, "lm" if left else "mm")
    return whole, text


def set_labels(image: Image.Image, text: str, rng: random.Random) -> tuple[Image.Image, str]:
    """Set two or three labels of a few words on objects."""
    words = text.split()[:9]
    parts = [" ".join(words[at : at + 3]) for at in range(0, len(words), 3)]
    pen = ImageDraw.Draw(image)
    size = image.height / rng.uniform(12, 18)
    for place, part in enumerate(parts):
        x = image.width * rng.uniform(0.3, 0.7)
        y = image.height * ((place + 0.5) / len(parts) + rng.uniform(-0.08, 0.08))
        face = rng.choice((ANTON, BALOO))
        pen.text((x, y), part, "white", face.at(size), "mm", stroke_width=3, stroke_fill="black")
    return image, " ".join(parts)


def set_bubble(image: Image.Image, text: str, rng: random.Random) -> tuple[Image.Image, str]:
    """Set a speech bubble."""
    words = text.split()[:12]
    font = rng.choice((BALOO, REGULAR)).at(image.width / rng.uniform(18, 26))
    lines = _wrap(" ".join(words), font, image.width * 0.5)
    pitch = font.size * 1.2
    wide = max(font.getlength(line) for line in lines) + 2 * font.size
    x, y = rng.uniform(0.02, 0.4) * image.width, rng.uniform(0.02, 0.3) * image.height
    pen = ImageDraw.Draw(image)
    box = (x, y, min(image.width - 2, x + wide), y + pitch * len(lines) + font.size)
    pen.rounded_rectangle(box, font.size, "white", "black", 3)
    for row, line in enumerate(lines):
        pen.text(
            ((box[0] + box[2]) / 2, y + font.size / 2 + pitch * (row + 0.5)),
            line,
            "black",
            font,
            "mm",
        )
    return image, " ".join(words)


def _set(
    image: Image.Image,
    text: str,
    rng: random.Random,
    look: tuple[Typeface, float, str],
    *,
    low: bool,
) -> None:  # fmt: skip
    pen = ImageDraw.Draw(image)
    face, share, fill = look
    font = face.at(image.width / share)
    lines = _wrap(text, font, image.width * 0.94)
    while len(lines) > 4 and font.size > 14:
        font = face.at(font.size * 0.9)
        lines = _wrap(text, font, image.width * 0.94)
    pitch = font.size * 1.18
    start = image.height - pitch * len(lines) - 8 if low else 8
    edge = max(1, round(font.size / rng.uniform(12, 20)))
    for row, line in enumerate(lines):
        spot = (image.width / 2, start + pitch * (row + 0.5))
        pen.text(spot, line, fill, font, "mm", stroke_width=edge, stroke_fill="black")


def _wrap(text: str, font: ImageFont.FreeTypeFont, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _any_colour(rng: random.Random) -> tuple[int, int, int]:
    return rng.randint(0, 255), rng.randint(0, 255), rng.randint(0, 255)


def _meets(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


# The study evaluates on SCENES; LESSONS adds tiles for training.
SCENES: tuple[Draw, ...] = (add_signs, add_map, add_keys, add_plate)
LESSONS: tuple[Draw, ...] = (*SCENES, add_tiles)
STYLES = (set_classic, set_classic, set_bar, set_labels, set_subtitle, set_bubble)
