"""Bodies of forms that name a charset, in any codec of Python and any spelling."""

from __future__ import annotations

import random
from collections.abc import Iterator
from encodings.aliases import aliases

BOUNDARY = "x"
CODECS = sorted({*aliases.values(), "punycode", "idna", "undefined", "unicode_escape", "nonsense"})
OTHERS = [name for name in CODECS if name.replace("_", "-") not in ("utf-8", "utf8")]


def spell(codec: str, chance: random.Random) -> str:
    """The header of a form in that codec, in one of the spellings that parsers take."""
    name = chance.choice((codec, codec.upper(), f'"{codec}"'))
    pairs = [f"boundary={BOUNDARY}", f"charset={name}"]
    return "multipart/form-data; " + "; ".join(chance.sample(pairs, 2))


def generate(seed: int, count: int) -> Iterator[str]:
    """Headers with a charset other than UTF-8."""
    chance = random.Random(seed)
    for codec in ("punycode", "idna", "undefined", *chance.sample(OTHERS, count)):
        yield spell(codec, chance)


def body(*fields: tuple[str, bytes]) -> bytes:
    """A form with these text fields."""
    parts = [
        f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n'.encode() + value
        for name, value in fields
    ]
    return b"\r\n".join((*parts, f"--{BOUNDARY}--\r\n".encode()))
