from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from memantics.core.errors import (
    ImageError,
    InputError,
    MissingExtra,
    ModelError,
    Refused,
    Rejected,
    Transient,
    Unavailable,
)
from memantics.core.model import Model
from memantics.core.records import Form, Image, Message, Reply, Request, Sampling
from memantics.models.inspect import InspectModel, translate
from tests.models.forms import INTENT, draw

needs_inspect = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None,
    reason="inspect-ai is not installed (extra inspect)",
)
# Inspect calls its retry library in a way that library has deprecated.
quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def request_with(*parts: str | Image, schema: Any = None, sampling: Any = None) -> Request:
    messages = (Message("system", ("Be brief.",)), Message("user", parts))
    form: Form = INTENT
    return Request(messages, form, sampling or Sampling(), schema)


def answer(outputs: Any, request: Request) -> Reply:
    async def run() -> Reply:
        model = InspectModel("inspect/mockllm/model", custom_outputs=outputs)
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(run())


def output(text: str, **changes: Any) -> Any:
    from inspect_ai.model import ModelOutput, ModelUsage

    made = ModelOutput.from_content("mock-1", text, **changes)
    made.usage = ModelUsage(input_tokens=7, output_tokens=3, input_tokens_cache_read=5)
    return made


@needs_inspect
@quiet
def test_messages_images_and_settings_arrive_and_the_reply_comes_back(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def serve(messages: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        seen.update(messages=messages, config=config)
        return output("a calm meme")

    path = draw(tmp_path / "meme.png", "HELLO")
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    sampling = Sampling(temperature=0.5, max_tokens=64, seed=9)
    reply = answer(serve, request_with(Image(path), "Why?", schema=schema, sampling=sampling))

    assert reply == Reply(
        "a calm meme", finish="stop", tokens_in=12, tokens_out=3, served_by="mock-1"
    )
    system, user = seen["messages"]
    assert (system.role, user.role, system.text) == ("system", "user", "Be brief.")
    assert user.content[0].image.startswith("data:image/png;base64,")
    assert user.content[1].text == "Why?"
    config = seen["config"]
    assert (config.temperature, config.max_tokens, config.seed) == (0.5, 64, 9)
    assert (config.max_retries, config.adaptive_connections, config.cache) == (0, False, False)
    assert config.response_schema.json_schema.required == ["a"]
    assert config.response_schema.strict is True


@needs_inspect
@quiet
def test_filtered_and_cut_replies_are_marked() -> None:
    filtered = answer([output("I cannot", stop_reason="content_filter")], request_with("?"))
    assert filtered.refusal == "I cannot"
    cut = answer([output("half", stop_reason="max_tokens")], request_with("?"))
    assert (cut.finish, cut.refusal) == ("length", "")


@needs_inspect
@quiet
def test_a_failing_call_is_made_once_and_translated() -> None:
    calls: list[int] = []

    class Busy(Exception):
        status_code = 429

    def serve(*_: Any) -> Any:
        calls.append(1)
        raise Busy("slow down")

    with pytest.raises(Transient, match="slow down") as error:
        answer(serve, request_with("?"))
    assert error.value.overloaded
    assert len(calls) == 1


@needs_inspect
@quiet
def test_unknown_provider_and_bad_image(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="inspect/nosuch/x cannot be opened"):
        asyncio.run(InspectModel("inspect/nosuch/x").answer(request_with("?")))
    with pytest.raises(ImageError, match=r"gone\.png: missing"):
        answer([output("x")], request_with(Image(tmp_path / "gone.png")))


@needs_inspect
def test_protocol_and_identity_without_secrets() -> None:
    model: Model = InspectModel("inspect/mockllm/model", api_key="hush")
    assert isinstance(model, Model)
    assert (model.name, model.cacheable) == ("inspect/mockllm/model", True)
    assert "hush" not in repr(model.identity)


@needs_inspect
@pytest.mark.parametrize("name", ["inspect/", "inspect/openai", "inspect/openai/"])
def test_incomplete_names_say_how_to_write_them(name: str) -> None:
    with pytest.raises(InputError, match="has no provider or no name"):
        InspectModel(name)


def test_absent_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memantics.core.errors.find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match="need an optional package"):
        InspectModel("inspect/mockllm/model")


class Served(Exception):
    def __init__(self, status: int, message: str = "m") -> None:
        self.status_code = status
        super().__init__(message)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Served(401), Unavailable),
        (Served(404), Unavailable),
        (Served(408), Transient),
        (Served(529), Transient),
        (Served(500), Transient),
        (Served(400), Rejected),
        (Served(400, "blocked by content_filter"), Refused),
        (ConnectionResetError("cut"), Transient),
        (TimeoutError("slow"), Transient),
        (ExceptionGroup("many", [Served(503)]), Transient),
        (ValueError("odd"), Rejected),
    ],
)
def test_translation(error: Exception, kind: type[ModelError]) -> None:
    found = translate(error, "inspect/a/b")
    assert type(found) is kind
    assert str(found).startswith("inspect/a/b: ")


def test_retry_after_is_read() -> None:
    error = Served(429)
    error.response = type("R", (), {"headers": {"retry-after": "2.5"}})()  # type: ignore[attr-defined]
    found = translate(error, "inspect/a/b")
    assert isinstance(found, Transient)
    assert (found.retry_after, found.overloaded) == (2.5, True)
