"""Settings of the web app: address, secret, form tokens and limits."""

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
from memantics.web.budget import LOGIN_BYTES, Limits
from memantics.web.server import list_hosts, server_url

SECRET = "MEMANTICS_SECRET"  # noqa: S105 - the name of a variable, not a secret
MIN_SECRET = 16
PORT = 8765


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Settings that depend on where the app runs.

    ``public_url`` is the URL under which people reach the app, for example behind a proxy. With
    https, cookies are sent over https only. ``contact`` is the support contact on every page.
    ``X-Forwarded-For`` is used only from ``trusted_proxies``. ``draft`` lets the model ``drafter``
    draft guideline rules.
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
        """Return whether the app is reached over https."""
        return self.public_url.startswith("https://")

    @property
    def url(self) -> str:
        """Return the URL of the app."""
        return server_url(self.host, self.port, self.public_url)

    @property
    def limits(self) -> Limits:
        """Return the request limits of the app."""
        return Limits(
            list_hosts(self.host, self.public_url),
            self.secure,
            open_paths=frozenset({"/health"}),
            uploads=("/import", "/media"),
            secret_paths=("/join/", "/enter/"),
            bodies=(
                *((path, LOGIN_BYTES) for path in ("/login", "/logout", "/enter/")),
                ("/join/", 2 * LOGIN_BYTES),
            ),
        )


def find_secret(
    open_to_others: bool, keep: Path, environment: Mapping[str, str] = os.environ
) -> bytes:
    """Return the secret from the environment, or a local one if the app is not public.

    >>> find_secret(True, Path("unused"), {})
    Traceback (most recent call last):
    memantics.core.errors.InputError: MEMANTICS_SECRET is not set, but other machines can \
reach the app; set it to 16 or more random characters
    """
    given = environment.get(SECRET, "")
    if given:
        if len(given) < MIN_SECRET:
            raise InputError(
                f"{SECRET} has only {len(given)} characters", hint=f"use {MIN_SECRET} or more"
            )
        return given.encode()
    if open_to_others:
        raise InputError(
            f"{SECRET} is not set, but other machines can reach the app",
            hint=f"set it to {MIN_SECRET} or more random characters",
        )
    return _keep_secret(keep)


def _keep_secret(path: Path) -> bytes:
    """Read or create the secret file of this machine, so that forms survive a restart."""
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
        raise StoreError(f"{path} is damaged", hint="delete it; the app creates a new one")
    return kept


SAFE_SITES = frozenset({"same-origin", "none"})


def make_form_token(secret: bytes, seed: str) -> str:
    """Return the form token of a session; other sites can neither read nor guess it.

    >>> make_form_token(b"s", "a") == make_form_token(b"s", "a")
    True
    >>> make_form_token(b"s", "a") == make_form_token(b"s", "b")
    False
    """
    return hmac.new(secret, b"form:" + seed.encode(), hashlib.sha256).hexdigest()


def is_own_form(request: Request, settings: WebSettings, seed: str, given: str) -> bool:
    """Return whether a post has a valid form token and comes from this site."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in SAFE_SITES:
        return False
    origin = request.headers.get("origin")
    # Behind a proxy, the host name may differ from the public URL.
    ours = {request.headers.get("host", ""), urlsplit(settings.public_url).netloc}
    if origin is not None and (origin.partition("://")[2] or "-") not in ours:
        return False
    return bool(seed) and hmac.compare_digest(
        make_form_token(settings.secret, seed).encode(), given.encode("utf-8", "replace")
    )


def make_seed() -> str:
    """Return a random value for the guest cookie."""
    return secrets.token_urlsafe(24)
