"""Decisions over HTTP: record, read, appeal, scopes, and the two ways in which they are made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memantics.core.policy import read_policy
from memantics.models.client import CallSettings
from memantics.moderation import DecisionLog, verify_decisions
from memantics.moderation.decisions.webhooks import list_events
from memantics.serve.settings import DecisionSettings, ServedModels, ServeSettings, Token, digest
from tests.moderation.policies.scripted import POLICIES, serve_scripted
from tests.serve.site import Site, serving

FORUM = read_policy(POLICIES / "forum.md")
NAMES = ("decide", "read_decisions", "appeal")


def find_log(site: Site) -> str:
    """The log of the service."""
    settings = site.service.settings.decisions
    assert settings is not None
    return settings.database


def make_settings(folder: Path, models: ServedModels, webhooks: tuple[str, ...]) -> ServeSettings:
    decisions = DecisionSettings(
        str(folder / "log.db"), POLICIES / "forum.md", webhooks, "a secret of the tests"
    )
    tokens = tuple(Token(name, digest(name), (name,)) for name in NAMES)  # type: ignore[arg-type]
    limited = (("leads", "lead"), ("trainees", "trainee"))
    tokens += tuple(Token(n, digest(n), ("decide",), roles=(role,)) for n, role in limited)
    return ServeSettings(models=models, tokens=tokens, state=folder / "state", decisions=decisions)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("decisions")
    hooks = ("http://127.0.0.1:9/hook",)
    with serving(make_settings(folder, ServedModels(), hooks), folder) as running:
        yield running


def test_a_recorded_decision_is_read_and_appealed(site: Site) -> None:
    with site.client("decide") as client:
        body = {
            "text": "the old turnip",
            "content_id": "p1",
            "language": "zh",
            "decision": {
                "verdict": "violates", "clause": "1", "reviewer": "reviewer-1", "role": "reviewer",
            },
        }  # fmt: skip
        made = client.post("/v1/decisions", json=body)
        assert made.status_code == 201, made.text
        wrong = {**body, "decision": {"verdict": "violates", "clause": "9"}}
        assert client.post("/v1/decisions", json=wrong).status_code == 422
        assert client.post("/v1/decisions", json={"content_id": "x"}).status_code == 422
    case = made.json()
    assert (case["state"], case["clause"], case["automated"]) == ("decided", "1", False)
    assert "第 1 条" in case["explanation"]
    with site.client("read_decisions") as client:
        read = client.get(made.headers["location"]).json()
        assert read["id"] == case["id"]
        assert "clause 1" in read["explanation"]
        assert "the old turnip" not in str(read)
        assert client.get("/v1/decisions/dec-0").status_code == 404
    with site.client("appeal") as client:
        said = {"decision": case["id"], "statement": "It is art.", "language": "en"}
        assert client.post("/v1/appeals", json=said).status_code == 201
        assert client.post("/v1/appeals", json=said).status_code == 422
    with site.client("read_decisions") as client:
        assert client.get(f"/v1/decisions/{case['id']}").json()["state"] == "appealed"


def test_a_role_that_is_not_a_decider_is_refused(site: Site) -> None:
    """The role comes from the request, or from the token, which also limits it."""

    def post(client: httpx.Client, **given: str) -> tuple[int, str]:
        body = {"text": "a leek", "decision": {"verdict": "allowed", **given}}
        answer = client.post("/v1/decisions", json=body)
        error = answer.json().get("error", {})
        return answer.status_code, f"{error.get('code')} {error.get('message')}"

    before = verify_decisions(find_log(site)).lines
    with site.client("decide") as client:
        for given in ({"role": "annotator"}, {}):
            status, said = post(client, reviewer="reviewer-7", **given)
            assert status == 403
            assert said.startswith("role_not_allowed")
            assert f"policy {FORUM.name} lets only reviewer and lead decide" in said
            assert "reviewer-7 has " + ("the role annotator" if given else "no role") in said
            assert "send one of these roles as decision.role" in said
        assert verify_decisions(find_log(site)).lines == before
        assert post(client, reviewer="reviewer-7", role="lead")[0] == 201
        assert post(client)[0] == 201  # automated: nobody decided
    with site.client("leads") as client:
        assert post(client, reviewer="reviewer-7")[0] == 201
        status, said = post(client, reviewer="reviewer-7", role="reviewer")
        assert (status, "may not decide as 'reviewer'; its roles are lead" in said) == (403, True)
    with site.client("trainees") as client:
        assert post(client, reviewer="reviewer-7")[0] == 403
    with DecisionLog(find_log(site)) as log:
        made = [line.body for line in log.walk() if line.body.get("reviewer") == "reviewer-7"]
    assert [body["role"] for body in made] == ["lead", "lead"]


def test_each_scope_allows_its_own_requests(site: Site) -> None:
    requests = {
        "decide": ("POST", "/v1/decisions"),
        "read_decisions": ("GET", "/v1/decisions/dec-0"),
        "appeal": ("POST", "/v1/appeals"),
    }
    for token in NAMES:
        with site.client(token) as client:
            for scope, (method, path) in requests.items():
                status = client.request(method, path, json={}).status_code
                assert (status == 403) == (scope != token), (token, path, status)
    with site.client() as client:
        assert client.post("/v1/appeals", json={}).status_code == 401


@pytest.mark.slow
def test_without_a_model_the_detector_decides_and_no_clause_is_applied(site: Site) -> None:
    with site.client("decide") as client:
        case = client.post("/v1/decisions", json={"text": "hello", "content_id": "p2"}).json()
    assert (case["clause"], case["policy"], case["automated"]) == ("none", "", True)
    assert "no clause was applied" in case["note"]
    log = DecisionLog(site.service.settings.decisions.database)  # type: ignore[union-attr]
    assert {one.event for one in list_events(log)} == {"decided"}
    for _ in range(100):  # the service tries to deliver, and the receiver does not exist
        if any(one.attempts for one in list_events(log)):
            break
        time.sleep(0.1)
    assert any(one.error for one in list_events(log))
    log.close()


def test_an_image_needs_a_decision_because_only_texts_are_decided(site: Site) -> None:
    image = {"content_type": "image", "content_id": "p3", "text": "hello"}
    digest = {"content_sha256": "a" * 64}
    given = {"decision": {"verdict": "allowed"}}
    before = verify_decisions(find_log(site)).lines
    with site.client("decide") as client:
        for body in (image, {**image, **digest}, {**image, **given}):
            refused = client.post("/v1/decisions", json=body)
            assert refused.status_code == 422
            said = refused.json()["error"]["message"]
            assert "give a decision and content_sha256 for an image" in said
        assert verify_decisions(find_log(site)).lines == before
        made = client.post("/v1/decisions", json={**image, **digest, **given})
    assert (made.status_code, made.json()["content_sha256"]) == (201, "a" * 64)


@pytest.mark.parametrize("text", ["доброе утро", "wir haben am Montag keine Zeit"])
def test_a_text_for_human_review_is_neither_allowed_nor_a_violation(site: Site, text: str) -> None:
    with site.client("decide") as client:
        case = client.post("/v1/decisions", json={"text": text, "content_id": "p4"}).json()
    assert (case["verdict"], case["band"], case["state"]) == ("undecided", "review", "undecided")
    assert case["note"].startswith("needs human review, and no clause was applied: ")
    assert case["explanation"].startswith("There is no decision on your post yet.")
    with site.client("appeal") as client:
        refused = client.post("/v1/appeals", json={"decision": case["id"]})
    assert refused.status_code == 422
    assert "nothing is decided yet" in refused.json()["error"]["message"]


def test_the_record_of_a_score_has_the_operating_point_of_its_detector(site: Site) -> None:
    with site.client("decide") as client:
        case = client.post("/v1/decisions", json={"text": "今天天气真好，我们去公园吧"}).json()
    assert (case["verdict"], case["band"], case["state"]) == ("allowed", "allow", "decided")
    assert case["explanation"].startswith("Your post is allowed. The decision was made auto")
    with DecisionLog(find_log(site)) as log:
        body = next(line.body for line in log.walk(case["id"]))
    assert body["operating_point"] == site.service.engine.detector.point.summary
    assert str(body["operating_point"]).startswith("threshold 0.")


@pytest.mark.slow
def test_with_a_model_the_decision_cites_a_clause_and_no_reply_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    with serve_scripted() as url:
        calls = CallSettings(base_url=url)
        models = ServedModels(models=("openai/obeys",), calls=calls)
        with (
            serving(make_settings(tmp_path, models, ()), tmp_path) as site,
            site.client("decide") as client,
        ):
            for text, clause in (("another leek", "2"), ("another plum", "none")):
                case = client.post("/v1/decisions", json={"text": text}).json()
                assert (case["clause"], case["automated"]) == (clause, True)
                assert case["policy"] == FORUM.name
    assert verify_decisions(str(tmp_path / "log.db")).sound
    # Replies of posts are personal data: none stays in the cache of the user.
    assert not list((tmp_path / "home").rglob("*cache*"))
