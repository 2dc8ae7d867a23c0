"""Replies of a strong model, replayed: what a careful reader accepts is accepted at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.memeintent.task import parse_reply
from memantics.benchmarks.mer_bench.judgement import Judgement, judge
from memantics.benchmarks.toxicn_mm.replies import parse_target, parse_type, parse_verdict
from memantics.core.records import Form
from memantics.registry import find_tasks
from memantics.tasks.parse import parse_letter

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("strong_model.jsonl").read_text("utf-8").splitlines()
]
TYPES = {"A": "targeted", "B": "offence", "C": "sexual", "D": "dispirited", "E": "none"}


def form_of(task: str) -> Form:
    ref = find_tasks([task])[0]
    made = ref.make({}, ref.card.splits[0], ref.benchmark.sample(), None)
    return next(made.items()).form


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_reply_is_accepted_and_read_right(row: dict[str, Any]) -> None:
    reply, wanted = row["reply"], row["value"]
    match row["task"]:
        case "mquest/qa":
            assert parse_letter(reply, row["options"]) == wanted
        case "memeintent/intent":
            assert parse_reply(reply, first_line=False) == wanted
        case "toxicn_mm/detection":
            assert parse_verdict(reply) == wanted
        case "toxicn_mm/type":
            assert parse_type(reply, form_of("toxicn_mm/type")) == TYPES[wanted]
        case "toxicn_mm/target":
            assert parse_target(reply, form_of("toxicn_mm/target")) == "community"
        case "mer_bench/judge":
            found = judge(reply, row["target"], "RF", "all")
            assert found.broken == ()
            assert found == Judgement(**wanted, other=found.other)
        case other:
            pytest.fail(f"no reader for {other}")


def test_every_task_with_replies_is_replayed() -> None:
    judged = [row for row in ROWS if row["task"] == "mer_bench/judge"]
    assert (len(ROWS), len(judged)) == (46, 11)
