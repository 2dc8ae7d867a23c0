"""Every kind of source, with files as other tools write them."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from pathlib import Path

import pytest

from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.construction.collect.collect import collect
from memantics.core.errors import ImageError, InputError
from memantics.moderation.columns import TableColumns
from memantics.moderation.scale.records import Fetcher, Ref
from memantics.moderation.scale.sources import read_sources
from tests.places import ROOT

IMAGES = [SAMPLE_IMAGES / f"{name}.png" for name in ("en-001", "CN90001", "en-005")]
BODIES = [path.read_bytes() for path in IMAGES]


def bodies(refs: list[Ref]) -> list[bytes | None]:
    fetcher = Fetcher()
    return [fetcher.fetch(ref) for ref in refs]


def put_images(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for place, body in enumerate(BODIES):
        (folder / f"{place}.png").write_bytes(body)


def test_image_files(tmp_path: Path) -> None:
    refs = list(read_sources([str(path) for path in IMAGES]))
    assert [ref.id for ref in refs] == [path.name for path in IMAGES]
    assert bodies(refs) == BODIES


def test_a_folder_with_folders_in_it(tmp_path: Path) -> None:
    put_images(tmp_path / "a")
    put_images(tmp_path / "b" / "c")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "x.png").write_bytes(b"")
    (tmp_path / "notes.md").write_text("no meme")
    refs = list(read_sources([tmp_path]))
    assert [ref.id for ref in refs] == [f"{f}/{n}.png" for f in ("a", "b/c") for n in range(3)]
    assert bodies(refs) == BODIES * 2


def test_json_lines_with_paths_texts_and_faults(tmp_path: Path) -> None:
    put_images(tmp_path)
    lines = [
        json.dumps({"id": "a", "image": "0.png", "text": "hello"}),
        json.dumps({"id": 7, "text": "only a text"}),
        "{broken",
        json.dumps({"id": "d", "image": "../../etc/passwd"}),
        json.dumps({"id": "e"}),
        json.dumps(["no object"]),
        json.dumps({"id": "g", "text": "set aside", "kept": False}),
    ]
    (tmp_path / "list.jsonl").write_text("\n".join(lines), encoding="utf-8")
    refs = list(read_sources([tmp_path / "list.jsonl"]))
    assert [ref.id for ref in refs] == ["a", "7", "list.jsonl:3", "d", "e", "list.jsonl:6"]
    assert [bool(ref.fault) for ref in refs] == [False, False, True, True, True, True]
    assert (refs[0].text, refs[0].kind, refs[1].kind) == ("hello", "file", "text")
    assert bodies(refs[:2]) == [BODIES[0], None]


def test_standard_input(tmp_path: Path) -> None:
    stream = io.BytesIO(b'{"text": "one"}\n\n{"text": "two", "id": "x"}\n')
    refs = list(read_sources(["-"], stdin=stream))
    assert [(ref.id, ref.text) for ref in refs] == [("standard input:1", "one"), ("x", "two")]
    with pytest.raises(InputError, match="standard input is not available"):
        list(read_sources(["-"]))


def test_a_csv_with_columns_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([["nr", "words"], ["1", "a, b"], ["2", "第二"]])
    with pytest.raises(InputError, match="neither an image nor a text column"):
        list(read_sources([path]))
    with pytest.raises(InputError, match="no column 'word'"):
        list(read_sources([path], TableColumns(text="word")))
    refs = list(read_sources([path], TableColumns(id="nr", text="words")))
    assert [(ref.id, ref.text) for ref in refs] == [("1", "a, b"), ("2", "第二")]


def test_parquet_with_images_as_datasets_writes_it(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    held = [{"bytes": body, "path": None} for body in BODIES]
    table = datasets.Dataset.from_dict({"id": ["a", "b", "c"], "image": held, "text": ["x"] * 3})
    table = table.cast_column("image", datasets.Image())
    table.to_parquet(tmp_path / "memes.parquet", batch_size=2)
    refs = list(read_sources([tmp_path / "memes.parquet"]))
    assert [ref.id for ref in refs] == ["a", "b", "c"]
    assert bodies(refs) == BODIES
    assert bodies(refs[::-1]) == BODIES[::-1]


def test_parquet_of_texts_alone(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": ["a", None, "c"]}), tmp_path / "t.parquet")
    refs = list(read_sources([tmp_path / "t.parquet"]))
    assert [(ref.text, bool(ref.fault)) for ref in refs] == [
        ("a", False),
        (None, True),
        ("c", False),
    ]
    (tmp_path / "no.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="is not a valid Parquet file"):
        list(read_sources([tmp_path / "no.parquet"]))


def test_shards_as_webdataset_writes_them(tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    path = tmp_path / "shard-000000.tar"
    with webdataset.TarWriter(str(path)) as writer:
        for place, body in enumerate(BODIES):
            writer.write({"__key__": f"m{place}", "png": body, "txt": f"text {place}"})
        writer.write({"__key__": "only", "json": {"text": "from json"}})
        writer.write({"__key__": "odd", "cls": 3})
    refs = list(read_sources([path]))
    assert [ref.id for ref in refs] == ["m0", "m1", "m2", "only", "odd"]
    assert bodies(refs[:4]) == [*BODIES, None]
    assert [ref.text for ref in refs[:4]] == ["text 0", "text 1", "text 2", "from json"]
    assert "neither an image nor a text" in refs[4].fault


def test_a_text_at_which_an_archive_is_cut_off_is_not_judged(tmp_path: Path) -> None:
    path, text = tmp_path / "cut.tar", tmp_path / "b.txt"
    text.write_text("word " * 400, encoding="utf-8")
    with tarfile.open(path, "w") as archive:
        archive.add(IMAGES[0], "a.png")
        archive.add(text, "b.txt")
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"word ") - 100])
    image, said = read_sources([path])
    assert (image.id, image.fault) == ("a", "")
    assert said.id == "b"
    assert "is truncated" in said.fault


def test_what_follows_a_damaged_header_is_said_to_be_lost(tmp_path: Path) -> None:
    path = tmp_path / "damaged.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("a.png", "b.png"):
            archive.add(IMAGES[0], name)
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"b.png") + 150] ^= 1  # in its checksum
    path.write_bytes(whole)
    first, lost = read_sources([path])
    assert (first.id, first.fault) == ("a", "")
    assert (lost.id, "the rest is skipped" in lost.fault) == ("damaged.tar", True)


def test_a_cut_off_archive_fails_at_its_member(tmp_path: Path) -> None:
    path = tmp_path / "cut.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(IMAGES[0], "a.png")
    path.write_bytes(path.read_bytes()[:2000])
    (ref,) = read_sources([path])
    with pytest.raises(ImageError, match="the archive ends before it"):
        Fetcher().fetch(ref)


def test_an_image_folder_of_hugging_face_with_splits(tmp_path: Path) -> None:
    for split in ("train", "test"):
        put_images(tmp_path / split)
        lines = [{"file_name": f"{n}.png", "text": f"{split} {n}"} for n in range(3)]
        body = "\n".join(json.dumps(line) for line in lines)
        (tmp_path / split / "metadata.jsonl").write_text(body, encoding="utf-8")
    refs = list(read_sources([tmp_path]))
    assert [ref.text for ref in refs] == [f"{s} {n}" for s in ("test", "train") for n in range(3)]
    assert len({ref.id for ref in refs}) == 6
    assert bodies(refs) == BODIES * 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "no such file or folder"),
        ("a.tar.gz", "compressed archives"),
        ("a.docx", "is not a supported image"),
        ("empty", "has no image"),
    ],
)
def test_what_is_no_source_is_refused(tmp_path: Path, name: str, said: str) -> None:
    if name == "empty":
        (tmp_path / name).mkdir()
    elif "." in name:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=said):
        list(read_sources([tmp_path / name]))


def test_a_published_benchmark() -> None:
    folder = ROOT / "tests" / "compat" / "fixtures" / "published" / "compat_memes"
    refs = list(read_sources([folder]))
    assert refs
    assert not [ref.fault for ref in refs if ref.fault]
    assert all(bodies(refs))


def test_the_list_of_a_collection_leaves_out_what_was_set_aside(tmp_path: Path) -> None:
    put_images(tmp_path)
    (tmp_path / "blank.png").write_bytes(_draw_blank())
    done = collect(tmp_path)
    refs = list(read_sources([tmp_path]))
    assert 0 < len(refs) == done.counts["kept"] < 4
    assert "blank.png" not in {Path(ref.place).name for ref in refs}
    assert all(ref.text for ref in refs)


def _draw_blank() -> bytes:
    from PIL import Image

    body = io.BytesIO()
    Image.new("RGB", (300, 200), "white").save(body, "PNG")
    return body.getvalue()
