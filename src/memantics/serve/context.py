"""What every request of the service can reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.requests import Request

from memantics.serve.engine import Engine
from memantics.serve.gate import Gate
from memantics.serve.inputs import ImageDoor
from memantics.serve.jobs import JobStore
from memantics.serve.metrics import Metrics
from memantics.serve.refusals import Refusal
from memantics.serve.runner import Runner
from memantics.serve.settings import ServeSettings


@dataclass(slots=True)
class Service:
    """The parts of a running service; ``runner`` lives while the application does."""

    settings: ServeSettings
    gate: Gate
    engine: Engine
    door: ImageDoor
    jobs: JobStore
    metrics: Metrics
    runner: Runner | None = None
    ready: bool = False

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """Give up after the time of a request; what it waits for is not worked on any more."""
        seconds = self.settings.bounds.deadline
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise Refusal(504, "deadline_exceeded", f"no answer within {seconds:g} s") from error


def find_service(request: Request) -> Service:
    """The service that a request came to."""
    service: Service = request.app.state.service
    return service
