"""Draws and option orders, digit by digit, as they were at commit 03ccfa8."""

from __future__ import annotations

import hashlib
import json

from memantics.benchmarks.punmemecn.draws import (
    authors_orders,
    balance,
    draw_transcribed,
    seeded_order,
)
from memantics.core.punmemecn import is_test
from tests.punmemecn.test_draws import official_pool

CHATS = [f"chat_{number:05d}" for number in range(1, 2009)]


def same(value: object, known: str) -> None:
    found = hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
    assert found == known


def test_option_orders() -> None:
    same([authors_orders()[chat] for chat in CHATS], "403a0e8b2a61e88509ba01170b809e95")
    same([seeded_order(chat, 2025) for chat in CHATS], "de7e5538cc08e09de9cc27e443500d3a")


def test_drawn_sets() -> None:
    same(
        [[meme.id, turn] for meme, turn in balance(official_pool())],
        "b759c93166a3e6a3e1ca34da4a84c635",
    )
    same(draw_transcribed(), "d8a4c5fbd02ef3370ed4124608dd0758")
    same(
        [group for n in range(1, 654) if is_test(group := f"CN{n:05d}")],
        "e000cdbc1f60338aa56e0b571800dfb8",
    )
