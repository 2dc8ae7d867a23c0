"""Encodings of letters: percent and HTML encoding, escapes, styled letters and homoglyphs.

Each function returns a text with one kind of encoding undone. They need no vocabulary, since no
ordinary text writes letters in these ways.
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from functools import lru_cache
from html.entities import html5
from urllib.parse import unquote

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_TWICE = re.compile(r"%25(?=[0-9A-Fa-f]{2})")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_ESCAPES = frozenset("&<>\"' \xa0")  # HTML exports also escape these characters in ordinary texts
# Escapes of programming languages: \u006b, \u{6b}, \U0000006b and \x6b.
_ESCAPED = re.compile(
    r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2}))"
)
# Escapes of e-mails (=6B) and style sheets (\6b). A single one may stand in ordinary texts.
_BYTES = (
    (re.compile(r"(?:=[0-9A-Fa-f]{2}){3}"), re.compile(r"(?:=[0-9A-Fa-f]{2})+")),
    (re.compile(r"(?:\\[0-9A-Fa-f]{2} ?){3}"), re.compile(r"(?:\\[0-9A-Fa-f]{2} ?)+")),
)
_NO_HEX = re.compile(r"[^0-9A-Fa-f]")
_FEWEST = 2  # minimum letters that escapes stand for: data exports escape single signs
_HAN = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_WIDE = {sign + 0xFEE0: sign for sign in range(ord("!"), ord("~") + 1)}
_MIXED = re.compile(r"[^\W_]+")
# Small capitals, and white letters in black circles and squares.
_STYLED = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz", strict=True))
_STYLED |= {
    chr(start + place): chr(ord("a") + place) for start in (0x1F150, 0x1F170) for place in range(26)
}
# Homoglyphs: Cyrillic, Greek and other letters that look like Latin ones.
_ALIKE = str.maketrans(
    "аАвВгеЕзкКмМнНоОрРсСтТуУхХѕЅіІјЈһԁԛԝӏαΑΒεΕΖΗιΙκΚΜνΝοΟρΡτΤυΥΧχɑɡıʟ",
    "aAbBreE3kKmMhHoOpPcCtTyYxXsSiIjJhdqwlaABeEZHiIkKMvNoOpPtTuYXxagiL",
)


def decode_percents(text: str) -> str:
    """Decode percent-encoded runs that are valid UTF-8, and single letters next to letters."""

    def read(found: re.Match[str]) -> str:
        try:
            said = unquote(found.group(), errors="strict")
        except UnicodeDecodeError:
            return found.group()
        if not said.isprintable():
            return found.group()
        if len(found.group()) == 3:
            before, after = text[: found.start()][-1:], text[found.end() : found.end() + 1]
            inside = before.isalpha() or (after.isalpha() and not before.isdigit())
            return said if inside and said.isalpha() else found.group()
        return said

    return _PERCENT.sub(read, _TWICE.sub("%", text)) if "%" in text else text


def read_escapes(text: str) -> str:
    """Replace escapes of programming languages, e-mails and style sheets by their characters.

    >>> read_escapes("=6B=69=6C=6C =61ll"), read_escapes("a=20, b=30")
    ('kill all', 'a=20, b=30')
    """
    if "\\" in text:
        text = _read_code_points(text)
    for run, escapes in _BYTES:
        if run.search(text):
            text = escapes.sub(_read_bytes, text)
    return text


def _read_code_points(text: str) -> str:
    said: list[str] = []

    def read(found: re.Match[str]) -> str:
        code = int(next(filter(None, found.groups())), 16)
        sign = chr(code) if code <= sys.maxunicode else ""
        if not sign.isprintable() or not sign:
            return found.group()
        said.append(sign)
        return sign

    plain = _ESCAPED.sub(read, text)
    return plain if sum(map(str.isalnum, said)) >= _FEWEST else text


def _read_bytes(found: re.Match[str]) -> str:
    try:
        said = bytes.fromhex(_NO_HEX.sub("", found.group())).decode()
    except UnicodeDecodeError:
        return found.group()
    return said if said.isprintable() else found.group()


def read_entities(text: str) -> str:
    """Replace HTML entities by their characters, twice for double encoding.

    Entities of the characters that exports escape are left alone if the text has no others.
    """
    if "&" not in text:
        return text
    said: set[str] = set()

    def read(found: re.Match[str]) -> str:
        name = found.group()
        sign = html.unescape(name) if name[1] == "#" else html5.get(name[1:], name)
        said.add(sign if sign != name else "&")
        return sign

    plain = _ENTITY.sub(read, _ENTITY.sub(read, text))
    return text if said <= _ESCAPES else plain


def narrow(text: str) -> str:
    """Convert full-width, mathematical, circled and raised letters and digits to plain ones."""
    if text.isascii():
        return text
    plain = "".join(map(_narrow_sign, text))
    # Full-width punctuation is ordinary in Chinese texts, but not after full-width letters.
    return plain if plain == text or _HAN.search(plain) else plain.translate(_WIDE)


@lru_cache(maxsize=65536)
def _narrow_sign(sign: str) -> str:
    if sign.isascii():
        return sign
    plain = unicodedata.normalize("NFKC", sign)
    plain = _STYLED.get(plain, plain)
    return plain if plain.isascii() and plain.isalnum() and plain != sign else sign


def replace_alike(text: str) -> str:
    """Replace homoglyphs in words that also have Latin letters."""
    if text.isascii():
        return text

    def read(found: re.Match[str]) -> str:
        plain = found.group().translate(_ALIKE)
        latin = any(sign.isascii() and sign.isalpha() for sign in found.group())
        return plain if latin and plain.isascii() else found.group()

    return _MIXED.sub(read, text)
