"""``humans``: replies rated blind by people, from the queue to the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from memantics.actions.compare import open_run
from memantics.actions.options import RunFolders, RunLike
from memantics.actions.report import find_folder
from memantics.benchmarks.mer_bench.humans import agree_with_choices
from memantics.core.data import conform, read_jsonl
from memantics.core.errors import DataError, InputError
from memantics.core.formatting import show_figure, show_span
from memantics.core.parameters import Argument, Flag, QueueVerdicts
from memantics.core.preferences import read_choices
from memantics.core.queue import VERDICTS, ItemVerdict, read_verdicts
from memantics.core.records import Score
from memantics.core.result import Table
from memantics.core.rundir import read_facts
from memantics.registry import Benchmark, find_benchmark, find_benchmarks
from memantics.run.ratings import HumanScores, Rated, score_ratings
from memantics.tasks.plugin import HumanExport

__all__ = [
    "HumanExport",
    "HumanScores",
    "export_humans",
    "score_humans",
    "score_preferences",
]
KEY, QUEUE = "key.jsonl", "queue"


class _KeyRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    run: str
    model: str
    options: dict[str, str]


def export_humans(
    runs: RunFolders,
    out: Annotated[Path | str, Flag("Folder for the queue and its key.")] = "humans",
    *,
    memes: Annotated[int, Flag("How many memes to draw.", min=1)] = 30,
    seed: Annotated[int, Flag("Seed of the draw.", min=0)] = 0,
) -> HumanExport:
    """Write the answers of runs as a blind queue for raters, and the key to who gave them."""
    folders = [find_folder(run) for run in runs]
    name = read_facts(folders[0]).benchmark
    export = find_benchmark(name).plugin.human_ratings
    if export is None:
        known = find_benchmarks().values()
        having = sorted(benchmark.card.name for benchmark in known if _rates(benchmark))
        raise InputError(
            f"{name} has no protocol for human ratings", hint=f"these have: {', '.join(having)}"
        )
    place = Path(out)
    there = set(place.glob("*.jsonl"))
    try:
        return export(folders, place, seed, memes)
    except BaseException:
        for made in set(place.glob("*.jsonl")) - there:
            made.unlink()  # a key without its queue would have the rerun refused
        raise


def _rates(benchmark: Benchmark) -> bool:
    """Whether a benchmark of ours has a protocol for human ratings."""
    ours = benchmark.runnable and not benchmark.card.like
    return ours and benchmark.plugin.human_ratings is not None


def score_humans(
    folder: Annotated[Path | str, Argument("The folder that was exported.")],
    runs: Annotated[
        Sequence[RunLike],
        Argument("The runs that were exported: then metrics are compared with people."),
    ] = (),
    *,
    verdicts: QueueVerdicts = None,
) -> HumanScores:
    """Join people's verdicts with the key of an export: means, tests, agreement.

    With the ``runs`` that were exported, each metric is compared with people, too. ``verdicts``
    is what the annotation app exported (default: ``verdicts.jsonl`` in the queue).
    """
    place = Path(folder)
    keys = _read_keys(place / KEY)
    given = Path(verdicts) if verdicts is not None else place / QUEUE / VERDICTS
    if not given.is_file():
        raise InputError(
            f"{given}: no verdicts",
            hint="rate the queue (memantics annotate QUEUE) and export its verdicts",
        )
    names = name_settings(list(keys.values()))
    marks = _read_marks(keys, [find_folder(run) for run in runs])
    rated = []
    for row, verdict in enumerate(read_verdicts(given), 1):
        key = keys.get(verdict.item)
        if key is None:
            raise DataError(
                given, f"item {verdict.item!r} is not in the key", row=row, hint="name its folder"
            )
        group = marks.get(key.run, {})
        found = {metric: by_meme.get(verdict.group) for metric, by_meme in group.items()}
        rated.append(Rated(verdict.group, names[key.run], _read_votes(verdict), found))
    if not any(rating.ratings for rating in rated):
        raise DataError(given, "holds no ratings", hint="finish the ratings first")
    return score_ratings(rated)


def _read_keys(path: Path) -> Mapping[str, _KeyRow]:
    if not path.is_file():
        raise InputError(
            f"{path}: no key", hint="give the folder that 'memantics humans export' wrote"
        )
    rows = [conform(_KeyRow, value, path, row) for row, value in read_jsonl(path)]
    return {key_row.id: key_row for key_row in rows}


def name_settings(keys: Sequence[_KeyRow]) -> Mapping[str, str]:
    """By run, what tells it from the others: the model, and the options that differ."""
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
    # Two runs that are alike in all that the key knows keep apart by their folders.
    twice = [name for name in named.values() if list(named.values()).count(name) > 1]
    return {run: f"{name} ({run})" if name in twice else name for run, name in named.items()}


def _read_votes(verdict: ItemVerdict) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for vote in verdict.votes:
        for scale, value in vote.values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                found.setdefault(scale, {})[vote.person] = float(value)
    return found


def _read_marks(
    keys: Mapping[str, _KeyRow], runs: Sequence[Path]
) -> Mapping[str, Mapping[str, Mapping[str, float | None]]]:
    """By run, metric and meme: each reply's own figures."""
    known = {row.run for row in keys.values()}
    found: dict[str, Mapping[str, Mapping[str, float | None]]] = {}
    for folder in runs:
        if folder.name not in known:
            raise InputError(
                f"{folder} was not exported", hint=f"exported: {', '.join(sorted(known))}"
            )
        run = open_run(folder)
        if run.task.marks is None:
            name = run.facts.task
            raise InputError(f"{name} has no figures of single replies", hint="leave it out")
        memes = [outcome.item.group for outcome in run.outcomes]
        found[folder.name] = {
            metric: dict(zip(memes, values, strict=True))
            for metric, values in run.task.marks(run.outcomes).items()
        }
    return found


def score_preferences(
    file: Annotated[Path | str, Argument("What people chose: preferences.jsonl.")],
    runs: Annotated[
        Sequence[RunLike], Argument("Runs of a judge on edits by version-1, version-2, …")
    ] = (),
) -> list[Score]:
    """Compare people's choices among versions with what judges say of them.

    ``file`` is what ``reappraise --choose`` and the studio keep. Our ranking and the classifier of
    kindness are judges; ``runs`` of a benchmark that judges edits are more of them. Each figure is
    the share of pairs (``n``) on which a judge agrees, with its interval.
    """
    found = [choice for choice in read_choices(Path(file)).values() if choice.chosen is not None]
    if not found:
        raise InputError(
            f"{file}: nobody chose a version", hint="reappraise --versions 4 --choose N"
        )
    judges: dict[str, dict[tuple[str, int], float]] = {"our ranking": {}, "kindness": {}}
    for choice in found:
        for number, offered in enumerate(choice.candidates, 1):
            for name, value in (("our ranking", offered.score), ("kindness", offered.kindness)):
                if value is not None:
                    judges[name][choice.id, number] = value
    for run in map(find_folder, runs):
        judges[f"RFS, {run.name}"] = {
            (choice.id, number): value
            for (meme, number), value in _rate_versions(run).items()
            for choice in found
            if Path(choice.meme).stem == Path(meme).stem
        }
    return list(agree_with_choices(found, judges))


def tabulate_agreement(scores: Sequence[Score]) -> Table:
    """A line for each judge."""
    rows = [
        (score.label, show_figure(score.value), show_span(score), str(score.n), score.note)
        for score in scores
    ]
    return Table(("judge", ">agreement", ">95 %", ">pairs", "not counted"), tuple(rows))


def _rate_versions(run: Path) -> dict[tuple[str, int], float]:
    """The RFS of each version of each meme, as a run judged it."""
    side = open_run(run)
    rated = side.task.marks(side.outcomes).get("rfs", ()) if side.task.marks else ()
    made = {}
    for outcome, value in zip(side.outcomes, rated, strict=bool(rated)):
        _, _, number = outcome.item.tags.get("editor", "").partition("version-")
        if value is not None and number.isdecimal():
            made[outcome.item.group, int(number)] = value
    if not made:
        raise InputError(
            f"{run} judged no versions",
            hint="its edits must be those of version-1, version-2, … in data/EditedResults",
        )
    return made
