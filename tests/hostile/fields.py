"""What somebody with an account writes into the forms of the annotation app."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from urllib.parse import quote_from_bytes

from tests.hostile.cases import Case

# As bytes behind %: forms carry what no text can hold.
VALUES = (
    b"",
    b" ",
    b"\x00",
    b"a\x00b",
    b"\xff\xfe",
    b"\xed\xa0\xbd",  # half of a surrogate pair
    b"\xf4\x90\x80\x80",  # beyond Unicode
    "\u202e\u0000\ufffe\ufeff".encode(),
    b"'; DROP TABLE users; --",
    b"' OR '1'='1",
    b"\\",
    b"%",
    b"%s%s%n",
    b"{}",
    b'{"a": "\\u0000"}',
    b"[" * 2000,
    b"1e400",
    b"NaN",
    b"-1",
    b"2147483647",
    b"2147483648",
    b"9223372036854775808",
    b"9" * 5000,
    b"0x10",
    "١٢٣".encode(),
    "²".encode(),
    b"true",
    b"on",
    b"lead",
    b"annotator",
    b"x" * 300,
    b"x" * 70_000,
    "👩‍👩‍👧‍👦".encode() * 300,
    b"<script>alert(1)</script>",
    b"choice:3",
    b"list",
    b"flag",
    b"ranked:9999",
)
NAMES = (
    *("name", "password", "again", "next", "old", "new", "title", "workflow", "own", "role"),
    *("note", "contact", "warning", "prelabels", "training", "training_before", "lease_minutes"),
    *("daily", "weekly", "daily_limit", "weekly_limit", "break_minutes", "language", "blur"),
    *("item", "version", "project", "opened", "veiled", "seen", "more", "agree", "archived"),
    *("k-harmful", "f-harmful", "k-\x00", "f-\x00", "k-x", "f-x", "f-x-0", "back"),
)
PLACES = ("1", "2", "0", "2147483647", "2147483648", "9" * 30)


def generate(seed: int, count: int, routes: Sequence[tuple[str, str]]) -> Iterator[Case]:
    """A route, numbers for its places, and fields for its form or query."""
    chance = random.Random(seed)
    for number in range(count):
        method, path = routes[number % len(routes)]
        yield {
            "method": method,
            "path": path,
            "places": [chance.choice(PLACES[:2] if chance.random() < 0.8 else PLACES)] * 3,
            "fields": [
                [chance.choice(NAMES), chance.choice(VALUES).hex()]
                for _ in range(chance.randrange(1, 9))
            ],
        }


def encode(case: Case) -> str:
    """The fields as a form or a query spells them."""
    return "&".join(
        f"{quote_from_bytes(name.encode())}={quote_from_bytes(bytes.fromhex(value))}"
        for name, value in case["fields"]
    )
