"""Marks in PNG, JPEG and WebP files: read by other tools, bounded, and never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from memantics.core.errors import InputError
from memantics.core.marks import (
    MOST_PACKET,
    SOURCE_TYPES,
    TOOL,
    ImageMark,
    keep_mark,
    read_mark,
    write_mark,
)
from tests.marks.signers import FORMATS, draw

MARK = ImageMark("compositeWithTrainedAlgorithmicMedia", TOOL, 'painter/"x" <&> 画家')
XMP = "http://ns.adobe.com/xap/1.0/"
IPTC = "http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def pixels(data: bytes) -> list[object]:
    return list(np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")).ravel())


def make_packet(inner: str, attributes: str = "") -> bytes:
    return (
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="{RDF}" xmlns:e="{IPTC}"'
        f' xmlns:xmp="{XMP}"><rdf:Description rdf:about=""{attributes}>{inner}'
        "</rdf:Description></rdf:RDF></x:xmpmeta>"
    ).encode()


def put_packet(packet: bytes, *, packed: bool = False) -> bytes:
    """A PNG with a foreign XMP packet."""
    data = draw()
    flags = b"\1\0" if packed else b"\0\0"
    text = zlib.compress(packet) if packed else packet
    body = b"XML:com.adobe.xmp\0" + flags + b"\0\0" + text
    check = zlib.crc32(b"iTXt" + body).to_bytes(4, "big")
    return data[:33] + len(body).to_bytes(4, "big") + b"iTXt" + body + check + data[33:]


@pytest.mark.parametrize("form", FORMATS)
def test_pillow_reads_the_mark(form: str) -> None:
    """Pillow's own XMP reader finds the source type and the program; no pixel changes."""
    plain = draw(form)
    marked = write_mark(plain, MARK)
    xmp = Image.open(io.BytesIO(marked)).info["xmp"]
    text = xmp if isinstance(xmp, str) else xmp.decode()
    assert f'DigitalSourceType="{SOURCE_TYPES}{MARK.source}"' in text
    assert f'CreatorTool="{TOOL}"' in text
    assert pixels(marked) == pixels(plain)
    assert read_mark(marked) == MARK
    assert read_mark(plain) is None


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.skipif(shutil.which("exiftool") is None, reason="exiftool is not installed")
def test_exiftool_reads_the_mark(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"marked.{form.lower()}"
    path.write_bytes(write_mark(draw(form), MARK))
    said = subprocess.run(
        ["exiftool", "-j", "-n", "-DigitalSourceType", "-CreatorTool", "-Warning", path],
        capture_output=True,
        check=True,
    )
    (found,) = json.loads(said.stdout)
    assert found["DigitalSourceType"] == f"{SOURCE_TYPES}{MARK.source}"
    assert found["CreatorTool"] == TOOL
    assert "Warning" not in found


@pytest.mark.parametrize(
    "data",
    [
        draw("WEBP", lossless=True),
        draw("WEBP", exif=b"Exif\0\0II*\0\0\0\0\0"),
        draw("JPEG", progressive=True, comment=b"hello"),
        draw("JPEG", xmp=make_packet("", ' e:DigitalSourceType="x/digitalCapture"')),
        put_packet(make_packet("", ' e:DigitalSourceType="x/digitalCapture"')),
    ],
    ids=["lossless", "extended", "progressive", "jpeg with xmp", "png with xmp"],
)
def test_other_layouts(data: bytes) -> None:
    """Files with other parts keep them, and an older mark is replaced."""
    marked = write_mark(write_mark(data, ImageMark("composite", TOOL)), MARK)
    assert read_mark(marked) == MARK
    assert pixels(marked) == pixels(data)
    assert len(marked) < len(data) + 2_000


def test_transparency_survives() -> None:
    data = io.BytesIO()
    Image.new("RGBA", (9, 7), (1, 2, 3, 77)).save(data, "WEBP", lossless=True)
    marked = write_mark(data.getvalue(), MARK)
    assert Image.open(io.BytesIO(marked)).mode == "RGBA"
    assert pixels(marked) == pixels(data.getvalue())


@pytest.mark.parametrize("form", FORMATS)
def test_encoded_anew(form: str) -> None:
    """A copy in another format keeps the mark of its original."""
    marked = write_mark(draw("PNG"), MARK)
    assert read_mark(keep_mark(marked, draw(form))) == MARK
    assert keep_mark(draw("PNG"), draw(form)) == draw(form)


@pytest.mark.parametrize(
    ("inner", "attributes"),
    [
        ("", f' e:DigitalSourceType="{SOURCE_TYPES}trainedAlgorithmicMedia"'),
        (f"<e:DigitalSourceType>{SOURCE_TYPES}trainedAlgorithmicMedia</e:DigitalSourceType>", ""),
        (f'<e:DigitalSourceType rdf:resource="{SOURCE_TYPES}trainedAlgorithmicMedia"/>', ""),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_foreign_forms(inner: str, attributes: str, packed: bool) -> None:
    """Other programs write the same property as attribute, text or resource, and compressed."""
    found = read_mark(put_packet(make_packet(inner, attributes), packed=packed))
    assert found == ImageMark("trainedAlgorithmicMedia")
    assert found.trained


def test_a_list_of_systems() -> None:
    inner = "<e:AISystemUsed><rdf:Bag><rdf:li>one\x85two</rdf:li></rdf:Bag></e:AISystemUsed>"
    found = read_mark(put_packet(make_packet(inner)))
    assert found == ImageMark("", "", "one two")


def test_entities_are_refused() -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY x "composite">]>' + make_packet(
        "<e:DigitalSourceType>&x;</e:DigitalSourceType>"
    )
    assert read_mark(put_packet(bomb)) is None


def test_a_packet_is_bounded() -> None:
    long = make_packet(f"<e:AISystemUsed>{'x' * 5_000}</e:AISystemUsed>")
    found = read_mark(put_packet(long))
    assert found is not None
    assert len(found.system) == 200
    huge = make_packet(f"<e:AISystemUsed>{'x' * MOST_PACKET}</e:AISystemUsed>")
    assert read_mark(put_packet(huge)) is None
    assert read_mark(put_packet(huge, packed=True)) is None  # inflated no further


def test_control_characters_are_removed() -> None:
    inner = "<e:AISystemUsed>a\u202eb\u0007c</e:AISystemUsed>".replace("\u0007", "\u009b")
    found = read_mark(put_packet(make_packet(inner)))
    assert found == ImageMark("", "", "a b c")


def test_other_formats_are_refused() -> None:
    with pytest.raises(InputError, match="use PNG, JPEG or WebP"):
        write_mark(draw("GIF"), MARK)


@given(
    st.sampled_from([write_mark(draw(form), MARK) for form in FORMATS]),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 255)), max_size=12),
    st.integers(0, 12_000),
)
def test_damage_is_no_traceback(data: bytes, flips: list[tuple[int, int]], length: int) -> None:
    """Any damage gives a mark or none, and a marked file can be marked again or is refused."""
    damaged = bytearray(data[:length] if length % 3 == 0 else data)
    for place, value in flips:
        if place < len(damaged):
            damaged[place] = value
    read_mark(bytes(damaged))
    with contextlib.suppress(InputError):
        write_mark(bytes(damaged), MARK)


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode()))
def test_any_packet_is_no_traceback(packet: bytes) -> None:
    for data in (
        put_packet(packet),
        put_packet(packet, packed=True),
        put_packet(make_packet("") + packet),
    ):
        read_mark(data)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_written_and_read(tool: str, system: str) -> None:
    """Texts are escaped: what was written is read, cleaned."""
    for form in FORMATS:
        found = read_mark(write_mark(draw(form), ImageMark("composite", tool, system)))
        assert found is not None
        assert found.source == "composite"
        assert found.tool.isprintable()
        assert len(found.system) <= 200
