"""Tokens against forged forms."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import urlsplit

from fastapi import Request

from memantics.annotate.web.settings import WebSettings

SAFE_SITES = frozenset({"same-origin", "none"})


def make_form_token(secret: bytes, seed: str) -> str:
    """The token that forms of one session carry; another site can neither read nor guess it.

    >>> make_form_token(b"s", "a") == make_form_token(b"s", "a")
    True
    >>> make_form_token(b"s", "a") == make_form_token(b"s", "b")
    False
    """
    return hmac.new(secret, b"form:" + seed.encode(), hashlib.sha256).hexdigest()


def is_own_form(request: Request, settings: WebSettings, seed: str, given: str) -> bool:
    """Whether a post comes from a form of ours, by its token and by what the browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in SAFE_SITES:
        return False
    origin = request.headers.get("origin")
    # A proxy may call us by another name than people do.
    ours = {request.headers.get("host", ""), urlsplit(settings.public_url).netloc}
    if origin is not None and (origin.partition("://")[2] or "-") not in ours:
        return False
    return bool(seed) and hmac.compare_digest(
        make_form_token(settings.secret, seed).encode(), given.encode("utf-8", "replace")
    )


def make_seed() -> str:
    """A random value for the cookie of someone who is not logged in."""
    return secrets.token_urlsafe(24)
