"""Scenes written as lines of parts, in ``content/scenes.toml``, and a few that are code.

A line names a part of ``sample.draw`` or a shape of the pen, then where it stands, then what
it takes: ``animal @330,630,2.0 dog smug`` draws a smug dog at (330, 630), twice its size. A place
is x,y[,size[,angle[,flip]]]; ``@a>b`` is place b within place a; a part without one takes the whole
canvas. ``canvas W H`` begins a picture, ``grid`` makes panels of all before, ``bar`` adds a caption
bar. Points are ``x,y;x,y``, texts stand in double quotes, ``looks:hair=bun,glasses=true`` dresses
a person.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from sample_data import drawn
from sample_data.draw import creatures, faces, letters, people, places, table, things
from sample_data.draw.canvas import Canvas, Pen, grid

FILE = Path(__file__).resolve().parent / "content" / "scenes.toml"
MODULES = (creatures, faces, letters, people, places, table, things)
_NUMBER = r"-?\d+(?:\.\d+)?"
_WORDS = {"none": None, "true": True, "false": False}


@cache
def read_scenes() -> dict[str, str]:
    """The scripts by name."""
    found: dict[str, str] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return found


def draw_scene(name: str) -> Canvas:
    """The scene of that name: a script, else a function of ``sample.drawn``."""
    script = read_scenes().get(name)
    if script is None:
        draw: Callable[[], Canvas] = getattr(drawn, name)
        return draw()
    pictures: list[Canvas] = []
    for line in script.strip().splitlines():
        part, *words = shlex.split(line)
        if part == "canvas":
            pictures.append(Canvas(*(read_word(word) for word in words)))
        elif part == "grid":
            pictures = [grid(pictures, *(read_word(word) for word in words))]
        elif part == "bar":
            pictures[-1] = letters.add_bar(pictures[-1], *(read_word(word) for word in words))
        else:
            add_part(pictures[-1], part, words)
    (whole,) = pictures
    return whole


def add_part(canvas: Canvas, part: str, words: list[str]) -> None:
    """Draw one line of a script."""
    pen = canvas.pen
    placed = words and words[0].startswith("@")
    if placed:
        for place in words.pop(0)[1:].split(">"):
            pen = pen.at(*(read_word(number) for number in place.split(",")))
    plain = [read_word(word) for word in words if not _is_keyword(word)]
    named = {name: read_word(value) for name, value in _split_pairs(filter(_is_keyword, words))}
    found = [vars(module)[part] for module in MODULES if part in vars(module)]
    if found:
        found[0](pen if placed else canvas, *plain, **named)
    else:
        getattr(Pen, part)(pen, *plain, **named)


def read_word(word: str) -> Any:
    """A value from its notation.

    >>> read_word("1,2.5;3,4"), read_word("none"), read_word("#ffffff"), read_word("7")
    ([(1, 2.5), (3, 4)], None, '#ffffff', 7)
    """
    if word in _WORDS:
        return _WORDS[word]
    if re.fullmatch(_NUMBER, word):
        return float(word) if "." in word else int(word)
    if re.fullmatch(rf"(?:{_NUMBER}[,;])+{_NUMBER}", word):
        points = [tuple(map(read_word, point.split(","))) for point in word.split(";")]
        return points if ";" in word else points[0]
    kind, mark, rest = word.partition(":")
    if mark and kind in ("looks", "look"):
        facts = {
            name: read_word(value.replace("/", ","))
            for name, value in _split_pairs(filter(None, rest.split(",")))
        }
        return people.Looks(**facts) if kind == "looks" else letters.Look(**facts)
    if mark and kind == "list":
        return tuple(rest.split(","))
    return word.replace("\\n", "\n")


def _is_keyword(word: str) -> bool:
    return bool(re.match(r"[a-z_]+=", word))


def _split_pairs(words: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (word.partition("=") for word in words)]
