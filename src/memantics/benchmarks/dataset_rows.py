"""Rows of data sets, streamed; rows that are one vote each are joined to rows of memes.

In the long form of votes, every row is the vote of one annotator on one meme (``item_id, text,
annotator, label, gender``), and the rows of a meme may be anywhere in the files. They are joined on
disk: the memory does not grow with the number of rows. A joined row has the cells of the first row
of its meme; votes, annotators and their attributes are lists of equal length, as in the form with
lists.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from memantics.benchmarks.dataset_cells import cut_cell
from memantics.benchmarks.dataset_config import Columns, DatasetConfig
from memantics.benchmarks.dataset_files import read_data_file
from memantics.core.errors import DataError
from memantics.core.members import BYTES
from memantics.core.seen import SeenKeys
from memantics.core.tables import TableRow

ORIGINS = ("source", "author", "date", "template_cluster")
_SHOWN = 40  # characters of a cell in an error

NumberedRow = tuple[int, int, TableRow]


@dataclass(frozen=True, slots=True)
class VoteRows:
    """How rows that are one vote each are joined.

    ``votes`` are the columns with votes and the separators of several labels in a cell. Cells of
    ``fixed`` must agree in all rows of a meme. Cells of ``lists`` become lists, those of ``loose``
    are emptied where they differ.
    """

    item: str
    annotator: str
    votes: Mapping[str, str]
    lists: Sequence[str] = ()
    fixed: Sequence[str] = ()
    loose: Sequence[str] = ()

    @property
    def listed(self) -> list[str]:
        """The columns that become lists besides those of votes."""
        return list(dict.fromkeys((self.annotator, *self.lists)))


def plan_votes(config: DatasetConfig) -> VoteRows | None:
    """Return how the rows of a data set are joined; None if every row is a meme."""
    long = [votes for votes in config.list_votes() if votes.rows]
    if not long:
        return None
    votes = {
        label.votes.column: label.separator
        for label in config.label.values()
        if label.votes and label.votes.rows
    }
    others = [
        column
        for label in config.label.values()
        if not label.votes or not label.votes.rows
        for column in (label.column, *label.flags, *label.roles.values())
    ]
    named = [name for name in Columns.model_fields if getattr(config.columns, name)]
    fixed = [getattr(config.columns, name) for name in named]
    fixed += [*others, *(one.column for one in config.free_text.values())]
    lists = dict.fromkeys(column for one in long for column in one.attributes.values())
    return VoteRows(
        long[0].rows,
        long[0].annotators,
        votes,
        tuple(lists),
        tuple(dict.fromkeys(name for column in fixed if column for name in column.split("|"))),
        tuple(name for name in ORIGINS if name not in named and name not in lists),
    )


def read_data_rows(
    config: DatasetConfig, root: Path, found: Sequence[tuple[str, Path]]
) -> Iterator[NumberedRow]:
    """Yield the place of the file in ``found``, the number of the row in it, and its cells."""
    plan = plan_votes(config)
    if plan is not None:
        yield from _join_files(plan, config, root, found)
        return
    column = config.columns.split
    for place, (split, path) in enumerate(found):
        for number, row in read_data_file(root, path, config.format, config.encoding):
            if column and config.name_split(row.get(column, "")) != split:
                continue  # the row belongs to another split of the same table
            yield place, number, row


def _join_files(
    plan: VoteRows, config: DatasetConfig, root: Path, found: Sequence[tuple[str, Path]]
) -> Iterator[NumberedRow]:
    """Join the rows of each split; a table with several splits is read once."""
    column = config.columns.split
    places = {(split, path): place for place, (split, path) in enumerate(found)}
    splits = {path: split for split, path in found}

    def read() -> Iterator[tuple[str, int, Path, int, TableRow]]:
        for path, split in splits.items():
            for number, row in read_data_file(root, path, config.format, config.encoding):
                named = config.name_split(row.get(column, "")) if column else split
                # In a table with several splits, the rows of a meme must have the same split.
                yield "" if column else split, places.get((named, path), -1), path, number, row

    for place, number, row in join_votes(plan, read()):
        if place >= 0:
            yield place, number, row


def join_votes(
    plan: VoteRows, rows: Iterable[tuple[str, int, Path, int, TableRow]]
) -> Iterator[NumberedRow]:
    """Join rows that are one vote each; memes are in the order of their place and first row.

    ``rows`` are the part within which ids are unique, the place, the file, the number and the
    cells. Contradictory cells, and a second vote of an annotator on a meme, are an error.
    """
    with TemporaryDirectory(prefix="memantics-") as folder:
        # The rows may be consumed in another thread than the one that began to read them.
        base = sqlite3.connect(f"{folder}/rows", isolation_level=None, check_same_thread=False)
        with closing(base), closing(_sort_votes(_Votes(base, plan), rows)) as joined:
            yield from joined


def _sort_votes(
    votes: _Votes, rows: Iterable[tuple[str, int, Path, int, TableRow]]
) -> Generator[NumberedRow, None, None]:
    with SeenKeys() as memes:
        for part, place, path, number, row in rows:
            votes.add(_Row(votes.plan, path, number, row), part, place, memes)
    yield from votes.join()


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a long table, and where it is."""

    plan: VoteRows
    path: Path
    number: int
    cells: TableRow

    def name_item(self) -> str:
        """Return the value that names the meme."""
        item = self.cells.get(self.plan.item)
        if item is None:
            names = [name for name in self.cells if not name.endswith(BYTES)]
            hint = f"its columns are {', '.join(names)[:300]}"
            raise self.fail(f"has no column {self.plan.item!r}", hint)
        if not item.strip():
            raise self.fail(f"column {self.plan.item!r} is empty", "name the meme in every row")
        return item.strip()

    def name_annotator(self) -> str:
        """Return the annotator; empty for a row without any vote."""
        if not any(self.cells.get(column, "").strip() for column in self.plan.votes):
            return ""
        if name := self.cells.get(self.plan.annotator, "").strip():
            return name
        raise self.fail(
            f"a vote has no annotator in the column {self.plan.annotator!r}",
            "fill it, or remove the row",
        )

    def list_fixed(self) -> dict[str, str]:
        """Return the cells that must agree in all rows of a meme."""
        return {name: self.cells[name].strip() for name in self.plan.fixed if name in self.cells}

    def fail(self, problem: str, hint: str) -> DataError:
        """Return an error that names the file and the row."""
        return DataError(self.path.name, problem, row=self.number, hint=hint)


@dataclass(slots=True)
class _Votes:
    """The rows of a long table on disk: the first row of each meme, and the votes of all rows."""

    base: sqlite3.Connection
    plan: VoteRows
    count: int = 0
    _lists: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._lists = (*self.plan.votes, *self.plan.listed, *self.plan.loose)
        for line in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16384"):
            self.base.execute(f"PRAGMA {line}")
        self.base.execute(
            "CREATE TABLE memes (first INTEGER PRIMARY KEY, place INTEGER, number INTEGER,"
            " file TEXT, cells BLOB)"
        )
        self.base.execute(
            "CREATE TABLE votes (nth INTEGER PRIMARY KEY, first INTEGER, number INTEGER, file TEXT,"
            " cells BLOB)"
        )
        self.base.execute("BEGIN")

    def add(self, row: _Row, part: str, place: int, memes: SeenKeys) -> None:
        """Keep a row; raise an error if it contradicts the first row of its meme."""
        item = row.name_item()
        fixed = orjson.dumps(list(row.list_fixed().items())).decode()
        earlier = memes.add(f"{part}\0{item}", f"{self.count}\0{fixed}")
        first, _, before = (earlier or f"{self.count}\0{fixed}").partition("\0")
        if earlier is None:
            facts = (self.count, place, row.number, row.path.name, orjson.dumps(dict(row.cells)))
            self.base.execute("INSERT INTO memes VALUES (?, ?, ?, ?, ?)", facts)
        elif before != fixed:
            self._refuse(row, item, int(first), dict(orjson.loads(before)))
        if row.name_annotator():
            cells = orjson.dumps([row.cells.get(name, "") for name in self._lists])
            facts = (self.count, int(first), row.number, row.path.name, cells)
            self.base.execute("INSERT INTO votes VALUES (?, ?, ?, ?, ?)", facts)
        self.count += 1

    def _refuse(self, row: _Row, item: str, first: int, before: Mapping[str, str]) -> None:
        now = row.list_fixed()
        names = [n for n in (*before, *now) if before.get(n, "") != now.get(n, "")]
        if not names:
            return  # a file without this column, which the other has empty
        found = self.base.execute("SELECT number, file FROM memes WHERE first = ?", (first,))
        number, file = found.fetchone()
        name = names[0]
        one, other = (str(cells.get(name, ""))[:_SHOWN] for cells in (now, before))
        raise row.fail(
            f"column {name!r} of {self.plan.item} {item!r} is {one!r}, but {other!r} in row"
            f" {number} of {file}",
            "the rows of one meme must agree in all columns but those of the votes",
        )

    def join(self) -> Iterator[NumberedRow]:
        """Yield one row per meme; an annotator who votes twice on a meme is an error."""
        self.base.execute("CREATE INDEX memes_in_order ON memes (place, first)")
        self.base.execute("CREATE INDEX votes_of_meme ON votes (first)")
        rows = self.base.execute(
            "SELECT memes.first, memes.place, memes.number, memes.cells, votes.number, votes.file,"
            " votes.cells FROM memes LEFT JOIN votes USING (first)"
            " ORDER BY memes.place, memes.first, votes.nth"
        )
        for (_, place, number, cells), some in groupby(rows, itemgetter(0, 1, 2, 3)):
            listed = []
            voted: dict[str, str] = {}
            for *_, nth, file, vote in some:
                if vote is None:
                    continue
                listed.append(orjson.loads(vote))
                annotator = listed[-1][len(self.plan.votes)].strip()
                if earlier := voted.get(annotator):
                    item = orjson.loads(cells)[self.plan.item]
                    raise DataError(
                        file,
                        f"annotator {annotator!r} votes a second time on {item!r} (first:"
                        f" {earlier})",
                        row=nth,
                        hint="keep one vote of each annotator",
                    )
                voted[annotator] = f"row {nth} of {file}"
            yield place, number, self._join_row(orjson.loads(cells), listed)

    def _join_row(self, row: dict[str, str], listed: Sequence[Sequence[str]]) -> dict[str, str]:
        for place, name in enumerate(self._lists):
            cells = [one[place] for one in listed]
            if name in self.plan.loose:
                if name in row and len(set(cells)) > 1:
                    row[name] = ""
            elif name in self.plan.votes:
                values = [cut_cell(cell.strip(), self.plan.votes[name]) for cell in cells]
                row[name] = orjson.dumps([v[0] if len(v) == 1 else v for v in values]).decode()
            else:
                row[name] = orjson.dumps([cell.strip() for cell in cells]).decode()
        return row
