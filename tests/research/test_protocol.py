"""The locked test set never changes, nothing is trained on it, and evaluations are logged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from memantics.metrics.weighted import Case, MetricSpec
from research import protocol, table
from research.protocol import (
    Claim,
    Row,
    Study,
    cross_validate,
    evaluate_on_test_set,
    hash_group,
    is_in_test_set,
    read_log,
    split_folds,
    take_development_set,
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
    (
        Claim("parity", MetricSpec("accuracy"), 0.6),
        Claim("parity", MetricSpec("calibration_error", "0")),
    ),
    compositions={"all even": ("kind", {"even": 1.0}), "unheard of": ("kind", {"prime": 1.0})},
)


def test_a_fifth_of_the_groups_is_in_the_test_set_and_never_changes() -> None:
    test = {row.group for row in ROWS if is_in_test_set("toy data", row.group)}
    assert 25 <= len(test) <= 55
    assert hash_group("mer_bench", "hello") == pytest.approx(0.0245, abs=1e-4)
    # The hash includes the name of the data set.
    assert hash_group("mquest", "hello") != hash_group("mer_bench", "hello")


def test_folds_cover_the_development_set_once_and_are_group_disjoint() -> None:
    development = take_development_set("toy data", ROWS)
    folds = split_folds("toy data", development, 4)
    assert sorted(row.id for fold in folds for row in fold) == sorted(row.id for row in development)
    groups = [{row.group for row in fold} for fold in folds]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert min(map(len, folds)) > 40


def test_cross_validation_uses_no_test_row_and_the_evaluation_only_those() -> None:
    development, test = cross_validate(TOY), evaluate_on_test_set(TOY)
    assert development["rows"] + test["rows"] == len(ROWS)
    assert development["ids"] != test["ids"]
    accuracy = test["metrics"]["parity: accuracy"]
    assert accuracy["value"] == 0.5
    assert accuracy["n"] == test["rows"]
    assert test["metrics"]["parity: calibration error of 0"]["value"] == pytest.approx(0, abs=0.2)
    assert test["composition"]["kind"] == {"even": 0.5, "odd": 0.5}
    assert test["reweighted"]["all even"]["parity: accuracy"] == 1.0
    assert test["reweighted"]["unheard of"]["parity: accuracy"] is None


def test_evaluations_are_logged_counted_and_shown(tmp_path: Path) -> None:
    log, page = tmp_path / "evaluations.jsonl", tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nstale words\n{table.END}\nafter\n", encoding="utf-8")
    assert "no test-set evaluation" in table.write_table([TOY], page, log)
    for record in (cross_validate(TOY), evaluate_on_test_set(TOY), evaluate_on_test_set(TOY)):
        write_log(record, log)
    assert [record["part"] for record in read_log(log)] == ["development", "test", "test"]
    made = table.write_table([TOY], page, log)
    assert "| toy | parity: accuracy | ≥ 60.0 | 50.0" in made
    assert made.splitlines()[2].endswith("| 2 |")
    metrics = {"F1": {"development": 0.8, "value": 0.6}}
    write_log({"study": "old", "part": "reported", "metrics": metrics}, log)
    assert "| old | F1 | 60.0 | 80.0 |" in table.write_table([TOY], page, log)
    assert "| toy | parity: calibration error of 0 | – |" in made  # no target was set
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale words" not in text


def test_the_page_in_the_repository_is_up_to_date_with_the_log(tmp_path: Path) -> None:
    copy = tmp_path / "protocol-results.md"
    copy.write_bytes(table.PAGE.read_bytes())
    table.write_table(find_studies(), copy)
    assert copy.read_text(encoding="utf-8") == table.PAGE.read_text(encoding="utf-8")


def test_every_line_of_the_log_names_date_commit_and_part() -> None:
    for record in read_log(protocol.LOG):
        assert {"study", "data", "part", "date", "commit", "metrics"} <= record.keys()
        assert orjson.dumps(record)


def say(record: dict[str, Any], *names: str) -> str:
    """The values of a record, with intervals for the locked test set."""

    def tell(value: dict[str, float]) -> str:
        low, high = (f"{100 * value[name]:.1f}" for name in ("low", "high"))
        return f"{100 * value['value']:.1f}" + (
            f" ({low}–{high})" if record["part"] == "test" else ""
        )

    return " / ".join(tell(record["metrics"][name]) for name in names) + " %"


def test_the_guide_to_puns_claims_what_the_log_says() -> None:
    guide = (protocol.ROOT / "docs" / "how-to" / "read-homophones.md").read_text(encoding="utf-8")
    readings = ("first reading: accuracy", "first five: accuracy")
    found = ("f1 of pun", "false positive rate of pun")
    last = {(own["study"], own["part"]): own for own in read_log(protocol.LOG)}
    for model in ("trigram", "frequencies"):
        parts = [last.get((f"puns/{model}", part)) for part in ("test", "development")]
        told = [say(own, *readings) if own else "not evaluated" for own in parts]
        assert f"| {told[0]} | {told[1]} |\n" in guide
        for cases in ("detection", "detection, image described"):
            names = [f"{cases}: {metric}" for metric in found]
            told = [say(own, *names) if own else "not evaluated" for own in parts]
            assert f"| {told[0]} | {told[1]} |\n" in guide
