"""How the web app is run: where it listens, its secret, its forms, who may reach it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import Request

from memantics.annotation.project_settings import LocalizedText
from memantics.core.errors import InputError, StoreError
from memantics.core.files import in_turn, refuse_unwritable
from memantics.web.server import list_hosts, server_url
from memantics.web.shell import Limits

SECRET = "MEMANTICS_SECRET"  # noqa: S105 - the name of a variable, not a secret
MIN_SECRET = 16
PORT = 8765


@dataclass(frozen=True, slots=True)
class WebSettings:
    """What the app needs to know about its surroundings.

    ``public_url`` is the address under which people reach it (behind a proxy, say); where it is
    https, cookies are sent over https only. ``contact`` is the well-being line on every page.
    ``trusted_proxies`` are the addresses whose ``X-Forwarded-For`` is believed. ``draft`` has the
    model called ``drafter`` draft a clarification of the guideline.
    """

    secret: bytes
    host: str = "127.0.0.1"
    port: int = PORT
    public_url: str = ""
    contact: str = ""
    demo: bool = False
    trusted_proxies: tuple[str, ...] = ()
    draft: Callable[[str], LocalizedText] | None = None
    drafter: str = ""

    @property
    def secure(self) -> bool:
        """Whether people reach the app over https."""
        return self.public_url.startswith("https://")

    @property
    def url(self) -> str:
        """Where to point a browser."""
        return server_url(self.host, self.port, self.public_url)

    @property
    def limits(self) -> Limits:
        """What the app lets in."""
        return Limits(
            list_hosts(self.host, self.public_url),
            self.secure,
            open_paths=frozenset({"/health"}),
            uploads=("/import", "/media"),
            secret_paths=("/join/", "/enter/"),
        )


def find_secret(
    open_to_others: bool, keep: Path, environment: Mapping[str, str] = os.environ
) -> bytes:
    """The secret from the environment; on this machine only, one of our own, kept in a file.

    >>> find_secret(True, Path("unused"), {})
    Traceback (most recent call last):
    memantics.core.errors.InputError: the app would be open to other machines and MEMANTICS_SECRET \
is not set; export MEMANTICS_SECRET with 16 or more random characters
    """
    given = environment.get(SECRET, "")
    if given:
        if len(given) < MIN_SECRET:
            raise InputError(
                f"{SECRET} has {len(given)} characters", hint=f"give {MIN_SECRET} or more"
            )
        return given.encode()
    if open_to_others:
        raise InputError(
            f"the app would be open to other machines and {SECRET} is not set",
            hint=f"export {SECRET} with {MIN_SECRET} or more random characters",
        )
    return _keep_secret(keep)


def _keep_secret(path: Path) -> bytes:
    """Read or make the secret of this machine: forms that are open survive a restart."""
    part = path.with_name(f"{path.name}.part")
    with refuse_unwritable(path, hint=""), in_turn(path.parent):
        if not path.exists():
            try:
                part.touch(mode=0o600)
                part.write_bytes(secrets.token_urlsafe(32).encode())
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
        kept = path.read_bytes().strip()
    if len(kept) < MIN_SECRET:
        raise StoreError(f"{path} is damaged", hint="delete it; a new one is made")
    return kept


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
