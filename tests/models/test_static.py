"""Static meanings: near for near texts, the same digits in any company, nothing for nothing."""

from __future__ import annotations

import numpy as np
import pytest

from memantics.models.embedded.encoder import SentenceEncoder
from memantics.models.embedded.static import WIDTH, StaticEncoder

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
