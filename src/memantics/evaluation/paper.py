"""Reproduce the tables and figures of a benchmark's paper from your data and runs.

The result has the layout and order of the paper's tables, as a self-contained page, Markdown,
LaTeX, CSV or JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from markupsafe import Markup

from memantics.benchmarks.card import Card, read_policy
from memantics.benchmarks.paper import (
    Cell,
    CellStatus,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperSheet,
)
from memantics.benchmarks.protocol import PromptFinder
from memantics.benchmarks.published import read_published
from memantics.benchmarks.registry import (
    Benchmark,
    describe_data,
    find_benchmark,
    find_source,
    find_tasks,
)
from memantics.core.data import Source, dump_json
from memantics.core.errors import (
    InputError,
    MemanticsError,
    UnknownName,
)
from memantics.core.files import write_text
from memantics.core.parameters import Argument, DataFlag, Flag
from memantics.core.prompt import fill_template
from memantics.core.records import Score
from memantics.core.result import to_plain
from memantics.core.rundir import RunFacts
from memantics.core.tables import dump_csv
from memantics.core.text import mask_unseen
from memantics.evaluation.options import RunLike, find_folder
from memantics.evaluation.paper_inputs import (
    read_annotations,
    read_detectors,
    read_traits,
    read_values,
)
from memantics.evaluation.reports.runs import SAMPLE_NOTE, Run, load_runs
from memantics.evaluation.reports.tables import md_table, quote_latex, quote_markdown
from memantics.web import plot
from memantics.web.page import TemplateValues, fill_page
from memantics.web.phrases import PageLanguage

__all__ = ["PaperForm", "ReproducedPaper", "paper"]

STATUS_WORDS: Mapping[CellStatus, str] = {
    "reproduced": "computed here as in the paper; equal to its value, rounded or truncated",
    "within interval": "computed here; the paper's value is inside the 95 % confidence interval",
    "differs": "computed here; differs from the paper's value",
    "computed": "computed here; not compared, because prompts, decoding, items or data differ "
    "from the paper's or are unknown, or because the paper prints no value",
    "arithmetic": "derived from other values in the paper, without data",
    "empty": "not computed yet; run the command shown to fill it",
    "closed": "cannot be computed from the release; the note gives the reason",
    "none": "not in the paper's table",
}
_CSV_COLUMNS = (
    *("part", "section", "row", "kind", "column", "paper", "released", "value"),
    *("low", "high", "sd", "n", "status", "rounding", "differs", "fill", "reason", "note"),
    *("origin", "runs"),
)
PaperForm = Literal["html", "md", "latex", "csv", "json"]
Paths = str | Path | Sequence[str | Path]


def describe_cell(cell: Cell) -> str:
    """Describe a table cell in one line: the paper's value, the computed value and the status.

    >>> describe_cell(Cell(86.38, 84.0, 80.0, 88.0, n=350, digits=2))
    '84.00 (80.00–88.00, n = 350); paper 86.38, within interval'
    >>> describe_cell(Cell(1.48, 1.39, arithmetic=True)), describe_cell(Cell(9, fill="x"))
    ('1.39; paper 1.48, arithmetic, does not agree', '–; paper 9, empty')
    """
    if cell.status == "none":
        return "–"
    spread = "" if cell.sd is None else f"± {cell.show(cell.sd)}"
    parts = (spread, cell.span, f"n = {cell.n:,}" if cell.n else "")
    inside = ", ".join(part for part in parts if part)
    text = cell.show(cell.value) + (f" ({inside})" if inside else "")
    printed = [f"paper {cell.show(cell.paper)}"] if cell.paper is not None else []
    state = [] if cell.status == "computed" and not printed else [str(cell.status)]
    if cell.truncated:
        state.append("truncated in the paper")
    if cell.origin:
        state.append("imported answers")
    if cell.status == "arithmetic" and not cell.agrees:
        state.append("does not agree")
    said = ", ".join(printed + state)
    return f"{text}; {said}" if said else text


def list_columns(part: PaperPart) -> list[tuple[str, int, bool]]:
    """Return the columns of a table: title, place of its cells, and whether values are released.

    A column of released values follows each column whose cells have some.
    """
    found: list[tuple[str, int, bool]] = []
    for place, title in enumerate(part.columns):
        found.append((title, place, False))
        if any(row.cells[place].released is not None for row in part.rows):
            found.append((f"{title}, released", place, True))
    return found


def _show_released(cell: Cell) -> str:
    return cell.show(cell.released)


def list_sections(part: PaperPart) -> Iterator[tuple[str, PaperRow]]:
    """Return the rows of a table, each with the section heading that precedes it, if any."""
    last = ""
    for row in part.rows:
        yield (row.section if row.section != last else ""), row
        last = row.section


def list_remarks(part: PaperPart) -> tuple[str, ...]:
    """List the notes below a reproduced table or figure."""
    origins = (f"Answers {origin}; no model was run here." for origin in part.origins)
    return (*part.notes, *part.remarks, *part.reasons, *origins)


def render_markdown(paper: PaperSheet) -> str:
    """Render the reproduced paper as Markdown, one section per table and figure."""
    return fill_template(
        __file__,
        "paper.md",
        {"markdown": quote_markdown, "mask": mask_unseen, "fence": _choose_fence},
        paper=paper,
        counts=", ".join(f"{n} {status}" for status, n in paper.counts.items() if n),
        table=_tabulate,
        remarks=list_remarks,
    )


def _choose_fence(body: str) -> str:
    """Return a Markdown code fence longer than any run of backticks in the text."""
    return "`" * max(3, *(len(run) + 1 for run in re.findall("`+", body)), 3)


def _tabulate(part: PaperPart) -> str:
    lines, columns = [], list_columns(part)
    for section, row in list_sections(part):
        if section:
            lines.append([f"**{quote_markdown(section)}**", *("" for _ in columns)])
        cells = (
            _show_released(row.cells[place]) if released else describe_cell(row.cells[place])
            for _, place, released in columns
        )
        lines.append([quote_markdown(row.label), *map(quote_markdown, cells)])
    titles = [part.stub, *(title for title, _, _ in columns)]
    return md_table([quote_markdown(title) for title in titles], lines)


def render_latex(paper: PaperSheet) -> str:
    """Render one LaTeX ``table`` per part (``booktabs``); the paper's values are in brackets."""
    return fill_template(
        __file__,
        "paper.tex",
        {"latex": quote_latex, "mask": mask_unseen, "cell": _latex_cell},
        paper=paper,
        sections=list_sections,
        columns=list_columns,
        released=_show_released,
        line=lambda *cells: " & ".join(map(quote_latex, cells)) + r" \\",
    )


def _latex_cell(cell: Cell) -> str:
    value = cell.show(cell.value)
    if cell.sd is not None:
        value += f" ± {cell.show(cell.sd)}"
    return value if cell.paper is None else f"{value} [{cell.show(cell.paper)}]"


def render_csv(paper: PaperSheet) -> str:
    """Render the reproduced paper as CSV, one line per cell."""
    return dump_csv(_CSV_COLUMNS, _list_cells(paper))


def _list_cells(paper: PaperSheet) -> Iterator[tuple[object, ...]]:
    for part in paper.parts:
        for row in part.rows:
            for column, cell in zip(part.columns, row.cells, strict=True):
                if cell.status != "none":
                    place = (part.label, row.section, row.label, row.kind, column)
                    said = (cell.paper, cell.released, cell.value, cell.low, cell.high, cell.sd)
                    rounding = cell.digit_match if cell.status == "reproduced" else ""
                    state = (cell.n or None, cell.status, rounding, "; ".join(cell.differs))
                    fill = cell.fill if cell.status == "empty" else ""
                    reason = cell.reason if cell.status == "closed" else ""
                    source = (cell.note, cell.origin, "; ".join(cell.runs))
                    yield (*place, *said, *state, fill, reason, *source)


def render_json(paper: PaperSheet) -> str:
    """Render all cells of the reproduced paper as JSON, with their status."""
    return dump_json(paper.to_dict())


RENDERERS: Mapping[str, Callable[[PaperSheet], str]] = {
    "md": render_markdown,
    "latex": render_latex,
    "csv": render_csv,
    "json": render_json,
}


_BADGES: dict[CellStatus, str] = {
    "reproduced": "v0",
    "within interval": "v0",
    "differs": "v1",
    "empty": "v2",
}


class ReproducedPaper(PaperSheet):
    """A reproduced paper, to be written as a page, Markdown, LaTeX, CSV or JSON."""

    __slots__ = ()

    def render(self, form: str = "html", language: PageLanguage = "en") -> str:
        """Render the paper as ``html``, ``md``, ``latex``, ``csv`` or ``json``.

        ``language`` is that of the HTML page: ``en`` or ``zh``.
        """
        if form == "html":
            return render_page(self, language)
        if language != "en":
            raise InputError("--language works with the HTML page only", hint="leave it out")
        return RENDERERS[form](self)

    def save(self, out: str | Path, form: str = "", language: PageLanguage = "en") -> Path:
        """Write the paper; the extension sets the format (.html, .md, .tex, .csv, .json)."""
        ending = Path(out).suffix.lstrip(".").lower()
        chosen = form or {"tex": "latex"}.get(ending, ending)
        text = self.render(chosen if chosen in RENDERERS else "html", language)
        return write_text(out, text, "paper")


def render_page(sheet: PaperSheet, language: PageLanguage = "en") -> str:
    """Render the reproduced paper as an HTML page."""
    return fill_page(
        "paper.html",
        ("page.css", "paper.css"),
        language=language,
        sheet=sheet,
        blocks=[_make_block(place, part) for place, part in enumerate(sheet.parts, 1)],
        badges=_BADGES,
        words=STATUS_WORDS,
        sample_note=SAMPLE_NOTE if sheet.sample else "",
    )


def _make_block(place: int, part: PaperPart) -> TemplateValues:
    """Make the page section of a table or figure, with its plots and cell shades."""
    block = {
        "part": part,
        "slug": f"part-{place}",
        **dict.fromkeys(("axis", "strips", "legend"), ""),
        "radars": _draw_radars(part) if part.radar else (),
        "shades": _shade(part),
        "columns": list_columns(part),
        "remarks": list_remarks(part),
    }
    if not part.plotted:
        return block
    scale = plot.fit_scale(score for row in part.rows for score in _scores(row.cells))
    legend = [(name, plot.draw_key(tone)) for tone, name in enumerate(part.columns)]
    if any(cell.paper is not None for cell in part.cells):
        legend.append(("the paper", plot.draw_key(None)))
    strips = tuple(_draw(row, part.columns, scale) for row in part.rows)
    return block | {"axis": plot.draw_axis(scale), "strips": strips, "legend": legend}


def _draw_radars(part: PaperPart) -> tuple[tuple[str, Markup], ...]:
    """Draw one radar polygon per table row with values, on a common scale."""
    rows = [
        (row.label, [score.value if score else None for score in _values(row)]) for row in part.rows
    ]
    top = max((value for _, row in rows for value in row if value is not None), default=0.0)
    drawn = [(label, row) for label, row in rows if any(value is not None for value in row)]
    return tuple((label, plot.draw_radar(part.columns, row, top)) for label, row in drawn)


def _shade(part: PaperPart) -> tuple[tuple[str, ...], ...]:
    """Return the shade of each cell: four steps from the worst to the best value of its column."""
    plain = tuple("" for _ in part.columns)
    if not part.shaded:
        return tuple(plain for _ in part.rows)
    columns = []
    for column in zip(*(_values(row) for row in part.rows), strict=True):
        known = [cell.value for cell in column if cell is not None and cell.value is not None]
        low, high = min(known, default=0.0), max(known, default=0.0)
        columns.append([_step(cell, low, high) for cell in column])
    return tuple(zip(*columns, strict=True))


def _step(score: Score | None, low: float, high: float) -> str:
    if score is None or score.value is None or high <= low:
        return ""
    return f"shade{min(4, 1 + int(4 * (score.value - low) / (high - low)))}"


def _values(row: PaperRow) -> list[Score | None]:
    """Return the value computed here for each cell."""
    return _scores(row.cells)[::2]


def _draw(row: PaperRow, columns: Sequence[str], scale: plot.Scale) -> Markup:
    marks = []
    for tone, (name, cell) in enumerate(zip(columns, row.cells, strict=True)):
        score, printed = _scores((cell,))
        if score is not None:
            marks.append(plot.Mark(name, score, tone))
        if printed is not None:
            marks.append(plot.Mark(f"{name}, the paper", printed, None))
    return plot.draw_strip(marks, scale)


def _scores(cells: Sequence[Cell]) -> list[Score | None]:
    """Return the plotted values of cells: the computed value with its interval, and the paper's."""
    found: list[Score | None] = []
    for cell in cells:
        for value, low, high in ((cell.value, cell.low, cell.high), (cell.paper, None, None)):
            drawn = isinstance(value, int | float) and not isinstance(value, bool)
            found.append(Score("", float(value), cell.n, low, high) if drawn else None)  # type: ignore[arg-type]
    return found


def paper(
    name: Annotated[str, Argument("Benchmark, or your own benchmark in the format of one.")],
    runs: Annotated[
        RunLike | Sequence[RunLike], Argument("Run directories.", metavar="[RUN]...")
    ] = (),
    *,
    data: DataFlag = None,
    annotations: Annotated[
        Paths, Flag("Reviewed queue, or its annotations.jsonl; repeatable.")
    ] = (),
    detectors: Annotated[
        Paths,
        Flag("Trained detector, or folder of a 'detector study'; repeatable."),
    ] = (),
    traits: Annotated[
        str | Path | None,
        Flag("CSV table of properties of further models, to group results by."),
    ] = None,
    statistics: Annotated[
        Paths,
        Flag("JSON file of 'build chat-quality' or 'build check-hard-negatives'; repeatable."),
    ] = (),
    parts: Annotated[
        Sequence[str],
        Flag(
            "Table or figure to reproduce, such as 'Table 5'; repeatable. Default: all.", "--part"
        ),
    ] = (),
) -> ReproducedPaper:
    """Reproduce a benchmark's paper: its tables and figures from your data, runs and annotations.

    Each cell contains the paper's value, the value computed here with its 95% confidence interval,
    and whether they agree. An empty cell names the command that fills it.

    Args:
        name: A benchmark, or your own published benchmark in the same format.
        runs: Runs, or their folders.
        data: ``release`` or ``sample``. Default: a registered release, else the sample data.
        annotations: Reviewed annotation queues, or their ``annotations.jsonl``.
        detectors: Trained detectors, or folders of a detector study.
        traits: CSV table of further models and their properties; results are grouped by these.
            The properties of the paper's models are those that the paper states.
        statistics: JSON file with values that another command measured.
        parts: Only these tables or figures, such as ``Table 5``.

    Returns:
        The reproduced tables and figures; ``save`` writes the page.

    Raises:
        UnknownName: The benchmark, table or figure does not exist.
        DataError: A run or a file does not fit the benchmark.

    Example:
        >>> mm.paper("memeintent", ["runs/one"]).save("paper.html")
        PosixPath('paper.html')
    """
    benchmark = find_benchmark(name)
    card, declared = benchmark.card, benchmark.paper
    source = find_source(benchmark, data)
    folders = [find_folder(run) for run in ([runs] if isinstance(runs, RunLike) else runs)]
    release = benchmark.open(source)
    material = PaperMaterial(
        name=card.name,
        source=source,
        release=release,
        expected={row.key: row for row in benchmark.expect()},
        values={**benchmark.recompute(release), **read_values(_list(statistics))},
        published=read_published(benchmark.home / "expected" / "published.json"),
        compared=source.official,
        complete=_is_whole(benchmark, source),
        runs=_load(folders, benchmark) if folders else (),
        reviews=[read_annotations(path) for path in _list(annotations)],
        detectors=[row for path in _list(detectors) for row in read_detectors(path)],
        traits=read_traits(Path(traits)) if traits else {},
        systems=declared.systems,
        checksum=describe_data(benchmark, source).checksum,
        prompts=_find_prompts(source),
        defaults=find_defaults,
    )
    return _fill(benchmark, material, declared, parts)


def _fill(
    benchmark: Benchmark, material: PaperMaterial[Any], declared: Any, parts: Sequence[str]
) -> ReproducedPaper:
    card, source = benchmark.card, material.source
    chosen = _choose(declared.fill(material), parts)
    return ReproducedPaper(
        name=card.name,
        title=_title(card, declared.title),
        citation=card.citation,
        warning=card.warning if source.kind == "release" else "",
        about=(*_describe(benchmark, material), *_list_left_out(material, chosen, parts)),
        parts=chosen,
        sample=source.kind == "sample",
    )


def find_defaults(facts: RunFacts) -> dict[str, str]:
    """Return the defaults of a run's task: its options and its policy for invalid answers."""
    (ref,) = find_tasks([facts.task])
    policy = {"invalid": str(read_policy(ref.card, None))}
    return policy | {option.name: option.default for option in ref.card.option}


def _find_prompts(source: Source) -> PromptFinder:
    """Return a function that hashes the prompts of a run's settings on the registered data."""
    known: dict[tuple[str, str, str], Mapping[str, str] | str] = {}

    def find(facts: RunFacts) -> Mapping[str, str] | str:
        key = (facts.task, facts.split, dump_json(to_plain(facts.options)))
        if key not in known:
            try:
                (ref,) = find_tasks([facts.task])
                task = ref.make(facts.options, facts.split, source, facts.invalid or None)
                known[key] = task.prompts
            except MemanticsError as error:
                known[key] = f"the task cannot be opened on these data: {error}"
        return known[key]

    return find


def _list_left_out(
    material: PaperMaterial[Any], parts: Sequence[PaperPart], wanted: Sequence[str]
) -> Iterator[str]:
    """Name the runs that no table or figure on the page shows, with the reason."""
    shown = {folder for part in parts for cell in part.cells for folder in cell.runs}
    shown |= {folder for part in parts for folder in part.runs}
    tables = f"the selected part ({', '.join(wanted)})" if wanted else "any table"
    for run in material.runs:
        if str(run.folder) not in shown:
            options = ", ".join(f"{name}={value}" for name, value in run.facts.options.items())
            asked = f"{run.task} with {options}" if options else run.task
            yield f"Left out: {run.folder} ({run.model}): {asked} is not in {tables}."


def _choose(parts: tuple[PaperPart, ...], wanted: Sequence[str]) -> tuple[PaperPart, ...]:
    """Select the tables and figures with these labels; "Table 5, tests" belongs to "Table 5"."""
    kept = []
    for name in wanted:
        found = [
            part for part in parts if f"{part.label},".casefold().startswith(f"{name},".casefold())
        ]
        if not found:
            raise UnknownName("table or figure", name, [part.label for part in parts])
        kept += found
    return tuple(part for part in parts if part in kept) if wanted else parts


def _title(card: Card, paper: str) -> str:
    """Return the page title; your own benchmark uses the tables of the paper of its format."""
    return f"{card.title}, in the tables of {paper.partition(':')[0]}" if card.format else paper


def _list(paths: Paths) -> list[Path]:
    return [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]


def _load(folders: Sequence[Path], benchmark: Benchmark) -> tuple[Run, ...]:
    runs = load_runs(folders)
    for run in runs:
        if run.facts.benchmark != benchmark.card.name:
            raise InputError(
                f"{run.folder} is a run of {run.facts.benchmark}, not of {benchmark.card.name}",
                hint=f"memantics paper {run.facts.benchmark} {run.folder}",
            )
    return runs


def _is_whole(benchmark: Benchmark, source: Source) -> bool:
    release = benchmark.card.release
    return release is None or describe_data(benchmark, source).records >= release.complete


def _describe(benchmark: Benchmark, material: PaperMaterial[Any]) -> Iterator[str]:
    source, card = material.source, benchmark.card
    facts, part = describe_data(benchmark, source), ""
    if card.release and material.compared and not material.complete:
        part = f", a part of the release's {card.release.complete:,} (not compared with the paper)"
    kind = "published data" if card.format else f"{source.kind} data"
    yield f"Data: {kind}, {facts.records:,} records{part}, checksum {facts.checksum[:12]}."
    counts = {
        "run": len(material.runs),
        "reviewed queue": len(material.reviews),
        "detector": len(material.detectors),
    }
    given = [f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
    yield (
        f"Input: {', '.join(given)}." if given else "No runs, annotations or detectors were given."
    )
    if any(run.facts.data.get("checksum") != facts.checksum for run in material.runs):
        yield "Some runs use other data than the statistics."
