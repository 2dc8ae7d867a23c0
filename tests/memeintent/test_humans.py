"""The human evaluation: thirty memes, blind, repeatable."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.memeintent.humans import export_human_evaluation
from memantics.core.errors import InputError, StoreError
from memantics.core.queue import ITEMS, read_queue
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


def test_thirty_memes_times_settings(runs: list[Path], tmp_path: Path) -> None:
    done = export_human_evaluation(runs, tmp_path / "out", seed=4)
    card, queue = read_queue(done.queue)
    assert card.workflow == "rate-outputs"
    assert (done.memes, done.settings, done.rows) == (30, 3, 90)
    assert len(queue) == len(lines(done.key)) == 90
    assert set(Counter(item.group for item in queue).values()) == {3}
    assert not {"7", "8", "9"} & {item.group for item in queue}


def test_the_queue_is_blind_and_the_key_opens_it(runs: list[Path], tmp_path: Path) -> None:
    done = export_human_evaluation(runs, tmp_path / "out", seed=4)
    text = (done.queue / "items.jsonl").read_text(encoding="utf-8")
    assert "openai" not in text
    assert "options" not in text
    key = {row["id"]: row for row in lines(done.key)}
    _, queue = read_queue(done.queue)
    for item in queue:
        (output,) = (own.value for own in item.shown if own.label == "Output")
        assert str(output).endswith(key[item.id]["options"]["background"])
    # Settings do not come in blocks or in turn.
    order = [key[item.id]["model"] for item in queue]
    assert order[:3] * 30 != order
    assert len(set(order[:30])) == 3


def test_the_seed_decides_and_nothing_else(runs: list[Path], tmp_path: Path) -> None:
    first, again, other = (
        (export_human_evaluation(runs, tmp_path / name, seed=seed).queue / ITEMS).read_bytes()
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
