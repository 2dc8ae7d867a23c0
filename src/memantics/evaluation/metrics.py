"""Extra metrics that ``--metric`` adds to the metrics of a task.

Built-in metrics are in the table ``METRICS``. Other packages register theirs as entry points of the
group ``memantics.metrics``. A metric uses predictions only, so any run can be scored again without
calling a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from numbers import Real
from pathlib import Path
from statistics import fmean
from typing import Literal, get_args

from pydantic import JsonValue

from memantics.core.errors import InputError, StoreError, UnknownName
from memantics.core.plugins import Plugins
from memantics.core.records import Item, Outcome, Score
from memantics.core.result import Result
from memantics.core.rundir import read_scores
from memantics.core.task import Task
from memantics.metrics.agreement import cohen_kappa
from memantics.metrics.classification import accuracy, count_classes, macro_metrics
from memantics.metrics.interval import bootstrap_items
from memantics.metrics.text import rouge_l

AnswerKind = Literal["choice", "boolean", "integer", "text", "record"]
ANSWER_KINDS: frozenset[AnswerKind] = frozenset(get_args(AnswerKind))
NONE = "none"


@dataclass(frozen=True, slots=True)
class PredictedAnswer:
    """One scored item, in the form that a metric receives.

    ``predicted`` is None for a refused or unparsed answer that counts as wrong. ``group`` is the
    meme: items with the same group are not independent.
    """

    gold: JsonValue
    predicted: JsonValue
    group: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A named statistic of predictions.

    ``what`` is a one-line description for listings and reports. ``compute`` is a pure function. It
    returns a finite number, or None where the statistic is undefined; it is never called without
    predictions. ``answers`` are the types of answers that it supports (``choice``: the key of an
    option; ``record``: several fields). ``tasks`` are patterns of task names such as
    ``toxicn_mm/*`` (empty: all tasks). ``resamples`` is the number of bootstrap resamples over
    memes for the 95% confidence interval; 0 means no interval. ``bounds`` are the smallest and the
    largest possible value; without them, a metric whose resamples are all equal has no interval.

    >>> rate = Metric("yes_rate", "proportion of answers that are yes",
    ...               lambda rows: sum(row.predicted == "yes" for row in rows) / len(rows))
    >>> rate.compute([PredictedAnswer("no", "yes", "m1"), PredictedAnswer("no", None, "m2")])
    0.5
    """

    name: str
    what: str
    compute: Callable[[Sequence[PredictedAnswer]], float | None]
    answers: frozenset[AnswerKind] = ANSWER_KINDS
    tasks: tuple[str, ...] = ()
    resamples: int = 2000
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        unknown = sorted(set(self.answers) - ANSWER_KINDS)
        if not self.name or self.name == NONE or not self.name.isprintable():
            raise InputError(f"{self.name!r} is not a valid metric name")
        if unknown or not self.answers:
            wanted = ", ".join(sorted(ANSWER_KINDS))
            raise InputError(f"metric {self.name!r}: answers must be among {wanted}")
        if self.resamples < 0:
            raise InputError(
                f"metric {self.name!r}: resamples must be 0 or more, not {self.resamples}"
            )


def find_answer_kind(item: Item) -> AnswerKind:
    """Return the type of answer that an item asks for.

    >>> from memantics.core.records import Field, Form, Option
    >>> options = (Option("A", "cats"), Option("B", "dogs"))
    >>> find_answer_kind(Item("1", "m", "A", Form("?", (Field("answer", "choice", options),))))
    'choice'
    """
    if isinstance(item.gold, Mapping):
        return "record"
    if item.form.reply == "text" or not item.form.fields:
        return "text"
    choices = [field for field in item.form.fields if field.options]
    # With several fields and one gold label, the field with options contains the label.
    return (choices[0] if len(choices) == 1 else item.form.fields[0]).kind


def open_metrics(names: Sequence[str]) -> tuple[Metric, ...]:
    """Find extra metrics by name, each once; the name ``none`` alone means no metric.

    Raises:
        InputError: A name is unknown, or its plug-in cannot be loaded.
    """
    if list(names) == [NONE]:
        return ()
    found: list[Metric] = []
    for name in dict.fromkeys(names):
        metric = METRICS.find(name)
        if metric is None:
            raise UnknownName("metric", name, METRICS.names())
        if metric.name != name:
            hint = "give both the same name"
            raise InputError(f"entry point {name!r} holds a metric {metric.name!r}", hint=hint)
        found.append(metric)
    return tuple(found)


def explain_misfit(metric: Metric, task: Task, item: Item) -> str:
    """Explain why a metric does not apply to a task, given one item; empty if it applies."""
    if metric.tasks and not any(fnmatchcase(task.name, pattern) for pattern in metric.tasks):
        return f"metric {metric.name!r} works with {', '.join(metric.tasks)}, not with {task.name}"
    kind = find_answer_kind(item)
    if kind not in metric.answers:
        wanted = " or ".join(sorted(metric.answers))
        return f"metric {metric.name!r} needs {wanted} answers, but {task.name} asks for {kind}"
    if any(score.key == metric.name and not score.by for score in task.score(())):
        return f"{task.name} already computes {metric.name!r}"
    return ""


def recall_metrics(folder: Path) -> tuple[str, ...]:
    """Return the extra metrics that were used when a run was last scored."""
    try:
        return read_scores(folder).metrics
    except StoreError:  # The run has not been scored yet.
        return ()


def choose_metrics(
    names: Sequence[str] | None, folder: Path, task: Task, item: Item, *, strict: bool = False
) -> tuple[Metric, ...]:
    """Choose the extra metrics of a run: the given ones, else those of its last scoring.

    A metric that does not apply to the task is skipped, or raises an error if ``strict``.
    """
    wanted = reopen_metrics(folder) if names is None else open_metrics(names)
    misfits = {metric.name: explain_misfit(metric, task, item) for metric in wanted}
    for reason in filter(None, misfits.values()):
        if strict and names is not None:
            raise InputError(reason, hint="remove this --metric, or name another one")
    return tuple(metric for metric in wanted if not misfits[metric.name])


def reopen_metrics(folder: Path) -> tuple[Metric, ...]:
    """Open the extra metrics of a run's last scoring; raise an error if one is not installed."""
    names = recall_metrics(folder)
    known = METRICS.names() if names else []
    for name in names:
        if name not in known:
            raise InputError(
                f"{folder} was last scored with metric {name!r}, which is not installed",
                hint="install its package, or score without it: --metric none",
            )
    return open_metrics(names)


def require_fit(names: Sequence[str], tasks: Sequence[Task]) -> None:
    """Raise an error if a metric applies to none of the tasks, before any model is called."""
    for metric in open_metrics(names):
        reasons = [explain_misfit(metric, task, next(iter(task.items()))) for task in tasks]
        if tasks and all(reasons):
            others = f" (nor with {len(tasks) - 1} other tasks)" if len(tasks) > 1 else ""
            raise InputError(
                f"{reasons[0]}{others}", hint="remove this --metric, or name another one"
            )


def apply_metrics(
    metrics: Sequence[Metric], outcomes: Sequence[Outcome], *, intervals: bool = True
) -> tuple[tuple[Score, ...], InputError | None]:
    """Compute all given metrics; return their scores and the first error.

    Args:
        metrics: Metrics that apply to the task of the outcomes.
        outcomes: Scored outcomes; a refused or unparsed answer counts as the prediction None.
        intervals: Whether to compute 95% confidence intervals.
    """
    rows = [
        PredictedAnswer(o.item.gold, o.value if o.status == "answered" else None, o.item.group)
        for o in outcomes
    ]
    scores: list[Score] = []
    failure: InputError | None = None
    for metric in metrics:
        try:
            scores.append(_score(metric, rows, intervals=intervals))
        except InputError as error:
            failure = failure or error
    return tuple(scores), failure


def _score(metric: Metric, rows: Sequence[PredictedAnswer], *, intervals: bool) -> Score:
    value = _compute(metric, rows) if rows else None
    span = None
    if intervals and value is not None:
        span = bootstrap_items(
            [row.group for row in rows],
            lambda places: _compute(metric, [rows[place] for place in places]),
            resamples=metric.resamples,
            bounds=metric.bounds,
        )
    low, high = span or (None, None)
    return Score(metric.name, value, len(rows), low, high, note=metric.what)


def _compute(metric: Metric, rows: Sequence[PredictedAnswer]) -> float | None:
    """Compute a metric and check its value, since plug-in code may return any value."""
    hint = "correct the metric; the answers and the task's own scores are kept"
    try:
        value = metric.compute(rows)
    except Exception as error:  # A plug-in function may raise any exception.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"metric {metric.name!r} failed: {reason}", hint=hint) from error
    if value is None:
        return None
    if not isinstance(value, Real) or not math.isfinite(value):
        what = f"metric {metric.name!r} returned {value!r}, not a finite number or None"
        raise InputError(what, hint=hint)
    return float(value)


def _label(value: JsonValue) -> str | None:
    return None if value is None else str(value)


def _match_gold(rows: Sequence[PredictedAnswer]) -> float | None:
    return accuracy([_is_right(row) for row in rows])


def _is_right(row: PredictedAnswer) -> bool:
    """Whether a prediction equals the gold answer or one of several gold references."""
    references = row.gold if isinstance(row.gold, list) else [row.gold]
    return row.predicted is not None and row.predicted in references


def _compute_macro_f1(rows: Sequence[PredictedAnswer]) -> float | None:
    golds = [str(row.gold) for row in rows]
    predicted = [_label(row.predicted) for row in rows]
    # Classes that occur only in predictions are included, because they have false positives.
    classes = sorted({*golds, *filter(None, predicted)})
    return macro_metrics(count_classes(golds, predicted, classes)).f1


def _compute_balanced_accuracy(rows: Sequence[PredictedAnswer]) -> float | None:
    golds = [str(row.gold) for row in rows]
    counts = count_classes(golds, [_label(row.predicted) for row in rows], sorted(set(golds)))
    return macro_metrics(counts).recall


def _compute_kappa(rows: Sequence[PredictedAnswer]) -> float | None:
    # An invalid answer is a label of its own, so that it counts as a disagreement.
    said = ["" if row.predicted is None else str(row.predicted) for row in rows]
    return cohen_kappa([str(row.gold) for row in rows], said)


def _compute_rouge_l(rows: Sequence[PredictedAnswer]) -> float | None:
    return fmean(_rate_rouge_l(row) for row in rows)


def _rate_rouge_l(row: PredictedAnswer) -> float:
    references = row.gold if isinstance(row.gold, list) else [row.gold]
    if row.predicted is None:
        return 0.0
    return _find_best_rouge_l(str(row.predicted), tuple(map(str, references)))


@lru_cache(maxsize=1 << 16)  # Resampling uses each text many times.
def _find_best_rouge_l(text: str, references: tuple[str, ...]) -> float:
    return max((rouge_l(text, reference).f1 for reference in references), default=0.0)


_UNIT = (0.0, 1.0)
_LABELS: frozenset[AnswerKind] = frozenset({"choice", "boolean"})
ACCURACY = Metric(
    "accuracy",
    "proportion of answers equal to the gold answer",
    _match_gold,
    frozenset({"choice", "boolean", "integer", "record"}),
    bounds=_UNIT,
)
EXACT_MATCH = Metric(
    "exact_match",
    "proportion of texts equal to a reference",
    _match_gold,
    frozenset({"text"}),
    bounds=_UNIT,
)
BALANCED_ACCURACY = Metric(
    "balanced_accuracy",
    "mean recall of the gold classes",
    _compute_balanced_accuracy,
    _LABELS,
    bounds=_UNIT,
)
MACRO_F1 = Metric(
    "macro_f1", "mean F1 of the classes that occur", _compute_macro_f1, _LABELS, bounds=_UNIT
)
COHEN_KAPPA = Metric(
    "cohen_kappa",
    "agreement with the gold labels, corrected for chance",
    _compute_kappa,
    _LABELS,
    bounds=(-1.0, 1.0),
)
ROUGE_L = Metric(
    "rouge_l",
    "mean ROUGE-L F1 with the best reference, without stemming",
    _compute_rouge_l,
    frozenset({"text"}),
    bounds=_UNIT,
)
METRICS = Plugins(
    "memantics.metrics",
    Metric,
    {
        "accuracy": "memantics.evaluation.metrics:ACCURACY",
        "balanced_accuracy": "memantics.evaluation.metrics:BALANCED_ACCURACY",
        "cohen_kappa": "memantics.evaluation.metrics:COHEN_KAPPA",
        "exact_match": "memantics.evaluation.metrics:EXACT_MATCH",
        "macro_f1": "memantics.evaluation.metrics:MACRO_F1",
        "rouge_l": "memantics.evaluation.metrics:ROUGE_L",
    },
)


@dataclass(frozen=True, slots=True)
class MetricInfo(Result):
    """A description of a metric: its name, what it measures, and the answers and tasks it supports.

    ``tasks`` is empty for a metric that applies to every task. ``source`` is ``built-in`` or
    ``installed``.
    """

    name: str
    what: str
    answers: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    source: str = "installed"


def list_metrics() -> list[MetricInfo]:
    """List the metrics that --metric takes: built-in ones and those of installed packages.

    For a plug-in that cannot be loaded, ``what`` is the reason.

    >>> [metric.name for metric in list_metrics()][:2]
    ['accuracy', 'balanced_accuracy']
    """
    return [
        MetricInfo(name, str(metric))
        if isinstance(metric, InputError)
        else MetricInfo(
            name,
            metric.what,
            tuple(sorted(metric.answers)),
            metric.tasks,
            "built-in" if name in METRICS.ours else "installed",
        )
        for name, metric in METRICS.all()
    ]
