"""``local/PATH`` as the engine sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from memantics.core.records import Reply, Request
from memantics.models.local.batching import Batcher
from memantics.models.local.checkpoint import check_folder, check_packages, digest, find_versions
from memantics.models.local.runtime import Runtime, resolve_device, resolve_dtype
from memantics.models.local.settings import LocalSettings

DEFAULT_SETTINGS = LocalSettings()


class LocalModel:
    """An open model in a folder of this machine. Weights are loaded at the first request.

    A request's JSON schema is not enforced while decoding: the prompt alone asks for the format.
    """

    note = ""
    cacheable = True

    def __init__(self, name: str, settings: LocalSettings = DEFAULT_SETTINGS) -> None:
        check_packages()
        self._folder = check_folder(Path(name.removeprefix("local/")).expanduser())
        self.name = name
        self._settings = settings
        self._batcher = Batcher(lambda: Runtime(self._folder, settings), settings.batch)

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The checkpoint by content, what runs it, and how it decodes; not where it lies.

        The size of batches is left out: which requests meet in one is chance, and moves answers
        by rounding only.
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
        """Answer once, together with whatever else waits."""
        return await asyncio.wrap_future(self._batcher.submit(request))

    async def close(self) -> None:
        """Stop, and let go of the weights."""
        await asyncio.to_thread(self._batcher.close)
