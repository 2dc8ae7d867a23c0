"""What every request of the service can reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from starlette.requests import Request

from memantics.actions.detect import Subject, Verdict
from memantics.actions.drift import DailySample
from memantics.serve.engine import Engine
from memantics.serve.gate import Gate
from memantics.serve.inputs import ImageDoor
from memantics.serve.jobs import JobStore
from memantics.serve.metrics import Metrics
from memantics.serve.refusals import Refusal
from memantics.serve.runner import Runner
from memantics.serve.settings import ServeSettings
from memantics.web.logs import note


@dataclass(slots=True)
class Service:
    """The parts of a running service; ``runner`` lives while the application does."""

    settings: ServeSettings
    gate: Gate
    engine: Engine
    door: ImageDoor
    jobs: JobStore
    metrics: Metrics
    sample: DailySample | None = None
    runner: Runner | None = None
    ready: bool = False
    _shadowed: set[asyncio.Task[None]] = field(default_factory=set)

    def count(self, verdict: Verdict) -> None:
        """Count a verdict, and keep it by chance for the sample of its day."""
        self.metrics.count_verdict(verdict)
        if self.sample is not None:
            try:
                self.sample.add(verdict)
            except OSError as error:  # a full disk ends no request
                note("sample not written", kind=type(error).__name__)

    def shadow(self, item: str | Subject, said: Verdict) -> None:
        """Judge by the detector in the shadow after the answer, and count whether both agree."""
        task = asyncio.create_task(self._compare(item, said))
        self._shadowed.add(task)
        task.add_done_callback(self._shadowed.discard)

    async def _compare(self, item: str | Subject, said: Verdict) -> None:
        assert self.engine.shadow is not None
        with suppress(Refusal):  # too much other work waits: it is not counted
            (other,) = await self.engine.work(self.engine.shadow.judge, [item])
            self.metrics.count_shadow(said, other)

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
