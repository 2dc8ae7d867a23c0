"""Browse a folder of runs: progress, items, and the answers of every model."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar, get_args

import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.benchmarks.registry import find_tasks
from memantics.core import rundir
from memantics.core.data import DataKind
from memantics.core.errors import (
    DataError,
    MemanticsError,
    StoreError,
    UnknownName,
    first_fault,
    require_known,
)
from memantics.core.files import read_regular_text, read_whole_lines
from memantics.core.records import STATUSES, Answer, Item, Score
from memantics.core.registry import find_places, is_inside
from memantics.core.result import Result
from memantics.evaluation.facts import Scope
from memantics.evaluation.report import report
from memantics.evaluation.reports.payload import (
    INVALID,
    OPEN,
    RIGHT,
    WRONG,
    asks_ratings,
    judge_answer,
)
from memantics.evaluation.tasks import pose_task
from memantics.understanding.kb import show_picture
from memantics.web.page import Thumbnail
from memantics.web.phrases import PageLanguage

RunState = Literal["finished", "running", "stopped", "damaged"]
AnswerVerdict = Literal["right", "wrong", "invalid", "open", "waiting"]
VERDICTS: dict[int, AnswerVerdict] = {
    RIGHT: "right",
    WRONG: "wrong",
    INVALID: "invalid",
    OPEN: "open",
}
ALIVE = 120.0  # Seconds without a new answer after which a run counts as stopped.
_DEPTH = 3
_REASONS = 8
_ITEM = TypeAdapter(rundir.ItemLine)
_Line = TypeVar("_Line", rundir.ItemLine, Answer)


@dataclass(frozen=True, slots=True)
class RunRow(Result):
    """One run in a folder: its settings, its progress, and its main metric once it is scored.

    ``total`` is the number of items (None: unknown). ``reason`` explains why a run is damaged.
    ``left`` is the estimated remaining time.
    """

    name: str
    state: RunState
    task: str = ""
    model: str = ""
    note: str = ""
    kind: str = ""
    split: str = ""
    started: str = ""
    warning: str = ""
    done: int = 0
    total: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    main: str = ""
    score: Score | None = None
    reason: str = ""
    left: str = ""


@dataclass(frozen=True, slots=True)
class RunSpending(Result):
    """Reasons for missing answers of a run, most frequent first, and its tokens and cost so far."""

    reasons: dict[str, int]
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class AnsweredItem(Result):
    """One item of a run, as shown in a list."""

    id: str
    group: str
    question: str
    verdict: AnswerVerdict
    value: object


@dataclass(frozen=True, slots=True)
class ModelAnswer(Result):
    """One run's answer to an item; ``answer`` is None if the item was not asked yet."""

    run: str
    model: str
    options: dict[str, str]
    verdict: AnswerVerdict
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class ItemSheet(Result):
    """One item with the answers of all runs, and the previous and next item."""

    run: RunRow
    item: Item
    answers: tuple[ModelAnswer, ...]
    previous: str | None
    next: str | None
    same_meme: tuple[tuple[str, str, str], ...]


class RunFolder:
    """A folder of runs; every method reads it again from disk."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise DataError(folder, "is not a folder", hint="give the folder that holds the runs")
        self.folder = folder

    def list(self) -> tuple[RunRow, ...]:
        """List all runs of the folder, the latest first."""
        rows = [self._describe(name, path) for name, path in self._find().items()]
        return tuple(sorted(rows, key=lambda row: (row.started, row.name), reverse=True))

    def get(self, name: str) -> RunRow:
        """Return one run by its name."""
        return self._describe(name, self.path(name))

    def path(self, name: str) -> Path:
        """Return the folder of a run; only names of listed runs are accepted."""
        found = self._find()
        require_known("run", name, found)
        return found[name]

    def _find(self) -> dict[str, Path]:
        return {path.relative_to(self.folder).as_posix(): path for path in _walk(self.folder)}

    def _describe(self, name: str, path: Path) -> RunRow:
        try:
            facts = rundir.read_facts(path)
            return _describe(name, path, facts)
        except StoreError as error:
            return RunRow(name, "damaged", reason=str(error))

    def spending(self, name: str) -> RunSpending:
        """Count failures of a run by reason, and sum its tokens and cost so far."""
        path = self.path(name)
        answers = rundir.last_answers(path).values()
        reasons = Counter(f"{a.status}: {a.reason}" for a in answers if a.status != "answered")
        sizes = [
            sum(getattr(a.reply, name) for a in answers) for name in ("tokens_in", "tokens_out")
        ]
        prices = rundir.read_facts(path).prices
        cost = sum(p * n for p, n in zip(prices, sizes, strict=True)) / 1e6 if prices else None
        return RunSpending(dict(reasons.most_common(_REASONS)), sum(sizes), cost)

    def items(
        self, name: str, verdict: str = "", start: int = 0, count: int = 50
    ) -> tuple[int, tuple[AnsweredItem, ...]]:
        """Return one page of a run's items with a verdict (default: any), and their number."""
        path = self.path(name)
        answers = rundir.last_answers(path)
        found = [
            AnsweredItem(item.id, item.group, item.form.question, given, _value(answer))
            for item in rundir.read_bare_items(path)
            for answer in (answers.get(item.id),)
            if (given := _judge(item, answer)) == verdict or not verdict
        ]
        return len(found), tuple(found[start : start + count])

    def sheet(self, name: str, item: str) -> ItemSheet:
        """Return one item and the answers of all runs on the same data."""
        row, path = self.get(name), self.path(name)
        facts = rundir.read_facts(path)
        try:
            line = _find_line(path / rundir.ITEMS, _ITEM.validate_json, item)
        except ValidationError as error:
            raise DataError(path / rundir.ITEMS, first_fault(error), row=item) from error
        if line is None:
            raise UnknownName("item", item, _some_ids(path))
        order = [bare.id for bare in rundir.read_bare_items(path)]
        place = order.index(item)
        answers: list[ModelAnswer] = []
        same: dict[str, tuple[str, str]] = {}
        for other, folder in self._find().items():
            try:
                told = rundir.read_facts(folder)
            except StoreError:
                continue
            # A damaged file of another run is reported on the page of that run.
            with contextlib.suppress(ValidationError, StoreError):
                if told.benchmark == facts.benchmark:
                    same |= _list_same(other, folder, told, line.item)
                if _ground(told) == _ground(facts):
                    given = _answer_of(other, folder, told, item)
                    answers += [given] if given else []
        return ItemSheet(
            row,
            line.item,
            tuple(sorted(answers, key=lambda answer: (answer.model, answer.run))),
            order[place - 1] if place else None,
            order[place + 1] if place + 1 < len(order) else None,
            tuple((task, *where) for task, where in sorted(same.items()) if where[1] != item),
        )

    def picture(self, path: Path) -> Thumbnail:
        """Return an image of an item, if it belongs to registered data."""
        if not is_inside(path, find_places(self.folder)):
            return Thumbnail(path.name, reason="outside the registered data")
        return show_picture(path)

    def report(self, names: Sequence[str], language: PageLanguage = "en") -> str:
        """Render the report on some runs as one self-contained page."""
        folders = [self.path(name) for name in names]
        with tempfile.TemporaryDirectory(prefix="memantics-") as place:
            page = report(folders, Path(place) / "report.html", language=language)
            return read_regular_text(page)


def _walk(folder: Path, depth: int = _DEPTH) -> Iterator[Path]:
    if (folder / rundir.RUN).is_file():
        yield folder
    elif depth:
        try:
            inside = sorted(path for path in folder.iterdir() if path.is_dir())
        except OSError:
            return
        for path in inside:
            if not path.is_symlink() and not path.name.startswith("."):
                yield from _walk(path, depth - 1)


def _describe(name: str, path: Path, facts: rundir.RunFacts) -> RunRow:
    scores = (
        rundir.read_scores(path) if facts.finished and (path / rundir.SCORES).exists() else None
    )
    counts = dict(scores.counts) if scores else _count(path)
    done = sum(counts.values())
    total = done if facts.finished else _guess_total(facts)
    return RunRow(
        name,
        _tell_state(path, facts),
        facts.task,
        facts.model,
        facts.model_note,
        str(facts.data.get("kind", "")),
        facts.split,
        facts.started,
        facts.warning,
        done,
        None if total is None else max(total, done),
        counts,
        facts.main,
        _find_main(scores),
        left=_tell_left(facts, done, total),
    )


def _tell_left(facts: rundir.RunFacts, done: int, total: int | None) -> str:
    """Estimate the remaining time of an unfinished run from its speed so far."""
    if facts.finished or not done or total is None:
        return ""
    with contextlib.suppress(ValueError):
        passed = (datetime.now(UTC) - datetime.fromisoformat(facts.started)).total_seconds()
        return str(timedelta(seconds=round(passed / done * max(0, total - done))))
    return ""


def _tell_state(path: Path, facts: rundir.RunFacts) -> RunState:
    if facts.finished:
        return "finished"
    try:
        latest = max(
            (path / file).stat().st_mtime
            for file in (rundir.RUN, rundir.ANSWERS)
            if _exists(path, file)
        )
    except (OSError, ValueError):
        return "stopped"
    return "running" if time.time() - latest < ALIVE else "stopped"


def _exists(path: Path, file: str) -> bool:
    return (path / file).exists()


def _count(path: Path) -> dict[str, int]:
    """Count the answer statuses of an unfinished run so far."""
    counts = dict.fromkeys(STATUSES, 0)
    for standing in rundir.read_standings(path).values():
        if standing is not None:
            counts[standing.status] += 1
    return {str(status): count for status, count in counts.items()}


def _find_main(scores: rundir.Scores | None) -> Score | None:
    if scores is None:
        return None
    return next(
        (score for score in scores.scores if score.key == scores.main and not score.by), None
    )


def _guess_total(facts: rundir.RunFacts) -> int | None:
    """Estimate the number of items of a run, if its task and data are available."""
    kind = str(facts.data.get("kind", ""))
    known = next((data_kind for data_kind in get_args(DataKind) if data_kind == kind), None)
    scope = Scope(known, facts.split or None, facts.limit, facts.sample, facts.seed)
    return _count_items(_name_task(facts), tuple(sorted(facts.options.items())), scope)


@lru_cache(maxsize=256)
def _count_items(task: str, options: tuple[tuple[str, str], ...], scope: Scope) -> int | None:
    try:
        (ref,) = find_tasks([task])
        return pose_task(ref, dict(options), scope).total
    except (MemanticsError, ValueError):
        return None


def _name_task(facts: rundir.RunFacts) -> str:
    return f"{facts.benchmark}/{facts.task.removeprefix(f'{facts.benchmark}/')}"


def _judge(item: Item, answer: Answer | None) -> AnswerVerdict:
    if answer is None:
        return "waiting"
    gold = None if asks_ratings(item) else item.gold
    return VERDICTS[judge_answer(answer.status, answer.value, gold)]


def _value(answer: Answer | None) -> object:
    return None if answer is None else answer.value


def _ground(facts: rundir.RunFacts) -> tuple[str, str, str]:
    """Return the settings that runs must share to have the same questions."""
    return (
        _name_task(facts),
        str(facts.data.get("checksum", "")),
        facts.split,
    )


def _find_line(path: Path, parse: Callable[[bytes], _Line], item: str) -> _Line | None:
    """Find the last line about an item in a JSON lines file, without parsing other lines."""
    mark, found = orjson.dumps(item), None
    for _, line in read_whole_lines(path):
        if mark in line:
            read = parse(line)
            item_id = read.item.id if isinstance(read, rundir.ItemLine) else read.item
            found = read if item_id == item else found
    return found


def _answer_of(name: str, folder: Path, facts: rundir.RunFacts, item: str) -> ModelAnswer | None:
    line = _find_line(folder / rundir.ITEMS, _ITEM.validate_json, item)
    if line is None:
        return None
    answer = _find_line(folder / rundir.ANSWERS, rundir.parse_answer, item)
    verdict = _judge(line.item, answer)
    return ModelAnswer(name, facts.model, dict(facts.options), verdict, answer)


def _list_same(
    name: str, folder: Path, facts: rundir.RunFacts, item: Item
) -> dict[str, tuple[str, str]]:
    """Find the first item about the same meme in every other task."""
    mark = orjson.dumps(item.group)
    for _, line in read_whole_lines(folder / rundir.ITEMS):
        if mark in line:
            read = _ITEM.validate_json(line).item
            if read.group == item.group and read.id != item.id:
                return {f"{facts.task} {read.form.question}"[:200]: (name, read.id)}
    return {}


def _some_ids(path: Path) -> list[str]:
    return [item.id for _, item in zip(range(200), rundir.read_bare_items(path), strict=False)]
