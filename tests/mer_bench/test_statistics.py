"""Counts of the release whose definitions were once wrong."""

from __future__ import annotations

import json
from pathlib import Path

from memantics.benchmarks.mer_bench.statistics import statistics
from memantics.core.data import Source
from tests.mer_bench.samples import entry, opened


def test_cues_need_no_colon_and_copies_are_counted_apart(tmp_path: Path) -> None:
    rows = [entry(number) for number in range(6)]
    for row, text in zip(rows, ["a", "a ", "a", "b", "b", ""], strict=True):
        row["text"] = text
    rows[0]["img_desc"] = "Visual cues\na wet cat. Text cues\nit rains."
    rows[1]["img_desc"] = "Visual cues: a wet cat."
    (tmp_path / "index_final.json").write_text(json.dumps(rows), encoding="utf-8")
    found = statistics(opened(Source("release", tmp_path)))
    assert found["description.cues"] == 5
    assert found["text.repeated"] == 2
    assert found["text.surplus"] == 3
    assert found["text.empty"] == 1
