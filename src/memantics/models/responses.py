"""The format of OpenAI's Responses API, for servers without chat completions; no network code.

Use it with ``--param api=responses``. The API has no ``seed``. Responses are not stored on the
server (``store`` is false), unless ``--param store=true`` says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.core.errors import InputError, Transient, first_fault
from memantics.core.images import DEFAULT_BOUNDS, ImageBounds
from memantics.core.records import Image, Lenient, Message, MessagePart, Reply, Request
from memantics.models.wire import (
    IMAGE_SLOT,
    NO_LOGPROBS,
    WireSettings,
    bound_tokens,
    count_thought,
    describe_format,
    fill_images,
    read_masses,
    repair,
    split_thought,
)

_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


def encode_response_request(
    name: str, request: Request, settings: WireSettings, bounds: ImageBounds = DEFAULT_BOUNDS
) -> bytes:
    """Encode the body of a call of the Responses API.

    >>> from memantics.core.records import Form
    >>> hello = Request((Message("user", ("Hello",)),), Form("", ()))
    >>> encode_response_request("m", hello, WireSettings()).decode()
    '{"model":"m","input":[{"role":"user","content":"Hello"}],"temperature":0.0,"store":false}'
    """
    effort = settings.reasoning_effort
    shape = describe_format(request, settings)
    if shape is not None:
        shape = {"type": shape["type"], **shape.get("json_schema", {})}  # type: ignore[dict-item]
    body: dict[str, object] = {
        "model": name,
        "input": [_encode_message(message, settings) for message in request.messages],
        "temperature": request.sampling.temperature,
        "max_output_tokens": settings.limit(request.sampling.max_tokens),
        **({settings.thinking_field: settings.thinking_tokens} if settings.thinking_field else {}),
        "include": ["message.output_text.logprobs"] if settings.top_logprobs else None,
        "top_logprobs": settings.top_logprobs or None,
        "reasoning": {"effort": effort} if effort else None,
        "text": {"format": shape} if shape else None,
        "store": False,
        **settings.extra,
    }
    try:
        frame = orjson.dumps({key: value for key, value in body.items() if value is not None})
    except orjson.JSONEncodeError as error:
        raise InputError(f"a request cannot be written as JSON: {error}") from error
    images = [part for m in request.messages for part in m.parts if isinstance(part, Image)]
    return fill_images(frame, images, settings, bounds) if images else frame


def _encode_message(message: Message, settings: WireSettings) -> dict[str, object]:
    if len(message.parts) == 1 and isinstance(message.parts[0], str):
        return {"role": message.role, "content": message.parts[0]}
    if message.role == "assistant":
        # Parts of earlier answers need ids of the server, which we do not store.
        texts = [part for part in message.parts if isinstance(part, str)]
        return {"role": message.role, "content": "\n".join(texts)}
    parts = [_encode_part(part, settings) for part in message.parts]
    return {"role": message.role, "content": parts}


def _encode_part(part: MessagePart, settings: WireSettings) -> dict[str, object]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    detail = settings.image_detail or "auto"
    return {"type": "input_image", "image_url": IMAGE_SLOT, "detail": detail}


class _Content(Lenient):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    logprobs: JsonValue = None


class _Output(Lenient):
    type: str = ""
    content: list[_Content] | None = None
    summary: list[_Content] | None = None


class _Reason(Lenient):
    reason: str | None = None


class _Fault(Lenient):
    code: str | None = None
    message: str | None = None


class _Usage(Lenient):
    input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: JsonValue = None


class _Response(Lenient):
    output: list[_Output]
    status: str | None = None
    error: _Fault | None = None
    incomplete_details: _Reason | None = None
    usage: _Usage | None = None
    model: str | None = None


_RESPONSE = TypeAdapter(_Response)


def decode_response(data: bytes, keys: Sequence[str] = ()) -> Reply:
    """Parse a response; raise :class:`Transient` with the reason if it is invalid.

    ``keys`` are the options whose probabilities are requested.

    >>> text = '{"type": "message", "content": [{"type": "output_text", "text": "B"}]}'
    >>> decode_response(('{"status": "completed", "output": [%s]}' % text).encode()).text
    'B'
    """
    try:
        said = _RESPONSE.validate_json(data)
    except ValidationError:
        said = _decode_slowly(data)
    if said.status == "failed" or (said.error is not None and not said.output):
        what = said.error.message if said.error is not None else None
        raise Transient(f"the server failed: {(what or 'no reason')[:300]}")
    parts = [part for one in said.output if one.type == "message" for part in one.content or ()]
    if not parts and said.status != "incomplete":
        raise Transient("the response contains no message")
    text = "".join(part.text or "" for part in parts if part.type == "output_text")
    refusal = next((part.refusal for part in parts if part.refusal), "")
    reasoning, text = split_thought(text)
    thought = [one for one in said.output if one.type == "reasoning"]
    given = [part.text for one in thought for part in (*(one.summary or ()), *(one.content or ()))]
    reason = (said.incomplete_details.reason if said.incomplete_details else None) or ""
    finish = _FINISH.get(reason, reason) if said.status == "incomplete" else "stop"
    if not refusal and finish == "content_filter":
        refusal = "a content filter stopped the answer"
    steps = [step for part in parts if isinstance(part.logprobs, list) for step in part.logprobs]
    masses = read_masses({"content": steps}, keys) if keys else None
    usage = said.usage or _Usage()
    return Reply(
        text=text,
        reasoning="\n".join(filter(None, given)) or reasoning,
        refusal=refusal,
        finish=finish,
        tokens_in=bound_tokens(usage.input_tokens),
        tokens_out=bound_tokens(usage.output_tokens),
        served_by=said.model or "",
        tokens_thought=count_thought(usage.output_tokens_details),
        masses=masses,
        adapted=NO_LOGPROBS if keys and not masses else "",
    )


def _decode_slowly(data: bytes) -> _Response:
    """Parse JSON that is invalid but common: lone surrogates and NaN."""
    try:
        value = repair(json.loads(data.decode(errors="replace")))
    except (ValueError, RecursionError) as error:
        raise Transient("the response is not JSON") from error
    try:
        return _RESPONSE.validate_python(value)
    except ValidationError as error:
        raise Transient(
            f"the response is not of the Responses API: {first_fault(error)}"
        ) from error
