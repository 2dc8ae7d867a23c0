"""Headers read by hand say what Pillow says."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from memantics.core.errors import ImageError
from memantics.core.images import probe


@pytest.mark.parametrize(
    ("form", "modes", "options"),
    [
        ("PNG", "1 L P RGB RGBA", {}),
        ("JPEG", "1 L RGB CMYK", {}),
        ("JPEG", "L RGB CMYK", {"progressive": True}),
        ("JPEG", "L RGB", {"comment": b"x" * 3000, "dpi": (72, 72), "optimize": True}),
    ],
)
@pytest.mark.parametrize("size", [(1, 1), (640, 7), (3, 1200)])
def test_probe_agrees_with_pillow(
    form: str, modes: str, options: dict[str, object], size: tuple[int, int]
) -> None:
    for mode in modes.split():
        file = io.BytesIO()
        Pillow.new(mode, size).save(file, form, **options)
        facts = probe(file.getvalue(), "x")
        with Pillow.open(file) as image:
            assert (facts.format, facts.width, facts.height) == (image.format, *image.size)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
def test_a_header_cut_anywhere_is_refused_or_read(form: str) -> None:
    file = io.BytesIO()
    Pillow.new("RGB", (9, 5), "teal").save(file, form)
    data = file.getvalue()
    for length in range(min(len(data), 700)):
        try:
            facts = probe(data[:length], "x")
        except ImageError as error:
            assert error.reason in ("format", "truncated")  # noqa: PT017 - both ends are right
        else:
            assert (facts.width, facts.height) == (9, 5)


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"BM", b""]),
    st.binary(max_size=300),
)
def test_any_bytes_are_read_or_refused(head: bytes, tail: bytes) -> None:
    try:
        facts = probe(head + tail, "x")
    except ImageError:
        return
    assert facts.width * facts.height <= 40_000_000
