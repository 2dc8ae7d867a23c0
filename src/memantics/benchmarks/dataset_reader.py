"""Reader of data sets with a dataset config: files, rows, labels, votes and images, streamed.

A release is read once to check every row and to count; memes are then read from the files again
whenever they are needed. The memory does not grow with the number of memes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from memantics.benchmarks.dataset_cells import (
    cut_cell,
    dig,
    list_parts,
    list_values,
    look_up,
    parse_cell,
)
from memantics.benchmarks.dataset_config import DatasetConfig, LabelConfig, VotesConfig
from memantics.benchmarks.dataset_files import (
    ImageFinder,
    find_data_files,
    name_files,
    stamp_files,
)
from memantics.benchmarks.dataset_rows import ORIGINS, read_data_rows
from memantics.benchmarks.plugin import TaskSetup
from memantics.core.data import Skip, Source
from memantics.core.errors import DataError, UnknownName
from memantics.core.ids import read_id
from memantics.core.members import BYTES, is_member
from memantics.core.records import Image
from memantics.core.seen import SeenKeys
from memantics.core.tables import TableRow, write_cell
from memantics.core.votes import Vote, distribute, find_majority
from memantics.metrics.aggregation import AnnotatedLabel, dawid_skene, mace

_PLACEHOLDER = re.compile(r"\{(.*?)\}")
_SHOWN = 10  # missing images that a note names
_LONGEST = 80  # characters of such a name
_YES, _NO = ("1", "1.0", "true", "yes"), ("", "0", "0.0", "false", "no")


@dataclass(frozen=True, slots=True)
class Span:
    """A labelled part of the text of a meme, by character positions."""

    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class ConfiguredMeme:
    """One row of a data set: text, image, labels by name, votes by label, and origin columns."""

    id: str
    text: str
    image: Path | None
    split: str
    labels: Mapping[str, tuple[str, ...]]
    names_image: bool = True
    origin: Mapping[str, str] = field(default_factory=dict)
    votes: Mapping[str, tuple[Vote, ...]] = field(default_factory=dict)
    spans: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    entities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    language: str = ""
    group: str = ""

    @property
    def cluster(self) -> str:
        """The cluster of the row in confidence intervals: its group, else the row itself."""
        return self.group or self.id


@dataclass(slots=True)
class Tally:
    """The counts of one pass over a data set.

    ``votes`` sums the proportions of annotators by label and value, ``voted`` counts the memes with
    votes by label and split.
    """

    memes: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    labels: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    votes: Counter[tuple[str, str]] = field(default_factory=Counter)
    voted: Counter[tuple[str, str]] = field(default_factory=Counter)
    images: int = 0
    expected: int = 0
    missing: list[str] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    skipped: set[tuple[int, int]] = field(default_factory=set)

    def add(self, meme: ConfiguredMeme, name: str) -> None:
        """Count one meme; ``name`` is the name of its image in the file."""
        self.memes += 1
        self.splits[meme.split] += 1
        self.images += meme.image is not None
        self.expected += meme.names_image
        if meme.names_image and meme.image is None and len(self.missing) < _SHOWN:
            self.missing.append(name)
        for label, values in meme.labels.items():
            for value in values:
                self.labels[label, meme.split, value] += 1
        for label, votes in meme.votes.items():
            self.voted[label, meme.split] += bool(votes)
            given = {value for vote in votes for value in vote.values}
            for value, share in distribute(votes, given).items():
                self.votes[label, value] += share  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class ConfiguredRelease:
    """One copy of a data set; ``memes`` reads its files again each time it is iterated."""

    config: DatasetConfig
    source: Source
    found: tuple[tuple[str, Path], ...]
    tally: Tally
    stamps: tuple[tuple[int, int], ...]
    aggregated: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def files(self) -> tuple[Path, ...]:
        """The data files, each once."""
        return tuple(dict.fromkeys(path for _, path in self.found))

    @property
    def skips(self) -> tuple[Skip, ...]:
        """Rows that were skipped."""
        return tuple(self.tally.skips)

    @property
    def memes(self) -> Iterator[ConfiguredMeme]:
        """Read the memes from the files, in file order, without repeated ids."""
        if self.stamps != stamp_files(self.found):
            raise DataError(
                self.source.root, "was changed while in use", hint="run the command again"
            )
        for place, (number, _, meme) in _walk(self.config, self.source, self.found):
            if (place, number) not in self.tally.skipped:
                yield self._put_aggregated(meme) if self.aggregated else meme

    def _put_aggregated(self, meme: ConfiguredMeme) -> ConfiguredMeme:
        made = {
            label: (chosen[meme.id],) if meme.id in chosen else ()
            for label, chosen in self.aggregated.items()
        }
        return replace(meme, labels={**meme.labels, **made})

    def list_classes(self, label: str) -> list[str]:
        """Return the values of a label in the order of the config, else sorted."""
        config = self.config.label[label]
        given = config.values.values()
        if config.every_option:
            return list(dict.fromkeys(given))
        seen = {value for name, _, value in self.tally.labels if name == label}
        return [name for name in dict.fromkeys(given) if name in seen] or sorted(seen)


def open_dataset_config(config: DatasetConfig, source: Source) -> ConfiguredRelease:
    """Read every file of a data set; errors name the file and row that differ from the config.

    A release that did not change is read once per process.
    """
    found = find_data_files(config, source.root)
    return _open(config.model_dump_json(), source, found, stamp_files(found))


@lru_cache(maxsize=8)
def _open(
    text: str,
    source: Source,
    found: tuple[tuple[str, Path], ...],
    stamps: tuple[tuple[int, int], ...],
) -> ConfiguredRelease:
    config = DatasetConfig.model_validate_json(text)
    tally = Tally()
    weighed: dict[str, list[tuple[str, str, Vote]]] = {
        name: []
        for name, label in config.label.items()
        if label.votes and label.votes.aggregate != "majority" and not label.several
    }
    flags = _FlagColumns(config)
    with SeenKeys() as seen:
        for place, (number, row, meme) in _walk(config, source, found):
            flags.add(found[place][1], row)
            if seen.add(meme.id) is None:
                name = "" if meme.image else _name_image(config, found[place], number, row)
                tally.add(meme, name)
                for name, rows in weighed.items():
                    rows += [(meme.split, meme.id, vote) for vote in meme.votes[name]]
            else:
                file = found[place][1].name
                tally.skips.append(Skip(file, str(number), "the id appears more than once"))
                tally.skipped.add((place, number))
    if not tally.memes:
        raise DataError(source.root, "contains no meme", hint="download the file again")
    flags.check()
    aggregated = {name: _aggregate(config, name, rows, tally) for name, rows in weighed.items()}
    return ConfiguredRelease(config, source, found, tally, stamps, aggregated)


class _FlagColumns:
    """The columns of flags that no row of a file has.

    A missing flag would read as one that is not set. A file without all flags of a label is an
    unlabelled split, unless no other file has them either.
    """

    def __init__(self, config: DatasetConfig) -> None:
        self._flags = [label.flags for label in config.label.values() if label.flags]
        self._lacking: dict[Path, set[str]] = {}
        self._columns: dict[Path, list[str]] = {}

    def add(self, path: Path, row: TableRow) -> None:
        """Look at the columns of one row."""
        if path not in self._lacking:
            self._lacking[path] = {name for flags in self._flags for name in flags}
            self._columns[path] = [name for name in row if not name.endswith(BYTES)]
        if self._lacking[path]:
            self._lacking[path].difference_update(row)

    def check(self) -> None:
        """Raise an error if a file has some flags of a label, or no file has any."""
        for flags in self._flags:
            missing = {
                path: [f for f in flags if f in lack] for path, lack in self._lacking.items()
            }
            labelled = any(len(names) < len(flags) for names in missing.values())
            for path, names in missing.items():
                if names and (len(names) < len(flags) or not labelled):
                    raise DataError(
                        path.name,
                        f"the flag column {names[0]!r} is not in the table",
                        hint=f"its columns are {', '.join(self._columns[path])[:300]}",
                    )


def _aggregate(
    config: DatasetConfig, name: str, rows: Sequence[tuple[str, str, Vote]], tally: Tally
) -> dict[str, str]:
    """Return the label of each meme by Dawid–Skene or MACE, and count these labels instead."""
    votes = config.label[name].votes
    method = mace if votes is not None and votes.aggregate == "mace" else dawid_skene
    found = method([AnnotatedLabel(meme, vote.annotator, vote.values[0]) for _, meme, vote in rows])
    chosen = {meme_id: found.choose(meme_id) for meme_id in found.probabilities}
    for key in [key for key in tally.labels if key[0] == name]:
        del tally.labels[key]
    for meme_id, split in {meme_id: split for split, meme_id, _ in rows}.items():
        tally.labels[name, split, chosen[meme_id]] += 1
    return chosen


def probe_dataset_config(config: DatasetConfig, source: Source, rows: int = 20) -> None:
    """Read the first rows of each file; raise an error if they differ from the config.

    Some file must have the column of each label: unlabelled splits may lack it.
    """
    found = find_data_files(config, source.root)
    absent = {label.column for label in config.label.values() if label.column}
    absent |= {label.votes.column for label in config.label.values() if label.votes} - {""}
    absent |= {flag for label in config.label.values() for flag in label.flags}
    for index in range(len(found)):
        for count, (_, (_, row, _)) in enumerate(_walk(config, source, found[index:][:1]), 1):
            probed = _Row(config, *found[index], count, row)
            absent = {column for column in absent if probed.find_cell(column) is None}
            if count >= rows:
                break
    if absent:
        raise DataError(source.root, f"no file has the column {sorted(absent)[0]!r}")


_Walked = tuple[int, tuple[int, TableRow, ConfiguredMeme]]


def _walk(
    config: DatasetConfig, source: Source, found: Sequence[tuple[str, Path]]
) -> Iterator[_Walked]:
    """Yield the number of the file, and the number, the cells and the meme of each row."""
    finder, stems = ImageFinder(source), name_files(source.root, [path for _, path in found])
    for place, number, row in read_data_rows(config, source.root, found):
        split, path = found[place]
        yield place, (number, row, _Row(config, split, path, number, row, stems[path]).read(finder))


def _name_image(config: DatasetConfig, found: tuple[str, Path], number: int, row: TableRow) -> str:
    name = _Row(config, *found, number, row).take(config.columns.image)
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"


def open_labelled(dataset_config: DatasetConfig, setup: TaskSetup, name: str) -> ConfiguredRelease:
    """Open the data of a task; raise an error if its split has no label."""
    release = open_dataset_config(dataset_config, setup.need_source())
    splits = {split for label, split, _ in release.tally.labels if label == name}
    if not splits or setup.split not in (*splits, "all"):
        known = sorted(splits or release.tally.splits)
        raise UnknownName(f"labelled split of {setup.name}:", setup.split, known)
    return release


def show_meme(meme: ConfiguredMeme, setup: TaskSetup) -> tuple[tuple[Image, ...], dict[str, str]]:
    """Return the image of a meme, if there is one, and its text as the context of a question."""
    picture = setup.picture(meme.image, meme.id) if meme.image else None
    return (picture,) if picture else (), {"text": meme.text} if meme.text else {}


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a table, and where it is; ``stem`` names its file in the id of the row."""

    config: DatasetConfig
    split: str
    path: Path
    number: int
    row: TableRow
    stem: str = ""

    def read(self, finder: ImageFinder) -> ConfiguredMeme:
        columns, config = self.config.columns, self.config
        called = f"{self.stem or self.path.stem}-{self.number}"
        if columns.id:
            called = read_id(self.take(columns.id), self.path.name, self.number)
        text, picture = self.take(columns.text), self.take(columns.image)
        votes = {
            name: self.read_votes(label, label.votes)
            for name, label in config.label.items()
            if label.votes is not None
        }
        labels = {
            name: self.read_label(label)
            if label.votes is None or label.column or label.flags or label.roles
            else find_majority(votes[name], label.several, label.votes.at_least)
            for name, label in config.label.items()
        }
        entities = {
            name: tuple(entity for _, entity in self.read_roles(label))
            for name, label in config.label.items()
            if label.roles
        }
        embedded = self.find_embedded(columns.image)
        image = embedded or finder.find(picture, self.path.parent, self.split)
        return ConfiguredMeme(
            called,
            text,
            image,
            self.split,
            labels,
            bool(picture or embedded),
            {name: self.row.get(getattr(columns, name) or name, "") for name in ORIGINS},
            votes,
            {n: self.read_spans(c, text) for n, c in config.label.items() if c.start},
            {
                name: tuple(cut_cell(self.take(one.column)))
                for name, one in config.free_text.items()
            },
            entities,
            self.take(columns.language),
            self.take(columns.group),
        )

    def fail(self, problem: str, hint: str = "") -> DataError:
        return DataError(self.path.name, problem, row=self.number, hint=hint)

    def take(self, column: str) -> str:
        """Return a cell by its column, by ``a|b``, by ``a.b`` or by a pattern with ``{a}``."""
        if not column:
            return ""
        if column in self.row:
            return self.row[column]
        for name in column.split("|"):
            if (cell := self.fill(name)) is not None:
                return cell
        names = [name for name in self.row if not name.endswith(BYTES)]
        raise self.fail(f"has no column {column!r}", f"its columns are {', '.join(names)[:300]}")

    def find_cell(self, column: str) -> str | None:
        """Return the first of the columns ``a|b`` that the row has; None if it has none."""
        if column in self.row:
            return self.row[column]
        for name in column.split("|"):
            if (cell := self.look_up(name)) is not None:
                return cell
        return None

    def fill(self, name: str) -> str | None:
        """Return a cell, or a pattern with cells; None if the row lacks a column of it."""
        cells = {part: self.look_up(part) for part in _PLACEHOLDER.findall(name)}
        if not cells:
            return self.look_up(name)
        if None in cells.values():
            return None
        return _PLACEHOLDER.sub(lambda placeholder: cells[placeholder[1]] or "", name)

    def look_up(self, name: str) -> str | None:
        return look_up(self.row, name)

    def find_embedded(self, column: str) -> Path | None:
        """Return the place of an image inside the table itself."""
        for name in column.split("|") if column else ():
            if place := self.row.get(name + BYTES, ""):
                if not is_member(place):
                    raise self.fail(
                        f"column {name + BYTES!r} names no image inside the file",
                        "rename the column",
                    )
                return self.path / place
        return None

    def read_label(self, label: LabelConfig) -> tuple[str, ...]:
        """Return the labels of a row; empty if an unlabelled split has no label column."""
        if label.roles:
            return tuple(value for value, _ in self.read_roles(label))
        if label.flags:
            return tuple(name for name in label.flags if self.read_flag(name))
        cell = self.find_cell(label.column) or ""
        if label.key:
            found = [write_cell(dig(one, label.key)) for one in list_parts(parse_cell(cell))]
            values = list(dict.fromkeys(value for value in found if value))
        else:
            values = cut_cell(cell, label.separator)
        values = [value for value in values if value not in label.leave_out]
        if label.place is not None:
            values = values[label.place : label.place + 1]
        return self.rename(label, values, label.column)

    def read_flag(self, name: str) -> bool:
        """Return whether a flag is set; a value that is neither yes nor no is an error."""
        cell = self.row.get(name, "").strip().casefold()
        if cell not in _YES and cell not in _NO:
            known = ", ".join([*_YES, *filter(None, _NO)])
            raise self.fail(f"column {name!r}: {cell[:20]!r} is not a flag", f"known: {known}")
        return cell in _YES

    def read_roles(self, label: LabelConfig) -> Iterator[tuple[str, str]]:
        """Yield the value and the name of each entity of a row."""
        for value, column in label.roles.items():
            for entity in cut_cell(self.take(column)):
                yield value, entity

    def rename(self, label: LabelConfig, values: Sequence[str], column: str) -> tuple[str, ...]:
        for value in values:
            if label.values and value not in label.values:
                raise self.fail(
                    f"column {column!r}: unknown value {value!r}",
                    f"known: {', '.join(label.values)}",
                )
        return tuple(label.values.get(value, value) for value in values)

    def read_spans(self, label: LabelConfig, text: str) -> tuple[Span, ...]:
        """Return the labelled parts of the text; positions outside of the text are an error."""
        spans = []
        for one in list_parts(parse_cell(self.look_up(label.column) or "")):
            start, end = (dig(one, key) for key in (label.start, label.end))
            value = write_cell(dig(one, label.key))
            if not isinstance(start, int) or not isinstance(end, int):
                raise self.fail(f"column {label.column!r}: a span has no {label.start}")
            if not 0 <= start < end <= len(text):
                raise self.fail(
                    f"column {label.column!r}: span {start}–{end} is outside of the text"
                    f" ({len(text)} characters)"
                )
            spans.append(Span(start, end, value))
        return tuple(spans)

    def read_votes(self, label: LabelConfig, votes: VotesConfig) -> tuple[Vote, ...]:
        """Return the votes of a row; annotators without a vote are left out."""
        absent = {"", *votes.unanswered}
        made = [
            (name, self.rename(label, [v for v in values if v not in absent], where), own)
            for name, values, own, where in self.list_votes(votes)
        ]
        return tuple(Vote(values, name, own) for name, values, own in made if values)

    def list_votes(
        self, votes: VotesConfig
    ) -> Iterator[tuple[str, list[str], dict[str, str], str]]:
        if votes.prefix:
            for column, cell in self.row.items():
                if column.startswith(votes.prefix) and not column.endswith(BYTES):
                    yield column.removeprefix(votes.prefix), cut_cell(cell), {}, column
            return
        if votes.columns:
            for name, column in votes.columns.items():
                attributes = {votes.group: name} if votes.group else {}
                yield name, cut_cell(self.take(column)), attributes, column
            return
        whole = self.find_cell(votes.column)
        if whole is None:
            return  # an unlabelled split, which may still describe its annotators
        given = list_parts(parse_cell(whole)) if whole else []
        if votes.value:
            for one in given:
                own = {k: write_cell(dig(one, path)) for k, path in votes.attributes.items()}
                name = write_cell(dig(one, votes.annotators)) if votes.annotators else ""
                yield name, list_values(dig(one, votes.value)), own, votes.column
            return
        lists = {k: self.read_list(path, len(given)) for k, path in votes.attributes.items()}
        names = self.read_list(votes.annotators, len(given)) if votes.annotators else []
        for place, one in enumerate(given):
            own = {key: values[place] for key, values in lists.items() if values}
            name = names[place] if names else str(place + 1)
            yield name, list_values(one), own, votes.column

    def read_list(self, column: str, count: int) -> list[str]:
        """Return a list with one value per vote; empty if the file does not have the column."""
        cell = self.look_up(column)
        if not cell:
            return []
        values = [write_cell(value) for value in list_parts(parse_cell(cell))]
        if len(values) != count:
            raise self.fail(f"column {column!r} has {len(values)} values for {count} votes")
        return values
