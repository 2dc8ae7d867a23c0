"""Runs of one task with one thing changed each, as a finding for each model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memantics.core.finding import Finding, Gap
from memantics.core.records import Outcome, Score
from memantics.core.rundir import read_facts
from memantics.registry import open_task_of_run
from memantics.run.audit.needs import (
    HEART,
    PICTURE_ALONE,
    WORDS_ALONE,
    judge_memory,
    judge_needs,
)
from memantics.run.score import read_outcomes


def audit_probed(folders: Sequence[Path]) -> tuple[list[Finding], list[Gap]]:
    """What the answers of each model need, of the tasks that these runs are of."""
    plain: dict[tuple[str, str], Sequence[Outcome]] = {}
    probed: dict[tuple[str, str], dict[str, Sequence[Outcome]]] = {}
    recalled: dict[tuple[str, str], dict[str, Score]] = {}
    for folder in folders:
        facts = read_facts(folder)
        _, task = open_task_of_run(facts, None)
        outcomes, key = read_outcomes(folder, task), (task.name, facts.model)
        if not facts.probe:
            plain[key] = outcomes
        elif facts.probe.startswith("memory="):
            scores = {score.key: score for score in task.score(outcomes) if not score.by}
            if "recalled" in scores:
                recalled.setdefault(key, {})[facts.probe] = scores["recalled"]
        else:
            probed.setdefault(key, {})[facts.probe] = outcomes
    findings, gaps = [], []
    for key in dict.fromkeys((*plain, *probed, *recalled)):
        changed = probed.get(key, {})
        found = judge_needs(*key, plain[key], changed) if key in plain else None
        learnt = judge_memory(*key, recalled.get(key, {}), changed.get("meme=removed", ()))
        findings += [finding for finding in (found, learnt) if finding is not None]
        if found is None:
            need = f"a plain run, one with {WORDS_ALONE} and one with {PICTURE_ALONE}"
            gaps.append(Gap(key[0], f"what needs both, {key[1]}", f"it takes {need}"))
        if learnt is None:
            asked = " or ".join(HEART)
            gaps.append(
                Gap(key[0], f"what is known by heart, {key[1]}", f"it takes a run with {asked}")
            )
    if not folders:
        hint = "memantics probe TASK --model MODEL --probe memory=caption; then --run DIR"
        gaps.append(Gap("", "what needs both, what is known by heart", "no run was given", hint))
    return findings, gaps
