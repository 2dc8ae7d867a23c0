"""``score``: finished answers scored again; no model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memantics.core.rundir import read_facts
from memantics.core.waiting import run_sync
from memantics.registry import open_baselines, open_task_of_run
from memantics.report.runs import Run, load_run
from memantics.run.score import group_repeats, note_repeats, score_run


def score(
    run: str | Path | Run,
    *,
    invalid: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Run:
    """Parse the answers of a run anew, score them, and write ``scores.json``.

    ``run`` is a run or its folder. ``invalid`` is the policy for refused and unparsed answers:
    ``wrong``, ``drop``, ``retry:N`` or ``retry:N,drop``; by default that of the run. ``options``
    take the place of the run's where they only change how answers are counted (``alpha`` and
    ``floor`` of MER-Bench).
    """
    folder = run.folder if isinstance(run, Run) else Path(run)
    ref, task = open_task_of_run(read_facts(folder), invalid, options)
    run_sync(score_run(folder, task, open_baselines(ref.card)))
    facts = read_facts(folder)
    beside = [path.parent for path in folder.resolve().parent.glob("*/run.json")]
    group = [
        value
        for value in beside
        if facts.fingerprint in ((found := read_facts(value)).fingerprint, found.repeat_of)
        and (value / "scores.json").is_file()
    ]
    if len(group) > 1:
        note_repeats(group_repeats(group)[0], task)
    return load_run(folder)
