"""Planted truths: each flaw is named with its size, and clean data get no finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.data import GROUP_KINDS
from memantics.core.finding import Finding
from memantics.evaluation.audits.benchmark import AuditNotes
from memantics.evaluation.audits.labels import LabelWishes, audit_label
from memantics.evaluation.audits.options import ChanceLevel
from memantics.evaluation.audits.texts import find_text_shortcuts
from memantics.moderation.classifier import find_labelled
from memantics.moderation.resplit import group_memes, judge_groups, settle_verdicts
from tests.audit.planted import make_memes, make_questions, write_table
from tests.audit.toys import make_exam

pytestmark = pytest.mark.slow


def audit(folder: Path, **flaws: float) -> dict[str, Finding]:
    return {found.key: found for found in look(folder, make_memes(0, 1000, **flaws)).findings}


def look(folder: Path, memes: list[dict[str, str]]) -> AuditNotes:
    table = write_table(memes, folder / "memes.csv")
    return audit_label(f"{table}/label", None, LabelWishes(GROUP_KINDS, True, folder / "out"))


def covers(found: Finding, truth: float) -> bool:
    low, high = found.score.low, found.score.high
    assert low is not None
    assert high is not None
    return low <= truth <= high


def test_templates_that_carry_the_label(tmp_path: Path) -> None:
    found = audit(tmp_path, templates=0.9, content=0.0)
    told = found["group.template"]
    assert told.verdict == "broken"
    # Nine in ten labels follow the template, half of the rest by chance.
    assert covers(told, 0.95)
    fall = found["resplit.template"]
    assert fall.verdict == "broken"
    # Without the template nothing tells the label: all of what is above chance is lost.
    assert covers(fall, 0.95 - 0.5)
    assert found["group.time"].verdict == found["resplit.text"].verdict == "sound"


def test_a_crawl_that_carries_the_label(tmp_path: Path) -> None:
    found = audit(tmp_path, crawl=0.9)
    assert found["group.time"].verdict == "broken"
    assert covers(found["group.time"], 0.95)
    assert found["group.template"].verdict == "sound"


def test_flipped_labels(tmp_path: Path) -> None:
    notes = look(tmp_path, make_memes(flips=0.08))
    found = {finding.key: finding for finding in notes.findings}
    assert found["labels.noise"].verdict == "worth knowing"
    assert covers(found["labels.noise"], 0.08)
    assert {key for key, own in found.items() if own.verdict != "sound"} == {"labels.noise"}
    truth = {row["id"]: row["label"] for row in make_memes()}
    given = {row["id"]: row["label"] for row in make_memes(flips=0.08)}
    wrong = {name for name in truth if truth[name] != given[name]}
    assert 60 <= len(wrong) <= 100
    lines = notes.files["likely label errors"].read_text().splitlines()
    first = "".join(lines[: len(wrong)])
    assert sum(f'"id":"{name}"' in first for name in wrong) >= 0.8 * len(wrong)


def test_judges_that_do_not_know_give_no_share(tmp_path: Path) -> None:
    notes = look(tmp_path, make_memes(content=0.0))
    assert all(found.verdict == "sound" for found in notes.findings)
    assert "label error rate" in {gap.check for gap in notes.gaps}


def test_questions_that_options_answer() -> None:
    exam = make_exam(make_questions(1200, 0.3))
    (alone, _), gaps = find_text_shortcuts(exam, ChanceLevel(0.25, "a guess"))
    assert not gaps
    assert (alone.key, alone.verdict) == ("shortcut.options_only", "broken")
    # Three in ten are answered from the options, the others guessed among four.
    assert covers(alone, 0.3 + 0.7 * 0.25)
    (clean, _), _ = find_text_shortcuts(make_exam(make_questions(1200, 0.0)), ChanceLevel(0.25, ""))
    assert clean.verdict == "sound"


def test_clean_draws_give_no_alarm(tmp_path: Path) -> None:
    alarms = []
    for seed in range(100):
        table = write_table(make_memes(seed, 160), tmp_path / "memes.csv")
        data = find_labelled(f"{table}/label")
        told = [judge_groups(data, group_memes(data, by)) for by in ("template", "time")]
        found = settle_verdicts([draft for draft in told if draft is not None])
        alarms += [seed] if any(own.verdict != "sound" for own in found) else []
    assert len(alarms) <= 5, alarms


def test_a_clean_set_gets_no_finding(tmp_path: Path) -> None:
    assert {own.verdict for own in look(tmp_path, make_memes(1, 160)).findings} == {"sound"}
