"""A loopback server that costs as little as possible: one answer, built beforehand.

``python -m perf.server`` prints its port and serves until its standard input closes. Each answer
waits a little, so that as many calls are in flight as a client allows.
"""

from __future__ import annotations

import asyncio
import sys

import orjson

DELAY = 0.01
_BODY = orjson.dumps(
    {
        "id": "chatcmpl-perf",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "perf",
        "data": [{"id": "perf", "object": "model"}],  # what /v1/models is read for
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "The answer is B."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 6, "total_tokens": 906},
    }
)
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY)
) + _BODY


class _Chat(asyncio.Protocol):
    """Reads a request by its length, forgets it, and answers."""

    def __init__(self) -> None:
        self._head = b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            self._head += data
            head, end, body = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            lines = head.lower().split(b"\r\n")
            lengths = [int(line[15:]) for line in lines if line.startswith(b"content-length:")]
            self._missing = sum(lengths) - len(body)  # none in a GET: a client looks at /v1/models
            self._head = b""
        else:
            self._missing -= len(data)
        if self._missing == 0:
            asyncio.get_running_loop().call_later(DELAY, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_ANSWER)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Chat, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
