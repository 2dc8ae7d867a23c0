"""A detector file that cannot judge is refused in one line; it never says "harmless" instead."""

from __future__ import annotations

import json
import math

import pytest

from tests.commands import Ran, Shell
from tests.hostile.cases import SEED, Case, count_cases, noted, read_corpus, write_case
from tests.hostile.detectors import SOUND, build, generate

TEXTS = ("今天天气不错", "Monday again")


def predict(shell: Shell, case: Case) -> Ran:
    (shell.folder / "changed.zip").write_bytes(build(case))
    return shell.run("detector", "predict", "changed.zip", *TEXTS, "--json")


def check(ran: Ran) -> str:
    """``refused`` or ``judged``; anything else is a failure."""
    if ran.code == 2:
        lines = ran.err.strip().splitlines()
        assert len(lines) == 1, ran.err
        assert lines[0].startswith("error: ")
        assert "changed.zip" in lines[0] or "this detector" in lines[0]
        assert lines[0].isprintable()
        assert ran.out == ""
        return "refused"
    assert (ran.code, ran.err) == (0, "")
    rows = json.loads(ran.out)
    assert len(rows) == len(TEXTS)
    for row in rows:
        if row["probability"] is None:  # not scored: people look at it
            assert (row["label"], row["type"], row["types"]) == (None, None, {})
            assert row["not_scored"]
            assert row["review"]
            continue
        chances = [row["probability"], *row["types"].values()]
        assert all(math.isfinite(chance) and 0 <= chance <= 1 for chance in chances), row
        assert sum(row["types"].values()) == pytest.approx(1, abs=1e-6)
        assert row["label"] in (0, 1)
    return "judged"


@pytest.mark.parametrize("case", read_corpus("detectors"), ids=write_case)
def test_known_files_are_refused(shell: Shell, case: Case) -> None:
    assert check(predict(shell, case)) == "refused"


@pytest.mark.slow
def test_changed_files_are_refused_or_judge(shell: Shell) -> None:
    ends = {"refused": 0, "judged": 0}
    for case in generate(SEED, count_cases(60)):
        with noted("detectors", case):
            ends[check(predict(shell, case))] += 1
    # A generator that breaks everything, or nothing, would test nothing.
    assert ends["refused"] > 0.3 * sum(ends.values())


def test_a_text_that_a_changed_card_leaves_without_a_score_is_for_people(shell: Shell) -> None:
    ran = predict(shell, {"changes": [{"part": "card.json", "value": {"a": 1}}]})
    assert check(ran) == "judged"
    assert any(row["probability"] is None for row in json.loads(ran.out))


def test_the_sound_file_judges(shell: Shell) -> None:
    assert SOUND.exists()
    assert check(predict(shell, {"changes": []})) == "judged"
