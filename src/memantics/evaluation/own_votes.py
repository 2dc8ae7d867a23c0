"""Long tables of a data set without a dataset config: every row is the vote of one annotator.

The column of annotators is named, or has a usual name in a table whose ids repeat. Columns that are
equal in all rows of an annotator, and differ within memes, are attributes of annotators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from memantics.benchmarks.dataset_files import read_data_file
from memantics.benchmarks.dataset_rows import ORIGINS, NumberedRow, VoteRows, join_votes
from memantics.core.errors import InputError, UnknownName
from memantics.core.members import BYTES
from memantics.core.seen import SeenKeys
from memantics.core.tables import TableRow
from memantics.evaluation.own_columns import IDS, LabelledColumns, OwnLabel
from memantics.evaluation.own_files import FoundSet

_PEOPLE = ("annotator", "worker", "rater", "coder")
_ANNOTATORS = {f"{one}{end}" for one in _PEOPLE for end in ("", "id")} | {
    *("标注者", "标注员", "标注人", "标注者编号", "标注员编号"),
}
_ITEMS = (
    *("itemid", "memeid", "imageid", "hitid", "task", "taskid", "textid", "sampleid", "postid"),
    *("图片编号", "样本编号", "表情包编号"),
)
# Names of attributes; other columns are attributes only if annotators share their values.
_USUAL = re.compile(
    r"gender|sex|age|race|ethnicity|education|country|nationality|religion|politics|occupation"
    r"|性别|年龄|学历|地区|职业|民族|国籍"
)
_MOST_GROUPS = 50
_MOST_ANNOTATORS = 100_000


@dataclass(frozen=True, slots=True)
class LongTable:
    """The columns of a table whose rows are votes: the meme, the annotator, and all others."""

    item: str
    annotator: str
    others: tuple[str, ...]

    def plan(self, known: LabelledColumns, labels: Sequence[OwnLabel]) -> VoteRows:
        """Return how the rows are joined; the cells of all other columns become lists."""
        fixed = [name for name in (known.id, known.text, known.image, known.split) if name]
        return VoteRows(
            self.item, self.annotator, {one.column: "" for one in labels}, self.others, fixed
        )


def find_long_table(
    found: FoundSet, row: TableRow, known: LabelledColumns, given: str
) -> LongTable | None:
    """Return the columns of a long table; None if every row is a meme.

    ``given`` is the id column that the user named.
    """
    named = [name for name in row if not name.endswith(BYTES)]
    if known.annotator and known.annotator not in row:
        file = next(iter(found.files.values()))[0]
        raise UnknownName(f"column of {file.name}:", known.annotator, named)
    labels = (*known.labels, *known.votes)
    usual = [name for name in named if _plain(name) in _ANNOTATORS and name not in labels]
    annotator = known.annotator or (usual[0] if len(usual) == 1 else "")
    if not annotator or row[annotator].startswith("["):
        return None
    ids = [name for name in IDS if name not in ("name", "key")]
    items = [name for key in _ITEMS for name in named if _plain(name) == key]
    candidates = [*ids, *items, "name", "key", known.image, known.text]
    if given:
        candidates = [given]
    candidates = [
        name
        for name in dict.fromkeys(candidates)
        if name in named and name not in (annotator, *labels)
    ]
    item = _find_repeated(found, candidates, known.encoding)
    if not item and known.annotator:
        item = next(iter(candidates), "")
        if not item:
            raise InputError(
                "no column names the meme of each vote", hint="name it with --id COLUMN"
            )
    if not item:
        return None
    taken = {item, annotator, *labels, known.text, known.image, known.split}
    return LongTable(item, annotator, tuple(name for name in named if name not in taken))


def _plain(name: str) -> str:
    """Return a column name without capitals, spaces, hyphens and underscores.

    >>> _plain("Worker ID"), _plain("WorkerId"), _plain("annotator_id")
    ('workerid', 'workerid', 'annotatorid')
    """
    return re.sub(r"[\s_-]+", "", name).lower()


def _find_repeated(found: FoundSet, candidates: Sequence[str], encoding: str) -> str:
    """Return the first of these columns that has a value twice in one split; '' if none has."""
    repeated: set[str] = set()
    with SeenKeys() as seen:
        for split, paths in found.files.items():
            for path in paths:
                for _, row in read_data_file(found.root, path, found.form, encoding):
                    for name in candidates:
                        value = row.get(name, "").strip()
                        if name in repeated or not value:
                            continue
                        if seen.add(f"{split}\0{name}\0{value}") is not None:
                            repeated.add(name)
                            if name == candidates[0]:
                                return name
    return next((name for name in candidates if name in repeated), "")


def read_joined(
    found: FoundSet, known: LabelledColumns, labels: Sequence[OwnLabel], long: LongTable
) -> Iterator[tuple[str, TableRow]]:
    """Yield the split of the file and the joined row of each meme."""
    splits = list(found.files)
    named = bool([split for split in splits if split])

    def read() -> Iterator[tuple[str, int, Path, int, TableRow]]:
        for place, (split, paths) in enumerate(found.files.items()):
            for path in paths:
                for number, row in read_data_file(found.root, path, found.form, known.encoding):
                    yield split, place, path, number, row

    plan = long.plan(replace(known, split="") if named else known, labels)
    rows: Iterator[NumberedRow] = join_votes(plan, read())
    for place, _, row in rows:
        yield splits[place], row


@dataclass(slots=True)
class VoteFacts:
    """What one pass over the joined rows tells about annotators and the other columns."""

    long: LongTable
    labels: Sequence[OwnLabel]
    memes: int = 0
    votes: int = 0
    annotators: set[str] = field(default_factory=set)
    differing: set[str] = field(default_factory=set)
    _groups: dict[str, dict[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self._groups = {name: {} for name in self.long.others if name not in ORIGINS}

    def add(self, row: TableRow) -> None:
        """Look at the votes of one meme."""
        people = orjson.loads(row[self.long.annotator])
        self.memes += 1
        self.votes += len(people)
        if len(self.annotators) < _MOST_ANNOTATORS:
            self.annotators.update(people)
        else:
            self._groups.clear()  # no attribute of so many annotators is looked for
        for name in (*self.long.others, *(label.column for label in self.labels)):
            cells = [str(cell) for cell in orjson.loads(row.get(name, "[]"))]
            if len(set(cells)) > 1:
                self.differing.add(name)
            groups = self._groups.get(name)
            if groups is None:
                continue
            for annotator, cell in zip(people, cells, strict=True):
                if cell and groups.setdefault(annotator, cell) != cell:
                    del self._groups[name]  # the column differs within an annotator
                    break

    @property
    def attributes(self) -> dict[str, str]:
        """The columns with attributes of annotators, by the name of the attribute."""
        found = {}
        for name, groups in self._groups.items():
            values = set(groups.values())
            shared = len(values) < len(groups) or _USUAL.search(name.lower())
            if name in self.differing and 1 < len(values) <= _MOST_GROUPS and shared:
                rest = re.sub(
                    rf"^({'|'.join(_PEOPLE)})s?[_\s-]+|[_\s-]+({'|'.join(_PEOPLE)})s?$",
                    "",
                    name,
                    flags=re.IGNORECASE,
                )
                found[rest] = name
        return found

    def describe(self, named: Sequence[str]) -> list[OwnLabel]:
        """Return the labels with their votes.

        A column that never differs within a meme is a label, such as that of an expert, if another
        column differs and it is not among those ``named`` as votes.
        """
        votes: dict[str, object] = {
            "rows": self.long.item,
            "annotators": self.long.annotator,
            "attributes": self.attributes,
        }
        voted = [
            label
            for label in self.labels
            if label.column in self.differing or label.column in named
        ]
        return [
            replace(label, votes={"column": label.column, **votes})
            if label in (voted or self.labels)
            else label
            for label in self.labels
        ]

    def tell(self, labels: Sequence[OwnLabel]) -> Iterator[str]:
        """Describe in lines how the table was read."""
        yield (
            f"one vote per row: {self.votes:,} votes of {len(self.annotators):,} annotators"
            f" ({self.long.annotator}) on {self.memes:,} memes ({self.long.item})"
        )
        if attributes := self.attributes:
            yield f"attributes of annotators: {', '.join(attributes)}"
        for label in labels:
            if not label.votes:
                yield f"{label.column} is equal in all rows of a meme: a label, not votes"
        left = [n for n in self.long.others if n in self.differing - {*attributes.values()}]
        if left:
            yield f"not read, since they differ between the votes on a meme: {', '.join(left)}"
