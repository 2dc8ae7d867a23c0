"""Read finished runs from their directories, and group comparable runs."""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from memantics.core import rundir
from memantics.core.errors import InputError, StoreError
from memantics.core.records import STATUSES, Score
from memantics.core.result import Result, make_frame, to_plain
from memantics.core.text import mask_unseen

SAMPLE_NOTE = "Sample data for trying things out: these scores do not rank models."
_SHOWN = 10


@dataclass(frozen=True, slots=True, repr=False)
class Run(Result):
    """One run directory: its settings and scores. Items and answers stay on disk.

    ``run.scores["accuracy"].value`` is a metric over all items; ``results`` also contains the
    breakdowns.
    """

    folder: Path
    facts: rundir.RunFacts
    results: rundir.Scores

    @property
    def name(self) -> str:
        """The folder name of the run, as text even if the file system uses other bytes."""
        return os.fsencode(self.folder.resolve().name).decode("utf-8", "replace")

    @property
    def task(self) -> str:
        """The task of the run, ``BENCHMARK/TASK``."""
        head = f"{self.facts.benchmark}/"
        return self.facts.task if self.facts.task.startswith(head) else head + self.facts.task

    @property
    def model(self) -> str:
        """The model of the run, ``KIND/NAME``."""
        return self.facts.model

    @property
    def options(self) -> Mapping[str, str]:
        """The task options of the run."""
        return self.facts.options

    @property
    def scores(self) -> dict[str, Score]:
        """The metrics over all items, by name."""
        return _over_all(self.results.scores)

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of items that are answered, refused, unparsed and failed."""
        return self.results.counts

    @property
    def baselines(self) -> dict[str, dict[str, Score]]:
        """Scores of trivial baselines on the same items, by model and metric."""
        return {baseline.model: _over_all(baseline.scores) for baseline in self.results.baselines}

    @property
    def errors(self) -> dict[str, int]:
        """The most frequent reasons for missing answers, with their counts."""
        last = rundir.last_answers(self.folder).values()
        reasons = Counter(f"{a.status}: {a.reason}" for a in last if a.status != "answered")
        return dict(reasons.most_common(_SHOWN))

    @property
    def memes(self) -> int | None:
        """Number of memes that the items are about; None if the items cannot be read."""
        try:
            return len({item.group for item, _ in rundir.read_stored_items(self.folder)})
        except (StoreError, OSError):
            return None

    @property
    def kind(self) -> str:
        """The data of the run: ``sample``, ``release`` or another type."""
        return str(self.facts.data.get("kind", ""))

    @property
    def ground(self) -> tuple[str, ...]:
        """The settings that two runs must share to have the same questions and be in one table."""
        facts = self.facts
        checksum = str(facts.data.get("checksum", ""))
        drawn = f"{facts.sample} {facts.seed}" if facts.sample is not None else ""
        scope = (facts.split, str(facts.limit), facts.spread, drawn)
        return (self.task, self.kind, checksum, *scope, facts.perturbation)

    def to_dict(self) -> dict[str, JsonValue]:
        """Convert the run to plain data."""
        names = ("folder", "task", "model", "options", "scores", "counts", "baselines", "errors")
        shown = {name: to_plain(getattr(self, name)) for name in names}
        shown |= {"origin": self.facts.origin} if self.facts.origin else {}
        return shown | {"usage": to_plain(self.results.usage)}

    def to_pandas(self) -> Any:
        """Convert to a data frame with one row per item: status, answer and gold answer."""
        last = rundir.last_answers(self.folder)
        return make_frame(
            {
                "item": line.item.id,
                "meme": line.item.group,
                "status": last[line.item.id].status if line.item.id in last else None,
                "answer": last[line.item.id].value if line.item.id in last else None,
                "gold": line.item.gold,
                "reply": last[line.item.id].reply.text if line.item.id in last else None,
                "reason": last[line.item.id].reason if line.item.id in last else None,
                "question": line.item.form.question,
            }
            | dict(line.item.tags)
            for line in rundir.read_items(self.folder)
        )

    def __repr__(self) -> str:
        main = self.scores.get(self.results.main)
        shown = "no score" if main is None or main.value is None else f"{main.value:.3f}"
        n = sum(self.counts.values())
        return f"<Run {self.task} {self.model}: {self.results.main} {shown}, n = {n}>"

    def _repr_html_(self) -> str:
        return render_html([self])


def differing_options(facts: rundir.RunFacts, others: Sequence[rundir.RunFacts]) -> list[str]:
    """Return ``NAME=VALUE`` for the options in which a run differs from any other."""
    names = dict.fromkeys(name for other in others for name in other.options)
    return [
        f"{name}={facts.options.get(name, '–')}"
        for name in names
        if len({other.options.get(name) for other in others}) > 1
    ]


def _over_all(scores: Sequence[Score]) -> dict[str, Score]:
    return {score.key: score for score in scores if not score.by}


def render_html(runs: Sequence[Run], missing: Mapping[str, str] | None = None) -> str:
    """Render runs and baselines as an HTML table for a notebook, with reasons for missing rows."""
    heads = ("task", "model", "metric", "value", "95 % interval", "n", *STATUSES)
    lines = ["".join(f"<th>{name}</th>" for name in heads)]
    for run in runs:
        counts = [str(run.counts.get(status, 0)) for status in STATUSES]
        rows = {run.model: (run.scores, counts)}
        rows |= {name: (baseline, [""] * len(STATUSES)) for name, baseline in run.baselines.items()}
        for name, (scores, ends) in rows.items():
            main = scores.get(run.results.main)
            value = "–" if main is None or main.value is None else f"{main.value:.3f}"
            span = "–".join(f"{end:.3f}" for end in (main and main.interval) or ())
            n = "" if main is None else str(main.n)
            cells = (run.task, name, run.results.main, value, span, n, *ends)
            lines.append("".join(f"<td>{html.escape(mask_unseen(cell))}</td>" for cell in cells))
    notes = [f"{name}: {why}" for name, why in (missing or {}).items()]
    notes += [SAMPLE_NOTE] if any(run.kind == "sample" for run in runs) else []
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{body}</table>" + "".join(
        f"<p>{html.escape(mask_unseen(note))}</p>" for note in notes
    )


def load_run(folder: str | Path) -> Run:
    """Read a run directory.

    Args:
        folder: A folder that ``memantics run`` or :func:`evaluate` wrote.

    Returns:
        The run with its scores, counts and settings.

    Raises:
        StoreError: The folder is not a run directory, or is damaged.

    Example:
        >>> mm.load_run("runs/one").counts
        {'answered': 12, 'refused': 0, 'unparsed': 0, 'failed': 0}
    """
    return load_runs([Path(folder)])[0]


def split_unfinished(folders: Sequence[Path]) -> tuple[list[Path], dict[Path, str]]:
    """Separate finished runs from unfinished ones, which are returned with a reason.

    If no run is finished, the first one's error is raised.
    """
    finished, left = [], dict[Path, str]()
    first: StoreError | None = None
    for folder in folders:
        try:
            rundir.read_facts(folder)
            rundir.read_scores(folder)
        except StoreError as error:
            first, left[folder] = first or error, str(error)
        else:
            finished.append(folder)
    if first is not None and not finished:
        raise first
    return finished, left


def load_runs(folders: Sequence[Path]) -> tuple[Run, ...]:
    """Read settings and scores of run directories; a folder given twice counts once."""
    if not folders:
        raise InputError(
            "no run directory was given", hint="give one or more: memantics report RUN… --out FILE"
        )
    distinct = {folder.resolve(): folder for folder in folders}
    return tuple(
        Run(folder, rundir.read_facts(folder), rundir.read_scores(folder))
        for folder in distinct.values()
    )


def plot_runs(runs: Sequence[Run], axes: Any = None) -> Any:
    """Plot the main metric of each run with its confidence interval, the first run on top."""
    try:
        from matplotlib import pyplot
    except ImportError:
        hint = "pip install matplotlib"
        raise InputError("plots need matplotlib, which is not installed", hint=hint) from None
    axes = pyplot.subplots(layout="constrained")[1] if axes is None else axes
    found = ((run, run.scores.get(run.results.main)) for run in reversed(runs))
    shown = [(run, main) for run, main in found if main is not None and main.value is not None]
    for place, (_, main) in enumerate(shown):
        axes.plot(main.interval or (main.value,) * 2, (place, place), color="0.6")
        axes.plot(main.value, place, "o", color="C0")
    axes.set_yticks(range(len(shown)), [f"{run.model}, {run.task}" for run, _ in shown])
    axes.set_xlabel(" / ".join(dict.fromkeys(main.key for _, main in shown)))
    return axes
