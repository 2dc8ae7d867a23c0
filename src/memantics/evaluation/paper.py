"""Reproduce the tables and figures of a benchmark's paper from your data and runs.

The result has the layout and order of the paper's tables, as a self-contained page, Markdown,
LaTeX, CSV or JSON.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from markupsafe import Markup
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from memantics.benchmarks.card import Card
from memantics.benchmarks.factories import proportion_score
from memantics.benchmarks.paper import (
    Cell,
    CellStatus,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperSheet,
    ScoredDetector,
)
from memantics.benchmarks.published import read_published
from memantics.benchmarks.registry import Benchmark, describe_data, find_benchmark, find_source
from memantics.core.data import Source, conform, dump_json, read_json, read_jsonl
from memantics.core.errors import DataError, InputError, UnknownName, first_fault
from memantics.core.files import write_text
from memantics.core.parameters import Argument, DataFlag, Flag
from memantics.core.prompt import fill_template
from memantics.core.queue import ANNOTATIONS, CARD, Review, read_review
from memantics.core.records import Score
from memantics.core.result import to_plain
from memantics.core.tables import dump_csv
from memantics.core.text import mask_unseen
from memantics.evaluation.options import RunLike, find_folder
from memantics.evaluation.reports.runs import SAMPLE_NOTE, Run, load_runs
from memantics.evaluation.reports.tables import md_table, quote_latex, quote_markdown
from memantics.moderation.card import place_card
from memantics.moderation.lora.judging import FACTS as TUNED
from memantics.moderation.study.running import STUDY, read_study, read_verdicts
from memantics.web import plot
from memantics.web.page import TemplateValues, fill_page

__all__ = ["PaperForm", "ReproducedPaper", "paper"]

STATUS_WORDS: Mapping[CellStatus, str] = {
    "reproduced": "computed here; equal to the paper's value at the printed precision",
    "within interval": "computed here; the paper's value is inside the 95 % confidence interval",
    "differs": "computed here; differs from the paper's value",
    "computed": "computed here from other data than the paper's, or without a printed value",
    "arithmetic": "derived from other values in the paper, without data",
    "empty": "not computed yet; run the command shown to fill it",
    "closed": "cannot be computed from the release; the note gives the reason",
    "none": "not in the paper's table",
}
_CSV_COLUMNS = (
    *("part", "section", "row", "kind", "column", "paper", "value", "low", "high", "sd", "n"),
    *("status", "fill", "reason", "note", "origin"),
)
PaperForm = Literal["html", "md", "latex", "csv", "json"]
Paths = str | Path | Sequence[str | Path]
_SCORES = TypeAdapter(dict[str, tuple[Score, ...]])


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
    printed = [f"{cell.printed} {cell.show(cell.paper)}"] if cell.paper is not None else []
    state = [] if cell.status == "computed" and not printed else [str(cell.status)]
    if cell.origin:
        state.append("imported answers")
    if cell.status == "arithmetic" and not cell.agrees:
        state.append("does not agree")
    said = ", ".join(printed + state)
    return f"{text}; {said}" if said else text


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
    lines = []
    for section, row in list_sections(part):
        if section:
            lines.append([f"**{quote_markdown(section)}**", *("" for _ in part.columns)])
        cells = (quote_markdown(describe_cell(cell)) for cell in row.cells)
        lines.append([quote_markdown(row.label), *cells])
    return md_table([quote_markdown(name) for name in (part.stub, *part.columns)], lines)


def render_latex(paper: PaperSheet) -> str:
    """Render one LaTeX ``table`` per part (``booktabs``); the paper's values are in brackets."""
    return fill_template(
        __file__,
        "paper.tex",
        {"latex": quote_latex, "mask": mask_unseen, "cell": _latex_cell},
        paper=paper,
        sections=list_sections,
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
                    said = (cell.paper, cell.value, cell.low, cell.high, cell.sd, cell.n or None)
                    fill = cell.fill if cell.status == "empty" else ""
                    reason = cell.reason if cell.status == "closed" else ""
                    yield (*place, *said, cell.status, fill, reason, cell.note, cell.origin)


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

    def render(self, form: str = "html") -> str:
        """Render the paper as ``html``, ``md``, ``latex``, ``csv`` or ``json``."""
        return render_page(self) if form == "html" else RENDERERS[form](self)

    def save(self, out: str | Path, form: str = "") -> Path:
        """Write the paper; the extension sets the format (.html, .md, .tex, .csv, .json)."""
        ending = Path(out).suffix.lstrip(".").lower()
        chosen = form or {"tex": "latex"}.get(ending, ending)
        text = self.render(chosen if chosen in RENDERERS else "html")
        return write_text(out, text, "paper")


def render_page(sheet: PaperSheet) -> str:
    """Render the reproduced paper as an HTML page."""
    return fill_page(
        "paper.html",
        ("page.css", "paper.css"),
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
    name: Annotated[str, Argument("Benchmark, or your own one published in its format.")],
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
        Flag("CSV table of model properties to group results by."),
    ] = None,
    statistics: Annotated[
        Paths, Flag("Values measured by another command (JSON); repeatable.")
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
        traits: CSV table of models and their properties; results are grouped by these.
        statistics: JSON file with values that another command measured.
        parts: Only these tables or figures, such as ``Table 5``.

    Returns:
        The reproduced tables and figures; ``save`` writes the page.

    Raises:
        UnknownName: The benchmark, table or figure does not exist.
        DataError: A run or a file does not fit the benchmark.

    Example:
        >>> mm.paper("mquest", ["runs/mquest-qa"]).save("paper.html")  # doctest: +SKIP
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
        values={**benchmark.recompute(release), **_read_values(_list(statistics))},
        published=read_published(benchmark.home / "expected" / "published.json"),
        compared=source.official,
        complete=_is_whole(benchmark, source),
        runs=_load(folders, benchmark) if folders else (),
        reviews=[_read_annotations(path) for path in _list(annotations)],
        detectors=[row for path in _list(detectors) for row in _read_detectors(path)],
        traits=_read_traits(Path(traits)) if traits else {},
        systems=declared.systems,
    )
    return _fill(benchmark, material, declared, parts)


def _fill(
    benchmark: Benchmark, material: PaperMaterial[Any], declared: Any, parts: Sequence[str]
) -> ReproducedPaper:
    card, source = benchmark.card, material.source
    return ReproducedPaper(
        name=card.name,
        title=_title(card, declared.title),
        citation=card.citation,
        warning=card.warning if source.kind == "release" else "",
        about=tuple(_describe(benchmark, material)),
        parts=_choose(declared.fill(material), parts),
        sample=source.kind == "sample",
    )


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


def _read_annotations(path: Path) -> Review:
    """Read a reviewed annotation queue from its folder or its annotations file."""
    if path.is_dir():
        return read_review(path, None)
    if not path.is_file():
        raise InputError(f"no such file: {path}", hint="give a queue's folder or its annotations")
    for queue in (path.parent, path.parent / "queue"):
        if (queue / CARD).is_file():
            return read_review(queue, path)
    raise InputError(
        f"{path}: there is no queue in the folder of these annotations",
        hint=f"move {ANNOTATIONS} into the folder of its queue",
    )


def _read_detectors(path: Path) -> list[ScoredDetector]:
    """Read the detectors of a study by variant, a LoRA model, or a single detector."""
    if (path / TUNED).is_file():
        return [_read_tuned(path)]
    if not (path / STUDY).is_file():
        return [_read_detector(path)]
    study = read_study(path)
    said = read_verdicts(path, study)
    names = {"harmful": "detection", "type": "type"}
    facts: dict[str, JsonValue] = {"study": study.data, "tested_on": study.tested_on}
    found = []
    for variant in dict.fromkeys(row.variant for row in study.rows):
        rows = [row for row in study.rows if row.variant == variant]
        contrasts = [
            to_plain(contrast) for contrast in study.contrasts if contrast.second == variant
        ]
        detector_facts = {**facts, "settings": dict(rows[0].settings), "contrasts": contrasts}
        scores = {names[row.task]: row.scores for row in rows}
        found.append(ScoredDetector(variant, path, detector_facts, scores, said.get(variant, {})))
    return found


def _read_detector(path: Path) -> ScoredDetector:
    """Read the metrics of a detector from its model card."""
    card = path if path.name.endswith(".card.json") else place_card(path)[1]
    try:
        facts: Mapping[str, JsonValue] = json.loads(card.read_bytes())
        scores = _SCORES.validate_python(facts["metrics"])
    except FileNotFoundError:
        raise InputError(
            f"{path} has no model card",
            hint="train the detector with memantics detector train, which writes the card",
        ) from None
    except ValidationError as error:
        raise DataError(card, first_fault(error), hint="train the detector again") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(card, f"is not a valid detector card: {error}") from error
    return ScoredDetector(str(facts.get("name", path.stem)), path, facts, scores)


class _TunedVerdict(BaseModel):
    """One prediction of a fine-tuned model."""

    part: str
    id: str
    gold: bool
    said: bool | None


def _read_tuned(path: Path) -> ScoredDetector:
    """Read the predictions of a LoRA model on held-out groups and on other data."""
    facts = read_json(path / TUNED)
    if not isinstance(facts, dict) or not isinstance(wording := facts.get("wording"), dict):
        raise DataError(
            path / TUNED,
            "does not record the prompt of the model",
            hint="fine-tune the model again with this version",
        )
    if "task" in wording:
        raise InputError(
            f"{path} generates answers, so it has no verdicts",
            hint=f"run memantics run {wording['task']} --model detector/{path}, and give that run",
        )
    lines = path / "verdicts.jsonl"
    rows = [conform(_TunedVerdict, value, lines, number) for number, value in read_jsonl(lines)]
    scores: dict[str, tuple[Score, ...]] = {}
    for name, part in (("held out", "valid"), ("external", "external")):
        found = []
        for key, gold in (("tpr", True), ("tnr", False)):
            verdicts = [row for row in rows if row.part == part and row.gold is gold]
            found.append(
                proportion_score(
                    key, [row.said is gold for row in verdicts], [row.id for row in verdicts]
                )
            )
        scores[name] = tuple(found)
    asked = {"question": wording.get("question"), "style": wording.get("style")}
    return ScoredDetector(str(facts.get("model", path.name)), path, {**facts, **asked}, scores)


def _read_values(paths: Sequence[Path]) -> dict[str, JsonValue]:
    """Read measured values by key, as ``build chat-quality --out`` writes them."""
    found: dict[str, JsonValue] = {}
    for path in paths:
        measured = read_json(path)
        if not isinstance(measured, dict):
            raise DataError(
                path,
                "is not a JSON object of values by key, as build chat-quality --out writes",
            )
        found |= measured
    return found


def _read_traits(path: Path) -> dict[str, dict[str, str]]:
    """Read a table of models and their properties; the first column is the model."""
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: cannot be read: {error}", hint="give a CSV file in UTF-8 with a header"
        ) from error
    found: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, 2):
        names = [name for name in row if name is not None]
        if None in row or None in row.values() or len(names) < 2:
            raise DataError(
                path,
                "has another number of cells than the header",
                row=number,
                hint="model,trait,…",
            )
        first, *traits = names
        found[row[first].strip()] = {name.strip(): row[name].strip() for name in traits}
    if not found:
        raise DataError(
            path,
            "has no models",
            hint="start with the header model,PROPERTY,… and add one line per model",
        )
    return found
