"""How deeply brackets stand within brackets: parsers pay for each with stack and memory."""

from __future__ import annotations

import re

from memantics.core.errors import DataError

QUOTE = b"<<"  # begins a quoted statement of RDF
_DEEPEST = 100  # our own files have three
# Strings, IRIs and comments may hold any bracket. An escaped mark in a name begins none of them.
_SKIPPED = re.compile(
    r"\\.|\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|<[^<>\s]*>|#[^\n]*",
    re.DOTALL,
)
_SIGNS = re.compile(r"[{}()\[\]]|<<|>>")


def measure_nesting(text: str) -> int:
    """How deeply brackets stand within brackets, in SPARQL, JSON or any of the formats of RDF.

    >>> measure_nesting('{ "a": [1, "[[["] }'), measure_nesting("<<( <a> <b> << <c> )>>")
    (2, 3)
    """
    depth = deepest = 0
    for sign in _SIGNS.findall(_SKIPPED.sub(" ", text)):
        depth += 1 if sign in ("{", "(", "[", "<<") else -1
        deepest = max(deepest, depth)
    return deepest


def refuse_nesting(data: bytes, name: str) -> None:
    """Refuse a file whose nesting would end a parser, and with it this process."""
    deepest = measure_nesting(data.decode("latin-1"))
    if deepest > _DEEPEST:
        raise DataError(
            name,
            f"nests {deepest:,} brackets; {_DEEPEST} are read",
            hint="repair the file, or export it again",
        )
