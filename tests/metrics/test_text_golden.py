"""ROUGE-L and BLEU are what the implementation in pure Python gave.

Pairs with Chinese have the digits since Chinese is cut into characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.metrics.text import (
    Smoothing,
    bleu_4,
    find_best_constant,
    load_porter,
    rouge_l,
    rouge_tokens,
    tokenize,
)
from tests.tolerances import same

ROWS = [
    orjson.loads(line)
    for line in Path(__file__).with_name("text_scores.jsonl").read_bytes().splitlines()
]
words = st.lists(st.sampled_from(["a", "b", "c", "d", "the", "我", "meme"]), max_size=12)


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """The longest common subsequence by its definition."""
    row = [0] * (len(second) + 1)
    for token in first:
        diagonal = 0
        for place, other in enumerate(second, 1):
            above = row[place]
            row[place] = diagonal + 1 if token == other else max(above, row[place - 1])
            diagonal = above
    return row[-1]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_the_digits_are_those_of_before(row: dict[str, Any]) -> None:
    texts = row["hypothesis"], row["reference"]
    for stem, expected in zip((None, load_porter()), row["rouge_l"], strict=True):
        found = rouge_l(*texts, stem)
        assert same([found.precision, found.recall, found.f1], expected)
    own, other = (tokenize(text, row["tokenizer"], lower=row["lower"]) for text in texts)
    assert same([bleu_4(own, other, smoothing) for smoothing in get_args(Smoothing)], row["bleu_4"])


def test_the_golden_pairs_cover_what_can_go_wrong() -> None:
    assert len(ROWS) == 200
    assert sum(not row["hypothesis"].strip() for row in ROWS) > 5
    assert sum(0 < row["rouge_l"][0][2] < 1 for row in ROWS) > 80
    assert sum(0 < row["bleu_4"][0] < 1 for row in ROWS) > 5


@given(words, words)
def test_the_common_subsequence_is_the_longest(first: list[str], second: list[str]) -> None:
    found = rouge_l(" ".join(first), " ".join(second))
    assert found.precision * len(first) == pytest.approx(common_length(first, second))


@pytest.mark.parametrize(("word", "kept"), [("cats", "cat"), ("his", "his"), ("goes", "goe")])
def test_words_of_three_letters_are_not_stemmed(word: str, kept: str) -> None:
    stem = load_porter()
    assert rouge_tokens(word, stem) == [kept]
    # Porter's rules would cut the short one too: it is the length that keeps it.
    assert stem("his") == "hi"


def test_the_best_constant_is_the_best_of_all_short_texts() -> None:
    chance = np.random.default_rng(3)
    vocabulary = np.array(["a", "b", "c", "d", "e"])
    references = [[" ".join(chance.choice(vocabulary, 5)) for _ in range(2)] for _ in range(12)]
    found = find_best_constant(references)
    assert found is not None

    def mean(text: str) -> float:
        return float(np.mean([max(rouge_l(text, ref).f1 for ref in refs) for refs in references]))

    assert found.value == pytest.approx(mean(found.text))
    singles = max(mean(word) for word in vocabulary)
    pairs = max(mean(f"{one} {two}") for one in vocabulary for two in vocabulary)
    assert found.value >= max(singles, pairs)
