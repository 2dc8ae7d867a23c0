"""Which of four statements says what a meme means?"""

from __future__ import annotations

from collections.abc import Mapping

from memantics.plugins import Choice, MemeRecord, Text, choice_benchmark

QUESTION = "Which statement says what this meme means?"


class Meme(MemeRecord):
    """A line of ``memes.jsonl``, besides id and image."""

    text: str
    meaning: Text
    others: list[Text]


def ask(meme: Meme, options: Mapping[str, str]) -> Choice:
    """What is asked about a meme, as the options of the card say."""
    told = {"text": meme.text} if options.get("text") == "told" else {}
    return Choice(QUESTION, meme.meaning, tuple(meme.others), told, options.get("seed", "0"))


PLUGIN = choice_benchmark(Meme, ask)
