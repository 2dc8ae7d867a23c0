"""Labelled memes as detectors read them, their readers, and splits for cross-validation.

Meme ids are used only to order the blocks of blocked cross-validation.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from memantics.core.data import Skip, SplitFile, checksum_rows, conform, inside, read_jsonl
from memantics.core.errors import DataError, InputError
from memantics.core.files import open_regular_text
from memantics.core.ids import escape_id, read_id
from memantics.core.labels import LabelledMeme
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.separated import detect_form
from memantics.moderation.columns import USUAL, ExampleColumns, describe_columns

Type = Literal["none", "targeted", "offence", "sexual", "dispirited"]
Modality = Literal["fusion", "text", "image", "both"]
# The order is that of the tables in the ToxiCN MM paper; in the official files, the id of sexual
# comes before that of offence.
TYPES: tuple[Type, ...] = get_args(Type)
TYPE_IDS: tuple[Type, ...] = ("none", "targeted", "sexual", "offence", "dispirited")
MODALITIES: tuple[Modality, ...] = get_args(Modality)
LABELS = ("harmless", "harmful")
_DIGITS = re.compile(r"(\d+)")
FoldScheme = Literal["blocks", "random"]
Folds = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Example:
    """One meme.

    ``text`` is the caption printed on it, ``printed`` all text of the image if it has more.
    ``text_caption`` describes the meaning of the text, ``image_caption`` the image. ``ocr`` is the
    OCR result, if any. ``label`` is 1 for harmful, 0 for harmless, None if unlabelled. ``modality``
    is where the harm is (text, image or both), ``target`` the attacked group. ``proportion`` is the
    proportion of annotators who call the meme harmful: detectors train on it instead of the label.
    ``id`` and the file name are only for display and splits, never features.
    """

    id: str
    text: str
    text_caption: str = ""
    image_caption: str = ""
    image: Path | None = None
    label: int | None = None
    type: Type | None = None
    modality: Modality | None = None
    ocr: str = ""
    target: str | None = None
    printed: str = ""
    proportion: float | None = None

    @property
    def empty(self) -> bool:
        """Whether the meme has no text and no captions."""
        return not (self.text + self.text_caption + self.image_caption + self.ocr).strip()


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The classes of a label; with ``several`` it is multi-label. The name is empty for harm."""

    name: str
    classes: tuple[str, ...]
    several: bool = False


HARM = LabelSet("", LABELS)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Examples from one source. ``skips`` are skipped rows, ``notes`` remarks on the data.

    ``licence`` is that of the data, ``checksum`` identifies files and split. ``sample`` marks the
    sample data (demonstration only). ``gold`` has labels other than harm, one or several per
    example. ``groups`` are never split between training and test. ``topic`` is the topic of the
    labels. ``memes`` are the source rows, for labels other than harm. ``source`` is the name or
    path that was given. ``columns`` maps each property, such as text or label, to the table column
    that holds it.
    """

    name: str
    examples: tuple[Example, ...]
    skips: tuple[Skip, ...] = ()
    notes: tuple[str, ...] = ()
    licence: str = "not stated"
    checksum: str = ""
    sample: bool = False
    labels: LabelSet = HARM
    gold: tuple[tuple[str, ...], ...] = ()
    groups: tuple[str, ...] = ()
    topic: str = ""
    memes: tuple[LabelledMeme, ...] = ()
    source: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """The non-empty texts of the memes."""
        return [example.text for example in self.examples if example.text.strip()]

    def list_languages(self) -> list[str]:
        """List the languages of the texts."""
        return list_languages(self.texts)

    @property
    def counts(self) -> dict[str, int]:
        """Number of memes per label."""
        if not self.labels.name:
            said = Counter(example.label for example in self.examples)
            return {name: said[place] for place, name in enumerate(LABELS)}
        held = Counter(label for gold in self.gold for label in gold)
        return {name: held[name] for name in self.labels.classes}

    def put_in_order(self) -> Loaded:
        """Put the examples into canonical order, so that no result depends on the order of rows."""
        return self.take(order_examples(self.examples, self.gold, self.groups))

    def take(self, places: Sequence[int]) -> Loaded:
        """Select examples by position, with their labels and groups."""
        return replace(
            self,
            examples=tuple(self.examples[place] for place in places),
            gold=tuple(self.gold[place] for place in places) if self.gold else (),
            groups=tuple(self.groups[place] for place in places) if self.groups else (),
            memes=tuple(self.memes[place] for place in places) if self.memes else (),
        )

    def keep_part(self, split: SplitFile, part: str) -> Loaded:
        """Select the examples of one part of a split file."""
        ids = frozenset(split.list_ids(part))
        places = [place for place, example in enumerate(self.examples) if example.id in ids]
        if not places:
            raise InputError(
                f"the split file of {split.data} contains no meme of {self.name}",
                hint="use a split file that was made from these data",
            )
        kept = self.take(places)
        name, pinned = f"{self.name}, {part} of {split.by}", f"{self.checksum}/{split.checksum}"
        return replace(kept, name=name, checksum=f"{pinned}/{part}")

    def describe(self) -> Iterator[str]:
        """Describe the data in lines: number of memes per label, notes and skipped rows."""
        shown = f"{self.name}: {len(self.examples):,} memes"
        if self.labels.name:
            counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
            yield f"{shown} ({counts})"
        else:
            yield f"{shown}, {self.counts['harmful']:,} harmful"
        if self.labels.name and self.sample:
            yield "note: these are sample data, not the release"
        yield from (f"note: {note}" for note in self.notes)
        if not self.labels.name:  # for labels other than harm, the notes already count skipped rows
            yield from self.describe_skips()

    def describe_skips(self) -> Iterator[str]:
        """Describe the first skipped rows, and the total."""
        for skip in self.skips[:5]:
            yield f"skipped: {skip.file}: row {skip.row}: {skip.reason}"
        if len(self.skips) > 5:
            yield f"skipped: {len(self.skips):,} in total"


def list_languages(texts: Sequence[str]) -> list[str]:
    """List the languages of at least 10 % of the texts, estimated from up to 500 texts."""
    some = texts[:: max(1, len(texts) // 500)]
    counts = Counter(guess_language(text).language for text in some)
    return sorted(
        name for name, n in counts.items() if name != UNKNOWN and n >= 0.1 * counts.total()
    )


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts ``9`` before ``10``; numbered ids follow the collection order.

    >>> sorted(["10", "9", "a2", "a10"], key=natural_key)
    ['9', '10', 'a2', 'a10']
    """
    return tuple(_rank(part) for part in _DIGITS.split(name) if part)


def _rank(part: str) -> tuple[int, int, str]:
    if not part.isdecimal():
        return 1, 0, part
    # Compared as text by length: int() rejects more than 4,300 digits.
    digits = part.lstrip("0")
    return 0, len(digits), digits


def need_labels(examples: Iterable[Example], where: str) -> None:
    """Raise InputError if an example has no label.

    >>> need_labels([Example("1", "hi")], "memes.csv")
    Traceback (most recent call last):
    memantics.core.errors.InputError: memes.csv: example 1 has no label; add a label column
    """
    for example in examples:
        if example.label is None:
            raise InputError(
                f"{where}: example {example.id} has no label", hint="add a label column"
            )


def keep_typed(loaded: Loaded) -> Loaded:
    """Keep the examples with a known type; skip and list the others.

    One meme of ToxiCN MM 2.0 is harmful without a type.
    """
    if all(e.type in (None, "none") for e in loaded.examples):
        raise InputError(
            f"{loaded.name}: no harmful meme has a type",
            hint="add a type column, or use --target harmful",
        )
    kept = tuple(e for e in loaded.examples if e.type is not None)
    skips = (Skip(loaded.name, e.id, "no type") for e in loaded.examples if e.type is None)
    return replace(loaded, examples=kept, skips=(*loaded.skips, *skips))


def need_two_classes(labels: Sequence[int], where: str) -> None:
    """Raise InputError if all labels are equal.

    >>> need_two_classes([1, 1], "fold 2")
    Traceback (most recent call last):
    memantics.core.errors.InputError: fold 2 has only one class; give harmful and harmless memes
    """
    if len(set(labels)) < 2:
        raise InputError(f"{where} has only one class", hint="give harmful and harmless memes")


# Reading examples from CSV, JSON Lines, or a folder of images with metadata.

METADATA = ("metadata.jsonl", "metadata.csv")
COLUMNS = (
    "id", "text", "text_caption", "image_caption", "image", "label", "type", "modality", "target",
)  # fmt: skip
_LONGEST = 20_000
_LABELS = {  # spaces and hyphens count as underscores
    **dict.fromkeys(("0", "0.0", "false", "no", "harmless", "not_harmful", "non_harmful"), 0),
    **dict.fromkeys(("not_hateful", "non_hateful", "not_toxic", "non_toxic", "benign", "无害"), 0),
    **dict.fromkeys(("1", "1.0", "true", "yes", "harmful", "hateful", "toxic", "offensive"), 1),
    "有害": 1,
}


def find_columns(header: Sequence[str], columns: ExampleColumns, table: str) -> dict[str, str]:
    """Map properties (id, text, label, image) to table columns.

    >>> header = ["post_id", "caption", "image", "label", "created_at"]
    >>> find_columns(header, ExampleColumns(), "memes.csv")
    {'id': 'post_id', 'image': 'image', 'text': 'caption', 'label': 'label'}
    """
    if missing := columns.find_missing(header):
        raise DataError(
            table, f"has no column {missing!r}", hint=f"its columns: {', '.join(header)}"
        )
    known = columns.find(header)
    for name in COLUMNS:
        if name not in USUAL and name in header and name not in known.values():
            known[name] = name
    if not known.keys() & {"text", "text_caption", "image_caption", "image"}:
        raise DataError(
            table,
            f"has no column with texts or images, only {', '.join(header) or 'none'}",
            hint="name one with --text-column or --image-column",
        )
    return known


class _ExampleRow(BaseModel):
    """A row of a table, with its columns mapped to these names."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str | int | None = None
    text: str = Field("", max_length=_LONGEST)
    text_caption: str = Field("", max_length=_LONGEST)
    image_caption: str = Field("", max_length=_LONGEST)
    image: str = ""
    label: str | int | bool | None = None
    type: str | int | None = None
    modality: str | None = None
    target: str | None = None


def read_examples(path: Path, columns: ExampleColumns | None = None) -> Loaded:
    """Read a ``.csv``, a ``.jsonl`` or a folder with ``metadata.csv`` or ``metadata.jsonl``.

    Usual column names are recognised; others are ignored and listed in the notes. A row without
    text and image is skipped and listed. Raises DataError with the row number for an invalid row.
    """
    table = _find_table(path)
    listed = list(_read_csv(table) if table.suffix.lower() == ".csv" else read_jsonl(table))
    columns = columns or ExampleColumns()
    header = dict.fromkeys(name for _, row in listed if isinstance(row, dict) for name in row)
    if table.suffix.lower() != ".csv":
        header = dict.fromkeys(sorted(header))  # the first row of JSON lines may lack columns
    # A column without any value is not guessed, but it may be named.
    header |= dict.fromkeys(_list_named(table, columns))
    known = find_columns(list(header), columns, table.name) if header else {}
    rows = ((number, _map_row(row, known)) for number, row in listed)
    examples: dict[str, Example] = {}
    skips: list[Skip] = []
    lost = 0
    for number, value in rows:
        row = conform(_ExampleRow, value, table.name, number)
        example = _make(row, table, number)
        if example.id in examples:
            raise DataError(table.name, f"id {example.id!r} is not unique", row=number)
        named = row.image
        if example.image is None and named:
            lost += 1
        if example.empty and example.image is None:
            reason = "no text, and its image is missing" if named else "no text and no image"
            skips.append(Skip(table.name, str(number), reason))
            continue
        examples[example.id] = example
    if not examples:
        raise DataError(table.name, "has no examples", hint=f"columns: {', '.join(COLUMNS)}")
    notes = describe_columns(known, list(header))
    notes += (f"{lost:,} image files are missing: only the texts are used",) if lost else ()
    return Loaded(
        columns=known,
        name=path.name,
        examples=tuple(examples.values()),
        skips=tuple(skips),
        notes=notes,
        checksum=checksum_rows(row for _, row in listed),
    )


def _list_named(table: Path, columns: ExampleColumns) -> list[str]:
    """List the named columns that the header of a CSV table has."""
    named = {columns.id, columns.text, columns.label, columns.image}
    if table.suffix.lower() != ".csv" or named == {""}:
        return []
    with open_regular_text(table, "utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_find_delimiter(table))
        return [name for name in next(reader, ()) if name in named]


def _find_delimiter(path: Path) -> str:
    """Return the delimiter of a table; a comma if the file is not UTF-8 (reported later)."""
    try:
        return detect_form(path, encoding="utf-8-sig").delimiter
    except DataError:
        return ","


def _map_row(row: JsonValue, known: Mapping[str, str]) -> JsonValue:
    if not isinstance(row, dict):
        return row
    return {role: row[name] for role, name in known.items() if name in row}


def _find_table(path: Path) -> Path:
    if path.is_dir():
        for name in METADATA:
            if (path / name).is_file():
                return path / name
        raise DataError(path, f"has neither {' nor '.join(METADATA)}", hint="add one of them")
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise DataError(path, "is neither a .csv, a .jsonl nor a folder of images")
    if not path.is_file():
        raise DataError(path, "no such file", hint="check the path")
    return path


def _read_csv(path: Path) -> Iterator[tuple[int, JsonValue]]:
    try:
        with open_regular_text(path, "utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter=_find_delimiter(path), strict=True)
            for number, row in enumerate(reader, 2):
                if None in row or None in row.values():
                    problem = f"the number of cells differs from the {len(reader.fieldnames or ())}"
                    raise DataError(path.name, f"{problem} columns", row=number)
                # An empty cell is treated like a missing JSON field.
                cells: dict[str, JsonValue] = {name: cell for name, cell in row.items() if cell}
                yield number, cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(path.name, f"cannot be read as CSV in UTF-8: {error}") from error


def _make(row: _ExampleRow, table: Path, number: int) -> Example:
    named = row.image
    image = inside(table.parent, named) if named else None
    label = _read_label(row.label, table, number)
    kind = _read_type(row.type, table, number)
    if kind is not None and label is None:
        label = int(kind != "none")
    if kind is not None and label != int(kind != "none"):
        raise DataError(table.name, f"label {label} contradicts type {kind}", row=number)
    if label == 0 and kind is None:
        kind = "none"
    return Example(
        id=read_id(row.id, table.name, number)
        if row.id is not None
        else escape_id(_name(named) or str(number)),
        text=row.text,
        text_caption=row.text_caption,
        image_caption=row.image_caption,
        image=image if image is not None and image.is_file() else None,
        label=label,
        type=kind,
        modality=_read_modality(row.modality, table, number),
        target=(row.target or "").strip() or None,
    )


def _name(image: str) -> str:
    """Make an id of an image name, including its folder, since file names may repeat.

    >>> _name("a/7.png"), _name("7.png"), _name("")
    ('a/7', '7', '')
    """
    path = PurePosixPath(image)
    return (path.parent / path.stem).as_posix() if image else ""


def _read_label(value: str | int | bool | None, table: Path, number: int) -> int | None:
    if value is None or value == "":
        return None
    said = str(int(value) if isinstance(value, bool) else value).strip().lower()
    found = _LABELS.get(re.sub(r"[\s-]+", "_", said))
    if found is None:
        problem = f"unknown label {value!r}"
        raise DataError(table.name, problem, row=number, hint=f"known: {', '.join(_LABELS)}")
    return found


def _read_type(value: str | int | None, table: Path, number: int) -> Type | None:
    if value is None or value == "":
        return None
    word = str(value).strip().lower()
    for place, known in enumerate(TYPE_IDS):
        if word in (known, str(place)):
            return known
    hint = f"known: {', '.join(TYPES)}, or the ids 0 to {len(TYPE_IDS) - 1} of ToxiCN MM"
    raise DataError(table.name, f"unknown type {value!r}", row=number, hint=hint)


def _read_modality(value: str | None, table: Path, number: int) -> Modality | None:
    if not value:
        return None
    for known in MODALITIES:
        if value.strip().lower() == known:
            return known
    hint = f"known: {', '.join(MODALITIES)}"
    raise DataError(table.name, f"unknown modality {value!r}", row=number, hint=hint)


def order_examples(
    examples: Sequence[Example],
    gold: Sequence[tuple[str, ...]] = (),
    groups: Sequence[str] = (),
) -> list[int]:
    """Return the positions of the examples in canonical order: by content and labels, then by id.

    Ids come last, because rows of a table without ids are numbered in the order of the table.

    >>> order_examples([Example("1", "b"), Example("2", "a"), Example("3", "b", label=1)])
    [1, 0, 2]
    """

    def key(place: int) -> tuple[object, ...]:
        one = examples[place]
        image = one.image.parts[::-1] if one.image is not None else ()
        named = (one.type or "", one.modality or "", one.target or "")
        texts = (one.text, one.text_caption, one.image_caption, one.ocr, one.printed)
        label = -1 if one.label is None else one.label
        labels = (gold[place] if gold else (), groups[place] if groups else "")
        proportion = -1.0 if one.proportion is None else one.proportion
        return (*texts, label, proportion, *named, *labels, image, natural_key(one.id))

    return sorted(range(len(examples)), key=key)


def split_random(strata: Sequence[str], count: int, seed: int = 0) -> Folds:
    """Assign stratified random folds.

    >>> folds = split_random(["a"] * 4 + ["b"] * 4, 2)
    >>> sorted(folds[:4].tolist()), sorted(folds[4:].tolist())
    ([0, 0, 1, 1], [0, 0, 1, 1])
    """
    _check(len(strata), count)
    rng = np.random.default_rng(seed)
    folds = np.zeros(len(strata), np.int64)
    known = np.array(strata)
    start = 0
    for stratum in sorted(set(strata)):
        places = np.flatnonzero(known == stratum)
        rng.shuffle(places)
        # The next stratum continues at the next fold, so that folds have equal sizes.
        folds[places] = (np.arange(len(places)) + start) % count
        start += len(places)
    return folds


def split_blocks(ids: Sequence[str], count: int) -> Folds:
    """Assign folds as contiguous blocks of the sorted ids.

    >>> split_blocks(["10", "9", "1", "2"], 2).tolist()
    [1, 1, 0, 0]
    """
    _check(len(ids), count)
    order = sorted(range(len(ids)), key=lambda place: natural_key(ids[place]))
    folds = np.zeros(len(ids), np.int64)
    for number, places in enumerate(np.array_split(np.array(order), count)):
        folds[places] = number
    return folds


def split_examples(
    examples: Sequence[Example], split: FoldScheme, count: int, seed: int = 0
) -> Folds:
    """Assign folds to labelled examples; random folds are stratified by type."""
    if split == "blocks":
        return split_blocks([example.id for example in examples], count)
    return split_random([f"{e.label}/{e.type}" for e in examples], count, seed)


def _check(size: int, count: int) -> None:
    if not 2 <= count <= size:
        raise InputError(
            f"{size} examples are too few for {count} folds",
            hint="give more examples, or use fewer folds",
        )
