"""A whole benchmark from one file of records: reader, survey, statistics and task by default.

For benchmarks whose release is a JSON line per meme with its image in ``images/``; what one
needs besides is a card, prompts, and a function from a record to what is asked about it.
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
from memantics.core.records import Form, Image, Item
from memantics.core.task import ItemWalk, Task

Text = Annotated[str, Field(min_length=1)]
_BLANK = Form("", ())


class MemeRecord(BaseModel):
    """A record. A field that is not named is an error, not a guess.

    Where a shape adds ``language`` or ``kind``, they become tags: ``--limit`` spreads over them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    id: Text
    image: Text


R = TypeVar("R", bound=MemeRecord)


@cache
def list_tags(shape: type[MemeRecord]) -> tuple[str, ...]:
    """The fields of a record that become tags."""
    return tuple(name for name in ("language", "kind") if name in shape.model_fields)


def tag_row(row: MemeRecord) -> Mapping[str, str]:
    """The tags of a record's item."""
    return {name: str(getattr(row, name)) for name in list_tags(type(row))}


Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RecordTable(Generic[R]):
    """The records of one copy, read from their file whenever they are wanted.

    There may be hundreds of thousands, so none is held. ``folder`` holds the images, ``missing``
    are the ids of the records whose image is not there, ``stamp`` tells whether the file changed.
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
        """How many records there are."""
        return len(self.ids)

    def rows(self) -> Iterator[R]:
        """Every record, in the order of the file."""
        return (row for _, row in self.walk(lambda _: False) if row is not None)

    def walk(self, has_ended: Callable[[str], bool]) -> Iterator[tuple[str, R | None]]:
        """Every record with its id, in the order of the file; None for one that has ended."""
        changed = DataError(self.path.name, "was changed while in use", hint="start again")
        if read_stamp(self.path) != self.stamp:
            raise changed
        ids = iter(self.ids)
        for number, line in read_record_lines(self.path):
            name = next(ids, None)
            if name is None:
                raise changed
            # Checking a record takes most of the time: one that is not asked is passed.
            over = has_ended(name)
            yield name, None if over else data.check_record(self.shape, line, self.path, number)
        if next(ids, None) is not None:
            raise changed

    def find_image(self, row: R) -> Path | None:
        """Where a record's image lies, if it is there."""
        return None if row.id in self.missing else self.folder / row.image


def shuffle_places(seed: str, count: int, chance: Chance) -> bytes:
    """What ``random.Random(seed).shuffle`` makes of the numbers below ``count``, at most 256.

    Half of the time before a run of very many items goes here, so the steps are written out.

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
    """All places, and those that are filled from the last on, with the bits of a number to each."""
    falling = range(count - 1, 0, -1)
    return bytes(range(count)), tuple((last, (last + 1).bit_length()) for last in falling)


# A tuple, since making a frozen dataclass of each of very many records takes three times as long.
class Choice(NamedTuple):
    """What is asked of a record: the right option, the others, and the texts that are told.

    The order of options depends on the record's id and ``seed``, on nothing else.
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
        """The options in their order."""
        return self.lay_out(self.draw(name, Chance()))

    def draw(self, name: str, chance: Chance) -> bytes:
        """The places, in the sorted options, of those that come first, second, …"""
        return shuffle_places(f"{self.seed}:{name}", len(self.others) + 1, chance)

    def lay_out(self, order: bytes) -> list[str]:
        """The options in an order that was drawn."""
        options = self.options
        return [options[place] for place in order]


def read_stamp(path: Path) -> Stamp:
    """Size and time of a file."""
    try:
        found = path.stat()
    except OSError as error:
        hint = "give the folder that holds it"
        raise DataError(path.parent, f"has no readable {path.name}", hint=hint) from error
    return found.st_size, found.st_mtime_ns


def read_table(
    shape: type[R], file: str, source: data.Source, note: Callable[[R, int], None] = lambda *_: None
) -> RecordTable[R]:
    """Check every record, or say which one is wrong; ``note`` gets each with its line's number."""
    path = source.root / file
    if not path.is_file():
        raise DataError(source.root, f"has no {file}", hint="give the folder that holds it")
    stamp, folder = read_stamp(path), source.images or source.root / "images"
    there = data.list_plain_files(folder)
    known: dict[str, None] = {}
    missing: dict[str, None] = {}
    for number, row in data.read_records(shape, path):
        if row.id in known:
            raise DataError(file, f"meme {row.id} stands there twice", row=number)
        known[row.id] = None
        if row.image not in there and not data.inside(folder, row.image).is_file():
            missing[row.id] = None
        note(row, number)
    if not known:
        raise DataError(file, "holds no meme")
    return RecordTable(source, path, shape, folder, tuple(known), missing, stamp)


def survey_table(table: RecordTable[R]) -> data.Found:
    """Counts, checksum, and what is missing."""
    missing = len(table.missing)
    return data.Found(
        records=table.count,
        counts={"memes": table.count},
        files=(table.path.name,),
        checksum=data.checksum([table.path], table.source.root),
        images_found=table.count - missing,
        images_expected=table.count,
        notes=(f"{missing} memes have no image: they cannot be asked about.",) if missing else (),
    )


def describe_table(table: RecordTable[R], ask: Callable[[R], Choice]) -> Mapping[str, JsonValue]:
    """How long right options are, and how often they are the longest."""
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
    """The sorted options of a record; an error where two are equal or letters run out."""
    options = asked.options
    if len(set(options)) < len(options):
        raise DataError(file, f"two of the {len(options)} options are equal", row=number)
    if len(options) > len(LETTERS):
        problem = f"{len(options)} options: there are letters for {len(LETTERS)}"
        raise DataError(file, problem, row=number)
    return options


@dataclass(frozen=True, slots=True)
class Scan(Generic[R]):
    """A table whose records can all be asked, as they are under some options of a task.

    ``orders`` are those of the options of each record, ``majority`` is the commonest key. Where
    records have tags, ``tagged`` holds them by id.
    """

    table: RecordTable[R]
    orders: Sequence[bytes]
    majority: str
    tagged: Mapping[str, Mapping[str, str]]

    def outline(self) -> Iterator[Item]:
        """Items that say no more than of which kind each record is whose image is there."""
        missing, tagged = self.table.missing, self.tagged.items()
        return (
            Item(meme_id, meme_id, "", _BLANK, tags=t)
            for meme_id, t in tagged
            if meme_id not in missing
        )


def scan_table(
    shape: type[R], file: str, source: data.Source, ask: Callable[[R], Choice]
) -> Scan[R]:
    """Check every record as it is asked, in one pass."""
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
    """A benchmark that asks one lettered question about each record.

    ``ask`` gets a record and the task's options; statistics are computed under ``defaults``.
    """
    tables: dict[tuple[data.Source, Stamp], RecordTable[R]] = {}

    # A file that was changed is read anew; the tasks of one run share what was found.
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
            # An error, unless such memes are left out or nobody is shown them.
            left_out = [name for name in table.missing if setup.picture(None, name) is None]
            return table.count - len(left_out)

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
