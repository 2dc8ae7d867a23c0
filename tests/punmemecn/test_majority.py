"""The trivial baseline of two-part labels answers the most frequent whole label."""

from __future__ import annotations

from memantics.benchmarks.punmemecn.load import PunMeme
from memantics.benchmarks.punmemecn.sentiment import WORDS, _field


def meme(number: int, target: str, kind: str) -> PunMeme:
    name = f"CN{number}"
    return PunMeme(name, name, "pun", "茶", "查", target, kind, (), "", None)


def test_the_majority_is_the_commonest_pair_not_the_commonest_parts() -> None:
    labels = [("self", "negative")] * 3 + [("other", "neutral")] * 2 + [("other", "positive")] * 2
    memes = [meme(place, *label) for place, label in enumerate(labels)]
    words = WORDS["en"]
    # "other" is the most frequent target, but "other-negative" occurs nowhere.
    assert _field("en", "target", memes).majority == words["self"]
    assert _field("en", "type", memes).majority == words["negative"]


def test_without_memes_there_is_none() -> None:
    assert _field("en", "target", []).majority is None
