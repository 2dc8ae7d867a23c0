"""Memes drawn with text that is no caption: a map, keys, a plate, a watermark, a chat, a screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image, ImageDraw

from memantics.core.lines import TextRole
from memantics.understanding.vision.typefaces import ANTON, BALOO, BLACK, REGULAR, Typeface
from tests.vision.pictures import blank, photo


@dataclass(frozen=True)
class Worded:
    """A picture, what its author says, and words of other roles that stand on it."""

    image: Image.Image
    caption: tuple[str, ...]
    others: dict[str, TextRole]


def _write(
    image: Image.Image, text: str, spot: tuple[float, float], size: float, face: Typeface = REGULAR,
    fill: str = "#333333", *, stroke: int = 0, anchor: str = "mm",
) -> None:  # fmt: skip
    ImageDraw.Draw(image).text(
        spot, text, fill, face.at(size), anchor, stroke_width=stroke, stroke_fill="black"
    )


def _caption(image: Image.Image, text: str, y: float, size: float = 56) -> None:
    face = BLACK if not text.isascii() else ANTON
    _write(image, text, (image.width / 2, y), size, face, "white", stroke=4)


_PLACES = (
    ("人民公园", "火车站", "文化路", "新华书店", "南湖", "中山医院", "大学城", "东门", "北山"),
    ("Oakfield", "River Road", "Mill Lane", "Harbour", "Old Town", "Station", "Airport", "Museum"),
)  # fmt: skip


def draw_map(chinese: bool = True) -> Worded:
    image = blank(640, 520, "#e8e4d8")
    pen = ImageDraw.Draw(image)
    for y in (150, 240, 330):
        pen.line([(0, y), (640, y + 40)], fill="white", width=8)
    names = _PLACES[0 if chinese else 1]
    for place, name in enumerate(names):
        spot = (100 + place % 4 * 145 + place // 4 * 15, 70 + place // 4 * 100)
        _write(image, name, spot, 17, fill="#6b6b6b")
    text = "缺大德" if chinese else "I AM LOST AGAIN"
    _caption(image, text, 450, 80)
    return Worded(image, (text,), dict.fromkeys(names, "scene"))


def draw_calculator() -> Worded:
    image = photo(600, 520)
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle((170, 120, 430, 500), 16, "#2b2b33")
    keys = ("sin", "cos", "tan", "log", "AC", "DEL", "EXP", "ANS", "MOD", "RAD", "DEG", "MEM")
    for place, key in enumerate(keys):
        x, y = 200 + place % 4 * 58, 240 + place // 4 * 62
        pen.rounded_rectangle((x - 24, y - 22, x + 24, y + 22), 6, "#50505c")
        _write(image, key, (x, y), 19, fill="#f0f0f0")
    _caption(image, "WHEN YOU DIVIDE BY ZERO", 60)
    return Worded(image, ("WHEN YOU DIVIDE BY ZERO",), dict.fromkeys(keys, "scene"))


def draw_plate() -> Worded:
    image = photo(640, 480)
    pen = ImageDraw.Draw(image)
    pen.rectangle((150, 200, 490, 300), "#1f4fa3", "white", 4)
    _write(image, "A8K 2719", (320, 250), 70, REGULAR, "#e8eefc")
    _caption(image, "MY NEIGHBOUR PARKS LIKE THIS", 440, 44)
    return Worded(image, ("MY NEIGHBOUR PARKS LIKE THIS",), {"A8K 2719": "scene"})


def draw_watermark() -> Worded:
    image = photo(600, 420, 5)
    _caption(image, "MONDAY AGAIN", 60)
    _write(image, "@memelord_99", (590, 408), 17, REGULAR, "#f2f2f2", anchor="rm")
    return Worded(image, ("MONDAY AGAIN",), {"@memelord_99": "watermark"})


def draw_chat(chinese: bool = False) -> Worded:
    image = blank(480, 640, "#ededed")
    pen = ImageDraw.Draw(image)
    said = ("今晚加班吗", "我已经到家了", "那你明天早点来") if chinese else (
        "ARE YOU COMING TODAY", "I AM ALREADY HOME", "THEN COME EARLY TOMORROW",
    )  # fmt: skip
    names = ("老板", "小王") if chinese else ("Boss", "Kim")
    _write(image, "9:41", (18, 18), 18, fill="black", anchor="lm")
    _write(image, "87%", (462, 18), 18, fill="black", anchor="rm")
    for place, text in enumerate(said):
        y, mine = 120 + 150 * place, place == 1
        wide = REGULAR.at(30).getlength(text) + 30
        box = (466 - wide, y, 466, y + 60) if mine else (14, y, 14 + wide, y + 60)
        pen.rounded_rectangle(box, 10, "#95ec69" if mine else "white")
        _write(image, text, ((box[0] + box[2]) / 2, y + 30), 30, fill="black")
        if not mine:
            _write(image, names[0], (18, y - 14), 15, fill="#888888", anchor="lm")
    _write(image, "昨天 21:07" if chinese else "Yesterday 21:07", (240, 66), 15, fill="#999999")
    others: dict[str, TextRole] = dict.fromkeys(("9:41", "87%", "21:07"), "interface")
    return Worded(image, said, others)


def draw_screenshot() -> Worded:
    image = blank(540, 480, "#ffffff")
    _write(image, "12:07", (20, 20), 19, fill="black", anchor="lm")
    _write(image, "5G", (440, 20), 19, fill="black", anchor="lm")
    _write(image, "64%", (520, 20), 19, fill="black", anchor="rm")
    _write(image, "nobody asked for this", (20, 140), 38, BALOO, "black", anchor="lm")
    _write(image, "and yet here we are", (20, 190), 38, BALOO, "black", anchor="lm")
    _write(image, "312 likes", (20, 260), 18, fill="#777777", anchor="lm")
    others: dict[str, TextRole] = dict.fromkeys(("12:07", "64%", "312 likes"), "interface")
    return Worded(image, ("nobody asked for this", "and yet here we are"), others)


def draw_tiles() -> Worded:
    image = blank(600, 460, "#2f7d4f")
    pen = ImageDraw.Draw(image)
    tiles = "东南西北中发"
    for place, tile in enumerate(tiles):
        x = 60 + 84 * place
        pen.rounded_rectangle((x, 130, x + 70, 230), 8, "#f7f3e3")
        _write(image, tile, (x + 35, 180), 48, REGULAR, "#b02a2a")
    _caption(image, "今天手气真好", 400, 64)
    return Worded(image, ("今天手气真好",), {tiles: "scene"})


def draw_mixed_sizes() -> Worded:
    image = photo(600, 480, 8)
    _caption(image, "when someone says", 50, 40)
    _caption(image, "FREE PIZZA", 120, 88)
    return Worded(image, ("when someone says", "FREE PIZZA"), {})


def draw_giant_glyph() -> Worded:
    image = blank(480, 480, "#f5d76e")
    _write(image, "?", (240, 190), 330, ANTON, "#444444")
    _write(image, "我在哪里", (240, 440), 40, BLACK, "black")
    return Worded(image, ("我在哪里",), {})


def draw_repeated() -> Worded:
    image = blank(500, 620, "#fdfdfd")
    for row in range(10):
        _write(image, "我不想上班", (250, 40 + 60 * row), 36, BLACK, "black")
    return Worded(image, ("我不想上班",) * 10, {})


def draw_single_character() -> Worded:
    image = photo(420, 420, 11)
    _caption(image, "卷", 350, 96)
    return Worded(image, ("卷",), {})


CASES: dict[str, Callable[[], Worded]] = {
    "map": draw_map,
    "map in English": lambda: draw_map(chinese=False),
    "calculator": draw_calculator,
    "number plate": draw_plate,
    "watermark": draw_watermark,
    "chat": draw_chat,
    "chat in Chinese": lambda: draw_chat(chinese=True),
    "screenshot": draw_screenshot,
    "mahjong tiles": draw_tiles,
    "lines of mixed size": draw_mixed_sizes,
    "small line under a giant glyph": draw_giant_glyph,
    "caption said ten times": draw_repeated,
    "a single character": draw_single_character,
}
