"""Edited images for the MER-Bench sample, made by two editors that anybody can understand.

``identity`` hands the source back, ``recolour`` only warms its colours: both leave caption and
faces as they are, so a judge that is worth its name finds no reappraisal in either. The pictures
have palettes, and only those are changed: no picture is compressed anew, so that the same bytes
come out on every machine.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator

from memantics.core.samples import IMAGES, SampleMeme

PER_EMOTION = 3
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_WARM, _COOL = 26, 30


def make_edits(memes: Iterable[SampleMeme]) -> dict[str, bytes]:
    """The files below ``sample/``: some memes of each emotion, by both editors."""
    files: dict[str, bytes] = {}
    for meme in choose_memes(memes):
        data = (IMAGES / meme.file).read_bytes()
        files[f"EditedResults/identity/{meme.file}"] = data
        files[f"EditedResults/recolour/{meme.file}"] = warm(data)
    return files


def choose_memes(memes: Iterable[SampleMeme]) -> Iterator[SampleMeme]:
    """The first few memes of each source emotion."""
    seen: Counter[str] = Counter()
    for meme in memes:
        if meme.emotion is not None and seen[meme.emotion.source] < PER_EMOTION:
            seen[meme.emotion.source] += 1
            yield meme


def warm(data: bytes) -> bytes:
    """A PNG with a palette, every colour of it shifted from blue towards red."""
    chunks = list(read_chunks(data))
    if not any(kind == b"PLTE" for kind, _ in chunks):
        raise ValueError("only pictures with a palette can be recoloured")
    return _SIGNATURE + b"".join(
        pack_chunk(kind, warm_palette(body) if kind == b"PLTE" else body) for kind, body in chunks
    )


def warm_palette(palette: bytes) -> bytes:
    """Red up, blue down, green a little up; each within its range."""
    shifts = (_WARM, _WARM // 4, -_COOL)
    return bytes(max(0, min(255, value + shifts[i % 3])) for i, value in enumerate(palette))


def read_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a PNG file: kind and body."""
    place = len(_SIGNATURE)
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        yield data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        place += 12 + length


def pack_chunk(kind: bytes, body: bytes) -> bytes:
    """A chunk with its length and checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
