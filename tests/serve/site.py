"""The service in this process, on a port of its own, and clients of it."""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import httpx
import uvicorn

from memantics.core.samples import IMAGES
from memantics.serve.app import build_app
from memantics.serve.context import Service
from memantics.serve.settings import ServeSettings
from memantics.web.server import configure, listen

MEME = IMAGES / "CN90001.png"  # 最近有点键忘


@dataclass(frozen=True)
class Site:
    """A served application."""

    address: str
    service: Service

    def client(self, token: str = "", **headers: str) -> httpx.Client:
        given = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.address, headers=given | headers, timeout=120)

    def ended(self, location: str, token: str = "") -> dict[str, object]:
        """A job when it has ended."""
        with self.client(token) as client:
            for _ in range(1200):
                job: dict[str, object] = client.get(location).json()
                if job["status"] in ("done", "failed", "cancelled"):
                    return job
                time.sleep(0.1)
        raise AssertionError(job)


@contextmanager
def serving(settings: ServeSettings, home: Path) -> Iterator[Site]:
    """Serve until the block ends; requests in hand are finished."""
    with listen("127.0.0.1", 0) as taken:
        # Not longer: it would be the home of whatever else is set up in this process meanwhile.
        with mock.patch.dict(os.environ, {"MEMANTICS_HOME": str(home)}):
            app = build_app(settings)
        server = uvicorn.Server(configure(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        try:
            address = f"http://127.0.0.1:{taken.getsockname()[1]}"
            yield Site(address, app.state.service)
        finally:
            server.should_exit = True
            thread.join(60)


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


class Clock:
    """Time that stands still until a test moves it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now
