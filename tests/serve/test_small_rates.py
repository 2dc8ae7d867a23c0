"""A token with a small rate still lets single requests in."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request

from memantics.serve.access import AccessControl
from memantics.serve.settings import SCOPES, ServeSettings, Token, digest


@pytest.mark.parametrize(("rate", "workers"), [(1, 1), (5, 1), (6, 1), (10, 4)])
def test_one_request_fits_in_the_smallest_bucket(rate: int, workers: int) -> None:
    """Ten seconds of five a minute are less than one request; the bucket still holds one."""
    now = [0.0]
    tokens = (Token("a", digest("a-secret"), SCOPES, rate=rate),)
    settings = ServeSettings(tokens=tokens, workers=workers, state=Path("unused"))
    access = AccessControl(settings, lambda: now[0])
    head = [(b"authorization", b"Bearer a-secret")]
    request = Request({"type": "http", "method": "POST", "headers": head})
    for _ in range(3):
        assert access.admit(request, "moderate") == "a"
        with pytest.raises(Exception, match="rate limit of this token"):
            access.admit(request, "moderate")
        now[0] += 60 * workers / rate
