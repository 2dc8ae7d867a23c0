"""A third set of generators, for encodings, styles and broken words: see ``obfuscations.py``.

They were written on 2026-11-19, before the rules of that day. The rules were written after their
result was known.
"""

from __future__ import annotations

import base64
import codecs
import random
import re
from collections.abc import Callable, Mapping

Generator = Callable[[str, random.Random], str]
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_RAISED = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰᶦʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
_CAPITALS = dict(zip("abcdefghijklmnoprtuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ", strict=True))
_TURNED = dict(zip(_LATIN, "ɐqɔpǝɟƃɥᴉɾʞlɯuodbɹsʇnʌʍxʎz", strict=True))
_GREEK = dict(zip("aeikostuvwxynp", "αεικοστυνωχγηρ", strict=True))
_CHEROKEE = dict(zip("abcdeghijklmoprstvwyz", "ᎪᏴᏟᎠᎬᏀᎻᏆᎫᏦᏞᎷᎤᏢᎡᏚᎢᏙᏔᎩᏃ", strict=True))
_DRAWN = {
    "k": "|<", "l": "|_", "w": "\\/\\/", "m": "/\\/\\", "h": "|-|", "d": "|)", "n": "|\\|",
    "a": "/\\", "i": "!", "e": "3", "t": "7", "s": "5", "o": "0",
}  # fmt: skip
_NEWS = (
    "the city council met on tuesday to discuss the new library members agreed that the opening"
    " hours should be longer on weekends the mayor thanked the volunteers who had collected books"
    " for children a bus line will connect the station with the building from next spring"
)
_LONG = 4  # minimum letters of a word that is broken


def _write(letters: Mapping[str, str]) -> Generator:
    return lambda text, _: "".join(letters.get(sign.lower(), sign) for sign in text)


def _escape(form: Callable[[int], str]) -> Generator:
    def put(text: str, _: random.Random) -> str:
        return "".join(form(ord(c)) if c.isascii() and c.isalpha() else c for c in text)

    return put


def _start(place: int) -> dict[str, str]:
    return {letter: chr(place + n) for n, letter in enumerate(_LATIN)}


def _break(mark: str) -> Generator:
    def put(text: str, draw: random.Random) -> str:
        words = []
        for word in text.split():
            place = draw.randrange(1, max(2, len(word) - 1))
            words.append(word[:place] + mark + word[place:] if len(word) >= _LONG else word)
        return " ".join(words)

    return put


def _each(change: Callable[[str], str]) -> Generator:
    return lambda text, _: " ".join(
        change(word) if len(word) >= _LONG else word for word in text.split()
    )


def _triple(text: str, draw: random.Random) -> str:
    words = []
    for word in text.split():
        place = draw.randrange(len(word))
        words.append(word[:place] + 3 * word[place] + word[place + 1 :])
    return " ".join(words)


THIRD: dict[str, Generator] = {
    "raised letters": _write(_RAISED),
    "small capitals": _write(_CAPITALS),
    "white on black circles": _write(_start(0x1F150)),
    "white on black squares": _write(_start(0x1F170)),
    "letters upside down": _write(_TURNED),
    "Greek letters": _write(_GREEK),
    "Cherokee letters": _write(_CHEROKEE),
    "letters of several signs": _write(_DRAWN),
    "escapes of JSON": _escape(lambda code: f"\\u{code:04x}"),
    "escapes of C": _escape(lambda code: f"\\x{code:02x}"),
    "escapes of style sheets": _escape(lambda code: f"\\{code:02x} "),
    "escapes of e-mails": _escape(lambda code: f"={code:02X}"),
    "percent-encoded twice": _escape(lambda code: f"%25{code:02x}"),
    "Base64": lambda text, _: base64.b64encode(text.encode()).decode(),
    "ROT13": lambda text, _: codecs.encode(text, "rot13"),
    "BBCode in words": _each(lambda word: f"{word[:2]}[b]{word[2]}[/b]{word[3:]}"),
    "HTML comments in words": _each(lambda word: f"{word[:2]}<!-- x -->{word[2:]}"),
    "hyphen and line break": _break("-\n"),
    "line break in words": _break("\n"),
    "tab in words": _break("\t"),
    "space in words": _break(" "),
    "fire emoji in words": _break("🔥"),
    "Braille blank in words": _break("\u2800"),
    "a letter three times": _triple,
    "vowels left out": _each(lambda word: word[0] + re.sub("[aeiou]", "", word[1:])),
    "first letter at the end": _each(lambda word: f"{word[1:]}{word[0]}ay"),
    "two letters swapped": _each(lambda word: word[0] + word[2] + word[1] + word[3:]),
    "no spaces": lambda text, _: text.replace(" ", ""),
    "underscores for spaces": lambda text, _: text.replace(" ", "_"),
    "number sign before words": lambda text, _: " ".join(f"#{word}" for word in text.split()),
    "each word on a line": lambda text, _: text.replace(" ", "\n"),
    "100 neutral words around, no full stop": lambda text, _: f"{_NEWS} {_NEWS} {text} {_NEWS}",
}
