"""Client for the batch API of an OpenAI-compatible server, which is cheaper than single calls.

Requests are collected, uploaded as one file and answered together. Each step is logged before the
next, so that the same command resumes after an interruption:

=============  ===========================================================================
``written``    the request file is on disk; nothing was sent, and it may be dropped ``uploaded``
the server has the file; a batch for it may exist and is searched by name ``created``    the batch
has an id; the client waits for it ``collected``  the answers are on disk and are returned for
matching requests =============
===========================================================================

A request is identified by the hash of its content. A batch whose answers were all returned is
deleted when the model is closed, because its answers are then stored in run directories and in the
cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import aiohttp
import orjson
from aiohttp.payload import Payload
from yarl import URL

from memantics.core.errors import (
    InputError,
    ModelError,
    Rejected,
    StoreError,
    Transient,
    Unavailable,
)
from memantics.core.files import lock_folder, open_regular, read_regular, replace_file
from memantics.core.records import Reply, Request
from memantics.core.registry import home
from memantics.models.kinds import ModelSettings
from memantics.models.openai import (
    OpenAIModel,
    OpenAISettings,
    hide_key,
    judge_status,
    open_server,
    read_bounded,
)
from memantics.models.wire import decode_reply, encode_request, list_keys

BatchStep = Literal["written", "uploaded", "created", "collected"]
# OpenAI's limits for one batch file.
MOST_LINES, MOST_BYTES = 50_000, 190_000_000
ENDPOINT = "/v1/chat/completions"
_NAME = "memantics"
_LARGEST: Final = 2**30
# Servers delete batches that nobody fetched after thirty days (here in seconds); the client then
# drops them too.
_KEPT = 30 * 24 * 3600
_OVER = ("completed", "failed", "expired", "cancelled")


@dataclass(slots=True)
class _RequestBatch:
    """A batch of requests: its state, the server's ids, and the requests in it."""

    name: str
    step: BatchStep
    file: str = ""
    batch: str = ""
    covers: set[str] = field(default_factory=set)


class BatchModel(OpenAIModel):
    """A model on an OpenAI-compatible server, called in batches; single calls share its cache.

    At most ``at_once`` requests wait together. After ``quiet`` seconds without a new request a
    batch is sent. The interval between status checks grows from ``first`` to ``longest`` seconds.
    """

    at_once = 4096
    quiet, first, longest, patience = 1.0, 1.0, 60.0, 20

    def __init__(
        self, name: str, base_url: str, key: str = "", settings: OpenAISettings | None = None
    ) -> None:
        super().__init__(name, base_url, key, settings)
        digest = hashlib.sha256(orjson.dumps(self.identity, option=orjson.OPT_SORT_KEYS))
        self._folder = home() / "batches" / digest.hexdigest()[:16]
        self._batches: dict[str, _RequestBatch] = {}
        self._waiting: dict[str, list[asyncio.Future[bytes]]] = {}
        self._answers: dict[str, bytes] = {}
        self._pending: dict[str, bytes] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lock: Any = None

    async def answer(self, request: Request) -> Reply:
        """Wait for the batch with this request; add the request to the next batch if needed."""
        if self._task is None:
            self._begin()
        body = encode_request(self._model, request, self._wire)
        key = hashlib.sha256(body).hexdigest()
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        if key not in self._answers and not any(key in b.covers for b in self._batches.values()):
            self._pending[key] = body
        self._news.set()
        assert self._task is not None
        await asyncio.wait((future, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            self._task.result()  # raises the error that ended the batch
        return self._read(orjson.loads(future.result()), request)

    def _read(self, line: Mapping[str, Any], request: Request) -> Reply:
        response = line.get("response")
        if not isinstance(response, dict) or line.get("error"):
            error = line.get("error") or {}
            said = error.get("message") if isinstance(error, dict) else error
            raise Transient(f"the batch contains no answer: {said or 'no response'}"[:300])
        body = orjson.dumps(response.get("body"))
        if response.get("status_code") != 200:
            raise hide_key(
                judge_status(int(response.get("status_code") or 500), {}, body), self._key
            )
        return decode_reply(body, list_keys(request.form) if self._wire.top_logprobs else ())

    async def close(self) -> None:
        """Stop waiting; delete batches whose answers were all returned."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ModelError, StoreError):
                await self._task
            self._task = None
            for batch in list(self._batches.values()):
                if batch.step == "collected" and not batch.covers:
                    self._drop(batch)
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        await super().close()

    # Batches that are stored on disk.

    def _begin(self) -> None:
        """Resume the batches that an earlier process left unfinished."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock_folder(self._folder)
        for path in sorted(self._folder.glob("*.json")):
            known = orjson.loads(read_regular(path))
            batch = _RequestBatch(path.stem, known["step"], known["file"], known["batch"])
            if batch.step == "written" or time.time() - path.stat().st_mtime > _KEPT:
                self._drop(batch)
                continue
            self._batches[batch.name] = batch
            with open_regular(self._place(batch, "requests")) as lines:
                batch.covers = {orjson.loads(line)["custom_id"] for line in lines}
            if batch.step == "collected":
                self._take_answers(batch)
        self._task = asyncio.create_task(self._work())

    def _place(self, batch: _RequestBatch, kind: str) -> Path:
        return self._folder / f"{batch.name}.{kind}.jsonl"

    def _note(self, batch: _RequestBatch, step: BatchStep) -> None:
        """Log the state of a batch on disk."""
        batch.step = step
        known = {"step": step, "file": batch.file, "batch": batch.batch}
        replace_file(self._folder / f"{batch.name}.json", orjson.dumps(known), "batch")

    def _drop(self, batch: _RequestBatch) -> None:
        for path in (
            self._folder / f"{batch.name}.json",
            self._place(batch, "requests"),
            self._place(batch, "answers"),
        ):
            path.unlink(missing_ok=True)
        self._batches.pop(batch.name, None)

    def _take_answers(self, batch: _RequestBatch) -> None:
        """Load the answers of a batch; requests without an answer are sent again."""
        with open_regular(self._place(batch, "answers")) as lines:
            for line in lines:
                self._answers[orjson.loads(line)["custom_id"]] = line
        for key in batch.covers - self._answers.keys():
            self._answers[key] = orjson.dumps({"error": {"message": "it was not answered"}})

    def _hand_out(self) -> None:
        """Return each answer to one waiting caller; a later identical request is sent again."""
        for key in [key for key in self._waiting if key in self._answers]:
            futures = [future for future in self._waiting.pop(key) if not future.done()]
            if not futures:
                continue
            line = self._answers.pop(key)
            for batch in self._batches.values():
                batch.covers.discard(key)
            for future in futures:
                future.set_result(line)

    # Batches that are sent to the server.

    async def _work(self) -> None:
        tasks = [asyncio.create_task(self._follow(batch)) for batch in self._batches.values()]
        try:
            while True:
                self._hand_out()
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), self.quiet)
                    continue
                for task in [task for task in tasks if task.done()]:
                    tasks.remove(task)
                    task.result()
                self._hand_out()
                if self._pending:
                    tasks += [asyncio.create_task(self._follow(b)) for b in self._write_pending()]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _write_pending(self) -> Iterator[_RequestBatch]:
        """Write the waiting requests to batch files and yield these files."""
        lines: dict[str, bytes] = {}
        size = 0
        for key, body in [*self._pending.items(), ("", b"")]:
            head = orjson.dumps({"custom_id": key, "method": "POST", "url": ENDPOINT})
            line = head[:-1] + b',"body":' + body + b"}\n"
            if lines and (not key or len(lines) >= MOST_LINES or size + len(line) > MOST_BYTES):
                batch = _RequestBatch(secrets.token_hex(8), "written", covers=set(lines))
                replace_file(self._place(batch, "requests"), b"".join(lines.values()), "batch")
                self._note(batch, "written")
                self._batches[batch.name] = batch
                yield batch
                lines, size = {}, 0
            if key:
                lines[key], size = line, size + len(line)
        self._pending.clear()

    async def _follow(self, batch: _RequestBatch) -> None:
        """Process a batch from its current state until its answers have arrived."""
        if batch.step == "written":
            batch.file = await self._upload(batch)
            self._note(batch, "uploaded")
        if batch.step == "uploaded":
            batch.batch = await self._find_created(batch) or await self._create(batch)
            self._note(batch, "created")
        if batch.step == "created":
            ended = await self._wait(batch)
            await self._collect(batch, ended)
            self._note(batch, "collected")
            self._take_answers(batch)
            self._news.set()

    async def _upload(self, batch: _RequestBatch) -> str:
        data = read_regular(self._place(batch, "requests"))

        def make() -> Payload:
            form = aiohttp.FormData()
            form.add_field("purpose", "batch")
            name = f"{_NAME}-{batch.name}.jsonl"
            form.add_field("file", data, filename=name, content_type="application/jsonl")
            return form()

        return str((await self._call("POST", "files", make))["id"])

    async def _create(self, batch: _RequestBatch) -> str:
        body = {
            "input_file_id": batch.file,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {_NAME: batch.name},
        }
        return str((await self._call("POST", "batches", lambda: orjson.dumps(body)))["id"])

    async def _find_created(self, batch: _RequestBatch) -> str:
        """Return the batch that an earlier process created on the server but could not log."""
        after = ""
        while True:
            query = {"limit": "100"} | ({"after": after} if after else {})
            listed = await self._call("GET", "batches", query=query)
            rows = listed.get("data") or []
            for row in rows:
                if (row.get("metadata") or {}).get(_NAME) == batch.name:
                    return str(row["id"])
            if not rows or not listed.get("has_more"):
                return ""
            after = str(rows[-1]["id"])

    async def _wait(self, batch: _RequestBatch) -> Mapping[str, Any]:
        pause = self.first
        while True:
            found = await self._call("GET", f"batches/{batch.batch}")
            if found.get("status") in _OVER:
                return found
            await asyncio.sleep(pause)
            pause = min(self.longest, pause * 1.5)

    async def _collect(self, batch: _RequestBatch, ended: Mapping[str, Any]) -> None:
        """Store the answers of a batch and the errors of single requests."""
        files = [ended.get(name) for name in ("output_file_id", "error_file_id")]
        if not any(files) and ended.get("status") == "failed":
            self._drop(batch)
            said = orjson.dumps(ended.get("errors")).decode()[:300]
            raise Unavailable(
                f"the server refused batch {batch.batch}: {said}", hint="see the reason above"
            )
        parts = [await self._fetch(str(name)) for name in files if name]
        lines = [line for part in parts for line in part.splitlines() if line.strip()]
        replace_file(self._place(batch, "answers"), b"".join(line + b"\n" for line in lines))

    async def _fetch(self, name: str) -> bytes:
        return await self._send("GET", f"files/{name}/content", None, {})

    async def _call(
        self, method: str, path: str, make: Any = None, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        found = orjson.loads(await self._send(method, path, make, query or {}))
        if not isinstance(found, dict):
            raise Rejected(f"{path}: the server's reply is not a JSON object")
        return found

    async def _send(self, method: str, path: str, make: Any, query: Mapping[str, str]) -> bytes:
        """Call the batch API once; retry while the server is unreachable or busy."""
        base = self._url.parent.parent
        place = (URL(str(base)) / path).with_query({**self._url.query, **query})
        for number in range(self.patience):
            try:
                data = make() if make else None
                # A form sets its own content type; the session's default is JSON.
                kind = data.headers if isinstance(data, Payload) else {}
                async with self._open().request(
                    method, place, data=data, headers=kind, allow_redirects=False
                ) as response:
                    body = await read_bounded(response, _LARGEST)
                if response.status == 200:
                    return body
                raise hide_key(judge_status(response.status, response.headers, body), self._key)
            except (aiohttp.ClientError, OSError) as error:
                fault: ModelError = self._judge(error)
            except Transient as error:
                fault = error
            if not isinstance(fault, Transient):
                raise fault
            await asyncio.sleep(min(self.longest, self.first * 1.5**number))
        hint = "run the same command again: it resumes"
        raise Unavailable(f"{fault.what}: the batch API does not respond", hint=hint)


def open_batch(name: str, settings: ModelSettings) -> BatchModel:
    """Open a model on a server that is called in batches."""
    if settings.params.get("api") == "responses":
        raise InputError(
            "the batch API works with chat completions only",
            hint="leave out --param api=responses, or --batch",
        )
    return open_server(name, settings, BatchModel)
