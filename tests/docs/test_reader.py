"""The table of the embedded reader beside trivial baselines is what a fresh run gives."""

from __future__ import annotations

import pytest

import memantics as mm
from docs import reader


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[mm.Run]:
    return reader.run_tasks(tmp_path_factory.mktemp("reader"))


def read_rows() -> dict[str, list[str]]:
    page = reader.PAGE.read_text(encoding="utf-8")
    table = page.partition(reader.BEGIN)[2].partition(reader.END)[0]
    rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    return {row[0].strip("`"): row for row in rows}


def test_every_task_is_in_the_table_with_its_present_figures(runs: list[mm.Run]) -> None:
    rows = read_rows()
    assert set(rows) == {run.task for run in runs} == set(reader.list_tasks())
    for run in runs:
        told, fresh = rows[run.task], reader.list_cells(run)
        assert told[1:3] == fresh[1:3], run.task
        # Other processors may read a letter or round a vector otherwise.
        assert float(told[3].split()[0]) == pytest.approx(float(fresh[3].split()[0]), abs=0.05)


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
