"""Puns in which two spans change, one of them to a merged sound only: zhēng heard as zhēn."""

from __future__ import annotations

import pytest

from memantics.understanding.phonetics.homophones import analyze_caption, read_homophones
from memantics.understanding.phonetics.lattice import Lattice
from memantics.understanding.phonetics.pinyin import MERGED, list_sounds, measure_distance
from memantics.understanding.phonetics.reading import Settings
from tests.phonetics.captions import TWO_SPANS_CHECK, TWO_SPANS_TUNE


def rank(caption: str, meant: str, lattice: Lattice) -> int:
    """The place of the meant reading, from 1; 99 where it was not found."""
    texts = [c.path.text for c in analyze_caption(caption, lattice).candidates]
    return texts.index(meant) + 1 if meant in texts else 99


@pytest.mark.parametrize(("caption", "meant"), TWO_SPANS_TUNE + TWO_SPANS_CHECK)
def test_the_captions_are_of_this_kind(caption: str, meant: str) -> None:
    changed = [i for i, (a, b) in enumerate(zip(caption, meant, strict=True)) if a != b]
    assert len(changed) == 2
    assert changed[1] > changed[0] + 1
    distances = sorted(
        min(
            measure_distance(a.syllable, b.syllable)
            for a in list_sounds(caption[i])
            for b in list_sounds(meant[i])
        )
        for i in changed
    )
    assert distances[0] == 0 < distances[1] <= MERGED


@pytest.mark.parametrize(
    ("model", "captions", "first", "first_five"),
    [
        ("trigram", TWO_SPANS_TUNE, 4, 6),
        ("trigram", TWO_SPANS_CHECK, 5, 5),
        ("frequencies", TWO_SPANS_TUNE, 2, 5),
        ("frequencies", TWO_SPANS_CHECK, 3, 5),
    ],
)
def test_both_spans_are_heard(
    model: str,
    captions: tuple[tuple[str, str], ...],
    first: int,
    first_five: int,
    request: pytest.FixtureRequest,
) -> None:
    lattice: Lattice = request.getfixturevalue(model)
    pytest.importorskip("Pinyin2Hanzi", reason="joints are judged by its transitions")
    ranks = [rank(caption, meant, lattice) for caption, meant in captions]
    assert sum(r == 1 for r in ranks) >= first, ranks
    assert sum(r <= 5 for r in ranks) >= first_five, ranks


def test_a_half_undone_pun_has_a_weak_joint(frequencies: Lattice) -> None:
    found = {c.path.text: c for c in analyze_caption("蒸多鱼", frequencies).candidates}
    assert found["蒸多余"].features["joint"] == -1.0
    assert found["真多余"].features["joint"] > -0.3
    assert next(iter(found)) == "真多余"


def test_the_picture_tells_what_the_trigram_model_cannot(trigram: Lattice) -> None:
    pytest.importorskip("Pinyin2Hanzi", reason="joints are judged by its transitions")
    settings = Settings(model="trigram")
    alone = read_homophones("蒸多鱼", settings=settings)
    assert "真多余" in [r.text for r in alone.readings[:2]]
    seen = read_homophones("蒸多鱼", description="a fish in a steamer", settings=settings)
    assert seen.readings[0].text == "真多余"
