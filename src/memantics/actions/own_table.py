"""``data add FILE``: a table of one's own, without a recipe to write by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from memantics.actions.options import complete_tasks
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.journal import replace_file
from memantics.core.language import read_script
from memantics.core.result import Result
from memantics.core.tables import TABLE_ENDINGS, Row, read_rows
from memantics.registry.benchmarks import find_own_recipes

_IDS, _SPLITS = ("id", "ID", "item", "name"), ("split", "set", "partition")
_MOST_VALUES = 26
_SHARE = 0.05
_LATIN = "Latin letters"


@dataclass(frozen=True, slots=True)
class LabelledColumns:
    """Which columns of a table are what; empty names are found out where that is possible."""

    labels: Sequence[str] = ()
    image: str = ""
    text: str = ""
    id: str = ""
    split: str = ""


@dataclass(frozen=True, slots=True)
class OwnTable(Result):
    """What was understood of a table, and the recipe that was written for it."""

    name: str
    recipe: Path
    rows: int
    splits: dict[str, int]
    languages: dict[str, int]
    duplicates: int
    labels: dict[str, dict[str, int]]

    def lines(self) -> Iterator[str]:
        """What was understood, as a person reads it."""
        yield f"{self.rows:,} rows; recipe: {self.recipe}"
        yield "splits: " + ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
        if self.languages:
            told = (f"{name} {n:,}" for name, n in self.languages.items())
            yield "languages of the texts: " + ", ".join(told)
        if self.duplicates:
            yield f"{self.duplicates:,} rows repeat a text or an image of another row"
        for label, counts in self.labels.items():
            whole = sum(counts.values())
            shares = (f"{value} {100 * n / whole:.1f} %" for value, n in counts.items())
            yield f"{label}: " + ", ".join(shares)


def is_table(word: str) -> bool:
    """Whether the first word of ``data add`` is a table, not the name of a benchmark."""
    return Path(word).suffix.lower() in TABLE_ENDINGS and Path(word).is_file()


def write_recipe(file: Path, columns: LabelledColumns) -> OwnTable:
    """Find out what a table holds, and write its recipe; the name is that of the file."""
    rows = [row for _, row in read_rows(file)]
    if not rows:
        raise DataError(file.name, "holds no rows", hint="give a table with a row for each meme")
    known = _find_columns(file, rows[0], columns)
    name = re.sub(r"[^a-z0-9_]+", "_", file.stem.lower()).strip("_") or "table"
    if any(task == name for task in complete_tasks(name)):
        raise InputError(f"a benchmark is called {name} already", hint="rename the file")
    labels = {label: _count_values(file, rows, label) for label in known.labels}
    splits = (
        Counter(row.get(known.split, "") for row in rows) if known.split else {"test": len(rows)}
    )
    if "" in splits:
        hint = "fill it, or name another one: --split-column NAME"
        raise DataError(file.name, f"{splits['']} rows have no {known.split}", hint=hint)
    scripts = Counter(_tell_script(row[known.text]) for row in rows) if known.text else Counter()
    told = scripts.most_common()
    recipe = find_own_recipes() / f"{name}.toml"
    body = _dump_recipe(file, known, list(splits), _pick_languages(scripts), labels)
    replace_file(recipe, body.encode(), "recipe")
    return OwnTable(
        name, recipe, len(rows), dict(splits), dict(told), _count_duplicates(rows, known), labels
    )


def _find_columns(file: Path, row: Row, wanted: LabelledColumns) -> LabelledColumns:
    """The columns that were named, and those that can be told by their names."""
    for named in (*wanted.labels, wanted.image, wanted.text, wanted.id, wanted.split):
        if named and named not in row:
            raise UnknownName(f"column of {file.name}:", named, row)
    if not wanted.labels:
        hint = f"name its column: --label NAME, among {', '.join(list(row)[:12])}"
        raise InputError(f"{file.name}: which label shall be predicted?", hint=hint)
    if not (wanted.text or wanted.image):
        hint = "name a column: --text NAME or --image NAME"
        raise InputError(f"{file.name}: neither texts nor images are named", hint=hint)
    found = wanted.id or next((name for name in _IDS if name in row), "") or wanted.image
    if not found:
        raise InputError(
            f"{file.name}: no column says which row is which", hint="name it: --id NAME"
        )
    split = wanted.split or next((name for name in _SPLITS if name in row), "")
    return LabelledColumns(wanted.labels, wanted.image, wanted.text, found, split)


def _count_values(file: Path, rows: Sequence[Row], label: str) -> dict[str, int]:
    counts = Counter(row.get(label, "") for row in rows)
    del counts[""]
    if not 2 <= len(counts) <= _MOST_VALUES:
        raise DataError(
            file.name,
            f"column {label!r} holds {len(counts)} different values",
            hint=f"a label has 2 to {_MOST_VALUES}: name another column",
        )
    return dict(counts.most_common())


def _count_duplicates(rows: Sequence[Row], known: LabelledColumns) -> int:
    """Rows whose text, or whose image, came before."""
    seen: set[tuple[str, str]] = set()
    count = 0
    for row in rows:
        keys = {(name, row[name].strip()) for name in (known.text, known.image) if name}
        keys = {key for key in keys if key[1]}
        count += bool(keys & seen)
        seen |= keys
    return count


def _tell_script(text: str) -> str:
    """The language that the script tells; Latin letters may be English, and are taken for it."""
    return read_script(text) or (_LATIN if any(map(str.isalpha, text)) else "no letters")


def _pick_languages(scripts: Counter[str]) -> list[str]:
    whole = sum(scripts.values())
    names = {"en": _LATIN, "zh": "zh"}
    return [key for key, name in names.items() if scripts[name] > _SHARE * whole] or ["en"]


def _dump_recipe(
    file: Path,
    known: LabelledColumns,
    splits: Sequence[str],
    languages: Sequence[str],
    labels: dict[str, dict[str, int]],
) -> str:
    """The recipe as TOML; a JSON text is a TOML text."""

    def text(value: object) -> str:
        return orjson.dumps(value).decode()

    names = {"id": known.id, "text": known.text, "image": known.image, "split": known.split}
    told = ", ".join(f"{name} = {text(value)}" for name, value in names.items() if value)
    lines = [
        "# Written by 'memantics data add'; change it as docs/use-your-data.md says.",
        f"title = {text(file.stem)}",
        f"summary = {text(f'The table {file.name}.')}",
        f"languages = {text(list(languages))}",
        'source = "a table of your own"',
        'licence = "unknown"',
        'citation = "none"',
        *(f"files.{text(split)} = [{text(file.name)}]" for split in splits),
        f"columns = {{ {told} }}",
    ]
    for label in labels:
        key = re.sub(r"[^A-Za-z0-9_]+", "_", label).strip("_").lower() or "label"
        lines += ["", f"[label.{text(key)}]", f"what = {text(label)}", f"column = {text(label)}"]
    return "\n".join(lines) + "\n"
