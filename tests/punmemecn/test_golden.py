"""Draws and option orders, digit by digit, as they were at commit 03ccfa8."""

from __future__ import annotations

import hashlib
import json

from memantics.benchmarks.punmemecn.examples import (
    authors_orders,
    balance,
    draw_transcribed,
    seeded_order,
)
from memantics.core.releases import is_test
from tests.punmemecn.test_draws import official_pool

CHATS = [f"chat_{number:05d}" for number in range(1, 2009)]


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


def test_option_orders() -> None:
    theirs = [authors_orders()[chat] for chat in CHATS]
    assert digest(theirs) == "403a0e8b2a61e88509ba01170b809e95"
    ours = [seeded_order(chat, 2025) for chat in CHATS]
    assert digest(ours) == "de7e5538cc08e09de9cc27e443500d3a"


def test_drawn_sets() -> None:
    balanced = [[meme.id, turn] for meme, turn in balance(official_pool())]
    assert digest(balanced) == "b759c93166a3e6a3e1ca34da4a84c635"
    assert digest(draw_transcribed()) == "d8a4c5fbd02ef3370ed4124608dd0758"
    tested = [group for n in range(1, 654) if is_test(group := f"CN{n:05d}")]
    assert digest(tested) == "e000cdbc1f60338aa56e0b571800dfb8"
