"""The models that a server lists under ``/models``, and whether a name is one of them."""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
from collections.abc import Sequence

import aiohttp
import orjson
from yarl import URL

from memantics.core.errors import Unavailable

_MOST_NAMED = 8
_MOST_BYTES = 16 * 1024 * 1024


async def fetch_names(session: aiohttp.ClientSession, url: URL, seconds: float) -> list[str]:
    """The models that a server lists; none where it does not answer in time or lists nothing."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
        short = aiohttp.ClientTimeout(total=seconds)
        async with session.get(url, allow_redirects=False, timeout=short) as found:
            if found.status == 200:
                return read_listing(await found.content.read(_MOST_BYTES))
    return []


def match_name(name: str, listed: Sequence[str]) -> bool:
    """Whether a server that lists these models takes a name.

    Gateways list patterns, some servers a path or an owner before the name, and a part after a
    colon chooses a variant.

    >>> [match_name("qwen", told) for told in (["qwen"], ["qwen:latest"], ["models/qwen"], ["q*"])]
    [True, True, True, True]
    >>> match_name("qwen:free", ["qwen"]), match_name("qwen", ["qwen2"])
    (True, False)
    """
    for text in listed:
        same = {text, text.rpartition("/")[2], text.partition(":")[0]}
        if name in same or name.partition(":")[0] in same or fnmatch.fnmatchcase(name, text):
            return True
    return False


def read_listing(body: bytes) -> list[str]:
    """The names in the body of ``/models``; none where it is no such list.

    >>> read_listing(b'{"data": [{"id": "qwen"}]}'), read_listing(b"<html>")
    (['qwen'], [])
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    rows = value.get("data") if isinstance(value, dict) else value
    named = (row.get("id") for row in rows if isinstance(row, dict)) if type(rows) is list else ()
    return [name for name in named if isinstance(name, str)]


def refuse_name(name: str, server: str, listed: Sequence[str]) -> Unavailable:
    """The error for a name that a server does not list, with the nearest that it does.

    >>> str(refuse_name("qwen3", "localhost:8000", ["qwen2"]))[:67]
    "localhost:8000 has no model 'qwen3'; did you mean openai/qwen2? it "
    """
    close = difflib.get_close_matches(name, listed, n=1, cutoff=0.5)
    guess = f"did you mean openai/{close[0]}? " if close else ""
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return Unavailable(
        f"{server} has no model {name!r}",
        hint=f"{guess}it has: {', '.join(sorted(listed)[:_MOST_NAMED])}{more}"
        " (--param check_name=off asks all the same)",
    )
