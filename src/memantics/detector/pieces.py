"""What a text is cut into: characters, sounds and words, each with its place in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from memantics.core.text import cut_chinese, fold_line

Kind = Literal["chars", "sounds", "fuzzy", "words", "readings"]
_LONGEST = 4000
# Sounds that many speakers do not tell apart, written as one.
_MERGED = (
    ("zh", "z"), ("ch", "c"), ("sh", "s"), ("ang", "an"), ("eng", "en"), ("ing", "in"),
)  # fmt: skip
_FIRST = {"l": "n", "r": "n"}


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece and the characters of the text that it stands for."""

    name: str
    start: int
    end: int


Cutter = Callable[[str], Iterator[Piece]]


def clean(text: str) -> str:
    r"""Lower case, white space folded, length bounded, lone surrogates replaced.

    >>> clean("  Hello\n World ")
    'hello world'
    """
    return fold_line(text.lower(), _LONGEST)


def name_pieces(kind: Kind, text: str) -> list[str]:
    """The names of all pieces of a cleaned text, repetitions kept; fast, without places.

    >>> name_pieces("chars", "ab")
    ['a', 'b', 'ab']
    >>> name_pieces("sounds", "蒸鱼")
    ['zheng', 'yu', 'zheng yu']
    """
    if kind in {"chars", "readings"}:
        size = len(text)
        return [text[i : i + n] for n in (1, 2, 3) for i in range(size - n + 1)]
    if kind == "words":
        return [word for word, _ in _place_words(text)]
    said = [_SOUNDERS[kind](c) for c in text if not c.isspace()]
    return [" ".join(said[i : i + n]) for n in (1, 2, 3) for i in range(len(said) - n + 1)]


def cut(kind: Kind, text: str) -> Iterator[Piece]:
    """The same pieces with their places.

    >>> [(p.name, p.start, p.end) for p in cut("sounds", "a 鱼")]
    [('a', 0, 1), ('yu', 2, 3), ('a yu', 0, 3)]
    """
    if kind in {"chars", "readings"}:
        for n in (1, 2, 3):
            for i in range(len(text) - n + 1):
                yield Piece(text[i : i + n], i, i + n)
    elif kind == "words":
        for word, start in _place_words(text):
            yield Piece(word, start, start + len(word))
    else:
        places = [i for i, c in enumerate(text) if not c.isspace()]
        said = [_SOUNDERS[kind](text[i]) for i in places]
        for n in (1, 2, 3):
            for i in range(len(said) - n + 1):
                yield Piece(" ".join(said[i : i + n]), places[i], places[i + n - 1] + 1)


def _place_words(text: str) -> Sequence[tuple[str, int]]:
    found, place = [], 0
    for word in cut_chinese(text):
        if not word.isspace():
            found.append((word, place))
        place += len(word)
    return found


@lru_cache(maxsize=65536)
def sound_of(character: str) -> str:
    """The first reading of a character without its tone; others stay as they are.

    >>> sound_of("鱼"), sound_of("x")
    ('yu', 'x')
    """
    if character < "\u3400":
        return character
    from pypinyin import Style, pinyin

    return str(pinyin(character, style=Style.NORMAL, errors="default")[0][0])


@lru_cache(maxsize=65536)
def fuzzy_sound_of(character: str) -> str:
    """The sound with what many speakers merge written alike.

    >>> fuzzy_sound_of("狼") == fuzzy_sound_of("南"), fuzzy_sound_of("是")
    (True, 'si')
    """
    said = sound_of(character)
    if said == character:
        return said
    for own, merged in _MERGED:
        said = said.replace(own, merged)
    return _FIRST.get(said[0], said[0]) + said[1:]


_SOUNDERS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"sounds": sound_of, "fuzzy": fuzzy_sound_of}
)
