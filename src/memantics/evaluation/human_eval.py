"""``human-eval``: export model replies for blind rating by people, and score the ratings.

The key file names the setting (model and options) behind each reply. The results are mean ratings
per setting, significance tests, rater agreement, and the correlation of metrics with ratings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict

from memantics.benchmarks.mer_bench.humans import PAIRS, agree_with_choices
from memantics.benchmarks.plugin import HumanExport
from memantics.benchmarks.registry import Benchmark, find_benchmark, find_benchmarks
from memantics.core.data import conform, read_jsonl
from memantics.core.errors import DataError, InputError
from memantics.core.labels import PERSON, read_choices
from memantics.core.parameters import Argument, Flag, QueueAnnotations
from memantics.core.queue import ANNOTATIONS, AggregatedAnnotation, read_annotations
from memantics.core.records import Score, format_value, show_span
from memantics.core.result import Result, Table
from memantics.core.rundir import read_facts
from memantics.evaluation.compare import open_run
from memantics.evaluation.judging.corrected import correct_edits, correct_intents
from memantics.evaluation.options import RunFolders, RunLike, find_folder
from memantics.evaluation.paired import show_p
from memantics.metrics.agreement import (
    krippendorff_alpha,
    pairwise_agreement,
    spearman,
    spearman_span,
)
from memantics.metrics.comparison import correct_known
from memantics.metrics.interval import bootstrap
from memantics.metrics.paired import PairedContrast, contrast_pairs

__all__ = [
    "HumanExport",
    "HumanScores",
    "export_human_eval",
    "score_human_eval",
    "score_preferences",
]


@dataclass(frozen=True, slots=True)
class Rated:
    """One rated model reply: its meme, its setting, and each person's rating on each scale.

    ``marks`` are automatic metrics of the same reply.
    """

    meme: str
    setting: str
    ratings: Mapping[str, Mapping[str, float]]
    marks: Mapping[str, float | None]

    def mean(self, scale: str) -> float | None:
        """Mean rating over people; None if nobody rated the reply."""
        given = self.ratings.get(scale, {})
        return fmean(given.values()) if given else None


@dataclass(frozen=True, slots=True)
class SettingMeans:
    """Mean ratings of one setting (model and options) per scale, with 95% intervals over memes."""

    setting: str
    scores: tuple[Score, ...]

    def find(self, scale: str) -> Score | None:
        """Return the mean rating on a scale."""
        return next((score for score in self.scores if score.key == scale), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingContrast(PairedContrast):
    """Two settings compared on one scale; ``corrected`` is ``p`` after Holm's correction."""

    scale: str
    first: str
    second: str
    corrected: float | None = None


@dataclass(frozen=True, slots=True)
class MetricCorrelation:
    """Spearman correlation of a metric with human ratings on a scale, over replies or settings."""

    metric: str
    scale: str
    over: str
    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class HumanScores(Result):
    """Results of a human evaluation: means, contrasts, rater agreement, and metric correlations."""

    replies: int
    memes: int
    people: int
    settings: tuple[SettingMeans, ...]
    contrasts: tuple[RatingContrast, ...]
    agreement: tuple[Score, ...]
    correlations: tuple[MetricCorrelation, ...]
    corrected: tuple[Score, ...] = ()

    @property
    def scales(self) -> tuple[str, ...]:
        """The rating scales that were used."""
        return tuple(dict.fromkeys(score.key for one in self.settings for score in one.scores))

    def table(self) -> Table:
        """Mean ratings by setting and scale, with 95% confidence intervals."""
        rows = [
            (one.setting, *(_show(one.find(scale)) for scale in self.scales))
            for one in self.settings
        ]
        title = f"{self.replies:,} replies to {self.memes:,} memes, {self.people} people"
        return Table(("setting", *(f">{scale}" for scale in self.scales)), tuple(rows), title)

    def contrast_table(self) -> Table:
        """Differences in mean ratings between settings, with their tests."""
        rows = [
            (
                contrast.scale,
                f"{contrast.first} → {contrast.second}",
                f"{contrast.difference:+.2f}"
                + (
                    ""
                    if contrast.low is None
                    else f" ({contrast.low:+.2f} to {contrast.high:+.2f})"
                ),
                *map(show_p, (contrast.p, contrast.corrected, contrast.t_paired)),
            )
            for contrast in self.contrasts
        ]
        columns = ("scale", "settings", "difference (95 %)", ">p", ">Holm", ">paired t")
        return Table(columns, tuple(rows))

    def agreement_table(self) -> Table:
        """Rater agreement on each scale."""
        rows = [
            (
                score.key,
                score.label,
                "–" if score.value is None else f"{score.value:.2f}",
                str(score.n),
            )
            for score in self.agreement
        ]
        return Table(("scale", "agreement", ">value", ">replies"), tuple(rows))

    def metric_table(self) -> Table:
        """Correlation of each metric with human ratings, over replies and over settings."""
        rows = [
            (
                followed_run.metric,
                followed_run.scale,
                followed_run.over,
                "–" if followed_run.value is None else f"{followed_run.value:+.2f}",
                "–"
                if followed_run.low is None
                else f"{followed_run.low:+.2f} to {followed_run.high:+.2f}",
                str(followed_run.n),
            )
            for followed_run in self.correlations
        ]
        columns = ("metric", "scale", "over", ">Spearman", ">95 %", ">n")
        return Table(columns, tuple(rows), "Correlation of metrics with human ratings")

    def corrected_table(self) -> Table:
        """Means over all outputs, from the judge's marks and people's ratings of a sample."""
        rows = [(one.label, one.key, _show(one), str(one.n), one.note) for one in self.corrected]
        columns = ("setting", "scale", ">mean (95 %)", ">outputs", "from")
        return Table(columns, tuple(rows), "Means of all outputs, corrected with human ratings")

    def _repr_html_(self) -> str:
        tables = (
            self.table(),
            self.contrast_table(),
            self.agreement_table(),
            self.metric_table(),
            self.corrected_table(),
        )
        return "".join(table._repr_html_() for table in tables if table.rows)


def _show(score: Score | None) -> str:
    if score is None or score.value is None:
        return "–"
    span = "" if score.low is None else f" ({score.low:.2f}–{score.high:.2f})"
    return f"{score.value:.2f}{span}"


def score_ratings(rated: Sequence[Rated]) -> HumanScores:
    """Compute all results of a human evaluation."""
    scales = tuple(dict.fromkeys(scale for rating in rated for scale in rating.ratings))
    settings = tuple(dict.fromkeys(rating.setting for rating in rated))
    people = {name for rating in rated for given in rating.ratings.values() for name in given}
    return HumanScores(
        replies=len(rated),
        memes=len({rating.meme for rating in rated}),
        people=len(people),
        settings=tuple(
            SettingMeans(
                name,
                tuple(_average(scale, [o for o in rated if o.setting == name]) for scale in scales),
            )
            for name in settings
        ),
        contrasts=_contrast(rated, scales, settings),
        agreement=tuple(
            score for scale in scales for score in _agree(rated, scale, sorted(people))
        ),
        correlations=_follow(rated, scales, settings),
    )


def _average(scale: str, rated: Sequence[Rated]) -> Score:
    values = [value for rating in rated if (value := rating.mean(scale)) is not None]
    if not values:
        return Score(scale, None, 0)
    rows = np.column_stack([values, np.ones(len(values))])
    span = bootstrap(rows, lambda sums: np.asarray(sums[:, 0] / sums[:, 1], float), bounds=None)
    low, high = span or (None, None)
    return Score(scale, fmean(values), len(values), low, high)


def _contrast(
    rated: Sequence[Rated], scales: Sequence[str], settings: Sequence[str]
) -> tuple[RatingContrast, ...]:
    found: list[RatingContrast] = []
    for scale in scales:
        by_setting = {
            name: {
                rating.meme: value
                for rating in rated
                if rating.setting == name and (value := rating.mean(scale)) is not None
            }
            for name in settings
        }
        for first, second in combinations(settings, 2):
            made = contrast_pairs(by_setting[first], by_setting[second])
            if made is not None:
                found.append(
                    RatingContrast(*astuple(made), scale=scale, first=first, second=second)
                )
    corrected = correct_known([contrast.p for contrast in found])
    return tuple(
        replace(contrast, corrected=p) for contrast, p in zip(found, corrected, strict=True)
    )


def _agree(rated: Sequence[Rated], scale: str, people: Sequence[str]) -> tuple[Score, ...]:
    rows = [[rating.ratings.get(scale, {}).get(name) for name in people] for rating in rated]
    n = sum(sum(value is not None for value in row) > 1 for row in rows)
    return (
        Score(scale, krippendorff_alpha(rows, "ordinal"), n, label="Krippendorff's alpha, ordinal"),
        Score(scale, pairwise_agreement(rows), n, label="proportion of pairs in exact agreement"),
    )


def _follow(
    rated: Sequence[Rated], scales: Sequence[str], settings: Sequence[str]
) -> tuple[MetricCorrelation, ...]:
    metrics = dict.fromkeys(name for rating in rated for name in rating.marks)
    found = []
    for metric in metrics:
        for scale in scales:
            kept = [
                (rating, mark, given)
                for rating in rated
                if (mark := rating.marks.get(metric)) is not None
                and (given := rating.mean(scale)) is not None
            ]
            marks, said = [mark for _, mark, _ in kept], [given for _, _, given in kept]
            span = spearman_span(marks, said, [rating.meme for rating, _, _ in kept])
            low, high = span or (None, None)
            found.append(
                MetricCorrelation(
                    metric, scale, "replies", spearman(marks, said), low, high, len(kept)
                )
            )
            groups = [[row for row in kept if row[0].setting == name] for name in settings]
            groups = [members for members in groups if members]
            value = spearman(
                [fmean(mark for _, mark, _ in members) for members in groups],
                [fmean(given for _, _, given in members) for members in groups],
            )
            found.append(
                MetricCorrelation(metric, scale, "settings", value, None, None, len(groups))
            )
    return tuple(found)


KEY, QUEUE = "key.jsonl", "queue"


class _KeyRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    run: str
    model: str
    options: dict[str, str]


def export_human_eval(
    runs: RunFolders,
    out: Annotated[Path | str, Flag("Folder for the queue and its key.")] = "humans",
    *,
    memes: Annotated[int, Flag("Number of memes to sample.", min=1)] = 30,
    seed: Annotated[int, Flag("Seed of the sample.", min=0)] = 0,
) -> HumanExport:
    """Write the answers of runs as a blind rating queue, plus a key that names each answer's run.

    Args:
        runs: Runs, or their folders.
        out: Folder for the queue and its key.
        memes: How many memes to sample.
        seed: Seed of the sample.

    Returns:
        The folder of the annotation queue, its workflow and the number of answers.

    Raises:
        InputError: The runs contain no answers that people can rate.

    Example:
        >>> mm.export_human_eval(["runs/one", "runs/other"], memes=10).queue
        PosixPath('humans/queue')
    """
    folders = [find_folder(run) for run in runs]
    name = read_facts(folders[0]).benchmark
    export = find_benchmark(name).plugin.human_ratings
    if export is None:
        known = find_benchmarks().values()
        having = sorted(benchmark.card.name for benchmark in known if _rates(benchmark))
        raise InputError(
            f"{name} has no questionnaire for human ratings",
            hint=f"benchmarks that have one: {', '.join(having)}",
        )
    place = Path(out)
    there = set(place.glob("*.jsonl"))
    try:
        return export(folders, place, seed, memes)
    except BaseException:
        for made in set(place.glob("*.jsonl")) - there:
            made.unlink()  # A leftover key file without its queue would make a second export fail.
        raise


def _rates(benchmark: Benchmark) -> bool:
    """Whether a benchmark has a protocol for human ratings."""
    ours = benchmark.runnable and not benchmark.card.format
    return ours and benchmark.plugin.human_ratings is not None


def score_human_eval(
    folder: Annotated[Path | str, Argument("Folder written by 'human-eval export'.")],
    runs: Annotated[
        Sequence[RunLike],
        Argument("Exported or judged runs; adds correlations with metrics, and corrected means."),
    ] = (),
    *,
    annotations: QueueAnnotations = None,
) -> HumanScores:
    """Join people's annotations with the key of an export: means, tests, agreement.

    Args:
        folder: The folder written by the export.
        runs: The exported runs; if given, each metric is compared with the human ratings. The means
            over all outputs are corrected if a judge has rated the runs (``judge``). For MER-Bench:
            the runs of its judge.
        annotations: Annotations of the queue. Default: ``annotations.jsonl`` in the queue.

    Returns:
        Means with 95% confidence intervals, tests between systems, and agreement of the raters.

    Raises:
        InputError: The folder is not an export, or has no annotations.

    Example:
        >>> # after people have rated the answers in the queue humans/queue
        >>> mm.score_human_eval("humans", ["runs/one", "runs/other"]).table()  # doctest: +SKIP
    """
    place = Path(folder)
    keys = _read_keys(place / KEY)
    given = Path(annotations) if annotations is not None else place / QUEUE / ANNOTATIONS
    if not given.is_file():
        raise InputError(
            f"{given} does not exist: there are no annotations to score",
            hint="rate the queue (memantics annotate QUEUE) and export its annotations",
        )
    names = name_settings(list(keys.values()))
    folders = [find_folder(run) for run in runs]
    edits = (place / PAIRS).is_file()  # MER-Bench: the runs are judges, not editors
    marks = {} if edits else _read_marks(keys, folders)
    rated = []
    for row, annotation in enumerate(read_annotations(given), 1):
        key = keys.get(annotation.item)
        if key is None:
            raise DataError(
                given,
                f"item {annotation.item!r} is not in the key",
                row=row,
                hint="give the export folder that holds this queue's key",
            )
        run_marks = marks.get(key.run, {})
        found = {metric: by_meme.get(annotation.group) for metric, by_meme in run_marks.items()}
        rated.append(Rated(annotation.group, names[key.run], _read_votes(annotation), found))
    if not any(rating.ratings for rating in rated):
        raise DataError(
            given,
            "has no ratings",
            hint="rate the queue first (memantics annotate QUEUE), then export",
        )
    scores = score_ratings(rated)
    if not folders:
        return scores
    if edits:
        corrected = correct_edits(place / QUEUE, list(read_annotations(given)), folders)
    else:
        corrected = correct_intents(
            {folder: names[folder.name] for folder in folders}, _average_by_meme(rated)
        )
    return replace(scores, corrected=tuple(corrected))


def _average_by_meme(rated: Sequence[Rated]) -> dict[str, dict[str, dict[str, float]]]:
    """Return mean ratings by setting, scale and meme."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for one in rated:
        for scale in one.ratings:
            if (mean := one.mean(scale)) is not None:
                found.setdefault(one.setting, {}).setdefault(scale, {})[one.meme] = mean
    return found


def _read_keys(path: Path) -> Mapping[str, _KeyRow]:
    if not path.is_file():
        raise InputError(
            f"{path} does not exist: the key of the export is missing",
            hint="give the folder that 'memantics human-eval export' wrote",
        )
    rows = [conform(_KeyRow, value, path, row) for row, value in read_jsonl(path)]
    return {key_row.id: key_row for key_row in rows}


def name_settings(keys: Sequence[_KeyRow]) -> Mapping[str, str]:
    """Name each run by its model and by the options in which the runs differ."""
    runs = {row.run: row for row in keys}
    models = {row.model for row in runs.values()}
    options = dict.fromkeys(name for row in runs.values() for name in row.options)
    differing = [
        name for name in options if len({row.options.get(name) for row in runs.values()}) > 1
    ]
    named = {}
    for run, row in runs.items():
        parts = [row.model] if len(models) > 1 else []
        parts += [f"{name}={row.options[name]}" for name in differing if name in row.options]
        named[run] = " · ".join(parts) or row.model
    # Runs with the same model and options are told apart by their folders.
    twice = [name for name in named.values() if list(named.values()).count(name) > 1]
    return {run: f"{name} ({run})" if name in twice else name for run, name in named.items()}


def _read_votes(annotation: AggregatedAnnotation) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for vote in annotation.annotations:
        for scale, value in vote.values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                found.setdefault(scale, {})[vote.annotator] = float(value)
    return found


def _read_marks(
    keys: Mapping[str, _KeyRow], runs: Sequence[Path]
) -> Mapping[str, Mapping[str, Mapping[str, float | None]]]:
    """Read the metric values of each reply, by run, metric and meme."""
    known = {row.run for row in keys.values()}
    found: dict[str, Mapping[str, Mapping[str, float | None]]] = {}
    for folder in runs:
        if folder.name not in known:
            raise InputError(
                f"run {folder} is not part of this export",
                hint=f"exported: {', '.join(sorted(known))}",
            )
        run = open_run(folder)
        if run.task.marks is None:
            name = run.facts.task
            raise InputError(
                f"{name} defines no metrics of single replies", hint="score without this run"
            )
        memes = [outcome.item.group for outcome in run.outcomes]
        found[folder.name] = {
            metric: dict(zip(memes, values, strict=True))
            for metric, values in run.task.marks(run.outcomes).items()
        }
    return found


def score_preferences(
    file: Annotated[
        Path | str, Argument("preferences.jsonl, written by 'reappraise --choose' and the studio.")
    ],
    runs: Annotated[
        Sequence[RunLike],
        Argument("Runs of a judge on the versions that `reappraise --versions` wrote; repeatable."),
    ] = (),
) -> list[Score]:
    """Compare people's choices among versions of a meme with the ranking by judges.

    The order in which the versions were offered and the kindness classifier (a model that scores
    kind captions) are the judges. Runs of a benchmark that judges edits add further judges.

    Args:
        file: ``preferences.jsonl``, written by ``reappraise --choose`` and by the studio.
        runs: Runs in which a judge model rated the edits ``version-1``, ``version-2``, ….

    Returns:
        For each judge, the proportion of pairs on which it agrees with people, with a 95%
        confidence interval.

    Raises:
        DataError: The file is missing or damaged.

    Example:
        >>> # after people have chosen between versions of rewritten memes
        >>> mm.score_preferences("preferences.jsonl")[0].value  # doctest: +SKIP
    """
    found = [choice for choice in read_choices(Path(file)).values() if choice.chosen is not None]
    if not found:
        raise InputError(
            f"{file} contains no choice between versions",
            hint="record choices with 'memantics reappraise --versions 4 --choose N'",
        )
    judges: dict[str, dict[tuple[str, int], float]] = {"offered order": {}, "kindness": {}}
    for choice in found:
        for number, offered in enumerate(choice.candidates, 1):
            if offered.by != PERSON:  # a person's own version is added last
                judges["offered order"][choice.id, number] = -number
            if offered.kindness is not None:
                judges["kindness"][choice.id, number] = offered.kindness
    for run in map(find_folder, runs):
        judges[f"RFS, {run.name}"] = {
            (choice.id, number): value
            for (meme, number), value in _rate_versions(run).items()
            for choice in found
            if Path(choice.meme).stem == Path(meme).stem
        }
    return list(agree_with_choices(found, judges))


def tabulate_agreement(scores: Sequence[Score]) -> Table:
    """Make a table of agreement with people, one row per judge."""
    rows = [
        (score.label, format_value(score.value), show_span(score), str(score.n), score.note)
        for score in scores
    ]
    return Table(("judge", ">agreement", ">95 %", ">pairs", "not counted"), tuple(rows))


def _rate_versions(run: Path) -> dict[tuple[str, int], float]:
    """Read the RFS (overall score) that a run's judge gave to each version of each meme."""
    side = open_run(run)
    rated = side.task.marks(side.outcomes).get("rfs", ()) if side.task.marks else ()
    made = {}
    for outcome, value in zip(side.outcomes, rated, strict=bool(rated)):
        _, _, number = outcome.item.tags.get("editor", "").partition("version-")
        if value is not None and number.isdecimal():
            made[outcome.item.group, int(number)] = value
    if not made:
        raise InputError(
            f"run {run} has no judgements of the folders version-1, version-2, …",
            hint="rename the folders in data/EditedResults to version-1, version-2, …; judge again",
        )
    return made
