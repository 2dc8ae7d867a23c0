"""Every text of Hateful Memes is scored: a doubtful language is only a reason for review."""

from __future__ import annotations

import json

import pytest

from memantics.core.language import understand
from memantics.moderation.obfuscation import unmask
from memantics.moderation.subjects import explain_not_scored
from tests.places import SHARED_DATA, needs_shared_data

TRAIN = SHARED_DATA / "hateful_memes" / "train.json"
MOST_FOREIGN = 60  # of 8,500 texts; 45 when this was measured


@pytest.mark.slow
@needs_shared_data
def test_no_text_of_hateful_memes_is_left_without_a_score() -> None:
    texts = [json.loads(line)["text"].strip() for line in TRAIN.read_text("utf-8").splitlines()]
    assert len(texts) == 8500
    read = [understand(unmask(text).text.strip(), ["en"]) for text in texts]
    reasons = [
        explain_not_scored(text, found, ["en"], image=False)
        for text, found in zip(texts, read, strict=True)
    ]
    assert [reason for reason in reasons if reason] == []
    assert sum(bool(found.foreign) for found in read) <= MOST_FOREIGN
