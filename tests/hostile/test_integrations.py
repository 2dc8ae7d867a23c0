"""Routes of integrations under attack: odd bodies, missing rights, long texts; never a failure."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.conftest import guarded, place, site
from tests.serve.site import Site

__all__ = ["guarded", "place", "site"]
ANALYZE = "/v1alpha1/comments:analyze"
ODD: tuple[Any, ...] = (
    None,
    [],
    "text",
    {"comment": []},
    {"comment": {"text": 3}},
    {"comment": {"text": "a"}, "requestedAttributes": {"TOXICITY": None}},
    {"comment": {"text": "a"}, "requestedAttributes": {"TOXICITY": {"scoreThreshold": "NaN"}}},
    {"comment": {"text": "a"}, "requestedAttributes": {"__class__": {}, "TOXICITY": {}}},
    {"comment": {"text": "a"}, "requestedAttributes": {f"A{n}": {} for n in range(65)}},
    {"comment": {"text": "a"}, "languages": ["x" * 36], "requestedAttributes": {"TOXICITY": {}}},
    {"comment": {"text": "a"}, "languages": ["../.."], "requestedAttributes": {"TOXICITY": {}}},
)
TEXTS = ("\x00\x01", "\u202e\u2066", "a\u0301" * 9_000, "。" * 20_000, "!?" * 9_000, "🏴" * 9_000)


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_odd_comments_are_refused(site: Site, body: Any) -> None:
    with site.client() as client:
        answer = client.post(ANALYZE, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_long_comments_have_scores_or_errors(site: Site, text: str) -> None:
    body = {"comment": {"text": text}, "requestedAttributes": {"TOXICITY": {}}}
    with site.client() as client:
        answer = client.post(ANALYZE, json={**body, "spanAnnotations": True})
    assert answer.status_code in (200, 400)


PATHS = ("/h/hash", "/m/lookup", "/c/bank/HARMFUL/content", "/c/bank/HARMFUL/signal")
LOOKUPS: tuple[dict[str, str], ...] = (
    {"signal_type": "pdq", "signal": "g" * 64},
    {"signal_type": "pdq", "signal": "٣" * 64},
    {"signal_type": "pdq", "signal": "0" * 10_000},
    {"signal_type": "__class__", "signal": "0"},
    {"signal_type": "text", "signal": "a"},
    {"url": "http://127.0.0.1/a.png"},
    {"url": "file:///etc/passwd"},
)


@pytest.mark.parametrize("given", LOOKUPS, ids=range(len(LOOKUPS)))
def test_odd_hashes_and_urls_are_refused(site: Site, given: dict[str, str]) -> None:
    with site.client() as client:
        for path in ("/m/lookup", "/m/raw_lookup", "/h/hash"):
            answer = client.get(path, params=given)
            assert 400 <= answer.status_code < 500, answer.text
            assert answer.json()["message"]


def test_photos_that_are_none_are_refused(site: Site, guarded: Site) -> None:
    bodies: tuple[dict[str, Any], ...] = (
        {"files": {"photo": ("../../a.png", b"not an image")}},
        {"files": {"photo": ("a.png", b"")}},
        {"files": {"video": ("a.mp4", b"\x00" * 100)}},
        {"data": {"photo": "text"}},
        {"json": {"pdq": ["f0"]}},
        {"content": b"{" * 50_000},
    )
    for body in bodies:
        with site.client() as client:
            for path in PATHS:
                answer = client.post(path, **body)
                assert 400 <= answer.status_code < 500, (path, answer.text)
                assert answer.json()["message"]
        with guarded.client("mod-secret") as client:  # its scopes do not include banks
            for path in PATHS[2:]:
                assert client.post(path, **body).status_code == 403
            assert client.delete("/c/bank/HARMFUL/content/1").status_code == 403
    with guarded.client() as client:
        for path in PATHS:
            assert client.post(path).status_code == 401
    with site.client(**{"sec-fetch-site": "cross-site"}) as client:
        for path in PATHS:
            assert client.post(path).status_code == 403


def test_comments_have_a_limit_and_need_a_token(site: Site, guarded: Site) -> None:
    with site.client() as client:
        large = client.post(ANALYZE, content=b"[" + b"0," * 300_000 + b"0]")
        deep = client.post(ANALYZE, content=b"[" * 40_000)
        foreign = client.post(ANALYZE, json={}, headers={"sec-fetch-site": "cross-site"})
    assert (large.status_code, deep.status_code, foreign.status_code) == (413, 400, 403)
    with guarded.client() as client:
        assert client.post(ANALYZE, json={}).status_code == 401
        assert client.post(ANALYZE, params={"key": "\u0000" * 9}, json={}).status_code == 401
        long = client.post(ANALYZE, params={"key": "k" * 20_000}, json={})
    assert long.status_code in (401, 431)
