"""Write runs as an HTML page, a table, a gallery, Inspect logs or an annotation queue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated

import orjson

from memantics.benchmarks.registry import find_published
from memantics.core.errors import InputError, UnknownName
from memantics.core.files import write_text
from memantics.core.parameters import Argument, Flag
from memantics.core.records import Field, Item, Outcome
from memantics.core.registry import find_run_places
from memantics.core.rundir import last_answers, read_facts, read_items
from memantics.core.task import Task, Unparsed
from memantics.evaluation.compare import group_runs, open_contest
from memantics.evaluation.contrasts import SuiteComparison, compare_suite
from memantics.evaluation.inspect_logs import check_inspect, write_log
from memantics.evaluation.options import Folders, RunLike, find_folder
from memantics.evaluation.reports.gallery import make_gallery, render_gallery
from memantics.evaluation.reports.model_table import (
    TABLE_FORMS,
    TABLE_STYLES,
    ModelTable,
    TableStyle,
    make_table,
    render_html_table,
    render_latex_table,
)
from memantics.evaluation.reports.page import ReportSettings, build_report
from memantics.evaluation.reports.payload import list_gold_keys
from memantics.evaluation.reports.runs import Run, load_runs, split_unfinished
from memantics.evaluation.reports.tables import REPORT_FORMS
from memantics.evaluation.scoring import read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.web.phrases import PageLanguage, read_phrases

__all__ = [
    "RunLike",
    "export_inspect",
    "find_folder",
    "read_metrics",
    "render_report",
    "report",
    "split_unfinished",
    "write_gallery",
]
# The table of models × tasks, with significance marks.


def tabulate_models(runs: Sequence[RunLike]) -> ModelTable:
    """Make the table of all models and tasks, with significance marks where models share items.

    A task whose benchmark is not installed has no significance marks.
    """
    boards, repeats = group_runs(runs)
    contests = []
    for board in boards:
        if not board.judges:
            with suppress(InputError):
                contests.append(open_contest(board, repeats))
    found: SuiteComparison | None = None
    with suppress(InputError):
        found = compare_suite(contests)
    rows = found.rows if found else ()
    tested = {(row.ground, row.first, row.second): row.found.corrected for row in rows}
    return make_table(boards, repeats, tested)


def render_table(runs: Sequence[RunLike], form: str, style: TableStyle | None = None) -> str:
    """Render the model table as ``latex``, ``md``, ``csv`` or ``html``; ``style`` is for LaTeX."""
    if style is not None and style not in TABLE_STYLES:
        raise UnknownName("style", style, TABLE_STYLES)
    if form == "latex":
        return render_latex_table(tabulate_models(runs), style or "booktabs")
    if style is not None:
        raise InputError(
            f"--style works with LaTeX only, not with {form}", hint="add --format latex"
        )
    if form not in TABLE_FORMS:
        raise UnknownName("table format", form, ("latex", *TABLE_FORMS))
    return TABLE_FORMS[form](tabulate_models(runs))


_MOST_READ = 64
_HEAVY = ("bertscore", "nli")
_PAGE = ("", "html", "htm")
_NAMES = {"markdown": "md", "tex": "latex"}


def report(
    runs: RunLike | Sequence[RunLike],
    out: str | Path = "report.html",
    *,
    form: str | None = None,
    images: bool = True,
    table: bool = False,
    style: TableStyle | None = None,
    language: PageLanguage = "en",
) -> Path:
    """Write runs to one self-contained page, or to a table.

    If some runs are finished, unfinished runs are excluded.

    Args:
        runs: One run or several: runs or their folders.
        out: The file to write.
        form: Report format: ``html``, ``md``, ``csv``, ``json``, ``latex`` or an installed one
            (entry points of the group ``memantics.reports``). Default: by the extension of ``out``.
        images: Whether the page shows memes.
        table: Write only the table of models × tasks; LaTeX contains only this table.
        style: Style of the LaTeX table: ``booktabs``, ``acl`` or ``neurips``.
        language: Language of the page: ``en`` or ``zh``. Names, notes and answers from the data
            keep theirs.

    Returns:
        The file that was written.

    Raises:
        InputError: No run is finished, or the format is unknown.

    Example:
        >>> mm.report(["runs/one", "runs/other"], "report.html")
        PosixPath('report.html')
    """
    folders = [find_folder(r) for r in ([runs] if isinstance(runs, RunLike) else runs)]
    folders, _ = split_unfinished(folders)
    path = Path(out)
    ending = path.suffix.lstrip(".").lower()
    if form is None:
        named = _NAMES.get(ending, ending)
        known = named == "latex" or (named not in _PAGE and REPORT_FORMS.find(named))
        form = named if known else "html"
    if form != "html" or table:
        if language != "en":
            raise InputError("--language works with the HTML page only", hint="leave it out")
        write_text(path, render_report(folders, form, table=table, style=style), "report")
    else:
        published = find_published(run.task for run in load_runs(folders))
        settings = ReportSettings(
            language=language,
            images=images,
            published=published,
            find_gold=_GoldFinder(),
            find_marks=find_marks,
            places=find_run_places(folders),
            models=render_html_table(tabulate_models(folders), read_phrases(language)),
        )
        build_report(folders, path, settings)
    return path


class _GoldFinder:
    """Finds the correct options by parsing each option label as if it were an answer.

    This is needed because gold labels and option labels may differ: the gold label ``none`` can be
    option E of five.
    """

    def __init__(self) -> None:
        self._tasks: dict[Path, Task] = {}
        self._known: dict[tuple[Path, tuple[Field, ...], str], tuple[str | None, ...]] = {}

    def __call__(self, run: Run, item: Item) -> tuple[str | None, ...]:
        plain = list_gold_keys(item)
        choices = [[option.key for option in part.options] for part in item.form.fields]
        if None not in plain or not all(choices) or prod(map(len, choices)) > _MOST_READ:
            return plain
        key = (run.folder, item.form.fields, repr(item.gold))
        if key not in self._known:
            if run.folder not in self._tasks:
                self._tasks[run.folder] = open_task_of_run(run.facts, None)[1]
            self._known[key] = self._read(self._tasks[run.folder], item, choices) or plain
        return self._known[key]

    def _read(
        self, task: Task, item: Item, choices: Sequence[Sequence[str]]
    ) -> tuple[str | None, ...]:
        names = [part.name for part in item.form.fields]
        for keys in product(*choices):
            said = dict(zip(names, keys, strict=True))
            reply = orjson.dumps(said).decode() if item.form.reply == "json" else keys[0]
            with suppress(Unparsed):
                if task.parse(reply, item.form) == item.gold:
                    return keys
        return ()


def render_report(
    folders: Sequence[Path], form: str, *, table: bool = False, style: TableStyle | None = None
) -> str:
    """Render runs as LaTeX, Markdown, CSV, JSON or a plug-in format, or their model table alone."""
    form = _NAMES.get(form, form)
    if table or form == "latex" or style is not None:
        return render_table(folders, form, style)
    found = REPORT_FORMS.find(form)
    if found is None:
        raise UnknownName("format", form, ("html", "latex", *REPORT_FORMS.names()))
    runs = load_runs(folders)
    text = found.render(runs, find_published(run.task for run in runs))
    if form != "md":
        return text
    head, _, rest = text.partition("\n")
    return f"{head}\n\n{render_table(folders, form)}{rest}"


def export_inspect(
    folders: Folders,
    out: Annotated[Path, Flag("Output folder for the logs.")] = Path("logs"),
    *,
    images: Annotated[bool, Flag("Embed the images in the logs.")] = True,
) -> list[Path]:
    """Write runs as Inspect logs, one file per run; ``inspect view`` opens them."""
    check_inspect()
    places = find_run_places(folders) if images else None
    return [write_log(run, out, _mark(run), places) for run in load_runs(folders)]


def _mark(run: Run) -> dict[str, float | None]:
    """Compute the main metric of each single item, if the task defines it per item.

    Metrics that call another model are skipped; a main metric never does.
    """
    light = {n: "off" if n in _HEAVY else value for n, value in run.facts.options.items()}
    _, task = open_task_of_run(replace(run.facts, options=light), None)
    if task.marks is None:
        return {}
    outcomes = read_outcomes(run.folder, task)
    marks = task.marks(outcomes).get(task.main)
    if marks is None:
        return {}
    return {outcome.item.id: mark for outcome, mark in zip(outcomes, marks, strict=True)}


def find_marks(run: Run) -> dict[str, float | None]:
    """Compute per-item values of the main metric; empty if the run's benchmark is not installed."""
    with suppress(InputError):
        return _mark(run)
    return {}


def write_gallery(
    run: Annotated[
        RunLike, Argument("Run directory of mer_bench/judge or of another task that judges edits.")
    ],
    out: Annotated[str | Path, Flag("Output HTML file.")] = "gallery.html",
    language: Annotated[PageLanguage, Flag("Language of the page: en or zh.")] = "en",
) -> Path:
    """Write one HTML page with judged edits side by side, their scores and their failures."""
    folder = find_folder(run)
    found = make_gallery(folder, read_metrics(folder), find_run_places([folder]))
    return write_text(out, render_gallery(found, language))


def read_metrics(run: Path) -> dict[str, dict[str, float | None]]:
    """Compute the metrics of each single item."""
    facts = read_facts(run)
    items = [line.item for line in read_items(run)]
    if not items or any(len(item.images) != 2 or "editor" not in item.tags for item in items):
        raise InputError(
            f"{run} holds no judgements of edited memes",
            hint="give a run of mer_bench/judge or of another task that judges edits",
        )
    _, task = open_task_of_run(facts, None)
    answers = last_answers(run)
    outcomes = [
        Outcome(item, answers[item.id].status, answers[item.id].value)
        for item in items
        if item.id in answers
    ]
    marks = task.marks(outcomes) if task.marks else {}
    return {
        outcome.item.id: {key: values[place] for key, values in marks.items()}
        for place, outcome in enumerate(outcomes)
    }
