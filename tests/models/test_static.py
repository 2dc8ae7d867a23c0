"""Static meanings: near for near texts, the same digits in any company, nothing for nothing."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from memantics.models.embedded import encoder
from memantics.models.embedded.encoder import WIDTH, SentenceEncoder, StaticEncoder

TEXTS = ("我很高兴", "我非常开心", "今天股票大跌", "一只猫在睡觉", "小猫睡着了", "老板让我加班")


def test_each_text_has_a_vector_of_its_own() -> None:
    encoder = StaticEncoder()
    together = encoder.encode(TEXTS)
    assert together.shape == (len(TEXTS), WIDTH)
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    for text, row in zip(TEXTS, together, strict=True):
        assert np.array_equal(encoder.encode([text])[0], row)


@pytest.mark.parametrize("text", ["", " ", "ماذا", "🎉"])
def test_what_has_no_known_token_has_no_meaning(text: str) -> None:
    assert not StaticEncoder().encode([text]).any()


def test_nearest_neighbours_are_mostly_those_of_the_encoder() -> None:
    one, two = StaticEncoder().encode(TEXTS), SentenceEncoder().encode(TEXTS)
    near, far = one @ one.T, two @ two.T
    np.fill_diagonal(near, -1)
    np.fill_diagonal(far, -1)
    assert (near.argmax(axis=1) == far.argmax(axis=1)).mean() >= 0.6


@cache
def open_tokenizer() -> tuple[Tokenizer, int]:
    """The same vocabulary in the package that others use, and the place of what is unknown."""
    vocabulary, table = encoder._load()
    known = [(name, score) for name, (_, score) in vocabulary.pieces.items()]
    assert len(known) == len(table)
    least = min(score for _, score in known) - 10
    return Tokenizer(models.Unigram([*known, ("<unk>", least)], len(known))), len(known)


@given(st.text(alphabet="我们今天不想上班哈一个的了吗。，ａ①㈱ 猫ab\u2581\U0001f600", max_size=40))
@settings(deadline=None)
def test_texts_are_cut_as_the_package_tokenizers_does(text: str) -> None:
    tokenizer, unknown = open_tokenizer()
    expected = [place for place in tokenizer.encode(text).ids if place != unknown]
    # Of equally likely cuts either may be taken: the same pieces in another order.
    assert sorted(encoder._load()[0].cut(text)) == sorted(expected)
