"""What it costs to decode an image, counted in its bytes before a decoder sees them.

Pillow walks through the blocks of a header in Python, one by one, and through bytes between them
likewise; a progressive JPEG decodes all of its pixels once for each scan, and 59 bytes buy a scan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from PIL.JpegImagePlugin import MARKER

MOST_STEPS = 200_000  # about a microsecond each
MOST_SCANNED = 1_000_000_000  # pixels of all scans of a JPEG; 40 megapixels have 25
# Steps of a block of EXIF or colours, of which 20 are allowed: each is copied with those before
# it, or inflated to 1 MB.
_DEAR = 9_600  # 20 leave steps for the rest, 21 do not
_MARKER = re.compile(rb"\xff[^\xff\x00]")
_GIF_BLOCK = re.compile(rb"[!,;]")
_PNG_START = b"\x89PNG\r\n\x1a\n"
_SCAN = 0xFFDA


def count_scans(data: bytes) -> int:
    """How often the pixels of an image may be decoded.

    In compressed data 0xFF is followed by 0: a scan of a thumbnail counts too, nothing else does.
    """
    return data.count(b"\xff\xda") if data[:2] == b"\xff\xd8" else 1


def costs_too_much(data: bytes) -> bool:
    """Whether Pillow would take more than a fraction of a second beside decoding pixels.

    >>> costs_too_much(b"GIF89a" + bytes(7) + b"x" * 10), costs_too_much(b"GIF" + bytes(300_000))
    (False, True)
    """
    if data[:2] == b"\xff\xd8":
        steps = _walk_jpeg(data)
    elif data[:8] == _PNG_START:
        steps = _walk_png(data)
    elif data[:3] == b"GIF":
        steps = _walk_gif(data)
    elif data[:2] == b"BM" and data[30:34] in (b"\1\0\0\0", b"\2\0\0\0"):  # runs, in pure Python
        size = [abs(int.from_bytes(data[at : at + 4], "little", signed=True)) for at in (18, 22)]
        return len(data) // 2 + size[0] * size[1] // 20 > MOST_STEPS
    else:
        return False
    done = 0
    for step in steps:
        done += step
        if done > MOST_STEPS:
            return True
    return False


def _walk_jpeg(data: bytes) -> Iterator[int]:
    """The steps of a header up to the first scan, by Pillow's table of markers."""
    place = 2
    while found := _MARKER.search(data, place):
        yield found.end() - place
        place, kind = found.end(), 0xFF00 | data[found.end() - 1]
        if kind == _SCAN or kind not in MARKER:
            return
        if MARKER[kind][2] is not None:
            if data.startswith(b"Exif\0\0", place + 2):
                yield _DEAR
            place += max(2, int.from_bytes(data[place : place + 2], "big"))
    yield len(data) - place


def _walk_png(data: bytes) -> Iterator[int]:
    place = len(_PNG_START)
    while place < len(data):
        yield _DEAR if data.startswith(b"iCCP", place + 4) else 5
        place += 12 + int.from_bytes(data[place : place + 4], "big")


def _walk_gif(data: bytes) -> Iterator[int]:
    """The steps up to the first picture."""
    place = 13 + (3 << (data[10] & 7) + 1 if len(data) > 10 and data[10] & 128 else 0)
    while found := _GIF_BLOCK.search(data, place):
        yield found.end() - place
        place = found.end() + 1
        if found[0] != b"!":
            return
        while place < len(data) and data[place]:
            yield 1
            place += 1 + data[place]
        place += 1
    yield len(data) - place
