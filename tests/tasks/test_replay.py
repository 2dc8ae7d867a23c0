"""Replies of a strong model, replayed: what a careful reader accepts is accepted at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.memeintent.plugin import parse_reply
from memantics.benchmarks.mer_bench.judgement import EditJudgement, judge
from memantics.benchmarks.parsing import parse_letter
from memantics.benchmarks.registry import find_tasks
from memantics.benchmarks.toxicn_mm.plugin import parse_target, parse_type, parse_verdict
from memantics.core.records import Form
from memantics.core.task import Unparsed

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("strong_model.jsonl").read_text("utf-8").splitlines()
]
TYPES = {"A": "targeted", "B": "offence", "C": "sexual", "D": "dispirited", "E": "none"}


def form_of(task: str) -> Form:
    ref = find_tasks([task])[0]
    made = ref.make({}, ref.card.splits[0], ref.benchmark.sample(), None)
    return next(made.items()).form


def read(row: dict[str, Any]) -> object:
    """What is read today; ``Unparsed`` where the model would be asked again."""
    reply = row["reply"]
    match row["task"]:
        case "mquest/qa":
            return parse_letter(reply, row["options"])
        case "memeintent/intent":
            return parse_reply(reply, first_line=False)
        case "toxicn_mm/detection":
            return parse_verdict(reply)
        case "toxicn_mm/type":
            return parse_type(reply, form_of("toxicn_mm/type"))
        case "toxicn_mm/target":
            return parse_target(reply, form_of("toxicn_mm/target"))
        case "mer_bench/judge":
            found = judge(reply, row["target"], "RF", "all")
            if found.broken:
                raise Unparsed("; ".join(map(str, found.broken)))
            return found
        case other:
            pytest.fail(f"no reader for {other}")


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_reply_is_accepted_and_read_right(row: dict[str, Any]) -> None:
    found, wanted = read(row), row["value"]
    match row["task"]:
        case "mer_bench/judge":
            assert isinstance(found, EditJudgement)
            assert found == EditJudgement(**wanted, other=found.other)
        case "toxicn_mm/type":
            assert found == TYPES[wanted]
        case "toxicn_mm/target":
            assert found == "community"
        case _:
            assert found == wanted


def test_every_task_with_replies_is_replayed() -> None:
    judged = [row for row in ROWS if row["task"] == "mer_bench/judge"]
    assert (len(ROWS), len(judged)) == (46, 11)
