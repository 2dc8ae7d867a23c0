"""OpenAI's Responses API, checked with the types of OpenAI's own SDK."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from memantics.core.errors import InputError, Rejected, Transient
from memantics.core.images import DEFAULT_BOUNDS
from memantics.core.records import Form, Image, Message, Request, Sampling
from memantics.core.samples import IMAGES
from memantics.models.batch import open_batch
from memantics.models.kinds import ModelSettings
from memantics.models.openai import OpenAIModel, OpenAISettings
from memantics.models.responses import decode_response, encode_response_request
from memantics.models.wire import WireSettings

PARAMS: TypeAdapter[Any] = TypeAdapter(ResponseCreateParamsNonStreaming)
IMAGE = IMAGES / "CN90001.png"
SCHEMA: Any = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}}
WIRE = WireSettings(api="responses", reasoning_effort="low", answer_tokens=50, top_logprobs=5)


def make_request(path: Path = IMAGE) -> Request:
    messages = (
        Message("system", ("Answer in JSON.",)),
        Message("user", (Image(path), "What is this?")),
        Message("assistant", ("A meme.", "A pun.")),
        Message("user", ("And now?",)),
    )
    return Request(messages, Form("", ()), schema=SCHEMA, sampling=Sampling(temperature=0.5))


def make_response(**fields: object) -> dict[str, Any]:
    """A response as the SDK of OpenAI describes it."""
    step = {"token": "B", "bytes": [66], "logprob": -0.1}
    top = [step, {"token": "A", "bytes": [65], "logprob": -2.5}]
    text = {
        "type": "output_text",
        "text": "B",
        "annotations": [],
        "logprobs": [step | {"top_logprobs": top}],
    }
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "status": "completed",
        "model": "m-2026",
        "output": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "a or b?"}],
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            },
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 29,
        },
    } | fields
    Response.model_validate(body)
    return body


def test_requests_are_those_of_the_sdk() -> None:
    body = json.loads(encode_response_request("m", make_request(), WIRE, DEFAULT_BOUNDS))
    PARAMS.validate_python(body, strict=False)
    assert (body["store"], body["max_output_tokens"], body["temperature"]) == (False, 50, 0.5)
    assert body["reasoning"] == {"effort": "low"}
    assert body["text"]["format"]["type"] == "json_schema"
    assert body["text"]["format"]["name"] == "answer"
    assert body["text"]["format"]["schema"]["properties"] == {"a": {"type": "string"}}
    kinds = [
        [part["type"] for part in one["content"]] if isinstance(one["content"], list) else "text"
        for one in body["input"]
    ]
    assert kinds == ["text", ["input_image", "input_text"], "text", "text"]
    url = body["input"][1]["content"][0]["image_url"]
    assert url.startswith("data:image/png;base64,iVBOR")
    plain = json.loads(encode_response_request("m", make_request(), WireSettings()))
    assert not {"top_logprobs", "include", "reasoning", "seed", "messages"} & plain.keys()


def test_responses_are_read() -> None:
    reply = decode_response(json.dumps(make_response()).encode(), ("A", "B"))
    assert (reply.text, reply.reasoning, reply.finish, reply.refusal) == (
        "B",
        "a or b?",
        "stop",
        "",
    )
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_thought) == (20, 9, 4)
    assert reply.served_by == "m-2026"
    assert reply.masses is not None
    assert reply.masses["B"] > reply.masses["A"] > 0


@pytest.mark.parametrize(
    ("reason", "finish", "refused"),
    [("max_output_tokens", "length", False), ("content_filter", "content_filter", True)],
)
def test_incomplete_responses_say_why(reason: str, finish: str, refused: bool) -> None:
    body = make_response(status="incomplete", incomplete_details={"reason": reason}, output=[])
    reply = decode_response(json.dumps(body).encode())
    assert (reply.text, reply.finish, bool(reply.refusal)) == ("", finish, refused)


def test_a_refusal_is_no_text() -> None:
    content = [{"type": "refusal", "refusal": "I cannot help."}]
    message = {
        "type": "message", "id": "m", "role": "assistant", "status": "completed",
        "content": content,
    }  # fmt: skip
    reply = decode_response(json.dumps(make_response(output=[message])).encode())
    assert (reply.text, reply.refusal) == ("", "I cannot help.")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"output": 3}',
        b'{"output": []}',
        b'{"output": [], "error": {"code": "server_error", "message": "busy"}}',
        b'{"output": [{"type": "message", "content": [{"text": "\\ud83d"}]}], "status": "failed"}',
    ],
)
def test_damaged_responses_are_asked_again(body: bytes) -> None:
    with pytest.raises(Transient):
        decode_response(body)


def test_a_server_with_only_this_api_is_asked() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    async def respond(request: web.Request) -> web.Response:
        body = await request.json()
        seen.append((request.path, body))
        if "text" in body:
            message = "Unsupported parameter: text.format"
            return web.json_response({"error": {"message": message}}, status=400)
        return web.json_response(make_response())

    async def talk() -> None:
        app = web.Application()
        app.router.add_post("/v1/responses", respond)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        settings = OpenAISettings(wire=WireSettings(api="responses"))
        model = OpenAIModel("m", f"http://127.0.0.1:{port}/v1", settings=settings)
        chat = OpenAIModel("m", f"http://127.0.0.1:{port}/v1")
        try:
            reply = await model.answer(make_request())
            assert reply.text == "B"
            with pytest.raises((Rejected, Exception), match="404"):
                await chat.answer(make_request())
        finally:
            await model.close()
            await chat.close()
            await runner.cleanup()

    asyncio.run(talk())
    assert [path for path, _ in seen] == ["/v1/responses"] * 2  # again without the schema


def test_the_api_is_part_of_the_identity_and_batches_refuse_it() -> None:
    assert "api" not in WireSettings().describe()
    assert WireSettings(api="responses").describe()["api"] == "responses"
    with pytest.raises(InputError, match="chat completions"):
        open_batch("openai/m", ModelSettings(params={"api": "responses"}))
