"""Scoring: each sample by itself for the viewer, and the task's own figures over all."""

from __future__ import annotations

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from memantics.actions.inspection import Setup, open_scoring, score_outcomes, unpack_item
from memantics.core.records import Item, Outcome
from memantics.core.task import Task
from memantics.inspect_tasks.solver import judge_output
from memantics.report.inspection import mark_sample, name_figures
from memantics.report.payload import show_value


@metric(scores="unreduced")
def figures(
    task: str,
    data: str | None = None,
    split: str | None = None,
    invalid: str | None = None,
    options: dict[str, str] | None = None,
) -> Metric:
    """The task's figures with their intervals, and the counts of statuses."""
    setup = Setup(task, data, split, invalid, tuple(sorted((options or {}).items())))

    def compute(scores: list[SampleScore]) -> Value:
        scoring = open_scoring(setup)
        rows, counts = score_outcomes(scoring, [read_outcome(score) for score in scores])
        found = name_figures(rows, scoring.main)
        # A call that failed is an error of its sample here, which Inspect counts by itself.
        kept = {status: n for status, n in counts.items() if status != "failed"}
        return found | {f"{status} items": float(n) for status, n in kept.items()}

    return compute


def read_outcome(score: SampleScore) -> Outcome:
    """How a sample ended, from its score alone."""
    facts = score.score.metadata or {}
    item = unpack_item(facts["item"])
    return Outcome(item, facts["status"], facts["value"], facts["attempts"])


@scorer(metrics=[], name="memantics")
def read_answer(
    task: str,
    data: str | None = None,
    split: str | None = None,
    invalid: str | None = None,
    options: dict[str, str] | None = None,
) -> Scorer:
    """The answer as the task reads it, right, wrong or with the task's own mark."""
    setup = Setup(task, data, split, invalid, tuple(sorted((options or {}).items())))

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's seam
        scoring = open_scoring(setup)
        item = unpack_item(state.metadata["item"])
        judged = judge_output(scoring, item, state.output)
        mark = find_mark(scoring, item, Outcome(item, judged.status, judged.value))
        return Score(
            value=mark_sample(judged.status, judged.value, item.gold, mark),
            answer=show_value(judged.value),
            explanation=judged.reason or None,
            metadata={
                "status": judged.status,
                "value": judged.value,
                "attempts": int(state.metadata.get("attempts", 1)),
                "item": state.metadata["item"],
            },
        )

    return score


def find_mark(task: Task, item: Item, outcome: Outcome) -> float | None:
    """The item's own value of the main figure, where right and wrong do not say it."""
    if task.marks is not None:
        marks = task.marks([outcome]).get(task.main)
        return marks[0] if marks else None
    if item.gold is None or isinstance(item.gold, dict | list):
        rows = (row for row in task.score([outcome]) if row.key == task.main and not row.by)
        return next((row.value for row in rows), None)
    return None
