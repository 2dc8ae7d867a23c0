"""Distinct-n, against a plain count and against the figures recomputed for PunMemeCN."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.metrics.text import distinct, measure_distinct
from tests.places import SHARED_DATA, needs_shared_data


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=8), st.integers(1, 3))
def test_it_equals_a_plain_count(utterances: list[list[str]], n: int) -> None:
    grams: Counter[str] = Counter()
    for words in utterances:
        text = "".join(words)
        grams.update(text[i : i + n] for i in range(len(text) - n + 1))
    expected = len(grams) / sum(grams.values()) if grams else None
    assert distinct(utterances, n) == expected


def test_bigrams_do_not_cross_utterances() -> None:
    assert distinct([["a"], ["b"]], 2) is None


def test_zero_is_no_length() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        distinct([["a"]], 0)


@pytest.mark.slow
@needs_shared_data
def test_it_gives_the_metrics_of_the_release() -> None:
    import jieba

    from memantics.benchmarks.punmemecn.load import open_release
    from memantics.benchmarks.punmemecn.statistics import statistics
    from memantics.core.data import Source

    jieba.setLogLevel(60)
    release = open_release(Source("release", SHARED_DATA / "punmemecn"))
    known = statistics(release)
    texts = [
        line[2:]
        for conversation in release.conversations
        for line in conversation.lines[:-1]
        if line[:2] in ("甲：", "乙：")
    ]
    ours = measure_distinct(texts, jieba.cut)
    reference = {n: known[f"chats.distinct_{n}"] for n in (1, 2)}
    for n in (1, 2):
        assert ours[n] == pytest.approx(reference[n], abs=0.002)
