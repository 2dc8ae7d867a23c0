"""One self-contained page: works from a file, offline, under a policy that runs only our script."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pydantic import JsonValue

from memantics import __version__
from memantics.core.fonts import embed_chinese
from memantics.core.journal import write_text
from memantics.core.records import STATUSES
from memantics.report.leaderboard import (
    EDITOR,
    Board,
    LeaderboardRow,
    make_boards,
    show_figure,
    show_limit,
    show_scope,
    show_span,
)
from memantics.report.payload import AnswerPool, FindGold, FindMarks, PayloadMaker, embed_json
from memantics.report.plot import Mark, Scale, draw_axis, draw_key, draw_strip, fit_scale
from memantics.report.reference import Published, tell_fault
from memantics.report.runs import STARTER_NOTE, Run, load_runs
from memantics.report.thumbnails import Thumbnail, make_thumbnails

_TEMPLATES = Path(__file__).with_name("templates")
_FOLDERS = (_TEMPLATES, Path(__file__).with_name("pages") / "templates")
_PLOTTED = 8
Shown = Mapping[str, Any]  # what a template shows, by the names that it uses
_SEPARATORS = dict.fromkeys((0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029), " ")


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """What goes into the page. ``max_image_bytes`` bounds all thumbnails together.

    ``published`` holds papers' rows by task, shown beside runs on a release only. ``find_gold``
    says which options are right where a task names its gold otherwise than its sheet does,
    ``find_marks`` what each free-text answer scores. Images below ``places`` are shown; None: all.
    ``models`` is the table of models × tasks, which stands on top.
    """

    title: str = "Memantics report"
    images: bool = True
    max_image_bytes: int = 48 * 1024 * 1024
    max_text_chars: int = 6_000
    published: Published = field(default_factory=dict)
    find_gold: FindGold | None = None
    find_marks: FindMarks | None = None
    places: tuple[Path, ...] | None = None
    models: Markup | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A board with its drawings.

    ``plots`` are breakdowns as dots with intervals, a line for each part; ``figures`` those over
    all items, with the note that all rows share; ``editors`` what judges make of each.
    """

    board: Board
    scope: str
    axis: Markup
    strips: tuple[Markup, ...]
    legend: tuple[tuple[LeaderboardRow, Markup], ...]
    plots: tuple[Shown, ...]
    figures: tuple[Shown, ...]
    verdict: str
    editors: tuple[Shown, ...] = ()


def build_report(folders: Sequence[Path], out: Path, settings: ReportSettings) -> None:
    """Read run directories and write the page."""
    write_text(out, render_page(load_runs(folders), settings), "report")


def render_page(runs: Sequence[Run], settings: ReportSettings) -> str:
    """The page as text."""
    boards = make_boards(runs, settings.published)
    images: AnswerPool[Path] | None = AnswerPool() if settings.images else None
    texts = (settings.max_text_chars, settings.find_gold, settings.find_marks)
    payloads = [
        Markup(embed_json(PayloadMaker(board, images, *texts).make()))  # noqa: S704
        for board in boards
    ]
    paths = images.values if images else ()
    return fill_page(
        "page.html",
        ("page.css",),
        "page.js",
        title=settings.title,
        sections=[make_section(board) for board in boards],
        payloads=list(zip(boards, payloads, strict=True)),
        thumbnails=[
            _embed(t) for t in make_thumbnails(paths, settings.max_image_bytes, settings.places)
        ],
        models=settings.models,
        starter_note=STARTER_NOTE,
        warnings=list(dict.fromkeys(text for board in boards for text in board.warnings)),
        statuses=STATUSES,
    )


def fill_page(template: str, styles: Sequence[str], script: str = "", **values: object) -> str:
    """A page of ours: the names of its template, styles and script, and what it shows.

    Every template extends ``base.html``, which holds the policy. A style may be given as it is.
    """
    code = read_asset(script) if script else ""
    mark = secrets.token_hex(16)  # nothing that a page shows can hold it
    page = (
        make_environment()
        .from_string(read_asset(template))
        .render(
            **values,
            policy=f"policy-{mark}",
            style=f"style-{mark}",
            script=Markup(code),  # noqa: S704 - our own file
            version=__version__,
        )
    )
    sheets = (read_asset(name) if name.endswith(".css") else name for name in styles)
    style = embed_chinese(page) + "".join(sheets)
    page = page.replace(f"policy-{mark}", escape(make_policy(style, code)))
    return page.replace(f"style-{mark}", style)


def _embed(thumbnail: Thumbnail) -> Markup:
    values: JsonValue = asdict(thumbnail)
    return Markup(embed_json(values))  # noqa: S704 - escaped for a script element


def read_asset(name: str) -> str:
    """A template, style sheet or script of the reports, or of another room by its path."""
    places = (folder / name for folder in _FOLDERS)
    return next(place for place in places if place.is_file()).read_text(encoding="utf-8")


def make_policy(style: str, script: str) -> str:
    """Only our style and our script, by hash; images and fonts only from the page itself."""
    parts = {
        "default-src": "'none'",
        "img-src": "data:",
        "font-src": "data:",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def make_environment() -> Environment:
    """Templates that escape everything from data and refuse names they do not know."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_keep_in_line,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        fault=tell_fault,
        figure=show_figure,
        span=show_span,
        limit=show_limit,
        words=lambda name: name.replace("_", " "),
        count=lambda number: f"{number:,}",
        lines=_show_lines,
        moment=_show_moment,
    )
    return made


def _keep_in_line(value: object) -> object:
    """Make paragraph separators spaces: they would end the isolation of a direction override."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.translate(_SEPARATORS)
    return value


def _show_lines(values: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """A mapping of run.json as names and readable values."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in values.items()
    ]


def _show_moment(text: str) -> str:
    """A time stamp without its fractions; text that is none stays as it is."""
    try:
        return datetime.fromisoformat(text).isoformat(sep=" ", timespec="seconds")
    except ValueError:
        return text


def make_section(board: Board) -> Section:
    """All drawings of a board."""
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
        figures=tuple(_make_figures(board, key) for key in board.metrics),
        verdict=_compare(board),
        editors=_list_editors(board),
    )


def _list_editors(board: Board) -> tuple[Shown, ...]:
    """The editors that are judged, best first in the eyes of the judges that look."""
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
    """A colour per model, by name: it stays the same when scores change."""
    names = sorted(row.label for row in board.ours if not row.trivial)
    made: dict[str, int | None] = dict.fromkeys(row.label for row in board.rows)
    return made | {name: place for place, name in enumerate(names)}


def _pick_plotted(board: Board) -> tuple[LeaderboardRow, ...]:
    """The best models and the best trivial baseline: more would hide one another."""
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
) -> Shown:
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
        n = max((value.n for row in board.ours if (value := row.find(key, by, part))), default=0)
        strip = draw_strip(marks, scale)
        lines.append({"label": part, "n": n, "strip": strip, "scores": scores})
    return {"key": key, "by": by, "axis": draw_axis(scale), "lines": lines}


def _make_figures(board: Board, key: str) -> Shown:
    scores = tuple(row.find(key) for row in board.rows)
    ours = [score for row in board.ours if (score := row.find(key))]
    notes = {score.note for score in ours}
    n = max((score.n for score in ours), default=0)
    note = notes.pop() if len(notes) == 1 else ""
    return {"key": key, "n": n, "note": note, "scores": scores}


def _compare(board: Board) -> str:
    """Whether the highest figure stands clear of the best trivial baseline, in one sentence."""
    leader, trivial = board.leader, board.best_baseline
    if leader is None or leader.main is None or leader.value is None:
        return ""
    if trivial is None or trivial.value is None:
        return ""
    if leader.value <= trivial.value:
        return "No model is above it."
    if leader.main.low is None:
        return "The model is above it; its interval is not known."
    if leader.main.low > trivial.value:
        return "The model’s whole interval lies above it."
    return "The model is above it, but its interval reaches down to it."
