"""The queues of drafts are taken in by the annotation service as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra annotate is not installed")

from memantics.annotation.service import open_service
from memantics.construction.chats.build import build_chats, write_chat_queue
from memantics.construction.chats.distractors import Embedders, LayoutEncoder
from memantics.construction.chats.generate import ChatSettings
from memantics.construction.chats.selection import Gauges
from memantics.models.fake import FakeModel, draft_reply
from memantics.understanding.intents.draft import IntentSettings, draft_intents, write_intent_queue
from tests.annotation.team import Clock, make_lead, quick_hasher
from tests.construction.drafting import LetterEncoder, sample_memes, with_client

IDS = ("en-001", "en-002", "en-003", "en-005", "CN90001", "CN90002")


def test_both_queues_open_as_projects(tmp_path: Path) -> None:
    memes = sample_memes(*IDS)
    model = FakeModel(draft_reply)
    intents = with_client(
        tmp_path / "run", model, lambda client: draft_intents(client, memes, IntentSettings())
    )
    write_intent_queue(tmp_path / "intents", intents, "test")
    embedders = Embedders(LetterEncoder(), LayoutEncoder())
    settings = ChatSettings(per_meme=1)
    chats, _ = with_client(
        tmp_path / "run",
        model,
        lambda client: build_chats(client, (memes, ()), embedders, Gauges(), settings),
    )
    count = write_chat_queue(tmp_path / "chats", chats, "test")
    service = open_service(
        f"sqlite:///{tmp_path / 'annotate.db'}",
        tmp_path / "media",
        clock=Clock(),
        hasher=quick_hasher(),
    )
    try:
        lead = make_lead(service)
        for name, items in (("intents", len(memes)), ("chats", count)):
            project = service.exchange.open_queue(lead, tmp_path / name)
            again = service.exchange.import_queue(lead, project.id, tmp_path / name)
            assert (again.items, len(again.skipped)) == (0, items)
    finally:
        service.close()
