"""Images as nobody should send them: real ones of every format, mutated."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Iterator
from functools import cache

from PIL import Image as Pillow
from PIL import ImageDraw

from memantics.core.samples import IMAGES

ORIENTATION = 0x0112
SIZE = (96, 72)


def picture() -> Pillow.Image:
    """A small real meme with a caption at its top left."""
    with Pillow.open(sorted(IMAGES.glob("*.png"))[0]) as meme:
        made = meme.convert("RGB").resize(SIZE)
    ImageDraw.Draw(made).text((4, 4), "NOPE", fill="white")
    return made


def save(image: Pillow.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def turned(form: str, orientation: int, image: Pillow.Image | None = None) -> bytes:
    """An image whose EXIF says that it must be turned to stand upright."""
    exif = Pillow.Exif()
    exif[ORIENTATION] = orientation
    return save(image or picture(), form, exif=exif)


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def palette_png_without_palette() -> bytes:
    head = struct.pack(">IIBBBBB", 8, 8, 8, 3, 0, 0, 0)
    rows = zlib.compress(b"\0" * (9 * 8))
    body = chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def multi_picture_jpeg(*, fill: bool, image: Pillow.Image | None = None) -> bytes:
    """Two pictures in one JPEG, as phones write them; ``fill`` adds a byte that is allowed."""
    data = save(image or picture(), "MPO", save_all=True, append_images=[picture()])
    return data[:2] + b"\xff" + data[2:] if fill else data


@cache
def seeds() -> dict[str, bytes]:
    """A sound image of every kind that is read."""
    image = picture()
    alpha = image.convert("RGBA")
    alpha.putalpha(120)
    return {
        "png": save(image, "PNG"),
        "png-palette": save(image.convert("P", palette=Pillow.Palette.ADAPTIVE), "PNG"),
        "png-palette-clear": save(image.convert("P"), "PNG", transparency=3),
        "png-alpha": save(alpha, "PNG"),
        "png-grey-alpha": save(alpha.convert("LA"), "PNG"),
        "png-bits": save(image.convert("1"), "PNG"),
        "png-16": save(image.convert("I;16"), "PNG"),
        "png-clear-colour": save(image, "PNG", transparency=(1, 2, 3)),
        "png-animated": save(image, "PNG", save_all=True, append_images=[image.rotate(90)]),
        "png-turned": turned("PNG", 6),
        "jpeg": save(image, "JPEG"),
        "jpeg-progressive": save(image, "JPEG", progressive=True),
        "jpeg-cmyk": save(image.convert("CMYK"), "JPEG"),
        "jpeg-grey": save(image.convert("L"), "JPEG"),
        "jpeg-turned": turned("JPEG", 8),
        "mpo": multi_picture_jpeg(fill=False),
        "mpo-fill": multi_picture_jpeg(fill=True),
        "webp": save(image, "WEBP"),
        "webp-lossless": save(alpha, "WEBP", lossless=True),
        "webp-animated": save(image, "WEBP", save_all=True, append_images=[alpha]),
        "webp-turned": turned("WEBP", 3),
        "gif": save(image, "GIF"),
        "gif-animated": save(
            image, "GIF", save_all=True, append_images=[image.rotate(90)], transparency=2
        ),
        "bmp": save(image, "BMP"),
        "bmp-palette": save(image.convert("P"), "BMP"),
        "bmp-bits": save(image.convert("1"), "BMP"),
    }


def mutate(data: bytes, chance: random.Random) -> bytes:
    """The same image, damaged in one to four ways."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        size = len(made)
        # Headers decide most of what a decoder does: half of all damage goes there.
        place = chance.randrange(min(size, 200) if chance.random() < 0.5 else size)
        stop = min(size, place + chance.choice((1, 2, 4, 16, 64, 400)))
        kind = chance.randrange(7)
        if kind == 0:
            made[place] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        elif kind == 1:
            made[place] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del made[place:stop]
        elif kind == 3:
            made[place:place] = made[place:stop]
        elif kind == 4:
            made[place:place] = b"\xff" * chance.randint(1, 8)
        elif kind == 5:
            made[place:stop] = chance.randbytes(stop - place)
        elif size > 32:
            del made[max(32, place) :]
        if not made:
            return b""
    return bytes(made)


def generate(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Mutants of all seeds in turn, with a name that makes each again."""
    names = sorted(seeds())
    for number in range(count):
        name = names[number % len(names)]
        yield f"{name}#{seed}/{number}", mutate(seeds()[name], random.Random(f"{seed}/{number}"))
