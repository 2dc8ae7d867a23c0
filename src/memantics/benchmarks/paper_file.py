"""``paper.toml``: a paper's tables, rows, systems and printed values; filling of tables with runs.

Tables and figures that repeat the paper or look up statistics are declared entirely in the file. A
table that computes more has a function in ``paper.py``, which fills the :class:`DeclaredPart`.
Tables of systems show the paper's rows with their runs, the user's other runs and trivial
baselines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from string import Template
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, JsonValue, model_validator

from memantics.benchmarks import paper
from memantics.benchmarks.paper import (
    Cell,
    Paper,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperText,
    RowKind,
    list_statistics,
)
from memantics.benchmarks.published import PaperSystem, PublishedRow
from memantics.core.data import read_toml
from memantics.core.errors import DataError
from memantics.core.prompt import read_prompts
from memantics.core.records import Closed, Score

R = TypeVar("R")
FILE = "paper.toml"
# Placeholders in a command: benchmark, task, model, options.
_PLACEHOLDERS = frozenset(
    ("name", "task", "model", "server", "options", "split", "extra", "input", "style", "protocol")
)


class PaperMetric(Closed):
    """A column in a table of systems: a metric of a task with these options.

    ``extra`` are the flags that a command needs for this metric, besides the usual ones.
    """

    task: str
    key: str
    options: dict[str, str] = Field(default_factory=dict)
    extra: str = ""


class DeclaredRow(Closed):
    """A declared row; ``cells`` are printed values ("" is none), ``keys`` are statistics.

    ``key`` is the row's name in code. ``system`` and ``options`` identify the system. ``fill`` is
    the command that fills the row, if it differs from the command of the table.
    """

    label: str
    key: str = ""
    section: str = ""
    kind: RowKind = "paper"
    cells: tuple[JsonValue, ...] = ()
    keys: tuple[str, ...] = ()
    system: str = ""
    options: dict[str, str] = Field(default_factory=dict)
    fill: str = ""

    @property
    def printed(self) -> tuple[JsonValue, ...]:
        """Return the printed values of the row; None where the paper prints none."""
        return tuple(None if cell == "" else cell for cell in self.cells)


class DeclaredText(Closed):
    """A declared text with its heading."""

    heading: str
    body: str


class DeclaredPart(Closed):
    """A declared table or figure.

    ``statistics`` are listed one per row (``*`` matches any ending); ``prompts`` names prompt
    files. ``fill`` is the command that fills the cells, or the name of one of the file's
    ``commands``. ``reason`` states why no command can fill them, ``lacking`` why a run may have no
    value, and ``unprinted`` why the paper may print none. ``score_notes`` shows the note of a
    score. Values are multiplied by ``scale`` and shown with ``digits`` decimals. If the data are
    the paper's official release, ``official_notes`` come first and commands use ``official_split``.
    """

    label: Annotated[str, Field(min_length=1)]
    caption: str
    stub: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[DeclaredRow, ...] = ()
    metrics: tuple[PaperMetric, ...] = ()
    statistics: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    texts: tuple[DeclaredText, ...] = ()
    notes: tuple[str, ...] = ()
    official_notes: tuple[str, ...] = ()
    official_split: str = ""
    drawn: Literal["", "plotted", "radar", "shaded"] = ""
    fill: str = ""
    reason: str = ""
    lacking: str = ""
    unprinted: str = ""
    score_notes: bool = False
    digits: int = 2
    scale: float = 100.0
    names: dict[str, str] = Field(default_factory=dict)
    commands: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for row in self.rows:
            for what, values in (("cells", row.cells), ("keys", row.keys)):
                if values and len(values) != len(self.columns):
                    found = f"{len(values)} {what} for {len(self.columns)} columns"
                    raise ValueError(f"row {row.label!r} has {found}")
        if self.metrics and len(self.metrics) != len(self.columns):
            raise ValueError(f"{len(self.metrics)} metrics for {len(self.columns)} columns")
        _check_command(self.fill)
        return self

    @property
    def printed(self) -> dict[str, tuple[JsonValue, ...]]:
        """Return the printed values of each row, by its key or else its label."""
        return {row.key or row.label: row.printed for row in self.rows}

    def command(self, named: str = "", **values: str) -> str:
        """Return the command that fills a cell, or another command of the file."""
        text = self.commands.get(named or self.fill, named or self.fill)
        served = "--base-url URL" if values.get("model", "").startswith("openai/") else ""
        told = Template(text).safe_substitute({"server": served, "extra": "", **values})
        return re.sub(" +", " ", told).strip()

    def empty(self, *labels: str, columns: int | None = None) -> tuple[PaperRow, ...]:
        """Return rows without values, with the command that fills them."""
        width = len(self.columns) if columns is None else columns
        return tuple(PaperRow(text, (Cell(fill=self.command()),) * width) for text in labels)

    def show(
        self,
        rows: Iterable[PaperRow] = (),
        texts: Iterable[PaperText] = (),
        notes: Iterable[str] = (),
        columns: Iterable[str] | None = None,
        *,
        drawn: bool = True,
    ) -> PaperPart:
        """Return the table or figure with additional rows, texts and notes."""
        return PaperPart(
            self.label,
            self.caption,
            self.columns if columns is None else tuple(columns),
            tuple(rows),
            self.stub,
            plotted=drawn and self.drawn == "plotted",
            radar=self.drawn == "radar",
            shaded=self.drawn == "shaded",
            texts=(*(PaperText(text.heading, text.body) for text in self.texts), *texts),
            notes=(*self.notes, *notes),
        )

    def settle(self, material: PaperMaterial[R], file: PaperFile) -> Self:
        """Return the table or figure for these data, with its notes and its commands filled in."""
        named = self.official_split and material.compared
        split = f"--split {self.official_split}" if named else ""
        protocol = write_options(material.shared_protocol)
        told = {"fill": self.fill, **file.commands}
        commands = {
            key: Template(text).safe_substitute(name=material.name, split=split, protocol=protocol)
            for key, text in told.items()
        }
        changes = {
            "notes": (*(self.official_notes if material.compared else ()), *self.notes),
            "fill": commands.pop("fill"),
            "names": dict(file.names),
            "commands": commands,
        }
        return self.model_copy(update=changes)


def _check_command(text: str) -> None:
    if unknown := set(Template(text).get_identifiers()) - _PLACEHOLDERS:
        raise ValueError(f"a command uses {', '.join(sorted(unknown))}, which has no value")


class PaperFile(Closed):
    """The content of ``paper.toml``; ``names`` maps values of the data to the paper's words."""

    title: str
    names: dict[str, str] = Field(default_factory=dict)
    commands: dict[str, str] = Field(default_factory=dict)
    system: dict[str, PaperSystem] = Field(default_factory=dict)
    part: Annotated[tuple[DeclaredPart, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for text in self.commands.values():
            _check_command(text)
        for part in self.part:
            if [p.label for p in self.part].count(part.label) > 1:
                raise ValueError(f"part {part.label!r} is declared twice")
            for row in part.rows:
                if row.system and row.system not in self.system:
                    raise ValueError(
                        f"part {part.label!r}: {row.system!r} is not defined in this file"
                    )
        return self


PartMaker = Callable[[PaperMaterial[R], DeclaredPart], PaperPart]


def read_paper_file(path: Path) -> PaperFile:
    """Read and validate ``paper.toml``; an error names the file and the position."""
    return read_toml(
        path, PaperFile, "the paper file is not UTF-8 TOML", "see docs/how-to/reproduce-a-paper.md"
    )


def read_paper(path: Path, makers: Mapping[str, PartMaker[R]] | None = None) -> Paper[R]:
    """Return the paper that a file declares; ``makers`` maps labels to functions that compute."""
    file, known = read_paper_file(path), dict(makers or {})
    if stray := known.keys() - {part.label for part in file.part}:
        raise DataError(path, f"declares no part {', '.join(sorted(stray))}")
    makes = [
        partial(_fill, path, file, part, known.get(part.label, show_declared)) for part in file.part
    ]
    return Paper(file.title, tuple(makes), file.system)


def _fill(
    path: Path,
    file: PaperFile,
    part: DeclaredPart,
    make: PartMaker[R],
    material: PaperMaterial[R],
) -> PaperPart:
    settled = part.settle(material, file)
    if part.prompts:
        found = read_prompts(path.with_name("prompts"))
        if missing := set(part.prompts) - found.keys():
            raise DataError(
                path, f"part {part.label!r}: prompt {', '.join(sorted(missing))} does not exist"
            )
        texts = [DeclaredText(heading=name, body=found[name].text) for name in part.prompts]
        settled = settled.model_copy(update={"texts": (*part.texts, *texts)})
    return make(material, settled)


def show_declared(material: PaperMaterial[R], part: DeclaredPart) -> PaperPart:
    """Return a table or figure that the file declares completely: statements, statistics, texts."""
    rows = [
        PaperRow(row.label, show_cells(material, part, row), row.kind, row.section)
        for row in part.rows
    ]
    listed = [
        key
        for pattern in part.statistics
        for key in material.expected
        if key == pattern or ("*" in pattern and fnmatchcase(key, pattern))
    ]
    rows += list_statistics(material, dict.fromkeys(listed), part.command())
    drawn = any(cell.value is not None for row in rows for cell in row.cells)
    return part.show(rows, drawn=drawn)


def show_cells(
    material: PaperMaterial[R], part: DeclaredPart, row: DeclaredRow
) -> tuple[Cell, ...]:
    """Return table cells of statistics by key, or of the values printed in the paper."""
    if row.keys:
        command = part.command()
        return tuple(
            material.statistic(key, command, part.reason) if key else Cell() for key in row.keys
        )
    return tuple(
        Cell(cell, digits=part.digits if isinstance(cell, float) else None, reason=part.reason)
        for cell in row.printed
    )


# A function that returns a system's score by row and column, if no run has it.
Aside = Callable[[DeclaredRow, PaperMetric], Score | None]


def write_options(options: Mapping[str, str]) -> str:
    """Return task options as flags of a command.

    >>> write_options({"prompt": "1", "wording": "official"})
    '--set prompt=1 --set wording=official'
    """
    return " ".join(f"--set {name}={value}" for name, value in options.items())


def find_published(
    material: paper.PaperMaterial[R], part: DeclaredPart, row: DeclaredRow, metric: PaperMetric
) -> PublishedRow | None:
    """Return the published value of a row's system in a column."""
    wanted = row.options | metric.options
    for published in material.rows_of(metric.task, part.label):
        named = published.system == row.system and metric.key in published.metrics
        if named and wanted.items() <= published.options.items():
            return published
    return None


def write_command(
    material: paper.PaperMaterial[R], part: DeclaredPart, row: DeclaredRow, metric: PaperMetric
) -> str:
    """Return the command that fills a cell of a system's row."""
    published = find_published(material, part, row, metric)
    if published is None:  # a column without a printed value asks as the row's other columns
        rows = material.rows_of(metric.task, part.label)
        published = next((other for other in rows if other.system == row.system), None)
    protocol = published.list_protocol() if published and material.compared else {}
    options = row.options | metric.options | protocol
    system = material.systems.get(row.system)
    chosen = write_options(options)
    return part.command(
        row.fill,
        task=metric.task,
        model=system.model if system else "",
        extra=system.extra if system else "",
        options=chosen,
        input=options.get("input", ""),
    )


def fill_systems(
    material: paper.PaperMaterial[R], part: DeclaredPart, aside: Aside | None = None
) -> tuple[list[PaperRow], set[Path]]:
    """Return the declared rows with the runs of their systems, and the folders of those runs."""
    rows, taken = list[PaperRow](), set[Path]()
    for row in part.rows:
        if row.cells and not row.system:  # the printed value of an unknown system
            told = show_cells(material, part, row)
            rows.append(PaperRow(row.label, told, row.kind, row.section))
            continue
        cells = []
        for metric in part.metrics:
            published = find_published(material, part, row, metric)
            asked = published.options if published else row.options | metric.options
            split = published.split if published else ""
            run = material.find_run(metric.task, row.system, asked, split, published)
            score, sd = aside(row, metric) if aside else None, None
            if run:
                repeats = material.repeats_of(run)
                score, sd = paper.mean_repeats(repeats, metric.key)
                # A run that fills no cell here used other options, so it gets its own row.
                taken |= {repeat.folder for repeat in repeats if score is not None}
            cell = show_system(material, part, metric, published, run, score)
            if run and score is not None:
                folders = tuple(str(repeat.folder) for repeat in material.repeats_of(run))
                cell = replace(cell, runs=folders)
            if sd is not None and score is not None:
                cell = replace(cell, sd=part.scale * sd, note=cell.note or score.note)
            if not (cell.reason or cell.fill):
                more = metric.extra if run else ""
                fill = f"{write_command(material, part, row, metric)} {more}".strip()
                cell = replace(cell, fill=fill)
            cells.append(cell)
        rows.append(PaperRow(row.label, tuple(cells), row.kind, row.section))
    return rows, taken


def show_system(
    material: paper.PaperMaterial[R],
    part: DeclaredPart,
    metric: PaperMetric,
    published: PublishedRow | None,
    run: paper.ScoredRun | None,
    score: Score | None,
) -> Cell:
    """Return the table cell with the paper's value of a system and the value of its run."""
    printed = published.metrics.get(metric.key) if published else None
    said = score.note if score and part.score_notes else ""
    reason = published.reason if published else part.unprinted
    differs = material.find_differences(run, published, metric.key, score)
    return replace(
        spread_cell(score, part.digits, part.scale),
        paper=None if printed is None else round(part.scale * printed, part.digits),
        compared=not differs,
        differs=differs if score is not None and printed is not None else (),
        origin=run.facts.origin if run and score else "",
        reason=part.lacking if run or score else "",
        note="; ".join(text for text in (said, reason) if text),
    )


def spread_cell(score: Score | None, digits: int = 2, scale: float = 100.0) -> Cell:
    """Return the table cell of a score with its standard deviation, taken from the note.

    >>> spread_cell(Score("f1", 0.5, 10, note="± 1.25 over 5 seeds")).sd
    1.25
    """
    note = score.note if score else ""
    sd = float(note.split()[1]) if note.startswith("± ") else None
    return replace(paper.score_cell(score, digits, scale), sd=sd)


def show_scores(
    part: DeclaredPart, scores: Mapping[str, Sequence[Score]], run: paper.ScoredRun | None = None
) -> tuple[Cell, ...]:
    """Return the cells of a system that is not in the paper; ``scores`` are by task."""
    found = (paper.find_score(scores.get(metric.task, ()), metric.key) for metric in part.metrics)
    runs = (str(run.folder),) if run else ()
    origin = run.facts.origin if run else ""
    return tuple(
        replace(
            paper.score_cell(score, part.digits, part.scale),
            origin=origin if score else "",
            runs=runs,
        )
        for score in found
    )


def list_others(
    material: paper.PaperMaterial[R],
    part: DeclaredPart,
    taken: set[Path],
    sections: tuple[str, str] = ("", ""),
) -> Iterator[PaperRow]:
    """Return rows of runs that are not in the paper, with tasks side by side; then baselines.

    Repeats of a run form one row with mean and SD.
    """
    found: dict[str, dict[str, Sequence[paper.ScoredRun]]] = {}
    baselines: dict[str, dict[str, Sequence[Score]]] = {}
    models = set[str]()
    for task in dict.fromkeys(metric.task for metric in part.metrics):
        every = material.of_task(task)
        models |= {run.model for run in every}
        runs = [run for run in every if material.repeats_of(run)[0] is run]
        for run, label in zip(runs, paper.name_runs(runs), strict=True):
            for baseline in run.results.baselines:
                baselines.setdefault(baseline.model, {})[task] = baseline.scores
            if run.folder not in taken:
                found.setdefault(label, {})[task] = material.repeats_of(run)
    for label, asked in found.items():
        yield PaperRow(label, tuple(_list_means(part, asked)), "own", sections[0])
    for model, scores in baselines.items():
        if model not in models:
            yield PaperRow(model, show_scores(part, scores), "baseline", sections[1])


def _list_means(
    part: DeclaredPart, asked: Mapping[str, Sequence[paper.ScoredRun]]
) -> Iterator[Cell]:
    for metric in part.metrics:
        runs = asked.get(metric.task, ())
        score, sd = paper.mean_repeats(runs, metric.key)
        origin = next((run.facts.origin for run in runs if score and run.facts.origin), "")
        folders = tuple(str(run.folder) for run in runs)
        cell = paper.score_cell(score, part.digits, part.scale)
        cell = replace(cell, origin=origin, runs=folders)
        yield (
            cell
            if sd is None or score is None
            else replace(cell, sd=part.scale * sd, note=score.note)
        )
