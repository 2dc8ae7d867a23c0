"""What stands in a published folder: the files of other tools, and what a kill leaves behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from memantics.benchmarks.card import read_card
from memantics.benchmarks.registry import find_benchmark
from memantics.benchmarks.writing import Made, PublishedMeme
from memantics.construction.publish.folder import describe_dataset, write_folder
from memantics.construction.publish.tables import Bundle, CardFacts, write_tables
from memantics.core.errors import InputError
from memantics.core.samples import image_path

FACTS = CardFacts("mine", "Mine", "Some memes.", "CC0-1.0", ("en", "zh"), "Rude.", version="2.1.0")
RECORDS: list[dict[str, JsonValue]] = [
    {"meme": "a", "n": 3, "share": 0.5, "kept": True, "tags": ["x"], "votes": {"p1": "yes"}},
    {"meme": "b", "n": 4, "share": 0.25, "kept": False, "tags": [], "votes": {"p1": "no"}},
]


def make_bundle(count: int = 2) -> Bundle:
    memes = tuple(
        PublishedMeme(name, image_path("en-001"), "words", "en")
        for name in ["a", "b", *(f"m{n}" for n in range(count - 2))]
    )
    return Bundle(FACTS, memes, {"labels": RECORDS})


def publish(folder: Path, facts: CardFacts = FACTS, *, broken: bool = False) -> None:
    bundle = replace(make_bundle(), facts=facts)
    made = Made("toxicn_mm", ("detection",), bundle.memes, {"x.json": b"{}"}, bundle.tables)

    def check(_: Path) -> None:
        if broken:
            raise InputError("cannot be read back")

    write_folder(folder, bundle, made, find_benchmark("toxicn_mm").card, check)


def version_of(folder: Path) -> str:
    return read_card(folder / "card.toml").revision


def test_what_a_kill_took_away_comes_back(tmp_path: Path) -> None:
    """Killed between the two renames, only the former folder is there."""
    folder, former = tmp_path / "mine", tmp_path / ".mine.former"
    publish(folder)
    folder.rename(former)
    with pytest.raises(InputError, match="cannot be read back"):
        publish(folder, replace(FACTS, version="3.0.0"), broken=True)
    assert version_of(folder) == "2.1.0"
    assert not list(tmp_path.glob(".mine*"))


def test_a_former_folder_never_replaces_one_that_stands(tmp_path: Path) -> None:
    """Killed after both renames, the former folder is rubbish."""
    folder, former = tmp_path / "mine", tmp_path / ".mine.former"
    publish(folder)
    folder.rename(former)
    publish(folder, replace(FACTS, version="3.0.0"))
    folder.rename(tmp_path / "aside")
    publish(folder)
    folder.rename(former)
    (tmp_path / "aside").rename(folder)
    with pytest.raises(InputError, match="cannot be read back"):
        publish(folder, replace(FACTS, version="4.0.0"), broken=True)
    assert version_of(folder) == "3.0.0"
    publish(folder, replace(FACTS, version="5.0.0"))
    assert version_of(folder) == "5.0.0"
    assert not former.exists()


def test_croissant_describes_every_flat_column_and_no_nested_one(tmp_path: Path) -> None:
    files = write_tables(make_bundle(), tmp_path / "parquet")
    told: Any = describe_dataset(FACTS, files, tmp_path, "2026-01-02")
    (_, labels) = told["recordSet"]
    fields = {own["name"]: own for own in labels["field"]}
    assert {name: own["dataType"] for name, own in fields.items()} == {
        "labels/meme": "sc:Text",
        "labels/n": "sc:Integer",
        "labels/share": "sc:Float",
        "labels/kept": "sc:Boolean",
        "labels/tags": "sc:Text",
    }
    assert [name for name, own in fields.items() if own.get("repeated")] == ["labels/tags"]
    (memes, _) = told["recordSet"]
    shown = {own["name"]: own["source"] for own in memes["field"]}
    assert shown["memes/image"]["transform"] == {"jsonPath": "bytes"}
    assert "transform" not in shown["memes/text"]
    assert told["inLanguage"] == ["en", "zh"]
    assert told["citeAs"] == "Mine, version 2.1.0"
    assert told["description"] == "Some memes. Rude."
    assert (told["datePublished"], told["version"]) == ("2026-01-02", "2.1.0")
    sizes = {file.name: file.path.stat().st_size for file in files}
    parts = told["distribution"]
    assert [(own["contentUrl"], own["contentSize"]) for own in parts] == [
        (f"parquet/{name}.parquet", f"{size} B") for name, size in sizes.items()
    ]


def test_the_hub_is_told_which_column_holds_pictures(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write_tables(make_bundle(), tmp_path)
    schema = pq.read_schema(tmp_path / "memes.parquet")
    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert features.pop("image") == {"_type": "Image"}
    assert features == {
        name: {"dtype": "string", "_type": "Value"}
        for name in ("id", "text", "language", "template_cluster")
    }
    names = ["id", "image", "text", "language", "template_cluster", "labels"]
    assert [field.name for field in schema] == names


@pytest.mark.parametrize("count", [255, 256, 257])
def test_memes_on_both_sides_of_a_row_group_are_all_written(tmp_path: Path, count: int) -> None:
    import pyarrow.parquet as pq

    (memes, _) = write_tables(make_bundle(count), tmp_path)
    file = pq.ParquetFile(memes.path)
    assert (memes.rows, file.metadata.num_rows) == (count, count)
    assert file.num_row_groups == (1 if count <= 256 else 2)
