"""A server of OpenAI's batch interface: files, batches, and what was asked of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Reply = Callable[[dict[str, Any]], dict[str, Any]]


def say(text: str) -> dict[str, Any]:
    """The line of an answer, without its id."""
    message = {"role": "assistant", "content": text}
    body = {
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    }
    return {"response": {"status_code": 200, "body": body}, "error": None}


@dataclass
class BatchServer:
    """What it holds, and whom it tells of each step.

    ``looks`` is how often a batch is looked at before it ends; ``reply`` answers a request.
    ``asked`` counts the requests of batches that were created: each is paid for.
    """

    reply: Reply = lambda _: say("Answer: A")
    looks: int = 1
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    steps: list[str] = field(default_factory=list)
    called: int = 0
    watch: Callable[[str], None] = lambda _: None

    def note(self, step: str) -> None:
        self.steps.append(step)
        self.watch(step)

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        part = form["file"]
        assert isinstance(part, web.FileField)
        name = f"file-{len(self.files)}"
        self.files[name] = part.file.read()
        self.note("upload")
        return web.json_response({"id": name, "object": "file"})

    async def create(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        assert wanted["endpoint"] == "/v1/chat/completions"
        assert wanted["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[wanted["input_file_id"]].splitlines()]
        name = f"batch-{len(self.batches)}"
        self.batches[name] = {
            "id": name,
            "status": "in_progress",
            "metadata": wanted.get("metadata"),
            "left": self.looks,
            "lines": lines,
        }
        self.asked.update(line["custom_id"] for line in lines)
        self.note("create")
        return web.json_response(self.show(name))

    def show(self, name: str) -> dict[str, Any]:
        hidden = ("left", "lines")
        return {key: value for key, value in self.batches[name].items() if key not in hidden}

    async def look(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        batch = self.batches[name]
        self.note("look")
        batch["left"] -= 1
        if batch["left"] < 0 and batch["status"] == "in_progress":
            output = f"file-{len(self.files)}"
            answers = [
                {"custom_id": line["custom_id"], **self.reply(line)}
                for line in reversed(batch["lines"])
            ]
            self.files[output] = "\n".join(map(json.dumps, answers)).encode()
            batch |= {"status": "completed", "output_file_id": output}
        return web.json_response(self.show(name))

    async def list_all(self, _: web.Request) -> web.Response:
        self.note("list")
        rows = [self.show(name) for name in self.batches]
        return web.json_response({"object": "list", "data": rows, "has_more": False})

    async def download(self, request: web.Request) -> web.Response:
        self.note("download")
        return web.Response(body=self.files[request.match_info["name"]])

    async def call(self, _: web.Request) -> web.Response:
        self.called += 1
        return web.json_response({"error": {"message": "only batches"}}, status=400)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """The address while it is up."""
        app = web.Application(client_max_size=2**28)
        app.router.add_post("/v1/files", self.upload)
        app.router.add_get("/v1/files/{name}/content", self.download)
        app.router.add_post("/v1/batches", self.create)
        app.router.add_get("/v1/batches", self.list_all)
        app.router.add_get("/v1/batches/{name}", self.look)
        app.router.add_post("/v1/chat/completions", self.call)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            port = runner.addresses[0][1]
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            await runner.cleanup()
