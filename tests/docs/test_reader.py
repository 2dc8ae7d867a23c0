"""The table of the embedded reader beside trivial baselines is what a fresh run gives."""

from __future__ import annotations

import json

import pytest

import memantics as mm
from docs import reader
from tests.tolerances import differing

ITEMS = 1  # of a task: what OCR and the encoder may change on another processor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[mm.Run]:
    return reader.run_tasks(tmp_path_factory.mktemp("reader"))


def read_rows() -> dict[str, list[str]]:
    page = reader.PAGE.read_text(encoding="utf-8")
    table = page.partition(reader.BEGIN)[2].partition(reader.END)[0]
    rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    return {row[0].strip("`"): row for row in rows}


def test_every_task_is_in_the_table_with_its_present_metrics(runs: list[mm.Run]) -> None:
    """Where every answer is the one behind the table, so is every figure; else items are counted.

    Another processor may read a letter or round a vector otherwise, and the page says how many
    items of a task that may change. A figure has no tolerance of its own.
    """
    rows = read_rows()
    assert set(rows) == {run.task for run in runs} == set(reader.list_tasks())
    behind = json.loads(reader.ANSWERS.read_text(encoding="utf-8"))
    for run in runs:
        told, fresh = rows[run.task], reader.list_cells(run)
        assert told[1:3] == fresh[1:3], run.task
        changed = differing(reader.read_answers(run), behind[run.task])
        assert len(changed) <= ITEMS, (run.task, changed)
        if not changed:
            assert told == fresh


def test_the_page_says_how_many_items_may_differ() -> None:
    page = reader.PAGE.read_text(encoding="utf-8").partition(reader.BEGIN)[0]
    assert f"at most {ITEMS} item per task may differ" in page


def test_a_task_is_below_only_with_a_reason_and_has_a_reason_only_when_below(
    runs: list[mm.Run],
) -> None:
    below = {run.task for run in runs if reader.is_below(run)}
    assert below == set(reader.REASONS)
    assert all(why.endswith(".") for why in reader.REASONS.values())


def test_the_table_is_put_between_its_marks() -> None:
    page = f"a\n{reader.BEGIN}\nold\n{reader.END}\nb"
    made = reader.put_into(page, "new")
    assert made == f"a\n{reader.BEGIN}\nnew\n{reader.END}\nb"
    assert reader.put_into(made, "new") == made
