"""Images from other hosts: only from those that the operator named, and only public ones.

The resolver itself refuses addresses of this machine and of private networks, so that the address
that was checked is the address that is connected to, whatever the name says a moment later.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from memantics.serve.refusals import Refusal

Lookup = Callable[[str, int], Awaitable[list[str]]]
_SECONDS = 10.0
_PORTS = {"http": 80, "https": 443}


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet.

    >>> [is_public(a) for a in ("93.184.216.34", "127.0.0.1", "10.1.2.3", "169.254.169.254", "::1")]
    [True, False, False, False, False]
    >>> is_public("::ffff:127.0.0.1"), is_public("fd00::1"), is_public("64:ff9b::7f00:1")
    (False, False, False)
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        # Addresses that carry another one: it may be private. Site-local ones count as global.
        if found.ipv4_mapped or found.sixtofour or found.teredo or found.is_site_local:
            return False
        if found in ipaddress.ip_network("64:ff9b::/96"):
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PublicResolver(AbstractResolver):
    """Resolves names to public addresses; one that is not public refuses them all."""

    def __init__(self, lookup: Lookup = look_up, allow: Callable[[str], bool] = is_public) -> None:
        self._lookup, self._allow = lookup, allow

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - aiohttp's interface
    ) -> list[ResolveResult]:
        """The addresses to connect to."""
        try:
            found = await self._lookup(host, port)
        except OSError as error:
            raise Refusal(422, "invalid_image_url", f"{host} is not known") from error
        if not found or not all(map(self._allow, found)):
            raise Refusal(422, "invalid_image_url", f"{host} has an address that is not public")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
        ]

    async def close(self) -> None:
        """Nothing is held."""


class ImageFetcher:
    """Fetches images from allowed hosts (``name`` or ``name:port``)."""

    def __init__(
        self, hosts: tuple[str, ...], most: int, resolver: PublicResolver | None = None
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._most = most
        self._resolver = resolver or PublicResolver()

    async def fetch(self, url: str) -> bytes:
        """The bytes at an address, or a refusal that says why not."""
        self._check(url)
        connector = aiohttp.TCPConnector(resolver=self._resolver, use_dns_cache=False)
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector, timeout=timeout, trust_env=False, auto_decompress=False
                ) as session,
                session.get(url, allow_redirects=False) as reply,
            ):
                if reply.status != 200:
                    raise Refusal(422, "invalid_image_url", f"it answered {reply.status}, not 200")
                data = bytearray()
                async for piece in reply.content.iter_chunked(1 << 16):
                    data += piece
                    if len(data) > self._most:
                        raise Refusal(413, "invalid_image", f"more than {self._most:,} bytes")
                return bytes(data)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            refusal = error.__cause__ if isinstance(error.__cause__, Refusal) else None
            raise refusal or Refusal(
                422, "invalid_image_url", f"it could not be fetched: {type(error).__name__}"
            ) from error

    def _check(self, url: str) -> None:
        if not self._hosts:
            raise Refusal(
                422, "invalid_image_url", "no address is fetched here; send a data: URL instead"
            )
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            raise Refusal(422, "invalid_image_url", "this is no address") from None
        if parts.scheme not in _PORTS or parts.username is not None or not host:
            raise Refusal(422, "invalid_image_url", "only plain http and https are fetched")
        named = host if port in (None, _PORTS[parts.scheme]) else f"{host}:{port}"
        # aiohttp does not ask a resolver about numbers.
        if named not in self._hosts or _is_number(host):
            raise Refusal(422, "invalid_image_url", f"images of {host} are not fetched here")


def _is_number(host: str) -> bool:
    """Whether a host is an address, in any way of writing that sockets understand."""
    try:
        socket.inet_aton(host)
    except OSError:
        return ":" in host
    return True
