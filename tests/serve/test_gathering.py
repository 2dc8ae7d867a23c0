"""What is written in one turn leaves as one piece, and nothing is lost at the end."""

from __future__ import annotations

import asyncio

import pytest

from memantics.web.server import GatheringTransport


class Wire(asyncio.Transport):
    """Keeps the pieces that left."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 7


def test_head_and_body_are_one_piece() -> None:
    async def talk() -> Wire:
        wire = Wire()
        line = GatheringTransport(wire, asyncio.get_running_loop())
        line.write(b"head")
        line.write(b"body")
        assert wire.pieces == []
        assert line.get_write_buffer_size() == 8 + 7
        await asyncio.sleep(0)
        line.write(b"")
        await asyncio.sleep(0)
        return wire

    assert asyncio.run(talk()).pieces == [b"headbody"]


@pytest.mark.parametrize("size", [64 * 1024 - 1, 64 * 1024])
def test_much_is_not_held_back(size: int) -> None:
    async def talk() -> list[int]:
        wire = Wire()
        GatheringTransport(wire, asyncio.get_running_loop()).write(b"x" * size)
        at_once = len(wire.pieces)
        await asyncio.sleep(0)
        return [at_once, len(wire.pieces)]

    assert asyncio.run(talk()) == [int(size >= 64 * 1024), 1]


def test_what_is_held_leaves_before_the_end() -> None:
    async def talk() -> Wire:
        wire = Wire()
        line = GatheringTransport(wire, asyncio.get_running_loop())
        line.write(b"last")
        line.close()
        line.write(b"too late")
        await asyncio.sleep(0)
        return wire

    wire = asyncio.run(talk())
    assert (wire.pieces, wire.closed) == ([b"last"], True)
