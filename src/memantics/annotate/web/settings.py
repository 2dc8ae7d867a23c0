"""How the web app is run: where it listens, its secret, its forms, who may reach it."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import Request

from memantics.core.errors import InputError, StoreError

SECRET = "MEMANTICS_SECRET"  # noqa: S105 - the name of a variable, not a secret
MIN_SECRET = 16
PORT = 8765
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class WebSettings:
    """What the app needs to know about its surroundings.

    ``public_url`` is the address under which people reach it (behind a proxy, say); where it is
    https, cookies are sent over https only. ``contact`` is the well-being line on every page.
    ``trusted_proxies`` are the addresses whose ``X-Forwarded-For`` is believed.
    """

    secret: bytes
    host: str = "127.0.0.1"
    port: int = PORT
    public_url: str = ""
    contact: str = ""
    demo: bool = False
    trusted_proxies: tuple[str, ...] = ()

    @property
    def secure(self) -> bool:
        """Whether people reach the app over https."""
        return self.public_url.startswith("https://")

    @property
    def address(self) -> str:
        """Where to point a browser."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def hosts(self) -> frozenset[str] | None:
        """The names by which a request may call us; None: any.

        On this machine only, another site must not reach the app by pointing its own name at
        127.0.0.1, so only local names count.
        """
        if self.public_url:
            return frozenset({urlsplit(self.public_url).hostname or "", *LOOPBACK_NAMES})
        return frozenset(LOOPBACK_NAMES) if is_local(self.host) else None


def is_local(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0"), is_local("::1")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_proxies(given: Iterable[str]) -> tuple[str, ...]:
    """Addresses and networks of proxies, checked.

    >>> read_proxies(["10.0.0.7", "192.168.1.0/24"])
    ('10.0.0.7/32', '192.168.1.0/24')
    """
    found = []
    for text in given:
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            raise InputError(
                f"--trusted-proxy {text} is no address", hint="such as 10.0.0.7 or 10.0.0.0/24"
            ) from error
        if network.prefixlen == 0:
            raise InputError(f"--trusted-proxy {text} trusts everybody", hint="name your proxy")
        found.append(str(network))
    return tuple(found)


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            kept = path.read_bytes().strip()
            if len(kept) >= MIN_SECRET:
                return kept
            raise StoreError(f"{path} is damaged", hint="delete it; a new one is made") from None
        with os.fdopen(handle, "wb") as file:
            made = secrets.token_urlsafe(32).encode()
            file.write(made)
        return made
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error


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
