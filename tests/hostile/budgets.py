"""Requests that cost a server much before it knows who sends them: heads, cookies, forms."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.hostile.cases import Case

KINDS = ("cookie", "head", "path", "form", "multipart", "pieces", "short")
SIZES = (1_000, 7_000, 9_000, 20_000, 60_000, 250_000)
COOKIES = ("\\", '\\"', "\\054", ";", "a=b;", '"\\', 'a="\\";')
FORMS = ("&", "a&", "a=b&", "%41", "+", "=", "&;", "_charset_=punycode&")
PARTS = (
    "\r\n",
    "\r\n--",
    "a: b\r\n",
    '--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n\r\n',
)


def generate(seed: int, count: int) -> Iterator[Case]:
    """Requests of every kind in turn."""
    chance = random.Random(seed)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        fills = {"cookie": COOKIES, "form": FORMS, "multipart": PARTS}.get(kind, ("a", "%00", "\\"))
        yield {
            "kind": kind,
            "fill": chance.choice(fills),
            "size": chance.choice(SIZES),
            "piece": chance.choice((1, 2, 7, 60)),
            "path": chance.choice(("/login", "/", "/v1/moderations", "/p/1/import", "/none")),
        }


def build(case: Case) -> bytes:
    """The bytes of the request that a case describes."""
    fill, size, path = str(case["fill"]), int(case["size"]), str(case["path"])
    text = (fill * (size // len(fill) + 1))[:size]
    kind = case["kind"]
    if kind == "cookie":
        return _head("GET", path, f'cookie: a="{text}"')
    if kind == "head":
        many = [f"x-{number}: {fill}" for number in range(size // 10)]
        return _head("GET", path, *many)
    if kind == "path":
        return _head("GET", f"{path}?q={text}")
    if kind == "pieces":
        length: int = case["piece"]
        body = (b"%x\r\n%s\r\n" % (length, b"a" * length)) * (size // length)
        return _head("POST", path, "transfer-encoding: chunked") + body + b"0\r\n\r\n"
    if kind == "short":  # a body that ends before its announced length
        return _head("POST", path, f"content-length: {10 * size}") + text.encode()
    media = "application/x-www-form-urlencoded"
    if kind == "multipart":
        media = "multipart/form-data; boundary=x"
    head = _head("POST", path, f"content-type: {media}", f"content-length: {len(text)}")
    return head + text.encode()


def _head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "host: localhost", *lines, "\r\n")).encode()
