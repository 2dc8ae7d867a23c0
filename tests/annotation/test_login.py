"""Guessing passwords: counted before hashing, in the database, and by the address that is real."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from starlette.testclient import TestClient

from memantics.annotation import accounts as attempts
from memantics.annotation.errors import LoginFailed, TooManyAttempts
from memantics.annotation.service import AnnotationService, open_service
from memantics.annotation.web.app import make_app
from memantics.annotation.web.settings import WebSettings
from memantics.core.errors import InputError
from memantics.web.server import read_proxies
from tests.annotation.team import PASSWORD, Clock, make_lead, quick_hasher
from tests.annotation.web.visitors import SECRET, Visitor


class CountingHasher(PasswordHasher):
    """Counts how often a password is looked at."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.looks = 0

    def verify(self, hash: str | bytes, password: str | bytes) -> Any:  # noqa: A002 - its name there
        self.looks += 1
        return super().verify(hash, password)


@pytest.fixture
def hasher() -> CountingHasher:
    return CountingHasher()


@pytest.fixture
def door(
    database_url: str, tmp_path: Path, clock: Clock, hasher: CountingHasher
) -> Iterator[AnnotationService]:
    made = open_service(database_url, tmp_path / "media", clock=clock, hasher=hasher)
    make_lead(made)
    yield made
    made.close()


def guess(
    service: AnnotationService, name: str = "lead", password: str = "wrong", address: str = ""
) -> str:
    try:
        service.accounts.log_in(name, password, address)
    except (LoginFailed, TooManyAttempts) as error:
        return type(error).__name__
    return "in"


def test_of_24_parallel_guesses_8_are_looked_at(
    door: AnnotationService, hasher: CountingHasher
) -> None:
    with ThreadPoolExecutor(24) as pool:
        ends = Counter(pool.map(lambda n: guess(door, password=f"wrong {n}"), range(24)))
    assert ends == {"LoginFailed": 8, "TooManyAttempts": 16}
    assert hasher.looks == 8


def test_two_servers_on_one_database_count_together(
    door: AnnotationService, database_url: str, tmp_path: Path, clock: Clock
) -> None:
    other = open_service(database_url, tmp_path / "media", clock=clock, hasher=quick_hasher())
    servers = [door, other] * 12
    with ThreadPoolExecutor(24) as pool:
        ends = Counter(pool.map(guess, servers))
    other.close()
    assert ends["LoginFailed"] == 8


def test_a_window_slides_from_the_first_guess(door: AnnotationService, clock: Clock) -> None:
    assert guess(door) == "LoginFailed"
    clock.forward(100)
    assert [guess(door) for _ in range(8)] == ["LoginFailed"] * 7 + ["TooManyAttempts"]
    # Whoever is refused is not counted: the first guess alone decides how long to wait.
    clock.forward(attempts.WINDOW - 101)
    assert guess(door, password=PASSWORD) == "TooManyAttempts"
    with pytest.raises(TooManyAttempts) as caught:
        door.accounts.log_in("lead", PASSWORD)
    assert 0 < caught.value.wait < 1
    clock.forward(1)
    assert [guess(door), guess(door)] == ["LoginFailed", "TooManyAttempts"]
    clock.forward(attempts.WINDOW)
    assert guess(door, password=PASSWORD) == "in"


def test_the_right_password_clears_the_count_of_its_account(door: AnnotationService) -> None:
    for _ in range(3):
        assert [guess(door) for _ in range(7)] == ["LoginFailed"] * 7
        assert guess(door, password=PASSWORD) == "in"


def test_names_that_mean_one_account_are_one_account(door: AnnotationService) -> None:
    assert [guess(door, name) for name in ("lead", "LEAD", "Lead", "leaD") * 2] == [
        "LoginFailed"
    ] * 8
    assert guess(door, "lEad") == "TooManyAttempts"


@pytest.mark.parametrize(
    ("limit", "vary"),
    [("PER_ADDRESS", {"name": "somebody {}"}), ("PER_ACCOUNT", {"address": "203.0.113.{}"})],
)
def test_an_address_and_an_account_have_limits_of_their_own(
    service: AnnotationService,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    vary: dict[str, str],
) -> None:
    monkeypatch.setattr(attempts, limit, 12)
    make_lead(service)
    given = [{key: text.format(n) for key, text in vary.items()} for n in range(13)]
    ends = [guess(service, **one) for one in given]
    assert ends == ["LoginFailed"] * 12 + ["TooManyAttempts"]


def test_logging_in_often_locks_nobody_out(
    service: AnnotationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "PER_ADDRESS", 3)
    make_lead(service)
    assert [guess(service, password=PASSWORD) for _ in range(5)] == ["in"] * 5


def test_guesses_at_the_old_password_are_limited_too(door: AnnotationService) -> None:
    lead = door.accounts.log_in("lead", PASSWORD).actor
    for _ in range(8):
        with pytest.raises(LoginFailed):
            door.accounts.change_password(lead, "wrong", "another long password")
    with pytest.raises(TooManyAttempts):
        door.accounts.change_password(lead, PASSWORD, "another long password")


def test_an_ipv6_network_is_one_address(service: AnnotationService) -> None:
    make_lead(service)
    inside = [guess(service, address=f"2001:db8::{n:x}") for n in range(9)]
    assert inside == ["LoginFailed"] * 8 + ["TooManyAttempts"]
    assert guess(service, address="2001:db8:0:1::1") == "LoginFailed"


def codes(service: AnnotationService, peer: str, trusted: tuple[str, ...]) -> Counter[int]:
    """What 12 wrong passwords get, each with another address in its header."""
    app = make_app(service, WebSettings(SECRET, trusted_proxies=trusted))
    visitor = Visitor(app)
    visitor.client = TestClient(
        app, base_url="http://127.0.0.1:8765", follow_redirects=False, client=(peer, 50_000)
    )
    form = {"name": "lead", "password": "wrong", "next": "/"}
    return Counter(
        visitor.post("/login", form, **{"x-forwarded-for": f"203.0.113.{n}"}).status_code
        for n in range(12)
    )


def test_only_a_named_proxy_is_believed(service: AnnotationService) -> None:
    make_lead(service)
    assert codes(service, "10.0.0.8", ("10.0.0.7/32",)) == {401: 8, 429: 4}
    assert codes(service, "10.0.0.7", ("10.0.0.7/32",)) == {401: 12}


def test_24_parallel_posts_are_held_to_the_limit(service: AnnotationService) -> None:
    make_lead(service)
    app = make_app(service, WebSettings(SECRET))
    visitors = [Visitor(app) for _ in range(24)]
    with ThreadPoolExecutor(24) as pool:
        ends = Counter(pool.map(lambda one: one.log_in("lead", "wrong").status_code, visitors))
    assert ends == {401: 8, 429: 16}


@pytest.mark.parametrize("text", ["proxy.example.org", "10.0.0.1/8", "*", "0.0.0.0/0", "::/0", ""])
def test_proxies_are_named_by_address(text: str) -> None:
    with pytest.raises(InputError, match="--trusted-proxy"):
        read_proxies([text])
