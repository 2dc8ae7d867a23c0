"""Drafts of why a meme was made, and of what one must know to see it."""

from memantics.build.intents.draft import (
    INTENTS,
    Drafted,
    IntentReport,
    IntentSettings,
    draft_intents,
    write_intent_queue,
    write_intents,
)
from memantics.build.intents.form import check_intent, read_background, read_intents

__all__ = [
    "INTENTS",
    "Drafted",
    "IntentReport",
    "IntentSettings",
    "check_intent",
    "draft_intents",
    "read_background",
    "read_intents",
    "write_intent_queue",
    "write_intents",
]
