"""A model that drafts a clarification of a guideline, for the app and for the command."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from memantics.actions.desk import Asking, open_desk
from memantics.annotate.project_settings import Words
from memantics.build.drafts import make_request, record, text
from memantics.core.errors import ModelError
from memantics.core.reply import read_object
from memantics.core.step import Step
from memantics.core.waiting import run_sync

_SCHEMA = record(en=text(), zh=text())


def make_drafter(model: str, asking: Asking) -> Callable[[str], Words]:
    """A function that has a model draft a clarification; a reply that is none raises."""

    async def draft(prompt: str) -> Words:
        with tempfile.TemporaryDirectory() as folder:
            async with open_desk(model, asking, Path(folder)) as desk:
                request = make_request(prompt, _SCHEMA)
                taken = await desk.take(
                    Step("guideline/clarify", request, lambda reply: read_object(reply, Words))
                )
        if taken.value is None:
            raise ModelError(
                f"{model} gave no draft ({taken.status}: {taken.reason})",
                hint="write the rule yourself, or try another model",
            )
        return taken.value

    return lambda prompt: run_sync(draft(prompt))
