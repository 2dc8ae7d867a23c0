"""The rule for ids of memes and items, from collection to publishing.

An id is 1 to 300 visible characters in Unicode form NFC. It has no control characters, line breaks
or invisible characters, and only single spaces between other characters. Ids are normalised and
checked where data enters, so that no later step rejects a whole file because of one id.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from memantics.core.errors import DataError
from memantics.core.text import UNSEEN, escape_surrogates

LONGEST = 300
_PLAIN = re.compile(rf"[!-~]{{1,{LONGEST}}}")  # the usual ids, checked without further work
_BLANKS = re.compile(r"[ \xa0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_JOINERS = "\u200c\u200d"  # parts of words and emoji
_MOST = 10_000  # longer ids are not examined character by character
_FORBIDDEN = frozenset((*UNSEEN, "Zl", "Zp"))


def normalise_id(text: str) -> str:
    r"""Return an id in Unicode form NFC, without spaces at the ends, with single spaces inside.

    >>> normalise_id(" m\u3000 1"), normalise_id("e\u0301")
    ('m 1', 'é')
    """
    if _PLAIN.fullmatch(text) or len(text) > _MOST:
        return text
    # White space after the normalisation: some characters become a space and an accent.
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", text)).strip(" ")


def find_id_fault(text: str, longest: int = LONGEST) -> str:
    r"""Return what is wrong with an id; empty if nothing is.

    >>> find_id_fault("a\tb"), find_id_fault("m1")
    ('contains U+0009', '')
    >>> find_id_fault(" m1"), find_id_fault("")
    ('has spaces at the ends, several in a row, or is not in Unicode form NFC', 'is empty')
    """
    if _PLAIN.fullmatch(text):
        return ""
    if len(text) > _MOST:
        return f"has {len(text):,} characters, more than {longest}"
    for char in text:
        if char not in _JOINERS and unicodedata.category(char) in _FORBIDDEN:
            return f"contains U+{ord(char):04X}"
    if normalise_id(text) != text:
        return "has spaces at the ends, several in a row, or is not in Unicode form NFC"
    if not text.strip(_JOINERS):
        return "is empty"
    return f"has {len(text):,} characters, more than {longest}" if len(text) > longest else ""


def read_id(given: object, where: object, row: int | str) -> str:
    r"""Normalise an id of a data file.

    Args:
        given: The id; a number becomes text.
        where: The file, for the error.
        row: The row or line in the file, for the error.

    Returns:
        The normalised id.

    Raises:
        DataError: The id is empty, too long, or contains invisible characters.

    Example:
        >>> read_id(" 7 ", "memes.csv", 2)
        '7'
        >>> read_id("a\u200bb", "a.csv", 3)
        Traceback (most recent call last):
        memantics.core.errors.DataError: a.csv: row 3: id 'a\u200bb' contains U+200B; change the id
    """
    text = normalise_id(str(given))
    if fault := find_id_fault(text):
        raise DataError(where, f"id {text[:60]!a} {fault}", row=row, hint="change the id")
    return text


def escape_id(name: str, longest: int = LONGEST) -> str:
    r"""Make a valid id of any name, such as that of a file.

    Invisible characters become escapes. A long name keeps its ends, with a hash in between.

    >>> print(escape_id("a\nb"), escape_id("x\udcff"), len(escape_id("x" * 5000)))
    a\u000ab x\udcff 300
    """
    if _PLAIN.fullmatch(name):
        return name
    if len(name) > _MOST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = f"{name[:longest]}-{digest}-{name[-longest:]}"
    shown = "".join(
        f"\\u{ord(char):04x}"
        if char not in _JOINERS and unicodedata.category(char) in _FORBIDDEN - {"Cs"}
        else char
        for char in name
    )
    text = normalise_id(escape_surrogates(shown))
    if len(text) > longest:
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        half = longest // 2
        text = normalise_id(f"{text[: half - 8]}-{digest}-{text[10 - half :]}")
    return text if text.strip(_JOINERS) else f"unnamed-{len(name)}"
