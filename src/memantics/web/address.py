"""Where an app listens, under which names it is called, and which proxies it believes."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from memantics.core.errors import InputError

BACKLOG = 512
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


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


def name_address(host: str, port: int, public_url: str = "") -> str:
    """Where to point a browser.

    >>> name_address("::1", 80), name_address("127.0.0.1", 80, "https://memes.example.org/")
    ('http://[::1]:80', 'https://memes.example.org')
    """
    if public_url:
        return public_url.rstrip("/")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def list_hosts(host: str, public_url: str = "") -> frozenset[str] | None:
    """The names by which a request may call an app; None: any.

    On this machine only, another site must not reach the app by pointing its own name at
    127.0.0.1, so only local names count.
    """
    if public_url:
        return frozenset({urlsplit(public_url).hostname or "", *LOOPBACK_NAMES})
    return frozenset(LOOPBACK_NAMES) if is_local(host) else None


def check_public_url(given: str) -> str:
    """The address that people use, refused where it is none."""
    if given and not given.startswith(("http://", "https://")):
        raise InputError(f"--public-url {given} is no address", hint="begin with https://")
    return given


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


def listen(host: str, port: int) -> socket.socket:
    """Take the port, so that a busy one is an error before anything else happens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Answers go out in two pieces; without this the second waits 40 ms for the first's receipt.
    taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        taken.bind((host, port))
        taken.listen(BACKLOG)  # who opens the link at once waits instead of being turned away
    except OSError as error:
        taken.close()
        busy = error.errno == errno.EADDRINUSE
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another --port" if busy else "check --host",
        ) from error
    return taken
