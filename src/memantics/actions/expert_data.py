"""Labelled memes by name: ``NAME/LABEL`` of a benchmark, or a column of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

import orjson

from memantics.actions.detector_data import put_captions
from memantics.core.data import DataKind, checksum, inside
from memantics.core.errors import InputError, UnknownName
from memantics.core.labelled import LabelledMeme
from memantics.core.result import Result, Table
from memantics.core.splits import cut_split
from memantics.core.tables import TABLE_ENDINGS, Row, read_rows
from memantics.detector.examples import Example, Loaded
from memantics.detector.labels import gather_examples
from memantics.detector.sources import METADATA
from memantics.registry import (
    Benchmark,
    describe_data,
    find_benchmark,
    find_benchmarks,
    find_recipes,
    find_source,
)

_APART = "|"  # between the labels of a cell, where several hold
_GIVEN = (
    "text", "group", "text_caption", "image_caption", "split", "source", "author", "date", "family",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabelInfo(Result):
    """A kind of label that can be learnt, and whether a release of it is registered."""

    name: str
    what: str
    topic: str
    several: bool


def list_labels() -> list[LabelInfo]:
    """Every ``NAME/LABEL`` that benchmarks offer."""
    return [
        LabelInfo(f"{name}/{label}", source.what, source.topic, source.several)
        for name, benchmark in (find_benchmarks() | find_recipes()).items()
        if benchmark.runnable
        for label, source in benchmark.plugin.labels.items()
    ]


def tabulate_labels(known: Iterable[LabelInfo]) -> Table:
    """The labels as a table."""
    return Table(("name", "what", "topic"), tuple((o.name, o.what, o.topic) for o in known))


def find_labelled(
    name: str,
    *,
    data: str | None = None,
    split: str = "all",
    classes: tuple[str, ...] | None = None,
    captions: Path | None = None,
) -> Loaded:
    """Labelled memes by ``NAME/LABEL``; NAME is a benchmark, a table, or a folder with metadata.

    Without a registered release (or with ``data="starter"``) that is the benchmark's sample; other
    ``data`` than ``starter`` and ``release`` are a table whose column LABEL is read. ``classes``
    are those of an expert that is to be judged on them. ``captions`` is a file whose captions take
    the place of those in the data, such as ``build captions`` writes. ``split`` is a part of
    the release, or FILE:PART of a split that ``audit --resplit`` wrote.
    """
    head, _, label = name.rpartition("/")
    cut, split = cut_split(split)
    if data is not None and data not in get_args(DataKind):
        head, data = data, None
    place = Path(head)
    if head and (place.is_dir() or place.suffix.lower() in TABLE_ENDINGS):
        loaded = _read_table(place, label, classes)
    elif not head:
        offered = [info.name for info in list_labels() if info.name.startswith(f"{label}/")]
        hint = f"such as {', '.join(offered)}" if offered else "such as mer_bench/emotion"
        raise InputError(f"{name!r} names no label", hint=f"use NAME/LABEL, {hint}")
    else:
        kind = cast("DataKind | None", data)
        loaded = _read_benchmark(find_benchmark(head), label, kind, split, classes)
    loaded = loaded if captions is None else put_captions(loaded, captions)
    return loaded if cut is None else loaded.keep_part(*cut)


def read_memes(data: str) -> Loaded:
    """Memes of a table or a folder with metadata, whatever else its columns say."""
    table = _find_table(Path(data))
    memes = [_make(number, row, "", table) for number, row in read_rows(table)]
    return Loaded(
        table.name,
        tuple(
            Example(meme.id, meme.text, meme.text_caption, meme.image_caption, meme.image)
            for meme in memes
        ),
    )


def _read_benchmark(
    benchmark: Benchmark,
    label: str,
    data: DataKind | None,
    split: str,
    classes: tuple[str, ...] | None,
) -> Loaded:
    name = benchmark.card.name
    known = benchmark.plugin.labels
    if label not in known:
        raise UnknownName(f"label of {name}:", label, known)
    source = find_source(benchmark, data)
    memes = list(known[label].read(benchmark.open(source)))
    splits = {meme.split for meme in memes}
    if split != "all":
        memes = [meme for meme in memes if meme.split == split]
        if not memes:
            raise UnknownName(f"split of {name}/{label}:", split, sorted({"all", *splits} - {""}))
    facts = describe_data(benchmark, source)
    part = "" if split == "all" else f", split {split}"
    made = gather_examples(memes, f"{name}/{label}", several=known[label].several, classes=classes)
    return replace(
        made,
        name=f"{name}/{label}{part}",
        topic=known[label].topic or label,
        licence=facts.licence or "not said",
        checksum=f"{facts.checksum}/{label}/{split}",
        sample=facts.kind == "starter",
    )


def _find_table(place: Path) -> Path:
    table = place
    if place.is_dir():
        table = next((place / text for text in METADATA if (place / text).is_file()), place)
    if not table.is_file():
        raise InputError(
            f"no table in {place}", hint=f"give one that ends in {', '.join(TABLE_ENDINGS)}"
        )
    return table


def _read_table(place: Path, label: str, classes: tuple[str, ...] | None) -> Loaded:
    table = _find_table(place)
    rows = list(read_rows(table))
    columns = list(rows[0][1]) if rows else []
    for needed in ("text", label):
        if needed not in columns:
            raise UnknownName(f"column of {table.name}:", needed, columns)
    memes = [_make(number, row, label, table) for number, row in rows if row.get(label)]
    several = any(_has_several(row.get(label, "")) for _, row in rows)
    made = gather_examples(memes, f"{table.name}/{label}", several=several, classes=classes)
    return replace(made, topic=label, checksum=f"{checksum([table], table.parent)}/{label}")


def _make(number: int, row: Row, label: str, table: Path) -> LabelledMeme:
    named = row.get("image") or row.get("file_name") or ""
    image = inside(table.parent, named) if named else None
    return LabelledMeme(
        id=row.get("id") or Path(named).stem or str(number),
        labels=_cut(row[label]) if label else (),
        image=image if image is not None and image.is_file() else None,
        **{name: row.get(name, "") for name in _GIVEN},
    )


def _has_several(cell: str) -> bool:
    return _APART in cell or cell.startswith("[")


def _cut(cell: str) -> tuple[str, ...]:
    """The labels of a cell; a list in a JSON table is written as JSON.

    >>> _cut("angry"), _cut("race|sex"), _cut('["race", "sex"]'), _cut("[]")
    (('angry',), ('race', 'sex'), ('race', 'sex'), ())
    """
    if cell.startswith("["):
        try:
            return tuple(str(value) for value in orjson.loads(cell))
        except orjson.JSONDecodeError:
            return (cell,)
    return tuple(part.strip() for part in cell.split(_APART) if part.strip())
