"""Generate the table of ``docs/research/embedded-reader.md``: the reader and trivial baselines.

``python -m docs.reader`` runs every task of the shipped benchmarks on the sample data and writes
the table and the answers behind it. ``--check`` only reports whether both are up to date.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import memantics as mm
from memantics.benchmarks.registry import PACKAGE, find_benchmarks
from memantics.core.records import Score
from memantics.metrics.rounding import settle
from memantics.models.embedded.reader import NAME

PAGE = Path(__file__).parent / "research" / "embedded-reader.md"
BEGIN, END = "<!-- table: python -m docs.reader -->", "<!-- end of table -->"
# Answers by task and item; a test counts how many differ on another processor.
ANSWERS = Path(__file__).parents[1] / "tests" / "docs" / "reader-answers.json"
HEAD = ("task", "metric", "n", "reader", "trivial baselines, best first", "below the best baseline")
# Why a trivial baseline beats the reader on a task. A test fails if a task that is below its best
# baseline has no reason here, or if a task with a reason is not below.
REASONS: dict[str, str] = {
    "memeintent/intent": "`majority` is the text that fits these references best; such a text also"
    " beats every published model.",
    "punmemecn/sentiment": "the 15 items come from seven puns, and one pun forms the whole majority"
    " class. On the locked test set the reader is above it.",
    "punmemecn/chat": "the first option is right in 8 of 17 items by chance, where 4 are expected."
    " On the locked test set the reader is above every fixed option.",
    "punmemecn/harmful": "every meme of this task is harmful, so the constant answer is always"
    " right.",
    "toxicn_mm/target": "only one meme has a target, so the majority class is always right.",
}


def list_tasks() -> list[str]:
    """List all tasks of the shipped benchmarks."""
    shipped = [own for own in find_benchmarks().values() if own.folder.parent == SHIPPED]
    return [f"{own.card.name}/{task.name}" for own in shipped for task in own.card.task]


SHIPPED = PACKAGE / "benchmarks"


def run_tasks(out: Path) -> list[mm.Run]:
    """Run the reader on the sample data, without classifiers."""
    settings = mm.EvaluationSettings(data="sample")
    return list(mm.evaluate_suite(list_tasks(), NAME, settings=settings, out=out))


def read_answers(run: mm.Run) -> dict[str, object]:
    """Read the last answer to each item."""
    rows = map(json.loads, (run.folder / "answers.jsonl").read_text(encoding="utf-8").splitlines())
    return dict(sorted((row["item"], row["value"]) for row in rows))


def show_answers(answers: dict[str, dict[str, object]]) -> str:
    """Write all answers as JSON, one per line, so that a diff shows single answers."""
    return json.dumps(answers, ensure_ascii=False, indent=1) + "\n"


def make_table(runs: list[mm.Run]) -> str:
    """Write the table as Markdown."""
    return "\n".join([_row(HEAD), _row(["---"] * len(HEAD)), *map(_row, map(list_cells, runs))])


def list_cells(run: mm.Run) -> list[str]:
    """List the cells of one task: main metric, value of the reader and of the baselines."""
    main = run.facts.main
    own, beside = run.scores[main], find_baselines(run)
    told = "; ".join(f"{name} {_tell(score)}" for name, score in beside)
    below = is_below(run)
    why = REASONS.get(run.task, "no reason given") if below else "no"
    return [f"`{run.task}`", f"`{main}`", str(own.n), _tell(own), told or "–", why]


def find_baselines(run: mm.Run) -> list[tuple[str, Score]]:
    """List the trivial baselines of a task, best first."""
    main = run.facts.main
    found = [
        (name.removeprefix("baseline/"), scores[main])
        for name, scores in run.baselines.items()
        if name.startswith("baseline/") and main in scores and scores[main].value is not None
    ]
    return sorted(found, key=lambda pair: (-(pair[1].value or 0), pair[0]))


def is_below(run: mm.Run) -> bool:
    """Tell whether a trivial baseline has a higher main metric than the reader."""
    value = run.scores[run.facts.main].value or 0.0
    return any(settle(score.value or 0.0) > settle(value) for _, score in find_baselines(run))


def _tell(score: Score) -> str:
    if score.value is None:
        return "undefined"
    span = f" ({score.low:.2f}–{score.high:.2f})" if score.interval else ""
    return f"{score.value:.3f}{span}"


def _row(cells: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def put_into(text: str, table: str) -> str:
    """Put the table between the two markers of a page."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write the table, or check it with ``--check``."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMANTICS_HOME"] = f"{folder}/home"  # no classifiers, no releases
        runs = run_tasks(Path(folder) / "runs")
        made = make_table(runs)
        answers = {run.task: read_answers(run) for run in runs}
    page = PAGE.read_text(encoding="utf-8")
    stale = put_into(page, made) != page
    if "--check" not in sys.argv:
        PAGE.write_text(put_into(page, made), encoding="utf-8")
        ANSWERS.write_text(show_answers(answers), encoding="utf-8")
    sys.stdout.write(f"{made}\n{'to update' if stale else 'up to date'}\n")
    return int(stale and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
