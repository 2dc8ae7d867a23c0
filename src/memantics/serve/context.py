"""Shared state of the running service, and its Prometheus metrics.

The metrics count requests, verdicts, queues, batches and jobs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request

from memantics.moderation import DailySample, Subject, Verdict
from memantics.serve.access import AccessControl
from memantics.serve.engine import Batcher, ServiceEngine
from memantics.serve.inputs import ImageLoader
from memantics.serve.jobs import JobStore, Runner
from memantics.serve.refusals import Refusal
from memantics.serve.settings import ServeSettings
from memantics.web.logs import note

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SCORES = tuple(step / 10 for step in range(1, 11))
_SIZES = (1, 2, 4, 8, 16, 32, 64)
_BANDS = {"harmless": "allow", "review": "review", "harmful": "block"}


class ServiceMetrics:
    """Prometheus metrics of a process; several processes write to one folder."""

    def __init__(self) -> None:
        self._own = CollectorRegistry()
        count = partial(Counter, registry=self._own)
        spread = partial(Histogram, registry=self._own)
        state = partial(Gauge, registry=self._own)
        self._requests = count(
            "memantics_requests", "Requests answered.", ("route", "method", "status")
        )
        self._seconds = spread(
            "memantics_request_seconds",
            "Duration of a request in seconds.",
            ("route",),
            buckets=_SECONDS,
        )
        words = "Verdicts by status and band: allow, review, block."
        self._verdicts = count("memantics_verdicts", words, ("status", "band"))
        self._scores = spread(
            "memantics_score", "Probability of harm, by detector.", ("detector",), buckets=_SCORES
        )
        words = "Verdicts by detector and status: scored, not scored, failed, out of domain."
        self._by_detector = count("memantics_detector_verdicts", words, ("detector", "status"))
        words = "Verdicts of the active and the shadow detector, and whether they agree."
        self._shadow = count("memantics_shadow", words, ("said", "shadow", "agree"))
        words = "Waiting items, by queue."
        self._waiting = state("memantics_waiting", words, ("queue",), multiprocess_mode="livesum")
        words = "Items per batch, by queue."
        self._batches = spread("memantics_batch_size", words, ("queue",), buckets=_SIZES)
        words = "Jobs, by status."
        self._jobs = state("memantics_jobs", words, ("status",), multiprocess_mode="mostrecent")
        self._seen: dict[tuple[str, str, int], Callable[[float], None]] = {}

    def count_request(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Count one answered request, by its route and never by its path."""
        route = getattr(scope.get("route"), "path", "unknown")
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE") else "other"
        key = (route, method, status)
        if key not in self._seen:
            counter = self._requests.labels(route, method, str(status))
            timed = self._seconds.labels(route)

            def count(spent: float) -> None:
                counter.inc()
                timed.observe(spent)

            self._seen[key] = count
        self._seen[key](seconds)

    def count_verdict(self, verdict: Verdict) -> None:
        """Count one verdict of a detector."""
        self._verdicts.labels(verdict.status, _BANDS[verdict.outcome or "review"]).inc()
        status = "out of domain" if verdict.out_of_domain else verdict.status
        self._by_detector.labels(verdict.detector, status).inc()
        if verdict.probability is not None:
            self._scores.labels(verdict.detector).observe(verdict.probability)

    def count_shadow(self, said: Verdict, other: Verdict) -> None:
        """Count whether the shadow detector (a second detector under test) agrees."""
        pair = (said.outcome or said.status, other.outcome or other.status)
        self._shadow.labels(*pair, str(pair[0] == pair[1]).lower()).inc()

    def watch(self, batcher: Batcher[Any, Any]) -> None:
        """Report the length of a queue."""
        sizes, waiting = self._batches.labels(batcher.name), self._waiting.labels(batcher.name)

        def see(size: int) -> None:
            sizes.observe(size)
            waiting.set(batcher.waiting)

        batcher.batches = see

    def show(self, jobs: dict[str, int]) -> bytes:
        """Return all metrics in the Prometheus format."""
        for status in ("queued", "running", "done", "failed", "cancelled"):
            self._jobs.labels(status).set(jobs.get(status, 0))
        registry = self._own
        if os.environ.get(FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


@dataclass(slots=True)
class Service:
    """The components of a running service; ``runner`` exists while the application runs."""

    settings: ServeSettings
    access: AccessControl
    engine: ServiceEngine
    loader: ImageLoader
    jobs: JobStore
    metrics: ServiceMetrics
    sample: DailySample | None = None
    runner: Runner | None = None
    ready: bool = False
    _shadowed: set[asyncio.Task[None]] = field(default_factory=set)

    def count(self, verdict: Verdict, *, store: bool = True) -> None:
        """Count a verdict; unless forbidden, add it to the daily sample with a set probability."""
        self.metrics.count_verdict(verdict)
        if self.sample is not None and store:
            try:
                self.sample.add(verdict)
            except OSError as error:  # a full disk must not fail a request
                note("sample not written", kind=type(error).__name__)

    def shadow(self, item: str | Subject, said: Verdict) -> None:
        """Score an item with the shadow detector after the response, and count agreement."""
        task = asyncio.create_task(self._compare(item, said))
        self._shadowed.add(task)
        task.add_done_callback(self._shadowed.discard)

    async def _compare(self, item: str | Subject, said: Verdict) -> None:
        assert self.engine.shadow is not None
        with suppress(Refusal):  # the queue is full, so the item is not counted
            (other,) = await self.engine.work(self.engine.shadow.judge, [item])
            self.metrics.count_shadow(said, other)

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """Cancel a request that exceeds its time limit, together with its pending work."""
        seconds = self.settings.bounds.deadline
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise Refusal(
                504, "deadline_exceeded", f"the request took more than {seconds:g} s"
            ) from error


def find_service(request: Request) -> Service:
    """Return the service of a request."""
    service: Service = request.app.state.service
    return service
