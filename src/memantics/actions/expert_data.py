"""Labelled memes by name: ``NAME/LABEL`` of a benchmark, or a column of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from memantics.actions.detector_data import replace_captions
from memantics.core.data import DataKind, Skip, checksum, inside
from memantics.core.errors import InputError, UnknownName
from memantics.core.labelled import LabelledMeme
from memantics.core.result import Result, Table
from memantics.core.tables import TABLE_ENDINGS, Row, read_rows
from memantics.detector.examples import Loaded
from memantics.detector.expert import LabelledExamples, gather_examples
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
_GIVEN = ("id", "text", "group", "text_caption", "image_caption", "image", "file_name", "split")


@dataclass(frozen=True, slots=True)
class LabelledData:
    """Labelled memes with all that is said beside them. ``topic`` is what the label is about."""

    name: str
    topic: str
    data: LabelledExamples
    licence: str = "not said"
    checksum: str = ""
    skips: tuple[Skip, ...] = ()
    notes: tuple[str, ...] = ()
    sample: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """How many memes have each label."""
        counts = Counter(label for gold in self.data.gold for label in gold)
        return {name: counts[name] for name in self.data.labels.classes}

    @property
    def loaded(self) -> Loaded:
        """The same memes without their labels, as a model card describes them."""
        return Loaded(
            self.name,
            self.data.examples,
            self.skips,
            self.notes,
            self.licence,
            self.checksum,
            self.sample,
        )

    def describe(self) -> Iterator[str]:
        """How many memes have each label, and what was left out."""
        counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
        yield f"{self.name}: {len(self.data.examples):,} memes ({counts})"
        if self.sample:
            yield "note: the starter sample, not the release"
        yield from (f"note: {note}" for note in self.notes)


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
    data: DataKind | None = None,
    split: str = "all",
    classes: tuple[str, ...] | None = None,
    captions: Path | None = None,
) -> LabelledData:
    """Labelled memes by ``NAME/LABEL``; NAME is a benchmark, a table, or a folder with metadata.

    Without a registered release (or with ``data="starter"``) that is the benchmark's sample.
    ``classes`` are those of an expert that is to be judged on them. ``captions`` is a file whose
    captions take the place of those in the data, such as ``build captions`` writes.
    """
    loaded = _find(name, data, split, classes)
    if captions is None:
        return loaded
    examples, note = replace_captions(loaded.data.examples, captions, loaded.name)
    return replace(
        loaded,
        data=replace(loaded.data, examples=examples),
        notes=(*loaded.notes, note),
        checksum=f"{loaded.checksum}/{checksum([captions], captions.parent)}",
    )


def _find(
    name: str, data: DataKind | None, split: str, classes: tuple[str, ...] | None
) -> LabelledData:
    head, _, label = name.rpartition("/")
    place = Path(head)
    if head and (place.is_dir() or place.suffix.lower() in TABLE_ENDINGS):
        return _read_table(place, label, classes)
    if not head:
        offered = [info.name for info in list_labels() if info.name.startswith(f"{label}/")]
        hint = f"such as {', '.join(offered)}" if offered else "such as mer_bench/emotion"
        raise InputError(f"{name!r} names no label", hint=f"use NAME/LABEL, {hint}")
    return _read_benchmark(find_benchmark(head), label, data, split, classes)


def _read_benchmark(
    benchmark: Benchmark,
    label: str,
    data: DataKind | None,
    split: str,
    classes: tuple[str, ...] | None,
) -> LabelledData:
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
    made = _gather(memes, f"{name}/{label}", known[label].several, classes)
    return replace(
        made,
        name=f"{name}/{label}{part}",
        topic=known[label].topic or label,
        licence=facts.licence or "not said",
        checksum=f"{facts.checksum}/{label}/{split}",
        sample=facts.kind == "starter",
    )


def _gather(
    memes: Iterable[LabelledMeme], name: str, several: bool, classes: tuple[str, ...] | None
) -> LabelledData:
    found = gather_examples(memes, name, several=several, classes=classes)
    return LabelledData(name, "", found.data, skips=found.skips, notes=found.notes)


def _read_table(place: Path, label: str, classes: tuple[str, ...] | None) -> LabelledData:
    table = place
    if place.is_dir():
        table = next((place / text for text in METADATA if (place / text).is_file()), place)
    if not table.is_file():
        raise InputError(
            f"no table in {place}", hint=f"give one that ends in {', '.join(TABLE_ENDINGS)}"
        )
    rows = list(read_rows(table))
    columns = list(rows[0][1]) if rows else []
    for needed in ("text", label):
        if needed not in columns:
            raise UnknownName(f"column of {table.name}:", needed, columns)
    memes = [_make(number, row, label, table) for number, row in rows if row.get(label)]
    several = any(_has_several(row.get(label, "")) for _, row in rows)
    made = _gather(memes, f"{table.name}/{label}", several, classes)
    return replace(made, topic=label, checksum=f"{checksum([table], table.parent)}/{label}")


def _make(number: int, row: Row, label: str, table: Path) -> LabelledMeme:
    given = {name: row.get(name, "") for name in _GIVEN}
    named = given["image"] or given["file_name"]
    image = inside(table.parent, named) if named else None
    return LabelledMeme(
        id=given["id"] or Path(named).stem or str(number),
        text=given["text"],
        labels=_cut(row[label]),
        group=given["group"],
        text_caption=given["text_caption"],
        image_caption=given["image_caption"],
        image=image if image is not None and image.is_file() else None,
        split=given["split"],
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
