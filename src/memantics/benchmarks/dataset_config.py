"""Dataset configs: a data set of labelled memes, described in a few lines of TOML.

A dataset config names the files of each split, the columns for id, text and image, and the labels:
a column with a value, columns that are flags, or the votes of annotators. It defines the reader
(``dataset_reader.py``), the summary of ``data add``, the labels that classifiers learn, and the
tasks (``dataset_tasks.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from memantics.benchmarks.card import CardLanguage
from memantics.core.data import read_toml
from memantics.core.records import Closed


class Columns(Closed):
    """The columns of a table; ``split`` is set if a table contains several splits.

    ``a|b`` means the first of these columns that a file has, ``a.b`` a field of a JSON record, and
    ``folder/{a}.jpg`` inserts the value of a cell (``{}``: that of the column without a name).
    Without ``id``, a row is named by its file and row number. Rows with the same ``group`` are
    items about one meme; intervals count them as one cluster. The columns for disjoint splits
    (``source``, ``author``, ``date``, ``template_cluster``) have these names by default.
    """

    id: str = ""
    text: str = ""
    image: str = ""
    split: str = ""
    language: str = ""
    group: str = ""
    source: str = ""
    author: str = ""
    date: str = ""
    template_cluster: str = ""


class VotesConfig(Closed):
    """Where the votes of the annotators are.

    ``column`` is a list with one vote per annotator, in one of two forms. Either the lists
    ``annotators`` and those in ``attributes`` are columns of equal length, or the votes are
    records: then ``value``, ``annotators`` and ``attributes`` name fields of a record. In a wide
    table, ``columns`` gives the column of each annotator, and ``group`` the attribute that these
    names are; or all columns that begin with ``prefix`` are votes. In a long table, every row is
    the vote of one annotator: ``rows`` is the column that names the meme, ``column`` has the vote,
    and ``annotators`` and ``attributes`` are columns with one value per row.

    ``unanswered`` are values that mean "no vote". ``aggregate`` makes the label of a meme from its
    votes; ``at_least`` is the number of votes that a label needs.
    """

    column: str = ""
    value: str = ""
    annotators: str = ""
    attributes: dict[str, str] = Field(default_factory=dict)
    columns: dict[str, str] = Field(default_factory=dict)
    group: str = ""
    prefix: str = ""
    rows: str = ""
    unanswered: tuple[str, ...] = ()
    aggregate: Literal["majority", "dawid_skene", "mace"] = "majority"
    at_least: int = 0

    @model_validator(mode="after")
    def _check_place(self) -> VotesConfig:
        if sum(map(bool, (self.column, self.columns, self.prefix))) != 1:
            raise ValueError("votes: give exactly one of the keys column, columns and prefix")
        if self.rows and (self.value or not self.column or not self.annotators):
            raise ValueError(
                "votes: the key rows needs the keys column and annotators, and excludes value"
            )
        return self


class LabelConfig(Closed):
    """A label definition: a column, columns that are flags, or the votes of annotators.

    ``place`` is one position of a list in the column, ``separator`` cuts a text into labels, and
    ``key`` is the field of the label in a list of records; ``start`` and ``end`` are the positions
    of its text. ``values`` renames and restricts the label values; ``leave_out`` are values that
    mean "no label". ``hierarchy`` is a tree of labels, for scores that use it. ``roles`` maps each
    value to a column with a list of entities that have it: every entity is one item. With
    ``every_option``, all ``values`` are offered as options, also those that no meme has.
    """

    what: str
    question: str = ""
    column: str = ""
    place: int | None = None
    flags: tuple[str, ...] = ()
    separator: str = ""
    key: str = ""
    start: str = ""
    end: str = ""
    values: dict[str, str] = Field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    several: bool = False
    every_option: bool = False
    topic: str = ""
    votes: VotesConfig | None = None
    hierarchy: dict[str, JsonValue] = Field(default_factory=dict)
    roles: dict[str, str] = Field(default_factory=dict)


class TextConfig(Closed):
    """A free-text answer: ``column`` contains one reference text, or a list of them."""

    what: str
    question: str
    column: str


class DatasetConfig(Closed):
    """A data set; ``counts`` are the numbers of memes per split in the complete release.

    ``split_values`` renames values of the split column: ``Dev`` may be the split ``validation``.
    With the format ``class folders``, ``files`` are folders of images, whose names are labels.
    ``tree``: the config describes each folder of a tree of data sets, not one folder.
    """

    title: str
    summary: str
    languages: tuple[CardLanguage, ...]
    source: str
    licence: str
    citation: str
    warning: str = ""
    canary: str = ""
    files: dict[str, tuple[str, ...]]
    format: Literal["", "jsonl", "json", "csv", "tsv", "class folders"] = ""
    encoding: str = ""
    columns: Columns
    split_values: dict[str, str] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)
    tree: bool = False
    label: dict[str, LabelConfig] = Field(default_factory=dict)
    free_text: dict[str, TextConfig] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_labels(self) -> DatasetConfig:
        if not self.label and not self.free_text:
            raise ValueError("label: give at least one label or free_text")
        long = {(v.rows, v.annotators) for v in self.list_votes() if v.rows}
        if len(long) > 1:
            raise ValueError(
                "label: all votes of one table must have the same values of rows and annotators"
            )
        return self

    def list_votes(self) -> list[VotesConfig]:
        """Return where the votes of each label are, for labels that have votes."""
        return [label.votes for label in self.label.values() if label.votes is not None]

    def name_split(self, value: str) -> str:
        """Return the split that a value of the split column names."""
        return self.split_values.get(value, value)


def read_dataset_config(path: Path) -> DatasetConfig:
    """Read and validate a dataset config; an error names the invalid key."""
    return read_toml(
        path,
        DatasetConfig,
        "the dataset config is not UTF-8 TOML",
        "see docs/how-to/use-your-data.md",
    )
