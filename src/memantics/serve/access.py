"""Access to the service: tokens, scopes, rate limits, cross-origin checks and the login form.

The login form stores a valid token in an HttpOnly cookie.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from memantics.serve.pages import Pages
from memantics.serve.refusals import Refusal, make_busy
from memantics.serve.settings import ServeSettings, Token, TokenScope, digest
from memantics.web.budget import SECRET_BYTES
from memantics.web.shell import open_form

COOKIE = "memantics-serve"
LOCAL = "local"
_OTHER_SITES = frozenset({"cross-site", "same-site"})


@dataclass(slots=True)
class Bucket:
    """A token bucket for rate limiting, which allows bursts of ten seconds.

    >>> bucket = Bucket(rate=1.0, room=2.0, left=2.0, at=0.0)
    >>> [bucket.take(now) for now in (0.0, 0.0, 0.5, 1.0)]
    [0.0, 0.0, 0.5, 0.0]
    """

    rate: float
    room: float
    left: float
    at: float

    def take(self, now: float) -> float:
        """Take one request from the bucket; return 0, or the seconds until one is allowed."""
        self.left = min(self.room, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left >= 1:
            self.left -= 1
            return 0.0
        return (1 - self.left) / self.rate


class AccessControl:
    """Checks each request's token and rate. Without tokens every local request is accepted."""

    def __init__(
        self, settings: ServeSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tokens = {token.sha256: token for token in settings.tokens}
        self._origins = frozenset(settings.reach.origins)
        self._public = urlsplit(settings.reach.public_url).netloc
        self._share = settings.workers  # each process counts its own requests
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    @property
    def guarded(self) -> bool:
        """Whether the service requires a token."""
        return bool(self._tokens)

    def admit(self, request: Request, scope: TokenScope, secret: str = "") -> str:
        """Return the client's name; raise a ``Refusal`` if the request is not allowed.

        ``secret`` is a token that the request sends in another place than the header or cookie.
        """
        self.check_site(request)
        if not self._tokens:
            return LOCAL
        secret = secret or _read_secret(request)
        token = self.find(secret)
        if token is None:
            what = "the token is not known here" if secret else "a token is required"
            raise Refusal(
                401,
                "invalid_api_key",
                f"{what}; send it as 'Authorization: Bearer …'",
                {"www-authenticate": "Bearer"},
            )
        if scope not in token.scopes:
            raise Refusal(
                403, "insufficient_scope", f"this token's scopes do not include {scope!r}"
            )
        wait = self._take(token)
        if wait:
            raise make_busy(math.ceil(wait), "the rate limit of this token is exceeded")
        return token.name

    def list_roles(self, request: Request) -> tuple[str, ...]:
        """Return the roles to which a client's token is limited; empty if it is not limited."""
        token = self.find(_read_secret(request))
        return token.roles if token is not None else ()

    def knows(self, request: Request) -> bool:
        """Return whether a request has a valid token, or none is required."""
        return not self._tokens or self.find(_read_secret(request)) is not None

    def find(self, secret: str) -> Token | None:
        """Return the token with that secret, found by digest to avoid timing attacks."""
        return self._tokens.get(digest(secret)) if secret else None

    def check_site(self, request: Request, *, reads: bool = False) -> None:
        """Reject requests that a browser sends on behalf of another web site.

        With ``reads``, GET requests are rejected too; this is for endpoints that are expensive to
        read.
        """
        if request.method in ("GET", "HEAD") and not reads:
            return
        origin = request.headers.get("origin", "")
        site = request.headers.get("sec-fetch-site", "")
        named = origin.partition("://")[2] or origin  # the origin "null" has no host
        home = (request.headers.get("host", ""), self._public)
        foreign = site in _OTHER_SITES or (not site and origin and named not in home)
        if foreign and origin not in self._origins:
            raise Refusal(
                403,
                "foreign_origin",
                "cross-origin requests are blocked; the operator can allow one with --origin",
            )

    def _take(self, token: Token) -> float:
        now = self._clock()
        bucket = self._buckets.get(token.name)
        if bucket is None:
            rate = token.rate / 60 / self._share
            room = max(1.0, rate * 10)
            bucket = self._buckets[token.name] = Bucket(rate, room, room, now)
        return bucket.take(now)


def _read_secret(request: Request) -> str:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else request.cookies.get(COOKIE, "")


router = APIRouter(include_in_schema=False)


def admit_reader(request: Request) -> str:
    """Return the client that reads a page; without a token, redirect to the login form.

    Every router with pages has this as a dependency.
    """
    access: AccessControl = request.app.state.access
    try:
        return access.admit(request, "pages")
    except Refusal as refusal:
        if refusal.status != 401 or request.method != "GET":
            raise
        raise Refusal(303, "login", "a token is required", {"location": "/login"}) from refusal


@router.get("/login")
def show_login(request: Request) -> Response:
    """Show the login form."""
    if not request.app.state.access.guarded:
        return RedirectResponse("/", 303)
    return _show(request, 200, wrong=False)


def _show(request: Request, status: int, *, wrong: bool) -> Response:
    pages: Pages = request.app.state.pages
    return pages.show(request, "login.html", {"wrong": wrong}, status)


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Store a valid token in an HttpOnly cookie."""
    access: AccessControl = request.app.state.access
    access.check_site(request)
    async with open_form(request, files=0, fields=10, field_bytes=SECRET_BYTES) as form:
        given = str(form.get("token", "")).strip()
    if access.find(given) is None:
        return _show(request, 401, wrong=True)
    response = RedirectResponse("/", 303)
    secure = request.app.state.settings.reach.public_url.startswith("https://")
    response.set_cookie(COOKIE, given, httponly=True, samesite="strict", secure=secure)
    return response


@router.post("/logout")
def log_out(request: Request) -> Response:
    """Delete the token cookie."""
    request.app.state.access.check_site(request)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response
