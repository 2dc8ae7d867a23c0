"""``local/PATH``: local models whose thread answers waiting requests in batches."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from memantics.core.errors import InputError, MemanticsError, ModelError, Rejected, Unavailable
from memantics.core.records import Image, Reply, Request
from memantics.models.local.runtime import (
    OutOfMemory,
    ReadyRequest,
    Runtime,
    resolve_device,
    resolve_dtype,
    shorten,
)
from memantics.models.local.settings import (
    LocalSettings,
    check_folder,
    check_packages,
    digest,
    find_versions,
)

# Time that the thread waits for one more request while its batch has room. The engine needs this
# time to write answers and to read the next items.
_LINGER = 0.02
_LOST = ("device-side assert", "CUDA error", "HIP error", "cuDNN error")


class Answering(Protocol):
    """The interface of a :class:`~memantics.models.local.runtime.Runtime`: it answers requests."""

    def prepare(self, request: Request) -> ReadyRequest:
        """Prepare a request for the model."""
        ...

    def generate(self, turns: Sequence[ReadyRequest], stop: Callable[[], bool]) -> list[Reply]:
        """Generate the answers of a batch of requests."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PendingRequest:
    """A waiting request and the future of its reply."""

    request: Request
    future: Future[Reply] = field(default_factory=Future)

    @property
    def sees(self) -> bool:
        """Whether the request has images; batches never mix requests with and without images."""
        parts = (part for message in self.request.messages for part in message.parts)
        return any(isinstance(part, Image) for part in parts)


class RequestBatcher:
    """Collects requests into batches; its thread loads the model at the first request.

    ``size`` is the maximum batch size. It is halved permanently when memory runs out.
    """

    def __init__(self, open_runtime: Callable[[], Answering], size: int) -> None:
        self.size = size
        self._open = open_runtime
        self._queue: queue.SimpleQueue[PendingRequest | None] = queue.SimpleQueue()
        self._waiting: list[PendingRequest] = []
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    def submit(self, request: Request) -> Future[Reply]:
        """Queue a request for the next batch."""
        job = PendingRequest(request)
        with self._guard:
            if self._closing.is_set():
                raise Unavailable("the model is closed")
            if self._thread is None:
                # The thread is a daemon, so that an interrupted command does not wait for a long
                # answer.
                self._thread = threading.Thread(target=self._run, name="local-model", daemon=True)
                self._thread.start()
            self._queue.put(job)
        return job.future

    def close(self) -> None:
        """Stop generating and end the thread; cancel waiting requests."""
        with self._guard:
            self._closing.set()
            self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            runtime = self._open()
        except MemanticsError as error:
            self._fail_all(error)
            return
        except Exception as error:  # noqa: BLE001 - a thread must not die with promises open
            self._fail_all(Unavailable(f"the model cannot be opened: {shorten(error)}"))
            return
        while batch := self._collect():
            self._answer(runtime, batch)
        while not self._queue.empty():
            self._take(self._queue.get())
        for job in self._waiting:
            job.future.cancel()

    def _fail_all(self, error: MemanticsError) -> None:
        """Fail all current and future requests with the same error."""
        while (job := self._queue.get()) is not None:
            _fail(job, error)

    def _collect(self) -> list[PendingRequest]:
        """Return the next batch: the oldest request and similar ones; empty when closed."""
        if not self._waiting:
            self._take(self._queue.get())
        first = self._waiting[0].sees if self._waiting else False
        while not self._closing.is_set() and self._count(first) < self.size:
            try:
                self._take(self._queue.get(timeout=_LINGER))
            except queue.Empty:
                break
        if self._closing.is_set():
            return []
        batch = [job for job in self._waiting if job.sees == first][: self.size]
        chosen = set(map(id, batch))
        self._waiting = [job for job in self._waiting if id(job) not in chosen]
        return batch

    def _take(self, job: PendingRequest | None) -> None:
        if job is not None:
            self._waiting.append(job)

    def _count(self, sees: bool) -> int:
        return sum(job.sees == sees for job in self._waiting)

    def _answer(self, runtime: Answering, batch: list[PendingRequest]) -> None:
        ready: list[tuple[PendingRequest, ReadyRequest]] = []
        for job in batch:
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                ready.append((job, runtime.prepare(job.request)))
            except MemanticsError as error:
                _fail(job, error)
            except Exception as error:  # noqa: BLE001 - one strange request is no reason to stop
                _fail(job, Rejected(f"the request cannot be prepared: {shorten(error)}"))
        if ready:
            self._generate(runtime, ready)

    def _generate(
        self, runtime: Answering, ready: list[tuple[PendingRequest, ReadyRequest]]
    ) -> None:
        """Answer a batch; on failure, split it in halves down to the failing request."""
        try:
            replies = runtime.generate([turn for _, turn in ready], self._closing.is_set)
        except OutOfMemory:
            self.size = max(1, len(ready) // 2)
            fault: MemanticsError = Rejected(
                "out of memory, even with this request alone",
                hint="use --param max_pixels=500000, a smaller max_tokens or dtype=bfloat16",
            )
        except (ModelError, InputError) as error:
            fault = error
        except Exception as error:  # noqa: BLE001 - models fail in a hundred ways
            fault = _judge(error)
        else:
            for (job, _), reply in zip(ready, replies, strict=True):
                _settle(job, reply)
            return
        if len(ready) == 1 or isinstance(fault, Unavailable):
            for job, _ in ready:
                _fail(job, fault)
            return
        middle = len(ready) // 2
        self._generate(runtime, ready[:middle])
        self._generate(runtime, ready[middle:])


def _judge(error: Exception) -> MemanticsError:
    words = shorten(error)
    if any(mark in str(error) for mark in _LOST):
        return Unavailable(f"the GPU failed: {words}", hint="run the same command again")
    return Rejected(f"the model failed on this request: {type(error).__name__}: {words}")


def _settle(job: PendingRequest, reply: Reply) -> None:
    with contextlib.suppress(RuntimeError):  # The event loop that waited for the reply is closed.
        job.future.set_result(reply)


def _fail(job: PendingRequest, error: MemanticsError) -> None:
    if job.future.running() or job.future.set_running_or_notify_cancel():
        with contextlib.suppress(RuntimeError):
            job.future.set_exception(error)


DEFAULT_SETTINGS = LocalSettings()


class LocalModel:
    """An open-weights model in a local folder. Weights are loaded at the first request.

    The JSON schema of a request is not enforced during decoding: only the prompt asks for the
    format.
    """

    note = ""
    cacheable = True

    def __init__(self, name: str, settings: LocalSettings = DEFAULT_SETTINGS) -> None:
        check_packages()
        self._folder = check_folder(Path(name.removeprefix("local/")).expanduser())
        self.name = name
        self._settings = settings
        self._batcher = RequestBatcher(lambda: Runtime(self._folder, settings), settings.batch)

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The hash of the checkpoint, the runtime and the decoding settings; not the folder's path.

        The batch size is not included: batches form at random and change answers by rounding only.
        """
        return self._identity

    @cached_property
    def _identity(self) -> dict[str, JsonValue]:
        settings = self._settings
        device = resolve_device(settings.device)
        return {
            "kind": "local",
            "checkpoint": digest(self._folder),
            "versions": find_versions(),
            "device": device.partition(":")[0],
            "dtype": resolve_dtype(settings.dtype, device),
            "attn": settings.attn,
            "max_tokens": settings.max_tokens,
            "max_pixels": settings.max_pixels,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "top_k": settings.top_k,
            "repetition_penalty": settings.repetition_penalty,
            "trust_remote_code": settings.trust_remote_code,
            "template": dict(settings.template),
        }

    async def answer(self, request: Request) -> Reply:
        """Answer one request, in a batch with other waiting requests."""
        return await asyncio.wrap_future(self._batcher.submit(request))

    async def close(self) -> None:
        """Stop the thread and free the weights."""
        await asyncio.to_thread(self._batcher.close)
