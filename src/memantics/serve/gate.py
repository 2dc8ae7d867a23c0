"""Who may come in: tokens, scopes, rates, and browsers of other sites."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request

from memantics.serve.refusals import Refusal, make_busy
from memantics.serve.settings import ServeSettings
from memantics.serve.tokens import Scope, Token, digest

COOKIE = "memantics-serve"
LOCAL = "local"
_OTHER_SITES = frozenset({"cross-site", "same-site"})


@dataclass(slots=True)
class Bucket:
    """A rate with room for a burst of ten seconds.

    >>> bucket = Bucket(rate=1.0, room=2.0, left=2.0, at=0.0)
    >>> [bucket.take(now) for now in (0.0, 0.0, 0.5, 1.0)]
    [0.0, 0.0, 0.5, 0.0]
    """

    rate: float
    room: float
    left: float
    at: float

    def take(self, now: float) -> float:
        """Take one; 0, or the seconds until one is there."""
        self.left = min(self.room, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left >= 1:
            self.left -= 1
            return 0.0
        return (1 - self.left) / self.rate


class Gate:
    """Lets requests in. Without tokens, which only this machine may do without, all are."""

    def __init__(
        self, settings: ServeSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tokens = {token.sha256: token for token in settings.tokens}
        self._origins = frozenset(settings.reach.origins)
        self._public = urlsplit(settings.reach.public_url).netloc
        self._share = settings.workers  # each process counts for itself
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    @property
    def guarded(self) -> bool:
        """Whether a token is needed."""
        return bool(self._tokens)

    def admit(self, request: Request, scope: Scope) -> str:
        """The name of who asks, or a refusal."""
        self.check_site(request)
        if not self._tokens:
            return LOCAL
        secret = _read_secret(request)
        token = self.find(secret)
        if token is None:
            what = "the token is not known here" if secret else "a token is needed"
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
            raise make_busy(math.ceil(wait), "the rate of this token is used up")
        return token.name

    def knows(self, request: Request) -> bool:
        """Whether a request comes with a token, or none is needed."""
        return not self._tokens or self.find(_read_secret(request)) is not None

    def find(self, secret: str) -> Token | None:
        """The token with that secret. Looking up a digest tells nothing about the secret."""
        return self._tokens.get(digest(secret)) if secret else None

    def check_site(self, request: Request, *, reads: bool = False) -> None:
        """Browsers say where a script or a form comes from: those of other sites are not served.

        With ``reads`` that holds for GET too, where one costs as much as another request.
        """
        if request.method in ("GET", "HEAD") and not reads:
            return
        origin = request.headers.get("origin", "")
        site = request.headers.get("sec-fetch-site", "")
        named = origin.partition("://")[2] or origin  # "null" has no host
        home = (request.headers.get("host", ""), self._public)
        foreign = site in _OTHER_SITES or (not site and origin and named not in home)
        if foreign and origin not in self._origins:
            raise Refusal(403, "foreign_origin", "scripts of other sites are not served")

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
