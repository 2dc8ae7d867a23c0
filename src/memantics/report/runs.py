"""Finished runs, read from their directories and put beside the runs they compare with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.core.errors import InputError
from memantics.core.rundir import RunFacts, Scores, read_facts, read_scores

STARTER_NOTE = "Starter pack: a sample to try things on. Scores here rank nothing."


@dataclass(frozen=True, slots=True)
class Run:
    """One run directory: what was run and how it scored. Items and answers stay on disk."""

    folder: Path
    facts: RunFacts
    scores: Scores

    @property
    def name(self) -> str:
        """The folder's own name, as text even where the file system holds other bytes."""
        return os.fsencode(self.folder.resolve().name).decode("utf-8", "replace")

    @property
    def task(self) -> str:
        """``BENCHMARK/TASK``."""
        head = f"{self.facts.benchmark}/"
        return self.facts.task if self.facts.task.startswith(head) else head + self.facts.task

    @property
    def kind(self) -> str:
        """``starter``, ``release`` or what else the run says about its data."""
        return str(self.facts.data.get("kind", ""))

    @property
    def ground(self) -> tuple[str, ...]:
        """What two runs must share to stand in one table: the same questions were asked."""
        facts = self.facts
        checksum = str(facts.data.get("checksum", ""))
        drawn = f"{facts.sample} {facts.seed}" if facts.sample is not None else ""
        return (self.task, self.kind, checksum, facts.split, str(facts.limit), drawn)


def load_runs(folders: Sequence[Path]) -> tuple[Run, ...]:
    """Read facts and scores of run directories; a folder given twice counts once."""
    if not folders:
        raise InputError("no run directory was given", hint="memantics report RUN… --out FILE")
    distinct = {folder.resolve(): folder for folder in folders}
    return tuple(
        Run(folder, read_facts(folder), read_scores(folder)) for folder in distinct.values()
    )
