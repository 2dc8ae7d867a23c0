from __future__ import annotations

import pytest

from memantics.benchmarks.published import PublishedRow, read_published
from memantics.benchmarks.registry import find_benchmarks
from memantics.evaluation.audits.published import check_tables, is_checkable, violations

ROWS = [
    (name, row)
    for name, benchmark in find_benchmarks().items()
    for row in read_published(benchmark.folder / "expected" / "published.json")
]


def row(**metrics: float) -> PublishedRow:
    return PublishedRow(
        task="qa", system="x", metrics=metrics, digits=4, source="Table 1", feasible=None
    )


def test_every_published_row_is_marked_as_arithmetic_says() -> None:
    assert ROWS
    for name, own in ROWS:
        if own.feasible is not None and is_checkable(own):
            assert own.feasible == (not violations(own)), (name, own.system)


def test_what_rests_on_the_stated_numbers_of_items_is_told_apart() -> None:
    """M-QUEST's Table 2: three rows are impossible in any case, all eight over 609 questions."""
    rows = [own for name, own in ROWS if name == "mquest"]
    (found,), _ = check_tables(rows)
    assert (found.score.value, found.score.n) == (1.0, 8)
    assert found.meaning == (
        "8 of 8 rows cannot be correct as printed with the number of items that the paper states; "
        "3 of 8 for any number of items."
    )
    assert sum("k/609" in line for line in found.details) == 6
    (other,), _ = check_tables([own for name, own in ROWS if name == "toxicn_mm"])
    assert other.meaning.endswith("rows cannot be correct as printed.")


def test_an_impossible_macro_f1_is_named() -> None:
    rows = [
        row(macro_f1=0.3646, macro_precision=0.3566, macro_recall=0.3623),
        row(macro_f1=0.30, macro_precision=0.35, macro_recall=0.36),
    ]
    (own,), gaps = check_tables(rows)
    assert not gaps
    assert (own.verdict, own.score.value, own.score.n) == ("broken", 0.5, 2)
    assert len(own.details) == 1
    assert "0.3646" in own.details[0]


@pytest.mark.parametrize("rows", [[], [row(rouge_l=0.2)]])
def test_nothing_to_check_is_said(rows: list[PublishedRow]) -> None:
    findings, gaps = check_tables(rows)
    assert not findings
    assert len(gaps) == 1
