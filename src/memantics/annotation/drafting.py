"""Rules of a guideline, drafted by a model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from memantics.annotation.project_settings import LocalizedText
from memantics.core.errors import ModelError
from memantics.core.model import Step
from memantics.core.reply import read_object
from memantics.core.waiting import run_sync
from memantics.models.client import CallSettings, open_client
from memantics.models.drafts import make_request, record, text

_SCHEMA = record(en=text(), zh=text())


def make_drafter(model: str, calls: CallSettings) -> Callable[[str], LocalizedText]:
    """Return a function in which a model drafts a guideline rule; it raises without a draft."""

    async def draft(prompt: str) -> LocalizedText:
        with tempfile.TemporaryDirectory() as folder:
            async with open_client(model, calls, Path(folder)) as client:
                request = make_request(prompt, _SCHEMA)
                taken = await client.take(
                    Step(
                        "guideline/clarify",
                        request,
                        lambda reply: read_object(reply, LocalizedText),
                    )
                )
        if taken.value is None:
            raise ModelError(
                f"model {model} returned no draft ({taken.status}: {taken.reason})",
                hint="write the rule yourself, or try another model",
            )
        return taken.value

    return lambda prompt: run_sync(draft(prompt))
