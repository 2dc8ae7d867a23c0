"""The sealed part is the same for everybody, nothing learns from it, and every look is logged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from memantics.metrics.weighted import Case, Figure
from research import protocol, table
from research.protocol import (
    Claim,
    Row,
    Study,
    is_sealed,
    look,
    place_of,
    read_log,
    rehearse,
    split_folds,
    take_rest,
    write_log,
)
from research.studies import find_studies

ROWS = [
    Row(str(n), f"group {n // 2}", n, {"kind": "even" if n % 2 == 0 else "odd"}) for n in range(400)
]


def judge_by_parity(known: Sequence[Row[int]], asked: Sequence[Row[int]]) -> dict[str, list[Case]]:
    assert not {row.group for row in known} & {row.group for row in asked}
    cases = [Case(row.id, row.group, str(row.content % 2), "0", 0.5, row.tags) for row in asked]
    return {"parity": cases}


TOY = Study(
    "toy",
    "toy data",
    lambda: ROWS,
    judge_by_parity,
    (Claim("parity", Figure("accuracy"), 0.6), Claim("parity", Figure("calibration_error", "0"))),
    compositions={"all even": ("kind", {"even": 1.0}), "unheard of": ("kind", {"prime": 1.0})},
)


def test_about_a_fifth_of_the_groups_is_sealed_and_never_changes() -> None:
    sealed = {row.group for row in ROWS if is_sealed("toy data", row.group)}
    assert 25 <= len(sealed) <= 55
    assert place_of("mer_bench", "hello") == pytest.approx(0.0245, abs=1e-4)
    # The same group of another data set lies elsewhere.
    assert place_of("mquest", "hello") != place_of("mer_bench", "hello")


def test_folds_cover_the_rest_once_and_part_no_group() -> None:
    rest = take_rest("toy data", ROWS)
    folds = split_folds("toy data", rest, 4)
    assert sorted(row.id for fold in folds for row in fold) == sorted(row.id for row in rest)
    groups = [{row.group for row in fold} for fold in folds]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert min(map(len, folds)) > 40


def test_a_rehearsal_sees_no_sealed_row_and_a_look_judges_only_those() -> None:
    rest, sealed = rehearse(TOY), look(TOY)
    assert rest["rows"] + sealed["rows"] == len(ROWS)
    assert rest["ids"] != sealed["ids"]
    accuracy = sealed["figures"]["parity: accuracy"]
    assert accuracy["value"] == 0.5
    assert accuracy["n"] == sealed["rows"]
    assert sealed["figures"]["parity: calibration error of 0"]["value"] == pytest.approx(0, abs=0.2)
    assert sealed["composition"]["kind"] == {"even": 0.5, "odd": 0.5}
    assert sealed["reweighted"]["all even"]["parity: accuracy"] == 1.0
    assert sealed["reweighted"]["unheard of"]["parity: accuracy"] is None


def test_looks_are_logged_counted_and_shown(tmp_path: Path) -> None:
    log, page = tmp_path / "looks.jsonl", tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nstale words\n{table.END}\nafter\n", encoding="utf-8")
    assert "not looked at yet" in table.write_table([TOY], page, log)
    for record in (rehearse(TOY), look(TOY), look(TOY)):
        write_log(record, log)
    assert [own["part"] for own in read_log(log)] == ["rest", "sealed", "sealed"]
    made = table.write_table([TOY], page, log)
    assert "| toy | parity: accuracy | ≥ 60.0 | 50.0" in made
    assert made.splitlines()[2].endswith("| 2 |")
    told = {"study": "old", "part": "reported", "figures": {"F1": {"inside": 0.8, "value": 0.6}}}
    write_log(told, log)
    assert "| old | F1 | 80.0 | 60.0 |" in table.write_table([TOY], page, log)
    assert "| toy | parity: calibration error of 0 | – |" in made  # no target was set
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale words" not in text


def test_the_page_in_the_repository_is_up_to_date_with_the_log(tmp_path: Path) -> None:
    copy = tmp_path / "protocol.md"
    copy.write_bytes(table.PAGE.read_bytes())
    table.write_table(find_studies(), copy)
    assert copy.read_text(encoding="utf-8") == table.PAGE.read_text(encoding="utf-8")


def test_every_line_of_the_log_names_date_commit_and_part() -> None:
    for record in read_log(protocol.LOG):
        assert {"study", "data", "part", "date", "commit", "figures"} <= record.keys()
        assert orjson.dumps(record)


def say(record: dict[str, Any], *names: str) -> str:
    return " / ".join(f"{100 * record['figures'][name]['value']:.1f}" for name in names) + " %"


def test_the_guide_to_puns_claims_what_the_log_says() -> None:
    guide = (protocol.ROOT / "docs" / "how-to" / "read-homophones.md").read_text(encoding="utf-8")
    readings = ("first reading: accuracy", "first five: accuracy")
    found = ("f1 of pun", "false alarms of pun")
    last = {(own["study"], own["part"]): own for own in read_log(protocol.LOG)}
    for model in ("trigram", "frequencies"):
        parts = [last.get((f"puns/{model}", part)) for part in ("rest", "sealed")]
        told = [say(own, *readings) if own else "not looked at" for own in parts]
        assert f"| {told[0]} | {told[1]} |\n" in guide
        for cases in ("detection", "detection, picture described"):
            names = [f"{cases}: {figure}" for figure in found]
            told = [say(own, *names) if own else "not looked at" for own in parts]
            assert f"| {told[0]} | {told[1]} |\n" in guide
