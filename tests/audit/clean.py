"""False alarms: whole audits of made-up benchmarks that have no flaw.

``python -m tests.audit.clean 100 OUT.jsonl`` draws a hundred, one line for each. A draw is a
registered set of labelled memes (``audit NAME --all``) and a task of questions, audited as one
page would be. The words of a clean meme tell its label: all of them in even draws, four in five of
them in odd draws, where judges err. That the text alone tells the label is therefore true and no
alarm; all other findings are.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memantics.benchmarks.plugin import AuditHooks
from memantics.core.finding import Finding
from memantics.core.waiting import run_sync
from memantics.evaluation.audit import AuditSettings, audit
from memantics.evaluation.audits.benchmark import audit as audit_tasks
from memantics.evaluation.datasets import add_release
from memantics.evaluation.own_columns import LabelledColumns
from tests.audit.planted import make_memes, write_table
from tests.audit.toys import CARD, make_items, make_subject, name_pictures, trivial

SIZE = 180
TRUE = frozenset({"shortcut.text_only"})  # of the labelled set alone


def draw_findings(seed: int, folder: Path) -> tuple[list[Finding], list[Finding]]:
    """All findings of a clean benchmark: of its labelled memes, and of its questions."""
    memes = make_memes(seed, SIZE, evidence=0.8 if seed % 2 else 1.0)
    table = write_table(memes, folder / f"clean{seed}.csv")
    add_release(str(table), None, columns=LabelledColumns(("label",), text="text"))
    settings = AuditSettings(everything=True, runs=folder / "runs")
    labelled = audit(f"clean{seed}", settings=settings)
    items = make_items(SIZE, seed=seed)
    hooks: AuditHooks[Any] = AuditHooks(pictures=name_pictures)
    subject = make_subject(folder / "images", items, complete=False, hooks=hooks)
    asked = run_sync(audit_tasks(subject, [CARD], trivial()))
    return list(labelled.findings), asked.findings


def list_alarms(found: tuple[list[Finding], list[Finding]]) -> list[str]:
    """The findings that a clean benchmark should not have, by key."""
    labelled, asked = found
    wrong = [one for one in labelled if one.verdict != "sound" and one.key not in TRUE]
    wrong += [one for one in asked if one.verdict != "sound"]
    return [f"{one.key} ({one.verdict}, p = {one.p})" for one in wrong]


def main(draws: int, out: Path, first: int) -> None:
    """Draw, and write a line for each draw as it ends."""
    with TemporaryDirectory() as name, out.open("w", encoding="utf-8") as file:
        os.environ["MEMANTICS_HOME"] = f"{name}/home"
        for seed in range(first, first + draws):
            start = time.process_time()
            found = draw_findings(seed, Path(name))
            line = {
                "seed": seed,
                "findings": sum(map(len, found)),
                "alarms": list_alarms(found),
                "cpu_s": round(time.process_time() - start, 2),
            }
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
