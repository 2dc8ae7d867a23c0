"""``inspect/PROVIDER/NAME``: any provider of Inspect's model layer (extra ``inspect``).

Inspect's own retries, cache and adaptive connections are disabled: the engine of Memantics provides
these, and every failed call must be counted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import JsonValue

from memantics.core import errors
from memantics.core.files import hide, learn_environment, learn_named
from memantics.core.images import probe, read_bytes
from memantics.core.records import Image, Message, Reply, Request
from memantics.models.kinds import ModelKind, ModelSettings

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Content, GenerateConfig, ModelOutput
    from inspect_ai.model import Model as Served

_FINISH = {"max_tokens": "length", "model_length": "length"}
_OVERLOADED = frozenset({429, 503, 529})
_TRANSIENT = frozenset({408, 409, 425, 429})
_UNAVAILABLE = frozenset({401, 402, 403, 404})
_DETAIL = 300


class InspectModel:
    """A model behind Inspect's model layer; API keys come from environment variables.

    ``arguments`` are passed to the provider's constructor.
    """

    note = ""
    cacheable = True

    def __init__(self, name: str, settings: ModelSettings | None = None, **arguments: Any) -> None:
        provider, _, rest = name.removeprefix("inspect/").partition("/")
        if not provider or not rest:
            raise errors.InputError(
                f"model {name!r} has no provider or no name",
                hint="use inspect/PROVIDER/NAME, for example inspect/mockllm/model",
            )
        errors.need_packages("inspect/… models", "inspect", "inspect_ai")
        self.name = f"inspect/{provider}/{rest}"
        self._path = f"{provider}/{rest}"
        self._settings = settings or ModelSettings()
        self._arguments = arguments
        learn_environment()
        query = parse_qsl(urlsplit(self._settings.base_url or "").query)
        learn_named((*arguments.items(), *query))
        self._served: Served | None = None

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """Name and server; constructor arguments by name only, since a value may be a secret."""
        return {
            "name": self.name,
            "base_url": self._settings.base_url and hide(self._settings.base_url),
            "arguments": ",".join(sorted(self._arguments)),
        }

    async def answer(self, request: Request) -> Reply:
        """Call the model once."""
        served = self._open()
        messages = [_message(message) for message in request.messages]
        config = self._config(request)
        try:
            output = await served.generate(messages, config=config)
        except Exception as error:  # each provider has its own tree of exceptions
            raise translate(error, self.name) from error
        return _reply(output, self.name)

    async def close(self) -> None:
        """Close the provider's client."""
        if self._served is not None:
            served, self._served = self._served, None
            await served.__aexit__(None, None, None)

    def _open(self) -> Served:
        if self._served is None:
            from inspect_ai.model import get_model

            try:
                self._served = get_model(
                    self._path,
                    base_url=self._settings.base_url,
                    memoize=False,
                    **self._arguments,
                )
            except Exception as error:  # a missing API key, package or provider
                raise errors.Unavailable(
                    f"{self.name} cannot be opened: {_words(error)}",
                    hint="check the provider's name, its package and its key in the environment",
                ) from error
        return self._served

    def _config(self, request: Request) -> GenerateConfig:
        from inspect_ai.model import GenerateConfig, ResponseSchema
        from inspect_ai.util import JSONSchema

        schema = request.schema and ResponseSchema(
            name="answer", json_schema=JSONSchema.model_validate(dict(request.schema)), strict=True
        )
        return GenerateConfig(
            temperature=request.sampling.temperature,
            max_tokens=request.sampling.max_tokens,
            seed=request.sampling.seed,
            response_schema=schema or None,
            max_retries=0,
            attempt_timeout=int(self._settings.timeout),
            max_connections=self._settings.concurrency,
            adaptive_connections=False,
            cache=False,
        )


def _message(message: Message) -> ChatMessage:
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
    )

    content = list(_contents(message))
    if message.role == "system":
        return ChatMessageSystem(content=content)
    if message.role == "assistant":
        return ChatMessageAssistant(content=content)
    return ChatMessageUser(content=content)


def _contents(message: Message) -> Iterator[Content]:
    from inspect_ai.model import ContentImage, ContentText

    for part in message.parts:
        if isinstance(part, Image):
            data = read_bytes(part.path)
            mime = probe(data, part.path.name).mime
            yield ContentImage(image=f"data:{mime};base64,{base64.b64encode(data).decode()}")
        else:
            yield ContentText(text=part)


def _reply(output: ModelOutput, name: str) -> Reply:
    if output.empty:
        if output.error:
            raise errors.Refused(f"{name}: {_short(output.error)}")
        raise errors.Transient(f"{name} returned no choice")
    refused = output.stop_reason == "content_filter"
    usage = output.usage
    read = 0
    if usage is not None:
        cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
        read = usage.input_tokens + cached
    return Reply(
        text=output.completion,
        reasoning=_reasoning(output),
        refusal=(output.error or output.completion or "content filter") if refused else "",
        finish=_FINISH.get(output.stop_reason, output.stop_reason),
        tokens_in=read,
        tokens_out=usage.output_tokens if usage is not None else 0,
        served_by=output.model,
    )


def _reasoning(output: ModelOutput) -> str:
    content = output.message.content
    if isinstance(content, str):
        return ""
    return "\n".join(part.reasoning for part in content if part.type == "reasoning")


def translate(error: BaseException, name: str) -> errors.ModelError:
    """Convert an exception of a provider into a ``ModelError``.

    >>> type(translate(TimeoutError("slow"), "inspect/a/b")).__name__
    'Transient'
    """
    root = _root(error)
    status = _status(root)
    what = f"{name}: {_words(root)}"
    if status in _UNAVAILABLE or type(root).__name__ == "PrerequisiteError":
        return errors.Unavailable(what, hint="check the model's name and the provider's key")
    if status is not None and (status in _TRANSIENT or status >= 500):
        return errors.Transient(what, retry_after=_wait(root), overloaded=status in _OVERLOADED)
    if status is not None and 400 <= status < 500:
        filtered = "content_filter" in what or "content management policy" in what
        return errors.Refused(what) if filtered else errors.Rejected(what)
    kind = type(root).__name__
    if isinstance(root, OSError) or "Timeout" in kind or "Connection" in kind:
        return errors.Transient(what)
    return errors.Rejected(what, hint="see the provider's message above")


def _root(error: BaseException) -> BaseException:
    """Return the provider's original error from the wrappers of retry layers and task groups."""
    for _ in range(8):
        last = getattr(error, "last_attempt", None)
        inner = last.exception() if last is not None else None
        if inner is None and isinstance(error, BaseExceptionGroup):
            inner = error.exceptions[0]
        if inner is None and isinstance(error, RuntimeError):
            inner = error.__cause__
        if inner is None:
            break
        error = inner
    return error


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for attribute in ("status_code", "status", "code"):
            value = getattr(holder, attribute, None)
            if isinstance(value, int) and 100 <= value < 600:
                return value
    return None


def _wait(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    text = str(headers.get("retry-after", "")) if headers is not None else ""
    return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else None


def _words(error: BaseException) -> str:
    message = getattr(error, "message", None)
    return (
        _short(message if isinstance(message, str) and message else str(error))
        or type(error).__name__
    )


def _short(text: str) -> str:
    return text if len(text) <= _DETAIL else text[: _DETAIL - 1] + "…"


KIND = ModelKind(
    "inspect",
    "inspect/PROVIDER/NAME",
    "any provider of Inspect (extra: inspect)",
    InspectModel,
)
