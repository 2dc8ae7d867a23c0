"""A whole benchmark from one file of records: reader, survey, statistics and task by default.

For benchmarks whose release is a JSON line per meme with its image in ``images/``; what one
needs besides is a card, prompts, and a function from a record to what is asked about it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from memantics.core.data import Found, Source, checksum, conform, inside, read_jsonl
from memantics.core.errors import DataError
from memantics.core.records import Form, Item
from memantics.core.task import Task
from memantics.tasks.choices import LETTERS, commonest, letter_field
from memantics.tasks.factories import choice_task
from memantics.tasks.plugin import BenchmarkPlugin, TaskSetup

Text = Annotated[str, Field(min_length=1)]


class Row(BaseModel):
    """A record. A field that is not named is an error, not a guess."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Text
    image: Text


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """All records of one copy, and the images that are there."""

    source: Source
    path: Path
    rows: tuple[R, ...]
    images: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked of a record: the right option, the others, and the texts that are told.

    The order of options depends on the record's id and ``seed``, on nothing else.
    """

    question: str
    right: str
    others: tuple[str, ...]
    context: Mapping[str, str] = field(default_factory=dict)
    seed: str = "0"

    def arrange(self, name: str) -> list[str]:
        """The options in their order."""
        options = sorted([self.right, *self.others])
        random.Random(f"{self.seed}:{name}").shuffle(options)
        return options


def read_table(shape: type[R], file: str, source: Source) -> Table[R]:
    """Read every record, or say which one is wrong."""
    path = source.root / file
    if not path.is_file():
        raise DataError(source.root, f"has no {file}", hint="give the folder that holds it")
    folder = source.images or source.root / "images"
    rows: dict[str, R] = {}
    for number, value in read_jsonl(path):
        row = conform(shape, value, file, number)
        if row.id in rows:
            raise DataError(file, f"meme {row.id} stands there twice", row=number)
        inside(folder, row.image)
        rows[row.id] = row
    if not rows:
        raise DataError(file, "holds no meme")
    images = {row.id: folder / row.image for row in rows.values()}
    present = {name: image for name, image in images.items() if image.is_file()}
    return Table(source, path, tuple(rows.values()), present)


def survey_table(table: Table[R]) -> Found:
    """Counts, checksum, and what is missing."""
    missing = len(table.rows) - len(table.images)
    return Found(
        records=len(table.rows),
        counts={"memes": len(table.rows)},
        files=(table.path.name,),
        checksum=checksum([table.path], table.source.root),
        images_found=len(table.images),
        images_expected=len(table.rows),
        notes=(f"{missing} memes have no image: they cannot be asked about.",) if missing else (),
    )


def choice_benchmark(
    shape: type[R],
    ask: Callable[[R, Mapping[str, str]], Choice],
    file: str = "memes.jsonl",
    defaults: Mapping[str, str] | None = None,
) -> BenchmarkPlugin[Table[R]]:
    """A benchmark that asks one lettered question about each record.

    ``ask`` gets a record and the task's options; statistics are computed under ``defaults``.
    """

    @cache
    def open_release(source: Source) -> Table[R]:
        table = read_table(shape, file, source)
        for number, row in enumerate(table.rows, 1):
            options = ask(row, defaults or {}).arrange(row.id)
            if len(set(options)) < len(options):
                raise DataError(file, f"two of the {len(options)} options are equal", row=number)
        return table

    def statistics(table: Table[R]) -> Mapping[str, JsonValue]:
        asked = [ask(row, defaults or {}) for row in table.rows]
        longest = sum(len(own.right) > max(map(len, own.others)) for own in asked)
        return {
            "memes": len(asked),
            "right.words": round(fmean(len(own.right.split()) for own in asked), 1),
            "right.longest_percent": round(100 * longest / len(asked), 1),
        }

    def make(setup: TaskSetup) -> Task:
        def items() -> Iterator[Item]:
            table = open_release(setup.need_source())
            asked = {row.id: ask(row, setup.options) for row in table.rows}
            orders = {name: own.arrange(name) for name, own in asked.items()}
            keys = {name: LETTERS[orders[name].index(own.right)] for name, own in asked.items()}
            majority = commonest(keys.values())
            for name, own in asked.items():
                picture = setup.picture(table.images.get(name), name)
                if picture is not None:
                    options = (letter_field(orders[name], majority),)
                    form = Form(own.question, options, context=own.context)
                    yield Item(name, name, keys[name], form, (picture,))

        return choice_task(setup, items)

    return BenchmarkPlugin(
        open_release=open_release, survey=survey_table, statistics=statistics, make_task=make
    )
