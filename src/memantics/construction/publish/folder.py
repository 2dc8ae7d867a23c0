"""Write the published folder: benchmark card, data, tables, Croissant and README."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from pydantic import JsonValue

from memantics.benchmarks.card import Card, CardLanguage, OptionCard, SampleCard, TaskCard
from memantics.benchmarks.writing import Made
from memantics.construction.publish.datacard import describe_rai, write_card
from memantics.construction.publish.tables import (
    Bundle,
    CardFacts,
    CardSection,
    TableFile,
    copy_images,
    write_metadata,
    write_tables,
)
from memantics.core.data import dump_json, read_json
from memantics.core.errors import InputError
from memantics.core.files import in_turn, refuse_unwritable

# Croissant: a JSON-LD description of the files, read by search engines and loaders.

_TYPES = {
    "text": "sc:Text",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "image": "sc:ImageObject",
}
CONTEXT = Path(__file__).with_name("croissant_context.json")


def describe_dataset(
    facts: CardFacts,
    files: Sequence[TableFile],
    root: Path,
    published: str,
    sections: Sequence[CardSection] = (),
) -> dict[str, JsonValue]:
    """Return the Croissant description of a data set; ``published`` is an ISO date.

    It has the vocabulary for responsible AI (RAI): what ``sections`` of the data card say about
    drafting and review, and the fields that the publisher wrote.
    """
    given: dict[str, JsonValue] = {
        name: [*value] if isinstance(value, list) else value for name, value in facts.rai.items()
    }
    rai = describe_rai(sections) | given
    return {
        "@context": read_json(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.1",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": facts.name,
        "description": f"{facts.summary} {facts.warning}".strip(),
        "license": facts.licence,
        "url": f"https://example.org/{facts.name}",
        "version": facts.version,
        "datePublished": published,
        "inLanguage": list(facts.languages),
        "citeAs": facts.citation or f"{facts.title}, version {facts.version}",
        **{f"rai:{name}": value for name, value in rai.items()},
        "distribution": [_file(file, root) for file in files],
        "recordSet": [_records(file) for file in files],
    }


def _file(file: TableFile, root: Path) -> JsonValue:
    return {
        "@type": "cr:FileObject",
        "@id": f"{file.name}-file",
        "name": f"{file.name}-file",
        "contentUrl": file.path.relative_to(root).as_posix(),
        "contentSize": f"{file.size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": file.sha256,
    }


def _records(file: TableFile) -> JsonValue:
    return {
        "@type": "cr:RecordSet",
        "@id": file.name,
        "name": file.name,
        # Croissant readers support flat columns only; nested ones are in the Parquet files.
        "field": [_field(file, *column) for column in file.columns if column[1] != "struct"],
    }


def _field(file: TableFile, name: str, kind: str) -> JsonValue:
    extract: dict[str, JsonValue] = {"column": name}
    source: dict[str, JsonValue] = {"fileObject": {"@id": f"{file.name}-file"}, "extract": extract}
    if kind == "image":
        source["transform"] = {"jsonPath": "bytes"}
    field: dict[str, JsonValue] = {
        "@type": "cr:Field",
        "@id": f"{file.name}/{name}",
        "name": f"{file.name}/{name}",
        "dataType": _TYPES.get(kind, "sc:Text"),
        "source": source,
    }
    if kind == "list":
        field["repeated"] = True
    return field


CARD, README, CROISSANT = "card.toml", "README.md", "croissant.json"
DATA, PARQUET = "data", "parquet"
_OURS = frozenset({CARD, README, CROISSANT, DATA, PARQUET})


def write_folder(
    folder: Path,
    bundle: Bundle,
    made: Made,
    base: Card,
    check: Callable[[Path], None] = lambda _: None,
) -> tuple[TableFile, ...]:
    """Write all files to a temporary folder, ``check`` them, then replace the target folder.

    A folder with other files than an earlier publication is not changed.
    """
    bundle.facts.check()
    _refuse_others(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    former = folder.with_name(f".{folder.name}.former")
    with refuse_unwritable(folder, "choose another folder with --out"), in_turn(folder.parent):
        if former.exists() and not folder.exists():
            former.rename(folder)  # a process was killed between the two renames below
        shutil.rmtree(partial, ignore_errors=True)
        try:
            (partial / DATA).mkdir(parents=True)
            files = _fill(partial, bundle, made, base)
            check(partial)
            _exchange(folder, partial, former)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return files


def _exchange(folder: Path, new: Path, former: Path) -> None:
    """Replace a folder; delete the old one only when the new one is in place."""
    shutil.rmtree(former, ignore_errors=True)
    if folder.exists():
        folder.rename(former)
    try:
        new.rename(folder)
    except OSError:
        if former.exists():
            former.rename(folder)
        raise
    shutil.rmtree(former, ignore_errors=True)


def _refuse_others(folder: Path) -> None:
    """Raise if the folder contains files that publishing would delete."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file", hint="choose another folder with --out")
    there = {path.name for path in folder.iterdir()}
    others = sorted(there - _OURS)
    if others or (there and CROISSANT not in there):
        named = f", such as {others[0]}" if others else ""
        raise InputError(
            f"{folder} contains other files{named}",
            hint="move them, or choose another folder with --out",
        )


def _fill(root: Path, bundle: Bundle, made: Made, base: Card) -> tuple[TableFile, ...]:
    data = root / DATA
    for name, content in made.files.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if bundle.images:
        copy_images(bundle.memes, data / "images")
    write_metadata(bundle, data)
    files = tuple(write_tables(bundle, root / PARQUET))
    when = datetime.now(UTC).date().isoformat()
    croissant = describe_dataset(bundle.facts, files, root, when, bundle.sections)
    (root / CROISSANT).write_text(dump_json(croissant), encoding="utf-8")
    (root / README).write_text(write_card(bundle, files), encoding="utf-8")
    card = make_card(bundle.facts, made, base)
    (root / CARD).write_text("\n".join(dump_card(card)) + "\n", encoding="utf-8")
    return files


def rewrite_readme(folder: Path, bundle: Bundle, files: tuple[TableFile, ...]) -> None:
    """Rewrite the README with the audit, which needs the published benchmark folder."""
    (folder / README).write_text(write_card(bundle, files), encoding="utf-8")


def make_card(facts: CardFacts, made: Made, base: Card) -> Card:
    """Return the card of a benchmark in another benchmark's format; list the supported tasks."""
    tasks = tuple(
        task.model_copy(update={"splits": _splits(task, made), "option": _options(task, made)})
        for task in base.task
        if task.name in made.tasks
    )
    languages = tuple(name for name in get_args(CardLanguage) if name in facts.languages)
    return Card(
        name=facts.name,
        format=base.name,
        title=facts.title,
        summary=facts.summary,
        languages=languages,
        warning=facts.warning,
        citation=facts.citation or f"{facts.title}, version {facts.version}",
        revision=facts.version,
        canary=facts.canary,
        sample=SampleCard(licence=facts.licence, images="own"),
        task=tasks,
    )


def _splits(task: TaskCard, made: Made) -> tuple[str, ...]:
    return made.splits or tuple(split for split in task.splits if split == "all") or task.splits


def _options(task: TaskCard, made: Made) -> tuple[OptionCard, ...]:
    return tuple(
        card.model_copy(update={"default": made.defaults.get(card.name, card.default)})
        for card in task.option
    )


def dump_card(card: Card) -> Iterator[str]:
    """Yield a benchmark card as TOML lines.

    JSON strings are valid TOML, except for one control character.
    """
    head = ("name", "format", "title", "summary", "languages", "warning", "citation", "revision")
    for name in head:
        yield f"{name} = {_value(getattr(card, name))}"
    yield "\n[sample]"
    yield f"licence = {_value(card.sample.licence)}"
    yield f"images = {_value(card.sample.images)}"
    for task in card.task:
        yield "\n[[task]]"
        yield from _keys(task, skip={"option"})
        for option in task.option:
            yield "\n[[task.option]]"
            yield from _keys(option, skip=set())


def _keys(part: TaskCard | OptionCard, skip: set[str]) -> Iterator[str]:
    for name, value in part.model_dump().items():
        # A flag that is not set is omitted, since older versions do not know it.
        if name not in skip and not (name == "later" and value is False):
            yield f"{name} = {_value(value)}"


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
