"""Rules of the service where they turn: statuses of errors, places of jobs, names of tokens."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from memantics.core.errors import (
    DataError,
    ImageError,
    InputError,
    MemanticsError,
    Transient,
    Unavailable,
)
from memantics.serve.jobs import LEASE, TRIES, JobStore
from memantics.serve.refusals import Refusal, answer_refusal, make_busy, read_refusal
from memantics.serve.settings import SCOPES, Token, digest, make_token, read_tokens
from tests.serve.site import Clock


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ImageError("a.png", "too many bytes", "9"), 413, "invalid_image"),
        (ImageError("a.png", "too many pixels", "9"), 413, "invalid_image"),
        (ImageError("a.png", "no image", "text"), 422, "invalid_image"),
        (InputError("no such language"), 422, "invalid_value"),
        (Transient("down"), 503, "model_error"),
        (Unavailable("wrong key"), 502, "model_error"),
    ],
)
def test_an_error_has_its_status_and_its_words(
    error: MemanticsError, status: int, code: str
) -> None:
    refusal = read_refusal(error)
    assert (refusal.status, refusal.code, refusal.message) == (status, code, str(error))
    assert str(refusal) == str(error)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (429, "rate_limit_error"),
        (499, "invalid_request_error"),
        (500, "server_error"),
    ],
)
def test_an_answer_names_the_kind_of_error(status: int, kind: str) -> None:
    answer = answer_refusal(Refusal(status, "word", "a sentence", {"x-more": "1"}))
    assert (answer.status_code, answer.headers["x-more"]) == (status, "1")
    assert answer.headers["content-type"] == "application/json"
    facts = {"message": "a sentence", "type": kind, "param": None, "code": "word"}
    assert orjson.loads(answer.body) == {"error": facts}


@pytest.mark.parametrize(("seconds", "wait"), [(0.0, "1"), (1.4, "1"), (1.6, "2"), (30, "30")])
def test_who_is_refused_is_told_when_to_come_back(seconds: float, wait: str) -> None:
    busy = make_busy(seconds)
    assert (busy.status, busy.code, busy.headers) == (
        429,
        "rate_limit_exceeded",
        {"retry-after": wait},
    )
    assert busy.message == f"the service is busy; try again in {wait} s"


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[JobStore]:
    made = JobStore(tmp_path / "deep" / "state", keep=60, most=2, clock=clock)
    yield made
    made.close()


def test_the_folder_of_jobs_is_made_for_its_owner_only(store: JobStore) -> None:
    job = store.add("analyze", "shop", {"language": "zh"}, b"picture")
    for folder in (store.folder, store.place(job.id)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (job.kind, job.owner, job.status, job.options) == (
        "analyze",
        "shop",
        "queued",
        {"language": "zh"},
    )


def test_as_many_jobs_wait_as_may_and_a_refused_one_leaves_nothing(store: JobStore) -> None:
    kept = [store.add("analyze", "shop", {}, b"") for _ in range(2)]
    with pytest.raises(Refusal) as refused:
        store.add("analyze", "shop", {}, b"")
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "10")
    assert {one.name for one in (store.folder / "jobs").iterdir()} == {job.id for job in kept}
    store.finish(kept[0].id, "done", {"x": 1})
    assert store.add("analyze", "shop", {}, b"").status == "queued"
    assert store.count() == {"done": 1, "queued": 2}


def test_the_oldest_job_comes_first_and_a_lease_ends_after_its_last_moment(
    store: JobStore, clock: Clock
) -> None:
    first = store.add("analyze", "shop", {}, b"")
    clock.now += 1
    store.add("analyze", "shop", {}, b"")
    claimed = store.claim()
    assert claimed is not None
    assert (claimed.id, claimed.status, claimed.tries) == (first.id, "running", 1)
    second = store.claim()
    assert second is not None
    assert second.id != first.id
    clock.now += LEASE
    assert store.claim() is None
    clock.now += 0.001
    again = store.claim()
    assert again is not None
    assert (again.id, again.tries) == (first.id, 2)


def test_a_job_is_given_up_after_its_tries(store: JobStore, clock: Clock) -> None:
    job = store.add("analyze", "shop", {}, b"")
    for number in range(TRIES):
        claimed = store.claim()
        assert claimed is not None
        assert claimed.tries == number + 1
        clock.now += LEASE + 1
    assert store.claim() is None
    found = store.get(job.id)
    assert found is not None
    assert found.status == "failed"
    assert found.reason == f"the service ended {TRIES} times while this job ran"


def test_a_result_is_kept_to_the_last_moment_of_its_time(store: JobStore, clock: Clock) -> None:
    job = store.add("analyze", "shop", {}, b"")
    store.finish(job.id, "done", {"x": 1})
    clock.now += 60
    store.purge()
    found = store.get(job.id)
    assert found is not None
    assert (found.result, found.ended, found.expires) == ({"x": 1}, 1000.0, 1060.0)
    clock.now += 0.001
    store.purge()
    assert store.get(job.id) is None


@pytest.mark.parametrize(("name", "fine"), [("a" * 64, True), ("a" * 65, False), ("a b", False)])
def test_names_of_tokens(tmp_path: Path, name: str, fine: bool) -> None:
    file = tmp_path / "tokens.toml"
    if not fine:
        with pytest.raises(InputError, match="is not a valid token name"):
            make_token(file, name)
        return
    secret, made = make_token(file, name, ["puns", "moderate"], 12)
    assert read_tokens(file, {}) == (made,)
    assert (made.sha256, made.scopes, made.rate) == (digest(secret), ("moderate", "puns"), 12)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="already contains a token"):
        make_token(file, name)
    assert make_token(file, "other")[1].scopes == SCOPES


@pytest.mark.parametrize(("rate", "fine"), [(0.0, False), (0.1, True), (float("inf"), False)])
def test_rates_of_tokens(rate: float, fine: bool) -> None:
    if fine:
        assert Token("a", digest("x"), rate=rate).rate == rate
    else:
        with pytest.raises(ValueError, match="rate must be"):
            Token("a", digest("x"), rate=rate)


def test_a_token_stands_in_the_file_or_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    make_token(file, "shop")
    more = {"MEMANTICS_TOKENS": f'[mod]\nsha256 = "{digest("x")}"\n'}
    assert [token.name for token in read_tokens(file, more)] == ["shop", "mod"]
    twice = {"MEMANTICS_TOKENS": f'[shop]\nsha256 = "{digest("x")}"\n'}
    with pytest.raises(InputError, match="token shop is in"):
        read_tokens(file, twice)
    with pytest.raises(DataError, match="cannot be read"):
        read_tokens(tmp_path / "none.toml", {})
    assert read_tokens(None, {}) == ()
