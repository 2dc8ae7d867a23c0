"""A model whose replies about some sample memes are recorded: examples/kinder/replies.jsonl."""

from __future__ import annotations

import json
from functools import cache

from memantics.core.records import Request
from memantics.models.cache import picture_digest
from tests.places import ROOT

REPLIES = ROOT / "examples" / "kinder" / "replies.jsonl"
RECORDED = f"recorded/{REPLIES}"
# A reply about a drawn image cannot be recorded: its bytes differ between processors.
PLANNER = ("-m", RECORDED, "--no-mood")
MODEL = "fake/kinder"  # the same replies, and every face fits
FIT = {"faces": "happy", "captions": "happy", "fit": True, "reason": "They smile."}


def reply(request: Request) -> str:
    """Return the recorded reply to a request about a sample meme, by its image and schema."""
    if request.schema is not None and "fit" in str(request.schema.get("properties")):
        return json.dumps(FIT)
    return _read_replies()[picture_digest(request)]


@cache
def _read_replies() -> dict[str, str]:
    lines = map(json.loads, REPLIES.read_text(encoding="utf-8").splitlines())
    return {line["picture"]: line["reply"]["text"] for line in lines}
