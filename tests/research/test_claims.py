"""What analyses quote about themselves is what the log of looks says."""

from __future__ import annotations

import re

from memantics.core.retrieval import BY_MEANING, SHOWN_FROM
from research.protocol import read_log

QUOTED = {
    "mer_bench/emotion": "emotion",
    "punmemecn/sentiment_type": "sentiment",
    "toxicn_mm/target": "target of harm",
    "memeintent/intent_verb": "verb of intent",
}


def test_nearest_memes_quote_their_last_look() -> None:
    looks = {own["study"]: own["figures"] for own in read_log() if own["part"] == "sealed"}
    for label, words in QUOTED.items():
        figures = looks[f"nearest {label}"]
        near = figures[f"nearest meme, where nearness is {SHOWN_FROM} or more: accuracy"]["value"]
        chance = figures["any other meme: accuracy"]["value"]
        found = re.search(
            rf"their {words} in (\d+)% (?:of cases )?\((?:any two: )?(\d+)%\)", BY_MEANING
        )
        assert found, words
        assert [int(own) for own in found.groups()] == [round(100 * near), round(100 * chance)]
