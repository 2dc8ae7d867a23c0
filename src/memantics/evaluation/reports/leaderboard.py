"""Make leaderboard rows from runs, computed baselines and published results.

Published results are shown as references and never ranked as runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memantics.benchmarks.published import PublishedRow
from memantics.core.records import CALIBRATED, STATUSES, Score
from memantics.core.rundir import RunFacts, Usage, name_folders
from memantics.core.text import mask_unseen
from memantics.evaluation.judging.setups import describe_parts
from memantics.evaluation.reports.runs import Run, differing_options
from memantics.evaluation.rubric import read_setups
from memantics.metrics.feasibility import Claims, is_impossible

PublishedRows = Mapping[str, Sequence[PublishedRow]]
TRIVIAL = "baseline/"
EDITOR = "editor"
_NONE: PublishedRows = {}
_RANGE = re.compile(r"\d+–\d+ %")  # a range of proportions


def match_published(
    runs: Sequence[Run], published: PublishedRows
) -> list[tuple[str, PublishedRow]]:
    """Select the published rows to show beside runs of one task, each with a distinct name.

    Published rows are shown only beside runs on official data, since a paper's scores do not apply
    to sample data. A row is shown if some run used the same settings as the published system.
    """
    if not runs or runs[0].kind != "release":
        return []
    rows = [
        row
        for row in published.get(runs[0].task, ())
        if any(row.fits(run.facts.options, run.facts.split) for run in runs)
    ]
    taken = {run.facts.model for run in runs}
    return list(zip(_tell_rows_apart(rows, taken), rows, strict=True))


def show_reference(row: PublishedRow) -> str:
    """Return the source of a published row, and a note if its values are impossible.

    >>> show_reference(PublishedRow(task="qa", system="x", metrics={"accuracy": 0.5}, digits=1,
    ...                             source="Table 2", feasible=False, reason="not k/9"))
    'published, Table 2; impossible with the stated n: not k/9'
    """
    flag = f"; {tell_fault(row)}: {row.reason}" if row.feasible is False else ""
    return f"published, {row.source}{flag}"


def tell_fault(row: PublishedRow) -> str:
    """Return whether a published row contradicts itself, or only the stated numbers of items."""
    if row.feasible is not False:
        return ""
    certain = is_impossible(row.metrics, Claims(row.digits, row.sizes, row.parts, row.classes))
    return "impossible by arithmetic" if certain else "impossible with the stated n"


def _tell_rows_apart(rows: Sequence[PublishedRow], taken: set[str]) -> list[str]:
    """Make the names of published systems distinct by their settings, else by a number."""
    shared = Counter(row.system for row in rows)
    names: list[str] = []
    for row in rows:
        settings = [f"{name}={value}" for name, value in sorted(row.options.items())]
        name = " · ".join([row.system, *settings]) if shared[row.system] > 1 else row.system
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name} ({count})"
        taken.add(unique)
        names.append(unique)
    return names


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """One line of a leaderboard.

    ``memes`` is the number of memes that the items of a run are about.
    ``label`` is the model's name, with settings added if the name is not unique. A computed trivial
    baseline has no ``run`` (the index in ``Board.runs``), no ``counts`` and no ``usage``. The same
    applies to a ``published`` row, which comes from a paper.
    """

    label: str
    model: str
    note: str
    scores: tuple[Score, ...]
    main: Score | None
    run: int | None = None
    counts: Mapping[str, int] | None = None
    usage: Usage | None = None
    finished: bool = True
    published: PublishedRow | None = None
    source: Run | None = None
    memes: int | None = None

    @property
    def trivial(self) -> bool:
        """Whether the row is a trivial baseline."""
        return self.published is None and self.model.startswith(TRIVIAL)

    @property
    def invalid_rate(self) -> float | None:
        """The proportion of items whose final reply is refused or unparsed."""
        return None if self.counts is None else invalid_rate(self.counts)

    @property
    def wall(self) -> str:
        """Time from the first start of the run to its end, as text; empty if unknown.

        Pauses between starts are included; overlapping call times are not summed.
        """
        facts = self.source.facts if self.source else None
        if facts is None or not facts.finished or facts.imported:
            return ""
        try:
            ends = [datetime.fromisoformat(text) for text in (facts.started, facts.finished)]
        except ValueError:
            return ""
        return str(ends[1] - ends[0])

    @property
    def value(self) -> float | None:
        """The value of the main metric."""
        return self.main.value if self.main else None

    @property
    def n(self) -> int | None:
        """The number of items of the main metric."""
        return self.size(self.main) if self.main else None

    def size(self, score: Score) -> int | None:
        """The number of items of a metric; papers do not always state it."""
        return None if self.published is not None and not score.n else score.n

    def find(self, key: str, by: str = "", label: str = "") -> Score | None:
        """Find the metric of that name."""
        for score in self.scores:
            if (score.key, score.by, score.label) == (key, by, label):
                return score
        return None


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard: all rows with the same questions, sorted by the main metric."""

    slug: str
    task: str
    title: str
    main: str
    unit: str
    kind: str
    split: str
    limit: int | None
    warnings: tuple[str, ...]
    runs: tuple[Run, ...]
    rows: tuple[LeaderboardRow, ...]
    differences: tuple[str, ...]

    @property
    def sample(self) -> bool:
        """Whether the data are the sample data of Memantics."""
        return self.kind == "sample"

    @property
    def judges(self) -> bool:
        """Whether the scores are about judged edits and not about the models that judge."""
        return any(s.by == EDITOR and s.key == self.main for row in self.ours for s in row.scores)

    @property
    def best_baseline(self) -> LeaderboardRow | None:
        """The best trivial baseline, which every model should beat; None for judges."""
        if self.judges:
            return None
        return next((row for row in self.rows if row.trivial and row.value is not None), None)

    @property
    def leader(self) -> LeaderboardRow | None:
        """The first run that is not a trivial baseline; judges are not ranked."""
        if self.judges:
            return None
        asked = (row for row in self.ours if row.run is not None and not row.trivial)
        return next((row for row in asked if row.value is not None), None)

    @property
    def ours(self) -> tuple[LeaderboardRow, ...]:
        """The rows of the leaderboard that come from runs."""
        return tuple(row for row in self.rows if row.published is None)

    @property
    def caution(self) -> str:
        """A warning if published rows are based on more items than the runs."""
        papers = [row for row in self.rows if row.published is not None]
        sizes = [row.n for row in self.ours if row.run is not None and row.n]
        if not papers or not sizes:
            return ""
        stated = max((row.n or 0 for row in papers), default=0)
        facts = self.runs[0].facts
        part = facts.limit is not None or facts.sample is not None
        if not part and max(sizes) >= 0.9 * stated:
            return ""
        theirs = f"{stated} items" if stated else "the paper's items"
        return (
            f"Published rows use {theirs}, runs here {max(sizes)}: "
            "they cannot be compared directly."
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics over all items, the main one first."""
        names = {s.key: None for row in self.ours for s in row.scores if not s.by}
        return tuple(sorted(names, key=lambda name: name != self.main))

    @property
    def beside(self) -> str:
        """The calibrated metric shown beside the main one; empty if the task has none."""
        return CALIBRATED if CALIBRATED in self.metrics and self.main != CALIBRATED else ""

    @property
    def breakdowns(self) -> tuple[tuple[str, str], ...]:
        """Pairs of metric and breakdown, those of the main metric first."""
        pairs = {(s.key, s.by): None for row in self.ours for s in row.scores if s.by}
        return tuple(sorted(pairs, key=lambda pair: pair[0] != self.main))

    def labels(self, key: str, by: str) -> tuple[str, ...]:
        """The categories of a breakdown, largest first; ranges in ascending order."""
        sizes: dict[str, int] = {}
        for row in self.ours:
            for score in row.scores:
                if (score.key, score.by) == (key, by):
                    sizes[score.label] = max(score.n, sizes.get(score.label, 0))
        if all(_RANGE.fullmatch(label) for label in sizes):
            return tuple(sorted(sizes, key=lambda label: int(label.partition("–")[0])))
        return tuple(sorted(sizes, key=lambda label: -sizes[label]))


def make_boards(runs: Sequence[Run], published: PublishedRows = _NONE) -> tuple[Board, ...]:
    """Group runs by their questions; runs on different data are never on one leaderboard.

    ``published`` are results from papers by task; matching ones are shown beside runs on official
    data.
    """
    grounds: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        grounds.setdefault(run.ground, []).append(run)
    slugs: Counter[str] = Counter()
    boards = []
    for group in grounds.values():
        slug = re.sub(r"[^a-z0-9]+", "-", group[0].task.lower()).strip("-") or "task"
        slugs[slug] += 1
        name = slug if slugs[slug] == 1 else f"{slug}.{slugs[slug]}"
        boards.append(_make_board(name, group, published))
    return tuple(boards)


def _make_board(slug: str, runs: Sequence[Run], published: PublishedRows) -> Board:
    facts, main = runs[0].facts, runs[0].results.main
    labels = _tell_apart(runs)
    rows = [_run_row(place, run, labels[place], main) for place, run in enumerate(runs)]
    rows += _computed_baselines(runs, main)
    rows += [_reference_row(*pair, main) for pair in match_published(runs, published)]
    board = Board(
        slug=slug,
        task=runs[0].task,
        title=facts.title or runs[0].task,
        main=main,
        unit=facts.unit,
        kind=runs[0].kind,
        split=facts.split,
        limit=facts.limit,
        warnings=tuple(dict.fromkeys(r.facts.warning for r in runs if r.facts.warning)),
        runs=tuple(runs),
        rows=tuple(sorted(rows, key=_rank)),
        differences=_differences(runs),
    )
    if not board.judges:
        return board
    named = sorted(rows, key=lambda row: (row.published is not None, row.trivial, row.label))
    return replace(board, rows=tuple(named))


def _rank(row: LeaderboardRow) -> tuple[bool, float, bool, bool]:
    value = row.value
    return (value is None, -(value or 0.0), row.published is not None, row.trivial)


def _run_row(place: int, run: Run, label: str, main: str) -> LeaderboardRow:
    row = LeaderboardRow(
        label=label,
        model=run.facts.model,
        note=_note_run(run.facts),
        scores=run.results.scores,
        main=None,
        run=place,
        counts={status: run.results.counts.get(status, 0) for status in STATUSES},
        usage=run.results.usage,
        finished=bool(run.facts.finished),
        source=run,
        memes=run.memes,
    )
    return replace(row, main=row.find(main))


def _note_run(facts: RunFacts) -> str:
    wording = f"wording: {facts.wording}" if facts.wording else ""
    return "; ".join(filter(None, (facts.model_note, wording, *facts.adapted)))


def _reference_row(label: str, published: PublishedRow, main: str) -> LeaderboardRow:
    row = LeaderboardRow(
        label=label,
        model=published.system,
        note=show_reference(published),
        scores=published.scores,
        main=None,
        published=published,
    )
    return replace(row, main=row.find(main))


def _computed_baselines(runs: Sequence[Run], main: str) -> Iterator[LeaderboardRow]:
    """Collect baselines from the scores of runs, each once, unless it was also run as a model.

    A baseline may differ between runs whose settings change the questions; then each version is
    kept, with the name of its run.
    """
    asked = {run.facts.model for run in runs}
    seen: dict[str, list[float | None]] = {}
    for run in runs:
        for baseline in run.results.baselines:
            if baseline.model in asked:
                continue
            row = LeaderboardRow(baseline.model, baseline.model, "", baseline.scores, None)
            note = "trivial baseline" if row.trivial else "human annotators"
            row = replace(row, note=note, main=row.find(main))
            value = None if row.value is None else round(row.value, 9)
            before = seen.setdefault(baseline.model, [])
            if value in before:
                continue
            label = f"{row.label} · {run.name}" if before else row.label
            before.append(value)
            yield replace(row, label=label)


def _tell_apart(runs: Sequence[Run]) -> list[str]:
    """Make model names distinct by the options that differ, else by the folder."""
    labels = [run.facts.model for run in runs]
    shared = Counter(labels)
    for place, run in enumerate(runs):
        if shared[run.facts.model] > 1:
            namesakes = [r.facts for r in runs if r.facts.model == run.facts.model]
            labels[place] = " · ".join([run.facts.model, *_special(run.facts, namesakes)])
    doubled = Counter(labels)
    folders = name_folders([run.folder for run in runs])
    return [
        f"{label} · {mask_unseen(folder)}" if doubled[label] > 1 else label
        for label, folder in zip(labels, folders, strict=True)
    ]


def _special(facts: RunFacts, namesakes: Sequence[RunFacts]) -> Iterator[str]:
    yield from sorted(differing_options(facts, namesakes))
    if len({other.invalid for other in namesakes}) > 1:
        yield f"invalid={facts.invalid}"
    if len({other.repeat for other in namesakes}) > 1:
        yield f"repeat {facts.repeat + 1}"
    if len({other.wording for other in namesakes}) > 1:
        yield f"wording={facts.wording or 'ours'}"


def _differences(runs: Sequence[Run]) -> tuple[str, ...]:
    """List the settings that differ between rows of a leaderboard."""
    parts: dict[str, set[Hashable]] = {
        "options": {tuple(sorted(r.facts.options.items())) for r in runs},
        "prompts": {tuple(sorted(r.facts.prompts.items())) for r in runs},
        "policy for invalid answers": {r.facts.invalid for r in runs},
        "package version": {r.facts.version for r in runs},
        "judging of answers (judge_* scores are not comparable)": {
            tuple(describe_parts(setups).values())
            for r in runs
            if (setups := read_setups(r.folder))
        },
    }
    return tuple(name for name, values in parts.items() if len(values) > 1)


def invalid_rate(counts: Mapping[str, int]) -> float | None:
    """Return the proportion of items with a refused or unparsed reply; a failed call has none.

    >>> invalid_rate({"answered": 6, "refused": 1, "unparsed": 1, "failed": 2})
    0.25
    """
    invalid = counts.get("refused", 0) + counts.get("unparsed", 0)
    replies = counts.get("answered", 0) + invalid
    return invalid / replies if replies else None


def show_limit(facts: RunFacts) -> str:
    """Describe the items of a limited run."""
    if facts.spread:
        return f"{facts.limit} items, stratified by {facts.spread}"
    return f"first {facts.limit} items"


def show_scope(board: Board) -> str:
    """Describe the data behind a leaderboard in a few words."""
    parts = [f"{board.kind or 'unnamed'} data"]
    if board.split and board.split != "all":
        parts.append(f"split {board.split}")
    facts = board.runs[0].facts
    if facts.limit is not None:
        parts.append(show_limit(facts))
    if facts.sample is not None:
        parts.append(f"sample of {facts.sample} items, seed {facts.seed}")
    if facts.perturbation:
        parts.append(f"perturbation {facts.perturbation}")
    return ", ".join(parts)
