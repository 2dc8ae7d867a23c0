"""``audit_chains``: what the chains of thought of a run say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from memantics.actions.report import RunLike, find_folder
from memantics.core.data import DataKind, open_once
from memantics.core.errors import InputError
from memantics.core.result import Table
from memantics.core.rundir import read_facts
from memantics.registry import find_source, open_task_of_run
from memantics.run.chains import ChainAudit, Must
from memantics.run.chains import audit_chains as look


def audit_chains(run: RunLike) -> ChainAudit:
    """Count chains of thought that were cut off, that do not name what they must, or contradict.

    What must be named comes from the data of the benchmark: the pun word and what it sounds like,
    or an element that a question cites. No model is asked. ``run`` is a run or its folder.
    """
    folder = find_folder(run)
    facts = read_facts(folder)
    ref, task = open_task_of_run(facts, None)
    must: Must = {}
    hook = ref.benchmark.plugin.must_name
    if hook is not None:
        kind = cast("DataKind", facts.data.get("kind"))
        release = open_once(ref.benchmark.plugin.open_release, find_source(ref.benchmark, kind))
        must = hook(release)
    found = look(folder, task, must)
    if not found.chains:
        raise InputError(
            f"{folder} holds no chain of thought", hint="ask a model that thinks before it answers"
        )
    return found


def tabulate_chains(found: Sequence[ChainAudit]) -> Table:
    """Runs with the counts of their chains."""
    columns = ("run", *(f">{n}" for n in ("answers", "chains", "cut off", "silent", "contrary")))
    rows = tuple(
        (
            Path(audit.run).name,
            *map(str, (audit.answers, audit.chains, audit.cut_off)),
            f"{len(audit.silent)} of {audit.checked}",
            f"{len(audit.contrary)} of {audit.decided}",
        )
        for audit in found
    )
    return Table(columns, rows)
