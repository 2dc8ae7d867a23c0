"""The human evaluation: thirty memes, blind, repeatable."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.memeintent.humans import export_human_evaluation
from memantics.core.errors import InputError, StoreError
from tests.runs import write_run


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    answers = {str(n): f"the meme says {n}" for n in range(1, 41)}
    return [
        write_run(
            tmp_path / name,
            "memeintent/intent",
            {key: f"{text} {name}" for key, text in answers.items() if key != skipped},
            model=f"openai/{name}",
            options={"background": name},
        )
        for name, skipped in (("none", "7"), ("auto", "8"), ("human", "9"))
    ]


def test_thirty_memes_times_settings_and_three_scales(runs: list[Path], tmp_path: Path) -> None:
    done = export_human_evaluation(runs, tmp_path / "out", seed=4)
    queue, key = lines(done.queue), lines(done.key)
    assert (done.memes, done.settings, done.rows) == (30, 3, 90)
    assert len(queue) == len(key) == 90
    assert set(Counter(row["meme"] for row in queue).values()) == {3}
    assert not {"7", "8", "9"} & {row["meme"] for row in queue}
    for row in queue:
        names = [scale["name"] for scale in row["fields"]]
        assert names == ["completeness", "relevance", "correctness"]
        assert {(scale["low"], scale["high"]) for scale in row["fields"]} == {(1, 5)}
        assert row["annotators"] == 2


def test_the_queue_is_blind_and_the_key_opens_it(runs: list[Path], tmp_path: Path) -> None:
    done = export_human_evaluation(runs, tmp_path / "out", seed=4)
    text = done.queue.read_text(encoding="utf-8")
    assert "openai" not in text
    assert "options" not in text
    key = {row["id"]: row for row in lines(done.key)}
    for row in lines(done.queue):
        assert row["statement"].endswith(key[row["id"]]["options"]["background"])
    # Settings do not come in blocks or in turn.
    order = [key[row["id"]]["model"] for row in lines(done.queue)]
    assert order[:3] * 30 != order
    assert len(set(order[:30])) == 3


def test_the_seed_decides_and_nothing_else(runs: list[Path], tmp_path: Path) -> None:
    first, again, other = (
        export_human_evaluation(runs, tmp_path / name, seed=seed).queue.read_bytes()
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again != other


def test_what_was_handed_out_is_never_overwritten(runs: list[Path], tmp_path: Path) -> None:
    export_human_evaluation(runs, tmp_path / "out")
    with pytest.raises(StoreError, match="exists already"):
        export_human_evaluation(runs, tmp_path / "out")


def test_runs_that_do_not_fit_are_refused(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run"):
        export_human_evaluation([], tmp_path / "out")
    with pytest.raises(InputError, match="twice"):
        export_human_evaluation([runs[0], runs[0]], tmp_path / "out")
    other = write_run(tmp_path / "other", "memeintent/caption", {"1": "a cat"})
    with pytest.raises(InputError, match="memeintent/caption"):
        export_human_evaluation([other], tmp_path / "out")
    strange = write_run(tmp_path / "strange", "memeintent/intent", {"x": "a"}, checksum="else")
    with pytest.raises(InputError, match="different data"):
        export_human_evaluation([runs[0], strange], tmp_path / "out")


def test_few_shared_memes_are_all_taken(runs: list[Path], tmp_path: Path) -> None:
    assert export_human_evaluation(runs[:1], tmp_path / "out", memes=50).memes == 39
