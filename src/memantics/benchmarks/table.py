"""A benchmark from one file of records, with default reader, summary, statistics and task.

This module is for benchmarks whose data are one JSON line per meme, with its image in ``images/``.
Such a benchmark adds a dataset card, prompts, and a function from a record to a question.
"""

from __future__ import annotations

from _random import Random as Chance
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha512
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from memantics.benchmarks.factories import LETTERS, choice_task, letter_field
from memantics.benchmarks.plugin import BenchmarkPlugin, TaskSetup
from memantics.core import data
from memantics.core.data import read_record_lines
from memantics.core.errors import DataError
from memantics.core.ids import find_id_fault
from memantics.core.records import Form, Image, Item
from memantics.core.task import ItemWalk, Task

Text = Annotated[str, Field(min_length=1)]
_BLANK = Form("", ())


class MemeRecord(BaseModel):
    """Base class of meme records; an unknown field is an error.

    The fields ``language`` and ``kind``, if a subclass adds them, become tags: ``--limit``
    stratifies by them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    id: Text
    image: Text


R = TypeVar("R", bound=MemeRecord)


@cache
def list_tags(shape: type[MemeRecord]) -> tuple[str, ...]:
    """Return the names of the record fields that become tags."""
    return tuple(name for name in ("language", "kind") if name in shape.model_fields)


def tag_row(row: MemeRecord) -> Mapping[str, str]:
    """Return the tags of the item made from a record."""
    return {name: str(getattr(row, name)) for name in list_tags(type(row))}


Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RecordTable(Generic[R]):
    """The records of one copy of the data; they are read from the file on demand.

    There may be hundreds of thousands of records, so none is kept in memory. ``folder`` contains
    the images. ``missing`` are the ids of records without an image. ``stamp`` detects changes of
    the file.
    """

    source: data.Source
    path: Path
    shape: type[R]
    folder: Path
    ids: Sequence[str]
    missing: Mapping[str, None]
    stamp: Stamp

    @property
    def count(self) -> int:
        """Count the records."""
        return len(self.ids)

    def rows(self) -> Iterator[R]:
        """Yield every record, in file order."""
        return (row for _, row in self.walk(lambda _: False) if row is not None)

    def walk(self, has_ended: Callable[[str], bool]) -> Iterator[tuple[str, R | None]]:
        """Yield every record with its id, in file order; None for records that are not needed."""
        changed = DataError(
            self.path.name, "was changed while in use", hint="run the command again"
        )
        if read_stamp(self.path) != self.stamp:
            raise changed
        ids = iter(self.ids)
        for number, line in read_record_lines(self.path):
            name = next(ids, None)
            if name is None:
                raise changed
            # Validating a record takes most of the time, so unused records are skipped.
            over = has_ended(name)
            yield name, None if over else data.check_record(self.shape, line, self.path, number)
        if next(ids, None) is not None:
            raise changed

    def find_image(self, row: R) -> Path | None:
        """Return the path of a record's image, if it exists."""
        return None if row.id in self.missing else self.folder / row.image


def shuffle_places(seed: str, count: int, chance: Chance) -> bytes:
    """Return ``random.Random(seed).shuffle`` of the numbers below ``count``, at most 256.

    The steps of the shuffle are written out, since it takes half of the start-up time of very large
    runs.

    >>> list(shuffle_places("0:meme-1", 4, Chance()))
    [1, 3, 0, 2]
    """
    text = seed.encode()
    chance.seed(int.from_bytes(text + sha512(text).digest(), "big"))
    start, draws = _list_draws(count)
    places, draw = bytearray(start), chance.getrandbits
    for last, bits in draws:
        while (place := draw(bits)) > last:
            pass
        places[last], places[place] = places[place], places[last]
    return bytes(places)


@cache
def _list_draws(count: int) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """Return all positions, and for each filled position its bound and number of random bits."""
    falling = range(count - 1, 0, -1)
    return bytes(range(count)), tuple((last, (last + 1).bit_length()) for last in falling)


# The result is a tuple, since creating a frozen dataclass for each of very many records takes three
# times as long.
class Choice(NamedTuple):
    """The question about a record: the correct option, the others, and given texts.

    The order of options depends only on the record's id and ``seed``.
    """

    question: str
    right: str
    others: tuple[str, ...]
    context: Mapping[str, str] = MappingProxyType({})
    seed: str = "0"

    @property
    def options(self) -> list[str]:
        """All options, sorted."""
        return sorted([self.right, *self.others])

    def arrange(self, name: str) -> list[str]:
        """Return the options in the order in which they are shown."""
        return self.lay_out(self.draw(name, Chance()))

    def draw(self, name: str, chance: Chance) -> bytes:
        """Return the position, among the sorted options, of the first, second, … shown option."""
        return shuffle_places(f"{self.seed}:{name}", len(self.others) + 1, chance)

    def lay_out(self, order: bytes) -> list[str]:
        """Return the options in a given order."""
        options = self.options
        return [options[place] for place in order]


def read_stamp(path: Path) -> Stamp:
    """Return size and modification time of a file."""
    try:
        found = path.stat()
    except OSError as error:
        hint = "give the folder that contains it"
        raise DataError(path.parent, f"has no readable {path.name}", hint=hint) from error
    return found.st_size, found.st_mtime_ns


def read_table(
    shape: type[R], file: str, source: data.Source, note: Callable[[R, int], None] = lambda *_: None
) -> RecordTable[R]:
    """Validate every record; raise for an invalid one; ``note`` receives record and line number."""
    path = source.root / file
    if not path.is_file():
        raise DataError(source.root, f"has no {file}", hint="give the folder that contains it")
    stamp, folder = read_stamp(path), source.images or source.root / "images"
    there = data.list_plain_files(folder)
    known: dict[str, None] = {}
    missing: dict[str, None] = {}
    for number, row in data.read_records(shape, path):
        if fault := find_id_fault(row.id):
            raise DataError(file, f"id {row.id[:60]!a} {fault}", row=number, hint="change the id")
        if row.id in known:
            raise DataError(file, f"meme {row.id} appears twice", row=number)
        known[row.id] = None
        if row.image not in there and not data.inside(folder, row.image).is_file():
            missing[row.id] = None
        note(row, number)
    if not known:
        raise DataError(file, "contains no meme")
    return RecordTable(source, path, shape, folder, tuple(known), missing, stamp)


def survey_table(table: RecordTable[R]) -> data.Found:
    """Summarise a table of records: counts, checksum, and missing images."""
    missing = len(table.missing)
    return data.Found(
        records=table.count,
        counts={"memes": table.count},
        files=(table.path.name,),
        checksum=data.checksum([table.path], table.source.root),
        images_found=table.count - missing,
        images_expected=table.count,
        notes=(f"{missing} memes have no image and cannot be used.",) if missing else (),
    )


def describe_table(table: RecordTable[R], ask: Callable[[R], Choice]) -> Mapping[str, JsonValue]:
    """Return the lengths of correct options, and how often they are the longest option."""
    words = longest = 0
    for row in table.rows():
        asked = ask(row)
        words += len(asked.right.split())
        longest += len(asked.right) > max(map(len, asked.others))
    return {
        "memes": table.count,
        "right.words": round(words / table.count, 1),
        "right.longest_percent": round(100 * longest / table.count, 1),
    }


def check_options(asked: Choice, file: str, number: int) -> list[str]:
    """Return the sorted options of a record; raise if two are equal or there are too many."""
    options = asked.options
    if len(set(options)) < len(options):
        raise DataError(file, f"two of the {len(options)} options are equal", row=number)
    if len(options) > len(LETTERS):
        problem = f"{len(options)} options are too many: at most {len(LETTERS)} can be lettered"
        raise DataError(file, problem, row=number)
    return options


@dataclass(frozen=True, slots=True)
class Scan(Generic[R]):
    """A table whose records are all valid under some options of a task.

    ``orders`` are the option orders of each record; ``majority`` is the most frequent answer. If
    records have tags, ``tagged`` maps ids to tags.
    """

    table: RecordTable[R]
    orders: Sequence[bytes]
    majority: str
    tagged: Mapping[str, Mapping[str, str]]

    def outline(self) -> Iterator[Item]:
        """Yield an outline of each item that has an image: its id, meme and tags."""
        missing, tagged = self.table.missing, self.tagged.items()
        return (
            Item(meme_id, meme_id, "", _BLANK, tags=t)
            for meme_id, t in tagged
            if meme_id not in missing
        )


def scan_table(
    shape: type[R], file: str, source: data.Source, ask: Callable[[R], Choice]
) -> Scan[R]:
    """Validate every record as a question, in one pass."""
    keys, chance = [0] * len(LETTERS), Chance()
    orders: list[bytes] = []
    alike: dict[bytes, bytes] = {}
    kinds: dict[tuple[str, ...], Mapping[str, str]] = {}
    tagged: dict[str, Mapping[str, str]] = {}
    has_tags = bool(list_tags(shape))

    def note(row: R, number: int) -> None:
        asked = ask(row)
        options = check_options(asked, file, number)
        order = asked.draw(row.id, chance)
        keys[order.index(options.index(asked.right))] += 1
        orders.append(alike.setdefault(order, order))
        if has_tags:
            tags = tag_row(row)
            tagged[row.id] = kinds.setdefault((*tags.values(),), tags)

    table = read_table(shape, file, source, note)
    return Scan(table, orders, LETTERS[keys.index(max(keys))], tagged)


def _make_item(row: MemeRecord, picture: Image, asked: Choice, order: bytes, majority: str) -> Item:
    laid = asked.lay_out(order)
    form = Form(asked.question, (letter_field(laid, majority),), context=dict(asked.context))
    key = LETTERS[laid.index(asked.right)]
    return Item(row.id, row.id, key, form, (picture,), tag_row(row))


def choice_benchmark(
    shape: type[R],
    ask: Callable[[R, Mapping[str, str]], Choice],
    file: str = "memes.jsonl",
    defaults: Mapping[str, str] | None = None,
) -> BenchmarkPlugin[RecordTable[R]]:
    """Return a benchmark with one multiple-choice question per record.

    ``ask`` receives a record and the task's options; statistics are computed with the options
    ``defaults``.
    """
    tables: dict[tuple[data.Source, Stamp], RecordTable[R]] = {}

    # A changed file is read again; all tasks of one run share the result.
    @lru_cache(maxsize=8)
    def scan(source: data.Source, stamp: Stamp, options: frozenset[tuple[str, str]]) -> Scan[R]:
        given = dict(options)
        found = scan_table(shape, file, source, lambda row: ask(row, given))
        tables[source, stamp] = found.table
        return found

    def look(source: data.Source, options: Mapping[str, str]) -> Scan[R]:
        stamp = read_stamp(source.root / file)
        return scan(source, stamp, frozenset(options.items()))

    def open_release(source: data.Source) -> RecordTable[R]:
        known = tables.get((source, read_stamp(source.root / file)))
        return known or look(source, defaults or {}).table

    def make(setup: TaskSetup) -> Task:
        def count() -> int:
            table = look(setup.need_source(), setup.options).table
            # A missing image is an error, unless such memes are skipped or images are not shown.
            skipped = [name for name in table.missing if setup.picture(None, name) is None]
            return table.count - len(skipped)

        def walk(has_ended: Callable[[str], bool]) -> Iterator[Item | str]:
            found = look(setup.need_source(), setup.options)
            missing = found.table.missing
            rows = found.table.walk(lambda name: name not in missing and has_ended(name))
            for (name, row), order in zip(rows, found.orders, strict=True):
                if row is None:
                    yield name
                    continue
                picture = setup.picture(found.table.find_image(row), name)
                if picture is not None:
                    asked = ask(row, setup.options)
                    yield _make_item(row, picture, asked, order, found.majority)

        def outline() -> Iterator[Item]:
            count()
            return look(setup.need_source(), setup.options).outline()

        return choice_task(setup, ItemWalk(walk, count, outline if list_tags(shape) else None))

    return BenchmarkPlugin(
        open_release=open_release,
        survey=survey_table,
        statistics=lambda table: describe_table(table, lambda row: ask(row, defaults or {})),
        make_task=make,
    )
