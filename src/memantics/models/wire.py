"""The OpenAI chat-completions format: encode requests, decode replies, read option probabilities.

This module has no network code. vLLM, SGLang, llama.cpp, Ollama, TGI and hosted providers differ in
details. Decoding therefore tolerates missing fields and rejects content that cannot be an answer.
Probabilities of options come from the log-probabilities of tokens.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Literal, Self

import orjson
import pybase64
from pydantic import Field, JsonValue, TypeAdapter, ValidationError, model_validator

from memantics.core.errors import InputError, Transient, first_fault
from memantics.core.images import DEFAULT_BOUNDS, ImageBounds, probe, read_image, turn_upright
from memantics.core.records import (
    Closed,
    Form,
    Image,
    Lenient,
    Message,
    MessagePart,
    Reply,
    Request,
)
from memantics.core.text import repair_surrogates

_AROUND = " \t\r\n\"'`*()[]{}.,:;。，、：；（）【】「」“”"
# A placeholder for image data while the rest of the request is encoded; random, so that no caption
# can contain it.
IMAGE_SLOT = secrets.token_hex(16)
NO_LOGPROBS = "the server gives no log-probabilities of options: replies are read instead"
_OURS = frozenset({"model", "messages", "stream", "n"})


class _Token(Lenient):
    token: str
    logprob: float


class _Step(_Token):
    top_logprobs: tuple[_Token, ...] = ()


class _Logprobs(Lenient):
    content: tuple[_Step, ...] | None = None


_LOGPROBS = TypeAdapter(_Logprobs)


def list_keys(form: Form) -> tuple[str, ...]:
    """Return the option keys of a form that asks for one option; empty for other forms."""
    if form.reply != "key" or len(form.fields) != 1:
        return ()
    return tuple(option.key for option in form.fields[0].options)


def read_masses(logprobs: JsonValue, keys: Sequence[str]) -> dict[str, float] | None:
    """Return the probability of each option at the answer token; None without log-probabilities.

    The answer token is the first token if it matches an option, else the last token that does. A
    model that reasons first mentions options before it decides.

    >>> top = [{"token": "B", "logprob": -0.1}, {"token": " A", "logprob": -2.5}]
    >>> step = {"token": "B", "logprob": -0.1, "top_logprobs": top}
    >>> read_masses({"content": [step]}, ["A", "B"])
    {'B': 0.904837, 'A': 0.082085}
    >>> read_masses(None, ["A", "B"]) is None
    True
    """
    try:
        steps = _LOGPROBS.validate_python(logprobs).content or ()
    except ValidationError:
        return None
    spoken = [step for step in steps if step.token.strip(_AROUND)]
    named = [step for step in spoken if match_key(step.token, keys)]
    if not named:
        return None
    step = named[0] if named[0] is spoken[0] else named[-1]
    masses: dict[str, float] = {}
    for token in step.top_logprobs or (step,):
        key = match_key(token.token, keys)
        if key is not None:
            masses[key] = masses.get(key, 0.0) + math.exp(min(0.0, token.logprob))
    return {key: round(mass, 6) for key, mass in masses.items()} or None


def match_key(token: str, keys: Sequence[str]) -> str | None:
    """Return the option that a token matches: the option's key itself, or a unique prefix of it.

    >>> match_key(" b", ["A", "B"]), match_key("harm", ["harmful", "harmless"])
    ('B', None)
    >>> match_key("有", ["有害", "无害"]), match_key("The", ["A", "B"])
    ('有害', None)
    """
    said = token.strip(_AROUND).casefold()
    if not said:
        return None
    for key in keys:
        if key.casefold() == said:
            return key
    begun = [key for key in keys if key.casefold().startswith(said)]
    return begun[0] if len(begun) == 1 else None


class WireSettings(Closed):
    """Server settings that affect answers; they are part of the model identity.

    ``token_field`` is the name of the token limit (reasoning models use ``max_completion_tokens``).
    ``structured`` determines how a schema is sent: ``strict`` as a JSON schema, ``object`` as plain
    JSON mode, ``off`` not at all. ``extra`` is added to the request body unchanged; None removes a
    field that a server rejects (``{"temperature": None}``). ``image_orientation`` is for servers
    that ignore EXIF: with ``upright``, rotated images are turned before they are sent. ``api`` is
    chat completions or OpenAI's Responses API.
    """

    api: Literal["chat", "responses"] = "chat"

    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105 - no password
    reasoning_effort: str | None = None
    structured: Literal["strict", "object", "off"] = "strict"
    image_detail: Literal["auto", "low", "high"] | None = None
    image_orientation: Literal["stored", "upright"] = "stored"
    answer_tokens: int = Field(default=0, ge=0, le=9_999_999)
    thinking_tokens: int = Field(default=0, ge=0, le=9_999_999)
    thinking_field: str = ""
    top_logprobs: int = Field(default=0, ge=0, le=9_999_999)
    extra: Mapping[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        taken = sorted(_OURS & self.extra.keys())
        if taken:
            raise InputError(
                f"extra field {', '.join(taken)} cannot be set",
                hint="remove it: the engine sets this field",
            )
        return self

    def describe(self) -> dict[str, JsonValue]:
        """Return the settings for a model's identity, without settings at their default."""
        described = self.model_dump()
        if self.image_orientation == "stored":
            del described["image_orientation"]
        if self.api == "chat":
            del described["api"]
        for name in ("answer_tokens", "thinking_tokens", "thinking_field", "top_logprobs"):
            if not described[name]:
                del described[name]
        return described

    def limit(self, answer_limit: int | None) -> int | None:
        """Return the token limit to send (reasoning plus answer); the task sets ``answer_limit``.

        >>> WireSettings(answer_tokens=50, thinking_tokens=1000).limit(None)
        1050
        >>> WireSettings(thinking_tokens=1000).limit(20), WireSettings().limit(None)
        (1020, None)
        """
        answer = self.answer_tokens or answer_limit
        return answer + self.thinking_tokens if answer else self.thinking_tokens or None


def encode_request(
    name: str, request: Request, settings: WireSettings, bounds: ImageBounds = DEFAULT_BOUNDS
) -> bytes:
    """Encode the body of a model call. Images are checked by header and sent unchanged.

    >>> from memantics.core.records import Form
    >>> hello = Request((Message("user", ("Hello",)),), Form("", ()))
    >>> encode_request("m", hello, WireSettings()).decode()
    '{"model":"m","messages":[{"role":"user","content":"Hello"}],"temperature":0.0}'
    """
    body: dict[str, object] = {
        "model": name,
        "messages": [_message(message, settings) for message in request.messages],
        "temperature": request.sampling.temperature,
        settings.token_field: settings.limit(request.sampling.max_tokens),
        **({settings.thinking_field: settings.thinking_tokens} if settings.thinking_field else {}),
        "logprobs": bool(settings.top_logprobs) or None,
        "top_logprobs": settings.top_logprobs or None,
        "seed": request.sampling.seed,
        "reasoning_effort": settings.reasoning_effort,
        "response_format": describe_format(request, settings),
        **settings.extra,
    }
    try:
        frame = orjson.dumps({key: value for key, value in body.items() if value is not None})
    except orjson.JSONEncodeError as error:
        raise InputError(f"a request cannot be written as JSON: {error}") from error
    images = [p for m in request.messages for p in m.parts if isinstance(p, Image)]
    return fill_images(frame, images, settings, bounds) if images else frame


def fill_images(
    frame: bytes, images: list[Image], settings: WireSettings, bounds: ImageBounds
) -> bytes:
    """Insert the images into the JSON text; encoding them with the JSON would copy them twice."""
    head, *rest = frame.split(IMAGE_SLOT.encode())
    pieces = [head]
    for image, after in zip(images, rest, strict=True):
        data = read_image(image, bounds)
        if settings.image_orientation == "upright":
            data = turn_upright(data, image.path.name, bounds) or data
        mime = probe(data, image.path.name, bounds).mime
        pieces += (
            b"data:%b;base64," % mime.encode(),
            pybase64.b64encode(data),
            after,
        )
    return b"".join(pieces)


def _message(message: Message, settings: WireSettings) -> dict[str, object]:
    # Plain text is sent as a string, because some servers accept lists of parts only from users.
    if len(message.parts) == 1 and isinstance(message.parts[0], str):
        return {"role": message.role, "content": message.parts[0]}
    return {"role": message.role, "content": [_part(part, settings) for part in message.parts]}


def _part(part: MessagePart, settings: WireSettings) -> dict[str, object]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    url = {"url": IMAGE_SLOT}
    if settings.image_detail:
        url["detail"] = settings.image_detail
    return {"type": "image_url", "image_url": url}


def describe_format(request: Request, settings: WireSettings) -> dict[str, JsonValue] | None:
    """Return the ``response_format`` of a request with a schema; None without one."""
    if request.schema is None or settings.structured == "off":
        return None
    if settings.structured == "object":
        return {"type": "json_object"}
    schema: JsonValue = {
        "name": "answer",
        "strict": True,
        "schema": _unbind(dict(request.schema)),
    }
    return {"type": "json_schema", "json_schema": schema}


def _unbind(schema: JsonValue) -> JsonValue:
    """Remove length limits from a JSON schema: servers reject them, the parser checks them."""
    if isinstance(schema, list):
        return [_unbind(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    typed = schema.get("type") == "string"
    return {
        key: value if key in ("enum", "const", "required") else _unbind(value)
        for key, value in schema.items()
        if not (typed and key in ("minLength", "maxLength"))
    }


class _TextPart(Lenient):
    type: str = "text"
    text: str | None = None
    refusal: str | None = None


class _WireMessage(Lenient):
    content: str | list[_TextPart] | None = None
    refusal: str | None = None
    reasoning_content: JsonValue = None
    reasoning: JsonValue = None


class _Choice(Lenient):
    message: _WireMessage
    finish_reason: str | None = None
    logprobs: JsonValue = None


class _Usage(Lenient):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    completion_tokens_details: JsonValue = None


class _Completion(Lenient):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None


_COMPLETION = TypeAdapter(_Completion)


def decode_reply(data: bytes, keys: Sequence[str] = ()) -> Reply:
    """Parse a chat completion; raise :class:`Transient` with the reason if it is invalid.

    ``keys`` are the options whose probabilities are requested.

    >>> reply = decode_reply(b'{"choices": [{"message": {"content": "<think>hm</think>B"}}]}')
    >>> reply.text, reply.reasoning
    ('B', 'hm')
    >>> decode_reply(b'{"choices": []}')
    Traceback (most recent call last):
    memantics.core.errors.Transient: the response contains no choices
    """
    try:
        completion = _COMPLETION.validate_json(data)
    except ValidationError:
        completion = _decode_slowly(data)
    if not completion.choices:
        raise Transient("the response contains no choices")
    choice, usage = completion.choices[0], completion.usage or _Usage()
    said = choice.message
    text, refusal = _flatten(said.content)
    reasoning, text = split_thought(text)
    given = [part for part in (said.reasoning_content, said.reasoning) if isinstance(part, str)]
    refusal = said.refusal or refusal
    masses = read_masses(choice.logprobs, keys) if keys else None
    if not refusal and choice.finish_reason == "content_filter":
        refusal = "a content filter stopped the answer"
    return Reply(
        text=text,
        reasoning=next(filter(None, given), "") or reasoning,
        refusal=refusal,
        finish=choice.finish_reason or "",
        tokens_in=bound_tokens(usage.prompt_tokens),
        tokens_out=bound_tokens(usage.completion_tokens),
        served_by=completion.model or "",
        tokens_thought=count_thought(usage.completion_tokens_details),
        masses=masses,
        adapted=NO_LOGPROBS if keys and not masses else "",
    )


def count_thought(details: JsonValue) -> int:
    """Return the reasoning tokens that a server reports."""
    counted = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return bound_tokens(counted) if isinstance(counted, int) else 0


def bound_tokens(tokens: int | None) -> int:
    """Limit a token count reported by a server to a number that can be stored."""
    return min(max(0, tokens or 0), 2**53)


def _decode_slowly(data: bytes) -> _Completion:
    """Parse JSON that is invalid but common: lone surrogates and NaN."""
    try:
        value = repair(json.loads(data.decode(errors="replace")))
    except (ValueError, RecursionError) as error:
        raise Transient(f"the response is not JSON: {_start(data)}") from error
    try:
        return _COMPLETION.validate_python(value)
    except ValidationError as error:
        raise Transient(f"the response is not a chat completion: {first_fault(error)}") from error


def repair(value: JsonValue) -> JsonValue:
    r"""Replace lone surrogates, which files and the cache cannot store.

    >>> repair(["ok", {"a": "\ud83d!"}])
    ['ok', {'a': '\ufffd!'}]
    """
    if isinstance(value, str):
        return repair_surrogates(value)
    if isinstance(value, list):
        return [repair(part) for part in value]
    if isinstance(value, dict):
        return {key: repair(part) for key, part in value.items()}
    return value


def _flatten(content: str | list[_TextPart] | None) -> tuple[str, str]:
    if content is None or isinstance(content, str):
        return content or "", ""
    # Parts of other types (a model's reasoning, citations) do not belong to the answer.
    text = "".join(p.text or "" for p in content if p.type in ("text", "output_text"))
    return text, next((p.refusal for p in content if p.refusal), "")


def split_thought(text: str) -> tuple[str, str]:
    """Separate a leading ``<think>…</think>`` block from the answer.

    The opening tag may be missing, because some chat templates put it into the prompt. If the
    closing tag is missing, the token limit was reached before the answer, and there is no answer.

    >>> split_thought("<think>a or b?</think> B"), split_thought("a or b?</think>B")
    (('a or b?', 'B'), ('a or b?', 'B'))
    >>> split_thought("B"), split_thought("<think>a or")
    (('', 'B'), ('a or', ''))
    """
    body = text.lstrip()
    opened = body.startswith("<think>")
    thought, closed, answer = body.removeprefix("<think>").partition("</think>")
    if opened and not closed:
        return thought.strip(), ""
    if closed and (opened or "<think>" not in thought):
        return thought.strip(), answer.lstrip()
    return "", text


def _start(data: bytes) -> str:
    text = data[:80].decode(errors="replace").strip()
    return f"it starts with {text!r}" if text else "it is empty"
