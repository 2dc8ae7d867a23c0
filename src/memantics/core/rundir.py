"""Run directories: ``run.json``, ``items.jsonl``, ``answers.jsonl`` and ``scores.json``.

The files of items and answers are append-only, one line per record, and each line is written before
the next step begins. An incomplete last line is dropped when the run is resumed; nothing else is
lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, NotRequired, Self, TypeVar

import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from memantics.core.errors import StoreError, first_fault
from memantics.core.files import (
    AppendOnlyFile,
    open_regular,
    opening,
    read_regular,
    read_whole_lines,
    replace_file,
)
from memantics.core.records import Answer, Form, Item, Message, Score, Status

RUN, ITEMS, ANSWERS, SCORES = "run.json", "items.jsonl", "answers.jsonl", "scores.json"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The settings of a run. ``fingerprint`` is the hash of all settings that affect the answers.

    ``repeat`` numbers runs that differ only in their seed; ``repeat_of`` is the fingerprint of the
    first. ``wording`` names the source of the prompts if they are not built in. ``sample`` is the
    size of a random sample of the items. ``spread`` names the tags by which ``limit`` stratifies
    (empty: the first items are taken). ``needs`` lists run directories whose answers are part of
    the requests. ``adapted`` lists request changes that the server required. ``imported`` names the
    tool and file of imported answers. ``perturbation`` names a deliberate change of the task.
    ``decoding`` are the decoding parameters that were sent (None: the server's default); empty if
    an earlier version wrote the run.
    """

    benchmark: str
    task: str
    title: str
    main: str
    unit: str
    model: str
    model_note: str
    identity: Mapping[str, JsonValue]
    options: Mapping[str, str]
    split: str
    limit: int | None
    invalid: str
    prompts: Mapping[str, str]
    data: Mapping[str, JsonValue]
    warning: str
    version: str
    fingerprint: str
    started: str
    finished: str = ""
    prices: tuple[float, float] | None = None
    sample: int | None = None
    seed: int | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    adapted: tuple[str, ...] = ()
    repeat: int = 0
    repeat_of: str = ""
    wording: str = ""
    imported: Mapping[str, JsonValue] = field(default_factory=dict)
    perturbation: str = ""
    spread: str = ""
    decoding: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether the model answered all items in this run, without a perturbation of the task."""
        return (
            self.limit is None and self.sample is None and not (self.perturbation or self.imported)
        )

    @property
    def origin(self) -> str:
        """The source of imported answers; empty if the run itself asked a model."""
        if not self.imported.get("file"):
            return ""
        held, whole = (self.imported.get(name) for name in ("items", "of"))
        part = f", {held} of {whole} items" if held != whole else ""
        return f"imported from {self.imported['file']}{part}"


@dataclass(frozen=True, slots=True)
class ItemLine:
    """An item of a run with its first prompt."""

    item: Item
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class _WholeItem:
    item: Item


@dataclass(frozen=True, slots=True)
class _BareItem:
    id: str
    group: str
    gold: JsonValue
    form: Form
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _BareLine:
    item: _BareItem


class StoredItem(Item):
    """An item of a run without its form and images, which scoring rarely needs.

    The form and images are read on demand from the item's line in ``items.jsonl``, at byte offset
    ``place``.
    """

    __slots__ = ("path", "place")
    path: Path
    place: int

    @classmethod
    def note(cls, read: _BareItem, path: Path, place: int) -> StoredItem:
        """Create a stored item from the byte offset of its line."""
        item = cls.__new__(cls)
        put = object.__setattr__
        put(item, "id", read.id)
        put(item, "group", read.id if read.group == read.id else read.group)
        put(item, "gold", read.gold)
        put(item, "tags", read.tags or _NO_TAGS)
        put(item, "path", path)
        put(item, "place", place)
        return item

    if not TYPE_CHECKING:  # Otherwise every attribute name would count as existing.

        def __getattr__(self, name: str) -> object:
            # Python calls this method for an attribute that is not set.
            if name not in ("form", "images"):
                raise AttributeError(name)
            with open_regular(self.path) as file:
                return getattr(load_item(file, self), name)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, time and cost of a run."""

    calls: int = 0
    cached: int = 0
    attempts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class BaselineScores:
    """Scores of a trivial baseline, or of the human annotators, on the same items."""

    model: str
    scores: tuple[Score, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """All scores of a run. ``counts`` always has the four answer statuses.

    ``metrics`` lists the metrics that the user added; they are recomputed when the run is scored
    again. ``rescored`` lists the options and the policy (``invalid``) with which the run was scored
    if they are not those of the run.
    """

    main: str
    counts: Mapping[str, int]
    scores: tuple[Score, ...]
    baselines: tuple[BaselineScores, ...] = ()
    usage: Usage = field(default_factory=Usage)
    metrics: tuple[str, ...] = ()
    rescored: Mapping[str, str] = field(default_factory=dict)


class _AnswerEnd(TypedDict):
    """The fields of an answer line that resuming a run needs, as a dictionary for fast reading."""

    item: str
    attempt: int
    status: Status
    reason: NotRequired[str]


T = TypeVar("T")
_HEAD = re.compile(rb'\{"item":\{"id":("(?:[^"\\]|\\.)*")')
_ENDED = TypeAdapter(_AnswerEnd)
_FACTS = TypeAdapter(RunFacts)
_ITEM = TypeAdapter(ItemLine)
_WHOLE_ITEM = TypeAdapter(_WholeItem)
_BARE_LINE = TypeAdapter(_BareLine)
_NO_TAGS: Mapping[str, str] = MappingProxyType({})
_ANSWER = TypeAdapter(Answer)
_SCORES = TypeAdapter(Scores)
_FILE = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def dump_line(value: object) -> bytes:
    """Format a record as one JSON line."""
    return orjson.dumps(value, default=_default, option=orjson.OPT_APPEND_NEWLINE)


def _default(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(type(value).__name__)


def read_facts(folder: Path) -> RunFacts:
    """Read ``run.json``."""
    try:
        return _FACTS.validate_json(read_regular(folder / RUN))
    except OSError as error:
        raise StoreError(
            f"{folder} is not a run directory: {RUN} is missing or unreadable",
            hint="give a folder written by 'memantics run'",
        ) from error
    except ValidationError as error:
        raise StoreError(
            f"{folder / RUN} is damaged: {first_fault(error)}",
            hint="run again with another --out",
        ) from error


def read_items(folder: Path) -> Iterator[ItemLine]:
    """Yield the items asked so far in a run, in order."""
    return _read_lines(_ITEM.validate_json, folder / ITEMS)


def read_bare_items(folder: Path) -> Iterator[Item]:
    """Yield the items asked so far without their prompts, which are slow to read."""
    return (line.item for line in _read_lines(_WHOLE_ITEM.validate_json, folder / ITEMS))


def read_stored_items(folder: Path) -> Iterator[tuple[StoredItem, Form]]:
    """Yield the items asked so far, each with its form, which describes the question as data."""
    path, place = folder / ITEMS, 0
    for number, line in read_whole_lines(path):
        read = _checked(_BARE_LINE.validate_json, line, path, number).item
        yield StoredItem.note(read, path, place), read.form
        place += len(line)


def load_item(file: IO[bytes], item: StoredItem) -> Item:
    """Read a complete item from its open file."""
    file.seek(item.place)
    line = file.readline()
    try:
        return _WHOLE_ITEM.validate_json(line).item
    except ValidationError:
        file.seek(0)
        number = file.read(item.place).count(b"\n") + 1
        return _checked(_WHOLE_ITEM.validate_json, line, item.path, number).item


def read_answers(folder: Path) -> Iterator[Answer]:
    """Yield every answer attempt of a run in the order of writing."""
    return _read_lines(parse_answer, folder / ANSWERS)


def parse_answer(line: bytes) -> Answer:
    """Parse one answer attempt from its JSON line."""
    return _ANSWER.validate_json(line)


def _read_lines(parse: Callable[[bytes], T], path: Path) -> Iterator[T]:
    for number, line in read_whole_lines(path):
        yield _checked(parse, line, path, number)


def last_answers(folder: Path) -> dict[str, Answer]:
    """Return the last answer attempt of each item."""
    return {answer.item: answer for answer in read_answers(folder)}


def read_scores(folder: Path) -> Scores:
    """Read ``scores.json``."""
    try:
        return _SCORES.validate_json(read_regular(folder / SCORES))
    except OSError as error:
        raise StoreError(
            f"{folder} has no readable {SCORES}; it was not scored",
            hint=f"run 'memantics score {folder}'",
        ) from error
    except ValidationError as error:
        raise StoreError(
            f"{folder / SCORES} is damaged: {first_fault(error)}",
            hint=f"run 'memantics score {folder}'",
        ) from error


def write_scores(folder: Path, scores: Scores) -> None:
    """Write ``scores.json`` atomically."""
    replace_file(folder / SCORES, orjson.dumps(scores, option=_FILE), "file")


def write_facts(folder: Path, facts: RunFacts) -> None:
    """Write ``run.json`` atomically."""
    replace_file(folder / RUN, orjson.dumps(facts, option=_FILE), "file")


@dataclass(frozen=True, slots=True)
class ItemStanding:
    """The progress of an item in a run; ``complaint`` is the reason why its last reply was invalid.

    The next request to the model repeats the complaint, also after a failed attempt.
    """

    status: Status
    attempt: int
    complaint: str | None = None


class RunWriter:
    """Writes to a locked run directory by appending; opening it again resumes the run.

    ``known`` maps the id of each item written before to its progress (None: no attempt has
    finished). Only this mapping is kept in memory, since a run may have hundreds of thousands of
    items.
    """

    def __init__(self, folder: Path, facts: RunFacts) -> None:
        self.folder = folder
        with opening(folder, f"run directory {folder}") as self._lock:
            if (folder / RUN).exists():
                before = read_facts(folder)
                if before.fingerprint != facts.fingerprint:
                    raise StoreError(
                        f"{folder} contains another run ({before.task}, {before.model})",
                        hint="choose another folder with --out",
                    )
            else:
                write_facts(folder, facts)
            self.known = read_standings(folder)
            self._items = AppendOnlyFile(folder / ITEMS, f"run directory {folder}")
            self._answers = AppendOnlyFile(folder / ANSWERS, f"run directory {folder}")

    def add_item(self, item: Item, messages: tuple[Message, ...]) -> None:
        """Write a new item."""
        self._items.append(dump_line(ItemLine(item, messages)))

    def add_answer(self, answer: Answer) -> None:
        """Write one answer attempt; the line is passed to the operating system at once."""
        self._answers.append(dump_line(answer))

    def close(self) -> None:
        """Close the files of the run directory and unlock it."""
        for file in (self._items, self._answers, self._lock):
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_standings(folder: Path) -> dict[str, ItemStanding | None]:
    """Return the progress of each item of a run; equal values share one object to save memory."""
    known: dict[str, ItemStanding | None] = {}
    items, answers = folder / ITEMS, folder / ANSWERS
    for number, line in read_whole_lines(items):
        # Lines written by Memantics begin with the id. Parsing a whole line would take three times
        # as long.
        head = _HEAD.match(line)
        name = orjson.loads(head[1]) if head and line.endswith(b"}\n") else None
        known[name or _checked(_ITEM.validate_json, line, items, number).item.id] = None
    alike: dict[tuple[Status, int, str | None], ItemStanding] = {}
    for number, line in read_whole_lines(answers):
        answer = _checked(_ENDED.validate_json, line, answers, number)
        name, status = answer["item"], answer["status"]
        if name not in known:
            continue  # The item's line was removed by hand, so the item is asked again.
        complaint: str | None = None
        if status == "failed":
            before = known[name]
            complaint = before.complaint if before else None
        elif status != "answered":
            complaint = answer.get("reason", "")
        key = (status, answer["attempt"], complaint)
        if (standing := alike.get(key)) is None:
            standing = alike.setdefault(key, ItemStanding(*key))
        known[name] = standing
    return known


def _checked(parse: Callable[[bytes], T], line: bytes, path: Path, number: int) -> T:
    try:
        return parse(line)
    except ValidationError as error:
        raise StoreError(
            f"{path}: line {number} is damaged: {first_fault(error)}",
            hint="remove that line; the item is then evaluated again",
        ) from error


def name_folders(folders: Sequence[Path]) -> list[str]:
    """Return the shortest ends of paths that tell folders apart; equal paths have equal names.

    >>> name_folders([Path("a/run"), Path("b/run"), Path("b/other")])
    ['a/run', 'b/run', 'other']
    """
    parts = [folder.absolute().parts for folder in folders]
    names = []
    for path in parts:
        others = [other for other in parts if other != path]
        length = 1
        while length < len(path) and any(other[-length:] == path[-length:] for other in others):
            length += 1
        names.append("/".join(path[-length:]))
    return names
