"""The interval of the intraclass correlation equals its definition on the same resamples."""

from __future__ import annotations

import random

import pytest

from memantics.metrics.agreement import agreement_spans, intraclass
from memantics.metrics.interval import bootstrap_items


def _draw(seed: int, items: int) -> list[list[float | None]]:
    """Ratings of items by 2 to 5 raters, with different means; some raters are missing."""
    chance = random.Random(seed)
    rows: list[list[float | None]] = []
    for _ in range(items):
        mean = chance.gauss(50, 3)
        rated: list[float | None] = [round(chance.gauss(mean, 2)) for _ in range(5)]
        for place in chance.sample(range(5), chance.randint(0, 3)):
            rated[place] = None
        rows.append(rated)
    return rows


@pytest.mark.parametrize("level", ["interval", "ordinal"])
@pytest.mark.parametrize("seed", range(3))
def test_it_equals_the_definition_on_each_resample(seed: int, level: str) -> None:
    rows = _draw(seed, 30)
    by = [place // 2 for place in range(30)]  # two rows per meme
    expected = bootstrap_items(
        by,
        lambda places: intraclass([rows[place] for place in places]),
        resamples=1000,
        bounds=(-1.0, 1.0),
    )
    assert expected is not None
    found = agreement_spans(rows, level, clusters=by)["icc"]  # type: ignore[arg-type]
    assert found == pytest.approx(expected, abs=1e-9)
    value = intraclass(rows)
    assert value is not None
    assert found[0] < value < found[1]


def test_names_have_no_interval_of_the_correlation() -> None:
    rows = [["a", "b"], ["b", "b"], ["a", "a"]]
    assert "icc" not in agreement_spans(rows)
