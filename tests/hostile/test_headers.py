"""Guessing passwords is limited by the address that is real, whatever headers claim."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.hostile.cases import SEED, count_cases, known_and_fresh, noted
from tests.hostile.headers import generate

pytest.importorskip("fastapi")
LIMIT = 8


def test_no_header_brings_another_guess(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from memantics.annotation.web.app import make_app
    from memantics.annotation.web.settings import WebSettings
    from tests.annotation.team import make_lead
    from tests.annotation.web.visitors import ADDRESS, SECRET, Visitor, open_quick

    service = open_quick(f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "media")
    make_lead(service)
    app = make_app(service, WebSettings(SECRET, trusted_proxies=("10.9.9.9/32",)))
    visitor = Visitor(app)
    visitor.client = TestClient(
        app, base_url=ADDRESS, follow_redirects=False, client=("198.51.100.4", 50_000)
    )
    form = {"name": "lead", "password": "wrong", "next": "/", "token": visitor.token()}
    ends: Counter[int] = Counter()
    for case in known_and_fresh("headers", generate(SEED, count_cases(60))):
        with noted("headers", case):
            code = visitor.client.post("/login", data=form, headers=case["headers"]).status_code
            ends[code] += 1
            assert code in (400, 401, 429, 431)
            assert ends[401] <= LIMIT
    assert ends[401] == LIMIT
    assert ends[429] > LIMIT
    service.close()
