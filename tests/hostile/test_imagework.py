"""The work for one image is bounded, whatever a few bytes of it ask a decoder to do."""

from __future__ import annotations

import struct
import zlib

import pytest
from PIL import Image as Pillow

from memantics.core.errors import ImageError
from memantics.core.images import decode, probe
from tests.hostile.images import chunk, picture, save, seeds

BLANK = Pillow.new("RGB", (1000, 1000), "white")
ENTRY = b"\xff\xe1" + struct.pack(">H", 9) + b"Exif\0\0x"


def scanned(scans: int) -> bytes:
    """A progressive JPEG of a megapixel with as many scans: the last one is repeated."""
    data = save(BLANK, "JPEG", progressive=True)
    at, end = data.rindex(b"\xff\xda"), data.rindex(b"\xff\xd9")
    return data[:end] + data[at:end] * (scans - data.count(b"\xff\xda")) + data[end:]


def refused(data: bytes) -> str:
    """Why an image is refused, the same at every door."""
    reasons = set()
    for look in (probe, decode):
        try:
            look(data, "x")
            reasons.add("")
        except ImageError as error:
            reasons.add(error.reason)
    (reason,) = reasons
    return reason


def test_scans_times_pixels_have_an_end() -> None:
    assert probe(scanned(1000), "x").format == "JPEG"  # a thousand megapixels in all
    assert refused(scanned(1001)) == "too much work"
    assert len(scanned(1001)) < 120_000
    assert refused(scanned(20)) == ""


def png(*blocks: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(b"\0" * (25 * 8)))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(blocks) + rows + chunk(b"IEND", b"")


def gif(junk: bytes) -> bytes:
    data = save(picture().convert("P"), "GIF")
    start = 13 + (3 << (data[10] & 7) + 1)
    return data[:start] + junk + data[start:]


def bitmap(width: int, height: int, rows: bytes) -> bytes:
    """A bitmap of runs of pixels."""
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(rows), 0, 0, 256, 0)
    start = struct.pack("<IHHI", 1078 + len(rows), 0, 0, 1078)
    return b"BM" + start + head + bytes(1024) + rows


ROWS = b"\x08\0\0\0" * 8 + b"\0\1"
PROFILE = chunk(b"iCCP", b"a\0\0" + zlib.compress(b"\0" * 100_000, 9))
JPEG = save(picture(), "JPEG")


@pytest.mark.parametrize(
    ("few", "many"),
    [
        (JPEG[:2] + b"\xff" * 190_000 + JPEG[2:], JPEG[:2] + b"\xff" * 200_000 + JPEG[2:]),
        (JPEG[:2] + ENTRY * 20 + JPEG[2:], JPEG[:2] + ENTRY * 21 + JPEG[2:]),
        (png(PROFILE), png(PROFILE * 21)),
        (png(chunk(b"prVt", b"") * 39_000), png(chunk(b"prVt", b"") * 40_000)),
        (gif(b"\0" * 190_000), gif(b"\0" * 200_000)),
        (gif(b"!\xfe" + b"\1a" * 190_000 + b"\0"), gif(b"!\xfe" + b"\1a" * 200_000 + b"\0")),
        (bitmap(8, 8, ROWS), bitmap(8, 8, b"\1\0" * 200_000)),
        (bitmap(8, 8, ROWS), bitmap(2000, 2001, b"\1\0\0\0" * 2001)),
    ],
    ids=["fill", "exif", "profiles", "chunks", "junk", "comments", "runs", "rows"],
)
def test_what_pillow_does_in_python_has_an_end(few: bytes, many: bytes) -> None:
    assert refused(few) == ""
    assert refused(many) == "too much work"


def test_no_seed_of_the_generators_is_refused_for_its_work() -> None:
    for name, data in seeds().items():
        assert refused(data) != "too much work", name
