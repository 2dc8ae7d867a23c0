"""Forms are read as UTF-8 alone, and a field that carries a token is short."""

from __future__ import annotations

import pytest

from tests.hostile.cases import SEED, count_cases
from tests.hostile.forms import BOUNDARY, body, generate
from tests.serve.site import MEME, Site

PLAIN = f"multipart/form-data; boundary={BOUNDARY}"


@pytest.mark.slow
def test_no_codec_but_utf_8_decodes_a_form(guarded: Site, site: Site) -> None:
    with guarded.client() as stranger, site.client() as client:
        for kind in generate(SEED, count_cases(12)):
            sent = body(("token", b"abc-" * 20), ("caption", b"abc-"))
            for answer in (
                stranger.post("/login", content=sent, headers={"content-type": kind}),
                client.post("/v1/puns", content=sent, headers={"content-type": kind}),
            ):
                assert answer.status_code == 415, (kind, answer.text)
                assert "UTF-8" in answer.json()["error"]["message"]
        for kind in (PLAIN, PLAIN + "; charset=utf-8", PLAIN + "; charset=UTF8"):
            sent = body(("token", b"shop-secret"))
            entered = stranger.post("/login", content=sent, headers={"content-type": kind})
            assert entered.status_code == 303
        named = body(("_charset_", b"punycode"), ("token", b"shop-secret"))
        refused = stranger.post("/login", content=named, headers={"content-type": PLAIN})
        assert refused.status_code == 415


@pytest.mark.slow
def test_a_form_of_an_image_names_no_other_charset(site: Site) -> None:
    with site.client() as client:
        request = client.build_request("POST", "/v1/analyze", files={"image": MEME.read_bytes()})
        request.headers["content-type"] += "; charset=punycode"
        assert client.send(request).status_code == 415


@pytest.mark.slow
def test_a_login_is_no_longer_than_four_kilobytes(guarded: Site) -> None:
    with guarded.client() as client:
        rest = len(body(("token", b"")))
        for size, status in ((4096, 401), (4097, 413)):
            sent = body(("token", b"a" * (size - rest)))
            assert len(sent) == size
            answer = client.post("/login", content=sent, headers={"content-type": PLAIN})
            assert answer.status_code == status
        head = {"content-type": "application/x-www-form-urlencoded"}
        for sent, status in (
            (b"token=" + b"a" * 4090, 401),
            (b"token=" + b"a" * 4091, 413),
            (b"&" * 4096, 413),  # more than ten fields
            (b"&" * 4_000_000, 413),
        ):
            assert client.post("/login", content=sent, headers=head).status_code == status


@pytest.mark.slow
def test_a_form_without_files_has_a_megabyte_and_twenty_fields(site: Site) -> None:
    head = {"content-type": "application/x-www-form-urlencoded"}
    with site.client() as client:
        for sent, status in (
            (b"caption=" + b"a" * 2_000_000, 413),
            (b"&".join([b"caption=a"] * 21), 413),
            (b"&" * 900_000, 413),
            (b"caption=a&limit=1", 200),
        ):
            assert client.post("/v1/puns", content=sent, headers=head).status_code == status
