"""Accuracies that analyses quote equal the log of test-set evaluations."""

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


def test_nearest_memes_quote_their_last_test_set_evaluation() -> None:
    evaluations = {
        record["study"]: record["metrics"] for record in read_log() if record["part"] == "test"
    }
    for label, words in QUOTED.items():
        measured = evaluations[f"nearest {label}"]
        near = measured[f"nearest meme, similarity {SHOWN_FROM} or more: accuracy"]["value"]
        baseline = measured["random meme: accuracy"]["value"]
        found = re.search(
            rf"their {words} in (\d+)% (?:of cases )?\((?:any two: )?(\d+)%\)", BY_MEANING
        )
        assert found, words
        assert [int(text) for text in found.groups()] == [round(100 * near), round(100 * baseline)]
