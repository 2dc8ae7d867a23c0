"""The limits of a request before its sender is known, the same for both web apps.

Anybody who reaches the port can send a request, so everything that happens before a token or a
session is checked has a limit: bytes of the head, of the cookies and of the body, connections per
address, and times. ``server`` applies the limits of connections, ``shell`` those of requests.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

AsgiScope = MutableMapping[str, Any]
KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE

# Request line and headers. The server reads pieces of this size, so that h11, which checks its
# limit between two pieces, never parses more than two of them as one head.
HEAD_BYTES = 16 * KILOBYTE
COOKIE_BYTES = 8 * KILOBYTE
# Maximum number of backslashes in a cookie. Python before the versions below needs quadratic time
# to decode them, and cookies of the two apps have none.
COOKIE_ESCAPES = 64
LOGIN_BYTES = 4 * KILOBYTE
FORM_BYTES = MEGABYTE
UPLOAD_BYTES = 64 * MEGABYTE
FLIGHT_BYTES = 256 * MEGABYTE
SMALL_BYTES = 64 * KILOBYTE
SECRET_BYTES = 4096  # maximum length of a form field that contains a token or a password
TEXT_BYTES = MEGABYTE  # maximum length of any other form field
# From this number of pieces on, the pieces of a body must have this mean length: each takes h11
# about 17 microseconds of the event loop, whatever its length.
FEW_PIECES, LEAST_PIECE = 1000, 64
# Bytes that are still read, and not kept, of a body whose request is already answered: a client
# that is cut off while it sends does not see the response.
LINGER_BYTES = UPLOAD_BYTES

HEAD_SECONDS = 20.0  # until the head of a request is complete
IDLE_SECONDS = 30  # between two requests of a connection
BODY_SECONDS = 60.0
TOTAL_SECONDS = 900.0  # from the head of a request to the end of its response
WRITE_SECONDS = 30.0
# Minimum number of response bytes that a client must read within WRITE_SECONDS.
LEAST_READ = 16 * KILOBYTE

# Requests above this number at once get status 503; from twice the number on, connections fail.
MOST_CONNECTIONS = 512
MOST_PER_ADDRESS = 128

# The first versions of Python without known faults in code that reads requests and detector files:
# cookies (CVE-2024-7592) and overlapping zip members (CVE-2024-0450). Later minor versions have no
# entry, since their first release is safe.
SAFE_PYTHON: Mapping[tuple[int, int], int] = {(3, 11): 10, (3, 12): 6}


@dataclass(frozen=True, slots=True)
class Limits:
    """Request limits of an app.

    ``hosts`` are the allowed Host names (None: any); ``open_paths`` accept any name. A path that
    begins with a key of ``bodies`` accepts that many bytes. Other paths that end with one of
    ``uploads`` accept ``upload_bytes``, and all others ``form_bytes``. A body must arrive within
    ``body_seconds``, and a request must be answered within ``total_seconds``, except paths that end
    with one of ``streams``. The bodies of all unanswered requests together are limited to
    ``flight_bytes``; small ones do not count. The rest of a path below ``secret_paths`` is not
    logged. Responses below ``program_paths`` are not shown as pages, so they get fewer security
    headers.
    """

    hosts: frozenset[str] | None
    secure: bool = False
    open_paths: frozenset[str] = frozenset()
    uploads: tuple[str, ...] = ()
    form_bytes: int = FORM_BYTES
    upload_bytes: int = UPLOAD_BYTES
    flight_bytes: int = FLIGHT_BYTES
    secret_paths: tuple[str, ...] = ()
    body_seconds: float = BODY_SECONDS
    program_paths: tuple[str, ...] = ()
    bodies: tuple[tuple[str, int], ...] = ()
    total_seconds: float = TOTAL_SECONDS
    streams: tuple[str, ...] = ()

    def find_body_bytes(self, path: str) -> int:
        """Return the maximum number of bytes of a request body.

        >>> Limits(None, uploads=("/import",), bodies=(("/login", 4096),)).find_body_bytes("/login")
        4096
        """
        for prefix, most in self.bodies:
            if path.startswith(prefix):
                return most
        return self.upload_bytes if path.endswith(self.uploads) else self.form_bytes


class Cut(Exception):
    """A request that is rejected before or while it is read, with the error response."""

    status: int
    text: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class TooLarge(Cut):
    """A request body that is longer than its route allows."""

    status, text = 413, b"This is larger than the page takes."


class TooMuch(Cut):
    """A request body that exceeds the total size limit of all current requests."""

    status, text = 503, b"Too much is being sent at once; try again in a moment."
    headers = ((b"retry-after", b"2"),)


class TooSlow(Cut):
    """A request body that did not arrive in time."""

    status, text = 408, b"The request took too long to arrive."


class TooLate(Cut):
    """A request that was not answered in time."""

    status, text = 504, b"The request took too long."


class HeadTooLarge(Cut):
    """A request whose URL and headers, or whose cookies, are too long."""

    status = 431
    text = (
        b"The URL, the headers or the cookies of this request are too long;"
        b" delete the cookies of this host."
    )


def check_head(scope: AsgiScope) -> None:
    r"""Raise :class:`HeadTooLarge` for a long head; remove cookies with many backslashes.

    >>> scope = {"headers": [(b"cookie", b'mine=1; evil="' + b"\\" * 100 + b'"')]}
    >>> check_head(scope)
    >>> scope["headers"]
    [(b'cookie', b'mine=1')]
    """
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    size = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
    size += sum(len(name) + len(value) + 4 for name, value in headers)
    if size > HEAD_BYTES:
        raise HeadTooLarge
    cookies = [value for name, value in headers if name == b"cookie"]
    if not cookies:
        return
    if sum(map(len, cookies)) > COOKIE_BYTES:
        raise HeadTooLarge
    if sum(value.count(b"\\") for value in cookies) > COOKIE_ESCAPES:
        scope["headers"] = [
            (name, _drop_escaped(value) if name == b"cookie" else value) for name, value in headers
        ]


def _drop_escaped(cookies: bytes) -> bytes:
    return b";".join(one for one in cookies.split(b";") if b"\\" not in one)


def name_network(host: str) -> str:
    """Return the key under which the connections of an address are counted.

    A client of IPv6 usually has a whole network of 64 bits.

    >>> name_network("192.0.2.7"), name_network("2001:db8::5"), name_network("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


def find_python_fault(version: Sequence[int] = tuple(sys.version_info[:3])) -> str:
    """Return why a version of Python should not serve requests of others; empty if it may.

    >>> find_python_fault((3, 11, 7))
    'Python 3.11.7 has known faults that attacks on web apps use; install 3.11.10 or later'
    >>> find_python_fault((3, 12, 6)), find_python_fault((3, 13, 0))
    ('', '')
    """
    major, minor, patch = version
    least = SAFE_PYTHON.get((major, minor), 0)
    if patch >= least:
        return ""
    return (
        f"Python {major}.{minor}.{patch} has known faults that attacks on web apps use;"
        f" install {major}.{minor}.{least} or later"
    )
