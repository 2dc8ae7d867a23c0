"""Content credentials: signed and verified with the C2PA library, offline, without tracebacks."""

from __future__ import annotations

import io
import socket
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from memantics.core.credentials import (
    MOST_MANIFEST,
    EditStep,
    ImageSigner,
    Original,
    open_signer,
    read_credentials,
    sign_image,
)
from memantics.core.errors import InputError, MissingExtra
from memantics.core.marks import TOOL, _walk, list_manifest_parts, read_mark
from memantics.core.memes import Meme
from memantics.core.stamping import ImageStamp, Making
from memantics.understanding.analysis.records import Findings
from memantics.understanding.vision.appearance import Sight
from memantics.workbench.analyze import render_page
from tests.marks.signers import FORMATS, draw, make_chain, write_chain

c2pa = pytest.importorskip("c2pa", reason="the extra c2pa is not installed")
STEPS = (EditStep("c2pa.edited", "captions rewritten by rules"),)
ORIGINAL = Original("a meme.png", draw())


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> ImageSigner:
    return open_signer(*write_chain(tmp_path_factory.mktemp("chain")))


def sign(signer: ImageSigner, form: str = "PNG", original: Original = ORIGINAL) -> bytes:
    making = Making("composite", STEPS, original=original)
    return ImageStamp(signer).apply(draw(form, 1), making)


def read_with_library(data: bytes, form: str) -> dict[str, Any]:
    with c2pa.Reader(f"image/{form.lower()}", io.BytesIO(data)) as reader:
        return {"state": reader.get_validation_state(), "manifest": reader.get_active_manifest()}


@pytest.mark.parametrize("form", FORMATS)
def test_the_library_reads_what_was_signed(signer: ImageSigner, form: str) -> None:
    """The library's reader finds the original as ingredient, the actions and the source type."""
    data = sign(signer, form)
    found = read_with_library(data, form)
    assert found["state"] == "Valid"
    (parent,) = found["manifest"]["ingredients"]
    assert (parent["title"], parent["relationship"]) == ("a meme.png", "parentOf")
    assert "thumbnail" not in parent
    (actions,) = [
        one["data"]["actions"]
        for one in found["manifest"]["assertions"]
        if one["label"].startswith("c2pa.actions")
    ]
    assert [action["action"] for action in actions] == ["c2pa.opened", "c2pa.edited"]
    assert actions[1]["digitalSourceType"].endswith("/digitalsourcetype/composite")
    assert actions[1]["softwareAgent"]["name"] == "Memantics"
    mark = read_mark(data)
    assert mark is not None
    assert (mark.source, mark.tool) == ("composite", TOOL)


@pytest.mark.parametrize("form", FORMATS)
def test_our_reader_agrees(signer: ImageSigner, form: str) -> None:
    found = read_credentials(sign(signer, form))
    assert found is not None
    assert found.state == "valid"
    assert found.signer == "A signer, Memes and Sons"
    assert found.ingredients == ("a meme.png",)
    assert found.source == "composite"
    assert "signature intact, signer not verified" in found.describe()


@pytest.mark.parametrize("form", FORMATS)
def test_one_changed_pixel_invalidates_the_signature(signer: ImageSigner, form: str) -> None:
    """The pixels of another image under the same manifest: the library says that it is invalid."""
    data = sign(signer, form)
    image = Image.open(io.BytesIO(draw(form, 1))).convert("RGB")
    red, green, blue = np.asarray(image)[5, 5]
    image.putpixel((5, 5), (int(red) ^ 128, int(green), int(blue)))
    changed = io.BytesIO()
    image.save(changed, form)
    moved = _move_manifest(data, changed.getvalue(), form)
    assert read_with_library(moved, form)["state"] == "Invalid"
    found = read_credentials(moved)
    assert found is not None
    assert found.state == "invalid"
    assert "assertion.dataHash.mismatch" in found.reason


def _move_manifest(signed: bytes, other: bytes, form: str) -> bytes:
    """Put all parts of a signed file but its pixels around the pixels of another file."""
    if form == "PNG":
        chunk = b"IDAT"
        first, last = signed.index(chunk) - 4, signed.index(b"IEND") - 4
        return (
            signed[:first]
            + other[other.index(chunk) - 4 : other.index(b"IEND") - 4]
            + signed[last:]
        )
    if form == "JPEG":
        scan = b"\xff\xda"
        return signed[: signed.rindex(scan)] + other[other.rindex(scan) :]
    first = signed.index(b"VP8 ")
    size = int.from_bytes(signed[first + 4 : first + 8], "little")
    last = first + 8 + size + size % 2
    body = other[12:]
    made = signed[12:first] + body + signed[last:]
    return b"RIFF" + (len(made) + 4).to_bytes(4, "little") + b"WEBP" + made


def test_a_signed_original_stays_in_the_history(signer: ImageSigner) -> None:
    """Credentials of the original are kept as an ingredient; one by AI stays marked as such."""
    making = Making("trainedAlgorithmicMedia", (EditStep("c2pa.edited", "painted"),))
    first = ImageStamp(signer).apply(draw("WEBP", 2), making)
    again = sign(signer, "PNG", Original("painted.webp", first))
    found = read_credentials(again)
    assert found is not None
    assert (found.state, found.ingredients) == ("valid", ("painted.webp",))
    assert found.source == "compositeWithTrainedAlgorithmicMedia"
    mark = read_mark(again)
    assert mark is not None
    assert mark.source == "compositeWithTrainedAlgorithmicMedia"


@pytest.mark.parametrize("form", ["GIF", "BMP", "JPEG", "WEBP"])
def test_originals_in_every_format(signer: ImageSigner, form: str) -> None:
    found = read_credentials(sign(signer, "PNG", Original("first", draw(form))))
    assert found is not None
    assert found.state == "valid"


@pytest.mark.parametrize("form", FORMATS)
def test_an_original_with_damaged_credentials_is_named_without_them(
    signer: ImageSigner, form: str
) -> None:
    """Damage anywhere in the manifest of the original does not keep the new image unsigned."""
    first = sign(signer, form)
    spans = [
        (part.first, part.last)
        for part in _walk(first)
        if part.last - part.first in set(list_manifest_parts(first)) and part.last > part.first
    ]
    start, end = spans[0]
    for place in range(start + 8, end, max(1, (end - start) // 12)):
        damaged = bytearray(first)
        damaged[place] ^= 0x5A
        if form == "PNG":
            check = zlib.crc32(damaged[start - 4 : end]).to_bytes(4, "big")
            damaged[end : end + 4] = check
        found = read_credentials(sign(signer, "PNG", Original("damaged", bytes(damaged))))
        assert found is not None
        assert (found.state, found.ingredients) == ("valid", ("damaged",))


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signing needs the extra and says so; reading tells that credentials were not checked."""
    signed = draw()[:33] + bytes(4) + b"caBX" + bytes(4) + draw()[33:]
    monkeypatch.setitem(sys.modules, "c2pa", None)
    found = read_credentials(signed)
    assert found is not None
    assert found.state == "unchecked"
    assert "pip install 'memantics[c2pa]'" in found.reason
    monkeypatch.setattr("memantics.core.errors.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pip install 'memantics\[c2pa\]'"):
        open_signer(*write_chain(tmp_path))


def test_names_of_strangers_are_escaped_in_pages() -> None:
    sight = Sight("content credentials", "made from <script>alert(1)</script>", "C2PA")
    page = render_page([Findings(Meme("meme", Path("none.png")), shows=(sight,))])
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_label_is_below_the_image(signer: ImageSigner) -> None:
    plain = Image.new("RGB", (300, 200), "red")
    data = io.BytesIO()
    plain.save(data, "PNG")
    made = ImageStamp(signer, label=True).apply(data.getvalue(), Making("composite"))
    image = Image.open(io.BytesIO(made))
    assert image.width == 300
    assert 205 < image.height < 230
    assert image.crop((0, 0, 300, 200)).getcolors() == [(60_000, (255, 0, 0))]
    assert len(image.crop((0, 200, 300, image.height)).getcolors(1000) or ()) > 2
    found = read_credentials(made)
    assert found is not None
    assert found.state == "valid"


def test_nothing_is_fetched(signer: ImageSigner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest on a server is not asked for: the server would hear of it."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.5)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/manifest.c2pa"
    with c2pa.Builder({"claim_generator_info": [{"name": "x"}], "assertions": []}) as builder:
        builder.set_intent(c2pa.C2paBuilderIntent.CREATE, c2pa.C2paDigitalSourceType.COMPOSITE)
        builder.set_remote_url(url)
        builder.set_no_embed()
        chain, key = make_chain()
        info = c2pa.C2paSignerInfo(b"es256", chain, key, None)
        made = io.BytesIO()
        builder.sign(c2pa.Signer.from_info(info), "image/png", io.BytesIO(draw()), made)
    data = made.getvalue()
    assert url.encode() in data
    assert read_credentials(data) is None
    read_credentials(_add_box(data))
    sign(signer, "PNG", Original("remote.png", data))
    with pytest.raises(TimeoutError):
        listener.accept()
    listener.close()


def _add_box(data: bytes) -> bytes:
    """Add an empty manifest chunk, so that the library is asked."""
    check = zlib.crc32(b"caBX").to_bytes(4, "big")
    return data[:33] + bytes(4) + b"caBX" + check + data[33:]


def test_too_large_manifests_are_not_read() -> None:
    size = MOST_MANIFEST + 1
    data = draw()
    box = size.to_bytes(4, "big") + b"caBX" + bytes(size) + bytes(4)
    found = read_credentials(data[:33] + box + data[33:])
    assert found is not None
    assert found.state == "unchecked"


@given(
    st.sampled_from(FORMATS),
    st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 255)), min_size=1, max_size=8),
    st.integers(0, 30_000),
)
def test_damage_is_no_traceback(form: str, flips: list[tuple[int, int]], length: int) -> None:
    """Damaged files have no credentials, or ones that are not valid unless nothing changed."""
    whole = _signed_once(form)
    damaged = bytearray(whole[:length] if length % 4 == 0 else whole)
    for place, value in flips:
        if damaged:
            damaged[place % len(damaged)] = value
    found = read_credentials(bytes(damaged))
    if found is not None and found.state == "valid":
        pictures = (Image.open(io.BytesIO(data)).tobytes() for data in (whole, bytes(damaged)))
        assert next(pictures) == next(pictures)
    assert found is None or found.describe().isprintable()


_MADE: dict[str, bytes] = {}


def _signed_once(form: str) -> bytes:
    if form not in _MADE:
        chain, key = make_chain()
        signer = ImageSigner("es256", chain, key, "")
        _MADE[form] = sign_image(draw(form), signer, "composite", STEPS, ORIGINAL)
    return _MADE[form] or b"x"


def test_names_of_strangers_are_cleaned(signer: ImageSigner) -> None:
    strange = Original("\x1b[31m<script>\u202e" + "x" * 500, draw())
    found = read_credentials(sign(signer, "PNG", strange))
    assert found is not None
    assert found.describe().isprintable()
    assert len(found.ingredients[0]) <= 80


def test_a_wrong_key_is_named(tmp_path: Path) -> None:
    chain, key = write_chain(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    make_chain.cache_clear()
    _, wrong = write_chain(other)
    with pytest.raises(InputError, match="does not belong to the certificate"):
        open_signer(chain, wrong)
    with pytest.raises(InputError, match="is not a certificate in PEM format"):
        open_signer(key, key)
    with pytest.raises(InputError, match="is not an unencrypted private key"):
        open_signer(chain, chain)
    with pytest.raises(InputError, match="cannot be read"):
        open_signer(chain, tmp_path / "none.pem")


def test_an_expired_certificate_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expired on"):
        open_signer(*write_chain(tmp_path, -1))


def test_the_key_is_in_no_message(signer: ImageSigner) -> None:
    assert b"PRIVATE" in signer.key
    assert "PRIVATE" not in repr(signer)
