"""Rows of the cache of replies that are damaged, or written by another version."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.hostile.cases import Case

SOUND: dict[str, Any] = {"text": "B", "finish": "stop", "tokens_in": 10, "tokens_out": 2}
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 2**70, 0.5, "", "x", "\x1b[2J", [], [1], {}, {"a": 1}),
)


def generate(seed: int, count: int) -> Iterator[Case]:
    """A row is the hex of its bytes: no JSON, other JSON, other fields, other types, cut short."""
    chance = random.Random(seed)
    for _ in range(count):
        kind = chance.randrange(6)
        row: Any = dict(SOUND)
        if kind == 0:
            row = chance.choice(VALUES)
        elif kind == 1:
            row[chance.choice(sorted(row))] = chance.choice(VALUES)
        elif kind == 2:
            del row[chance.choice(sorted(row))]
        elif kind == 3:
            row[chance.choice(("another", "", "class", "self"))] = chance.choice(VALUES)
        data = json.dumps(row).encode()
        if kind == 4:
            data = data[: chance.randrange(len(data))]
        elif kind == 5:
            data = chance.randbytes(chance.randrange(40))
        yield {"row": data.hex()}
