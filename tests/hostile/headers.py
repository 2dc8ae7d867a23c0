"""Headers that claim to come from somewhere else."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.hostile.cases import Case

NAMES = (
    *("x-forwarded-for", "x-real-ip", "forwarded", "true-client-ip", "cf-connecting-ip"),
    *("x-client-ip", "x-cluster-client-ip", "x-forwarded-host", "x-originating-ip", "via"),
)


def generate(seed: int, count: int) -> Iterator[Case]:
    """One to three headers with addresses, lists of them, IPv6, ports, garbage."""
    chance = random.Random(seed)
    for _ in range(count):
        names = chance.sample(NAMES, chance.randint(1, 3))
        yield {"headers": {name: _value(name, chance) for name in names}}


def _value(name: str, chance: random.Random) -> str:
    four = ".".join(str(chance.randrange(256)) for _ in range(4))
    six = ":".join(f"{chance.randrange(65536):x}" for _ in range(8))
    value = chance.choice(
        (
            *(four, six, f"{four}, 127.0.0.1", f"127.0.0.1, {four}", f"{four}:80", f"[{six}]:80"),
            *(", ".join([four] * 50), "unknown", "", ",,,", "127.0.0.1", "::1", "localhost"),
            *("0x7f.1", "a" * 5000, f"::ffff:{four}", "999.1.1.1", f"{four}%eth0"),
        )
    )
    return f"for={value};by=10.0.0.1" if name == "forwarded" else value
