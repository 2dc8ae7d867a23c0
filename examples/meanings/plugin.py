"""Benchmark ``meanings``: choose the statement that gives the meaning of a meme."""

from __future__ import annotations

from collections.abc import Mapping

from memantics.plugins import Choice, MemeRecord, Text, choice_benchmark

QUESTION = "Which statement says what this meme means?"


class Meme(MemeRecord):
    """Fields of a line of ``memes.jsonl``, in addition to id and image."""

    text: str
    meaning: Text
    others: list[Text]


def ask(meme: Meme, options: Mapping[str, str]) -> Choice:
    """Return the question about a meme, for the options of the card."""
    given = {"text": meme.text} if options.get("text") == "given" else {}
    return Choice(QUESTION, meme.meaning, tuple(meme.others), given, options.get("seed", "0"))


PLUGIN = choice_benchmark(Meme, ask)
