"""Forms that browsers and programs send: read as UTF-8 alone, with few and short fields."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request

SECRET_BYTES = 4096  # the longest field of a form that carries a token or a password
TEXT_BYTES = 1024 * 1024
_NAMES = frozenset({"", "utf-8", "utf8"})


@asynccontextmanager
async def open_form(
    request: Request, *, files: int, fields: int, field_bytes: int = TEXT_BYTES
) -> AsyncIterator[FormData]:
    """The form of a request; its files are closed at the end.

    Starlette decodes a form with whatever codec of Python its header names, on the event loop, and
    some of them take quadratic time (punycode). So the header is read first, as Starlette reads it.
    """
    _, options = parse_options_header(request.headers.get("content-type"))
    _check_charset(options.get(b"charset", b"").decode("latin-1"))
    async with request.form(max_files=files, max_fields=fields, max_part_size=field_bytes) as form:
        named = form.get("_charset_", "")
        _check_charset(named if isinstance(named, str) else "a file")
        yield form


def _check_charset(name: str) -> None:
    if name.strip().lower() not in _NAMES:
        raise HTTPException(415, "forms are read as UTF-8 only; send no other charset")
