"""Flagged memes as tar shards and image folders, read by the libraries that these are for."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.core.errors import InputError
from memantics.moderation.scale.records import Fetcher
from memantics.moderation.scale.sources import read_sources
from memantics.moderation.screen import FlaggedMeme, Screened, save_flagged, screen, write_samples
from memantics.moderation.screening import ScreenSettings, read_rows
from tests.scale.inline import InlineEngine

BODIES = {name: (SAMPLE_IMAGES / f"{name}.png").read_bytes() for name in ("en-001", "CN90001")}
TEXTS = {"en-001": "well, this is awkward", "CN90001": "最近有点键忘"}


def write_source(folder: Path) -> Path:
    """Two images with texts, one of them twice, a text alone, a missing image, an empty text."""
    rows: list[dict[str, Any]] = []
    for name, body in BODIES.items():
        (folder / f"{name}.png").write_bytes(body)
        rows.append({"id": f"{name}.x/y", "image": f"{name}.png", "text": TEXTS[name]})
    rows.insert(1, rows[0])
    rows.insert(2, {"id": "gone", "image": "gone.png"})
    rows += [{"id": "text", "text": "今天又要加班了，好累"}, {"id": "empty", "text": " "}]
    path = folder / "list.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def run(source: Path, out: Path, **given: Any) -> Screened:
    settings = ScreenSettings(threshold=given.pop("threshold", 0.0), readings="none", explain=True)
    return screen(source, settings, out=out, engine=InlineEngine(), shard_size=2, **given)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files left open
def test_webdataset_reads_the_shards_of_flagged_memes(tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    done = run(write_source(tmp_path), tmp_path / "out", save="webdataset")
    assert (done.saved, done.repeated) == (3, 1)
    (shard,) = (tmp_path / "out" / "flagged").iterdir()
    read = list(webdataset.WebDataset(str(shard), shardshuffle=False).decode())
    assert [own["json"]["id"] for own in read] == ["en-001.x/y", "CN90001.x/y", "text"]
    assert [own["txt"] for own in read[:2]] == list(TEXTS.values())
    assert {own["json"]["label"] for own in read} == {"harmful"}
    raw = list(webdataset.WebDataset(str(shard), shardshuffle=False))
    assert [own.get("png") for own in raw] == [*BODIES.values(), None]
    again = list(read_sources([tmp_path / "out" / "flagged"]))
    assert [(ref.id, ref.text) for ref in again] == [
        (own["json"]["id"], own["txt"]) for own in read
    ]
    assert [Fetcher().fetch(ref) for ref in again] == [*BODIES.values(), None]


def test_datasets_reads_the_folder_of_flagged_memes(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    done = run(write_source(tmp_path), tmp_path / "out", save="imagefolder")
    assert done.saved == 2  # a text alone has no place among images
    place = tmp_path / "out" / "flagged"
    read = datasets.load_dataset(
        "imagefolder", data_dir=str(place), cache_dir=str(tmp_path / "cache"), split="train"
    )
    assert read["id"][:] == ["en-001.x/y", "CN90001.x/y"]
    sizes = [Image.open(io.BytesIO(body)).size for body in BODIES.values()]
    assert [image.size for image in read["image"]] == sizes
    assert all(chance > 0 for chance in read["probability"])
    again = list(read_sources([place]))
    assert [ref.id for ref in again] == ["en-001.x/y", "CN90001.x/y"]
    assert [Fetcher().fetch(ref) for ref in again] == list(BODIES.values())


def test_only_flagged_memes_are_saved_and_what_was_saved_before_is_replaced(tmp_path: Path) -> None:
    source = write_source(tmp_path)
    whole = run(source, tmp_path / "out", save="webdataset")
    assert whole.saved == 3
    scored = (row["probability"] for row in read_rows(whole.folder))
    chances = sorted(chance for chance in scored if chance is not None)
    one = run(source, tmp_path / "high", threshold=chances[-1], save="webdataset")
    assert one.saved == Counter(row["label"] for row in read_rows(one.folder))["harmful"] == 1
    assert run(source, tmp_path / "out", save="imagefolder").saved == 2
    assert not list((tmp_path / "out" / "flagged").glob("*.tar"))
    assert run(source, tmp_path / "none", threshold=1.0, save="webdataset").saved == 0
    (tmp_path / "en-001.png").unlink()
    assert save_flagged(tmp_path / "out", read_sources([source]), "webdataset") == 2
    with pytest.raises(InputError, match="cannot read standard input again"):
        screen("-", out=tmp_path / "x", save="webdataset", stdin=io.BytesIO())


@pytest.mark.parametrize(("count", "files"), [(0, 0), (1000, 1), (1001, 2)])
def test_a_shard_holds_a_thousand(tmp_path: Path, count: int, files: int) -> None:
    samples = (FlaggedMeme({"id": str(n), "text": f"text {n}"}) for n in range(count))
    assert write_samples(tmp_path / "out", samples, "webdataset") == count
    assert len(list((tmp_path / "out").iterdir())) == files
    if count:
        assert [ref.id for ref in read_sources([tmp_path / "out"])] == [
            str(n) for n in range(count)
        ]
