"""Requests of other sites: what a browser says about them decides, new or old."""

from __future__ import annotations

import httpx
import pytest
from starlette.requests import Request

from memantics.serve.access import AccessControl
from memantics.serve.refusals import Refusal
from memantics.serve.settings import Reach, ServeSettings
from tests.serve.site import Site

HOST = (b"host", b"127.0.0.1:8080")
QUESTION = {"q": "SELECT ?a { ?a ?b ?c } LIMIT 1"}


@pytest.mark.parametrize(
    ("origin", "site", "fine"),
    [
        ("https://evil.example", "", False),
        ("null", "", False),
        ("http://127.0.0.1:9090", "", False),
        ("http://127.0.0.1:8080", "", True),
        ("https://memes.example.org", "", True),
        ("https://shop.example", "", True),
        ("https://shop.example", "cross-site", True),
        ("https://evil.example", "cross-site", False),
        ("https://evil.example", "same-origin", True),  # a browser sets this one, no script can
        ("", "", True),  # no browser
    ],
)
def test_a_foreign_origin_is_refused_whoever_names_it(origin: str, site: str, fine: bool) -> None:
    from memantics.serve.settings import Token, digest

    reach = Reach(public_url="https://memes.example.org/x", origins=("https://shop.example",))
    access = AccessControl(ServeSettings(reach, tokens=(Token("a", digest("a")),)))
    named = ((b"origin", origin), (b"sec-fetch-site", site))
    head = [HOST, (b"authorization", b"Bearer a")]
    head += [(name, value.encode()) for name, value in named if value]
    request = Request({"type": "http", "method": "POST", "headers": head})
    if fine:
        assert access.admit(request, "moderate") == "a"
    else:
        with pytest.raises(Refusal) as refused:
            access.admit(request, "moderate")
        assert refused.value.code == "foreign_origin"


@pytest.mark.slow
def test_coming_in_and_going_out_is_asked_by_our_page_alone(guarded: Site) -> None:
    for head in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ):
        with guarded.client(**head) as client:
            entered = client.post("/login", data={"token": "shop-secret"})
            assert entered.status_code == 403
            assert "set-cookie" not in entered.headers
            assert client.post("/logout").status_code == 403
    with guarded.client(origin=guarded.address) as client:
        assert client.post("/login", data={"token": "shop-secret"}).status_code == 303


@pytest.mark.slow
def test_probes_name_no_model_without_a_token(guarded: Site, site: Site) -> None:
    for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
        with guarded.client() as client:
            assert client.get(path).json() == {"status": status}
        with guarded.client("wrong") as client:
            assert client.get(path).json() == {"status": status}
        with guarded.client("shop-secret") as client:
            assert client.get(path).json()["detector"]
        with site.client() as client:
            assert client.get(path).json()["models"] == ["fake/builder", "fake/kinder"]


@pytest.mark.slow
def test_a_question_of_another_site_is_shown_and_not_asked(site: Site) -> None:
    def ask(**head: str) -> httpx.Response:
        with site.client(**head) as client:
            return client.get("/browse/store/query", params=QUESTION)

    for head in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        answer = ask(**head)
        assert answer.status_code == 403
        assert "SELECT ?a" in answer.text
        assert "another site" in answer.text
    assert ask(**{"sec-fetch-site": "same-origin"}).status_code == 200
    assert ask().status_code == 200


@pytest.mark.slow
def test_questions_go_through_the_queue(site: Site) -> None:
    sizes: list[int] = []
    queue = site.service.engine._others
    before, queue.batches = queue.batches, sizes.append
    try:
        with site.client() as client:
            assert client.get("/browse/store/query", params=QUESTION).status_code == 200
    finally:
        queue.batches = before
    assert sizes == [1]
