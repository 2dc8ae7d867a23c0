"""Render the report as one self-contained page that works offline and runs only its own script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from markupsafe import Markup
from pydantic import JsonValue

from memantics.core.files import write_text
from memantics.core.records import STATUSES
from memantics.evaluation.reports.leaderboard import (
    EDITOR,
    Board,
    LeaderboardRow,
    PublishedRows,
    make_boards,
    show_limit,
    show_scope,
    tell_fault,
)
from memantics.evaluation.reports.payload import (
    AnswerPool,
    FindGold,
    FindMarks,
    PayloadMaker,
    embed_json,
)
from memantics.evaluation.reports.runs import SAMPLE_NOTE, Run, load_runs
from memantics.web.page import (
    TemplateValues,
    Thumbnail,
    fill_page,
    make_thumbnails,
)
from memantics.web.phrases import PageLanguage, read_phrases
from memantics.web.plot import Mark, Scale, draw_axis, draw_key, draw_strip, fit_scale

_PLOTTED = 8


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """Settings of the report page. ``max_image_bytes`` limits the total size of all thumbnails.

    ``published`` contains results of papers by task, shown only beside runs on official data.
    ``find_gold`` finds the correct options if gold and option labels differ; ``find_marks`` scores
    each free-text answer. Images in the folders ``places`` are shown (None: all). ``models`` is the
    models × tasks table at the top.
    """

    title: str = "Memantics report"
    language: PageLanguage = "en"
    images: bool = True
    max_image_bytes: int = 48 * 1024 * 1024
    max_text_chars: int = 6_000
    published: PublishedRows = field(default_factory=dict)
    find_gold: FindGold | None = None
    find_marks: FindMarks | None = None
    places: tuple[Path, ...] | None = None
    models: Markup | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the report page: a leaderboard with its plots.

    ``plots`` are breakdowns as dots with intervals, one line per category. ``metrics`` are those
    over all items, with a note that all rows share. ``editors`` are the judges' scores of each
    image editor.
    """

    board: Board
    scope: str
    axis: Markup
    strips: tuple[Markup, ...]
    legend: tuple[tuple[LeaderboardRow, Markup], ...]
    plots: tuple[TemplateValues, ...]
    metrics: tuple[TemplateValues, ...]
    verdict: str
    editors: tuple[TemplateValues, ...] = ()


def build_report(folders: Sequence[Path], out: Path, settings: ReportSettings) -> None:
    """Read run directories and write the report page."""
    write_text(out, render_page(load_runs(folders), settings), "report")


def render_page(runs: Sequence[Run], settings: ReportSettings) -> str:
    """Render the report page as HTML text."""
    boards = make_boards(runs, settings.published)
    images: AnswerPool[Path] | None = AnswerPool() if settings.images else None
    texts = (settings.max_text_chars, settings.find_gold, settings.find_marks)
    payloads = [
        Markup(embed_json(PayloadMaker(board, images, *texts).make()))  # noqa: S704
        for board in boards
    ]
    paths = images.values if images else ()
    phrases = read_phrases(settings.language)
    script_phrases: JsonValue = dict(phrases.script)
    return fill_page(
        "page.html",
        ("page.css",),
        "page.js",
        phrases_json=Markup(embed_json(script_phrases)),  # noqa: S704 - escaped for a script
        language=settings.language,
        title=phrases.say(settings.title),
        sections=[make_section(board) for board in boards],
        payloads=list(zip(boards, payloads, strict=True)),
        thumbnails=[
            _embed(t) for t in make_thumbnails(paths, settings.max_image_bytes, settings.places)
        ],
        models=settings.models,
        sample_note=SAMPLE_NOTE,
        warnings=list(dict.fromkeys(warning for board in boards for warning in board.warnings)),
        statuses=STATUSES,
        fault=tell_fault,
        show_limit=show_limit,
    )


def _embed(thumbnail: Thumbnail) -> Markup:
    values: JsonValue = asdict(thumbnail)
    return Markup(embed_json(values))  # noqa: S704 - escaped for a script element


def make_section(board: Board) -> Section:
    """Make all plots of a leaderboard."""
    tones = _pick_tones(board)
    scale = fit_scale(row.main for row in board.rows)
    best = board.best_baseline
    reference = best.value if best else None
    strips = tuple(
        draw_strip(
            [Mark(row.label, row.main, tones[row.label])] if row.main else [], scale, reference
        )
        for row in board.rows
    )
    shown = _pick_plotted(board)
    return Section(
        board=board,
        scope=show_scope(board),
        axis=draw_axis(scale),
        strips=strips,
        legend=tuple((row, draw_key(tones[row.label])) for row in shown),
        plots=tuple(_make_plot(board, key, by, shown, tones) for key, by in board.breakdowns),
        metrics=tuple(_make_metrics(board, key) for key in board.metrics),
        verdict=_compare(board),
        editors=_list_editors(board),
    )


def _list_editors(board: Board) -> tuple[TemplateValues, ...]:
    """List the judged image editors, best first, as rated by the judges that see the images."""
    judges = [row for row in board.ours if not row.trivial] or list(board.ours)
    if not board.judges:
        return ()

    def rank(editor: str) -> float:
        found = [row.find(board.main, EDITOR, editor) for row in judges]
        values = [score.value for score in found if score and score.value is not None]
        return -sum(values) / len(values) if values else 0.0

    names = sorted(board.labels(board.main, EDITOR), key=rank)
    return tuple(
        {"editor": name, "scores": [row.find(board.main, EDITOR, name) for row in board.rows]}
        for name in names
    )


def _pick_tones(board: Board) -> dict[str, int | None]:
    """Assign a colour to each model by its name, so that colours do not change with scores."""
    names = sorted(row.label for row in board.ours if not row.trivial)
    made: dict[str, int | None] = dict.fromkeys(row.label for row in board.rows)
    return made | {name: place for place, name in enumerate(names)}


def _pick_plotted(board: Board) -> tuple[LeaderboardRow, ...]:
    """Select the best models and the best trivial baseline, to keep plots readable."""
    broken_down = [row for row in board.ours if any(score.by for score in row.scores)]
    models = [row for row in broken_down if not row.trivial][:_PLOTTED]
    trivial = [row for row in broken_down if row.trivial][:1]
    return tuple(row for row in board.rows if row in models or row in trivial)


def _make_plot(
    board: Board,
    key: str,
    by: str,
    shown: Sequence[LeaderboardRow],
    tones: Mapping[str, int | None],
) -> TemplateValues:
    labels = board.labels(key, by)
    scale: Scale = fit_scale(row.find(key, by, part) for row in board.rows for part in labels)
    lines = []
    for part in labels:
        marks = [
            Mark(row.label, score, tones[row.label])
            for row in shown
            if (score := row.find(key, by, part)) is not None
        ]
        scores = tuple(row.find(key, by, part) for row in board.rows)
        n = max((score.n for row in board.ours if (score := row.find(key, by, part))), default=0)
        strip = draw_strip(marks, scale)
        lines.append({"label": part, "n": n, "strip": strip, "scores": scores})
    return {"key": key, "by": by, "axis": draw_axis(scale), "lines": lines}


def _make_metrics(board: Board, key: str) -> TemplateValues:
    scores = tuple(row.find(key) for row in board.rows)
    our_scores = [score for row in board.ours if (score := row.find(key))]
    notes = {score.note for score in our_scores}
    n = max((score.n for score in our_scores), default=0)
    note = notes.pop() if len(notes) == 1 else ""
    return {"key": key, "n": n, "note": note, "scores": scores}


def _compare(board: Board) -> str:
    """State in one sentence whether the best score is above the best trivial baseline."""
    leader, trivial = board.leader, board.best_baseline
    if leader is None or leader.main is None or leader.value is None:
        return ""
    if trivial is None or trivial.value is None:
        return ""
    if leader.value <= trivial.value:
        return "No model is above this baseline."
    if leader.main.low is None:
        return "The model is above this baseline; its confidence interval is unknown."
    if leader.main.low > trivial.value:
        return "The model’s whole confidence interval is above this baseline."
    return "The model is above this baseline, but its confidence interval includes it."
