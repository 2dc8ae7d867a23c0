"""Who may come in: tokens, scopes, rates, sites, names of the host."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.moderation.decisions.webhooks import check_url, verify_signature
from memantics.serve.access import AccessControl
from memantics.serve.refusals import Refusal
from memantics.serve.settings import SCOPES, Reach, ServeSettings, Token, digest, read_tokens
from tests.commands import Shell
from tests.serve.site import Site

BODY = {"input": "今天天气真好"}


def test_a_token_is_needed_and_must_be_known(guarded: Site) -> None:
    for token in ("", "wrong"):
        with guarded.client(token) as client:
            answer = client.post("/v1/moderations", json=BODY)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["error"]["code"] == "invalid_api_key"
            for path in ("/metrics", "/v1/jobs/none"):
                assert client.get(path).status_code == 401
            # Probes are open; they tell nothing but the names of models.
            assert client.get("/healthz").status_code == 200
    with guarded.client("shop-secret") as client:
        assert client.post("/v1/moderations", json=BODY).status_code == 200


def test_scopes_bound_what_a_token_may_do(guarded: Site) -> None:
    with guarded.client("mod-secret") as client:
        assert client.post("/v1/moderations", json=BODY).status_code == 200
        answers = [
            client.post("/v1/puns", json={"caption": "x"}),
            client.post("/v1/analyze", json={"image": "x"}),
            client.post("/v1/reappraise", json={"image": "x"}),
            client.post("/v1/knowledge/query", json={"query": "ASK {}"}),
            client.get("/metrics"),
            client.get("/"),
        ]
    assert {answer.status_code for answer in answers} == {403}


def test_a_rate_is_kept_and_says_when_to_come_back(guarded: Site) -> None:
    with guarded.client("slow-secret") as client:  # 12 a minute, bursts of two
        answers = [client.post("/v1/moderations", json=BODY) for _ in range(4)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert answers[0].status_code == 200
    assert refused
    assert 1 <= int(refused[0].headers["retry-after"]) <= 6


def test_a_person_comes_in_with_a_token_in_a_cookie_that_scripts_cannot_read(
    guarded: Site,
) -> None:
    with guarded.client() as client:
        sent = client.get("/", follow_redirects=False)
        assert (sent.status_code, sent.headers["location"]) == (303, "/login")
        assert 'type="password"' in client.get("/login").text
        assert client.post("/login", data={"token": "wrong"}).status_code == 401
        entered = client.post("/login", data={"token": "shop-secret"}, follow_redirects=False)
        assert entered.status_code == 303
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/").status_code == 200
        client.post("/logout")
        assert client.get("/", follow_redirects=False).status_code == 303


def test_scripts_of_other_sites_are_not_served(site: Site) -> None:
    foreign = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
    with site.client(**foreign) as client:
        answer = client.post("/v1/moderations", json=BODY)
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    with site.client(host="evil.example") as client:
        assert client.post("/v1/moderations", json=BODY).status_code == 421
    with site.client(**{"sec-fetch-site": "same-origin"}) as client:
        assert client.post("/v1/moderations", json=BODY).status_code == 200


def test_a_site_that_the_operator_named_may_call(guarded: Site) -> None:
    for origin, status in (("https://shop.example", 200), ("https://evil.example", 403)):
        head = {"sec-fetch-site": "cross-site", "origin": origin}
        with guarded.client("shop-secret", **head) as client:
            answer = client.post("/v1/moderations", json=BODY)
            assert answer.status_code == status
            allowed = answer.headers.get("access-control-allow-origin", "")
            assert (allowed == origin) == (status == 200)


def test_rates_are_shared_by_the_processes_of_a_service() -> None:
    from starlette.requests import Request

    now = [0.0]
    tokens = (Token("a", digest("a-secret"), SCOPES, rate=120),)
    access = AccessControl(
        ServeSettings(tokens=tokens, workers=2, state=Path("unused")), lambda: now[0]
    )
    head = [(b"authorization", b"Bearer a-secret")]
    request = Request({"type": "http", "method": "POST", "headers": head})

    def count() -> int:
        let_in = 0
        for _ in range(50):
            try:
                access.admit(request, "moderate")
                let_in += 1
            except Exception:  # noqa: BLE001
                break
        return let_in

    # Each of two processes has half of 120 a minute, and room for ten seconds of it.
    assert count() == 10
    now[0] = 3.0
    assert count() == 3


def test_it_does_not_open_to_the_world_without_a_token(shell: Shell, tmp_path: Path) -> None:
    said = shell.refused("serve", "--host", "0.0.0.0", "--port", "0")
    assert "needs a token" in said
    assert "serve-token" in said
    with pytest.raises(InputError):
        ServeSettings(Reach(public_url="https://memes.example.org"), state=tmp_path)
    ServeSettings(Reach("0.0.0.0"), tokens=(Token("a", digest("a")),), state=tmp_path)


@pytest.mark.parametrize("url", ["http://[::1", "https://", "https://a:b", "https://exa\u2100mple"])
def test_broken_urls_of_the_operator_are_refused(shell: Shell, url: str) -> None:
    """They ended in a traceback of urlsplit."""
    for command in (("serve",), ("annotate", "open")):
        said = shell.refused(*command, "--port", "0", "--public-url", url)
        assert "is not a valid URL" in said
    with pytest.raises(InputError, match="a webhook needs a URL"):
        check_url(url)


@pytest.mark.parametrize(
    "header", ["t=\u0663,v1=a", f"t={'9' * 5000},v1=a", "t=1,v1=\u00e9", "t=\u00b2,v1=", "t,v1", ""]
)
def test_a_strange_signature_is_a_wrong_one(header: str) -> None:
    """The header comes from anybody; it raised TypeError or ValueError at the receiver."""
    assert not verify_signature("secret", header, b"{}", 1.0)


def test_a_token_is_shown_once_and_kept_as_a_digest(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    told = shell.run("serve-token", "shop", "--tokens", file, "--scope", "moderate").out
    secret = told.splitlines()[0]
    shell.run("serve-token", "lab", "--tokens", file, "--rate", "30", "--role", "reviewer")
    assert secret not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shop, lab = read_tokens(file, {})
    assert (shop.name, shop.sha256, shop.scopes) == ("shop", digest(secret), ("moderate",))
    assert (lab.scopes, lab.rate, lab.roles) == (SCOPES, 30.0, ("reviewer",))
    assert shop.roles == ()
    assert "is not a valid role" in shell.refused(
        "serve-token", "x", "--tokens", file, "--role", "Big Boss"
    )
    assert "already contains a token named shop" in shell.refused(
        "serve-token", "shop", "--tokens", file
    )
    assert "unknown scope" in shell.refused(
        "serve-token", "x", "--tokens", file, "--scope", "moderat"
    )
    own = {"MEMANTICS_TOKENS": file.read_text().replace("[shop]", "[other]").replace("lab", "l")}
    assert [token.name for token in read_tokens(file, own)] == ["shop", "lab", "other", "l"]
    with pytest.raises(InputError, match="is in"):
        read_tokens(file, {"MEMANTICS_TOKENS": file.read_text()})


@pytest.mark.parametrize(
    "text", ["[a]\nsha256 = 'short'", "[a]\n", "not toml", "[a]\nsha256 = 3\n", "a = 1"]
)
def test_a_damaged_file_of_tokens_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    with pytest.raises(InputError):
        read_tokens(file, {})


def test_a_token_of_a_low_rate_is_let_in_once() -> None:
    from starlette.requests import Request

    tokens = (Token("a", digest("a-secret"), SCOPES, rate=1),)
    access = AccessControl(ServeSettings(tokens=tokens, state=Path("unused")), lambda: 0.0)
    head = [(b"authorization", b"Bearer a-secret")]
    request = Request({"type": "http", "method": "POST", "headers": head})
    assert access.admit(request, "moderate") == "a"
    with pytest.raises(Refusal):
        access.admit(request, "moderate")
