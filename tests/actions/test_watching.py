"""What a page about a run that goes on tells: failures by reason, cost, and the time left."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memantics.core.records import Answer, Reply
from memantics.core.rundir import RunWriter, read_facts, write_facts
from memantics.evaluation.browse import RunFolder
from tests.runs import write_run


def test_failures_are_counted_by_reason_and_tokens_have_a_price(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", "memeintent/intent", {"1": "a text", "2": None, "3": None})
    facts = replace(read_facts(folder), prices=(1.0, 10.0))
    write_facts(folder, facts)
    with RunWriter(folder, facts) as writer:
        reply = Reply("a text", tokens_in=1_000_000, tokens_out=100_000)
        writer.add_answer(Answer("1", 0, "answered", reply, "a text"))
        writer.add_answer(Answer("2", 0, "failed", Reply(""), reason="HTTP 500"))
        writer.add_answer(Answer("3", 0, "failed", Reply(""), reason="HTTP 500"))
    found = RunFolder(tmp_path).spending("a")
    assert found.reasons == {"failed: HTTP 500": 2}
    assert found.tokens == 1_100_000
    assert found.cost == pytest.approx(2.0)


def test_the_time_left_is_told_by_the_pace_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "a", "memeintent/intent", {"1": "a", "2": "b"})
    begun = (datetime.now(UTC) - timedelta(seconds=60)).isoformat(timespec="seconds")
    facts = replace(read_facts(folder), started=begun)
    write_facts(folder, facts)
    monkeypatch.setattr("memantics.evaluation.browse._guess_total", lambda _: 4)
    assert RunFolder(tmp_path).get("a").left in ("0:01:00", "0:01:01", "0:01:02")
    write_facts(folder, replace(facts, finished=begun))
    assert RunFolder(tmp_path).get("a").left == ""
