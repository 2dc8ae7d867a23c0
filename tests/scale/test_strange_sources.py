"""Sources as they come from elsewhere: odd names, encodings, compressions, types and damage."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from memantics.core.errors import ImageError, InputError
from memantics.moderation.columns import TableColumns
from memantics.moderation.scale.driver import ScaleSettings, run_shards
from memantics.moderation.scale.records import Fetcher
from memantics.moderation.scale.sources import read_sources
from memantics.moderation.scale.tables import LONGEST_LINE
from tests.scale.inline import InlineEngine
from tests.scale.test_sources import BODIES, bodies, put_images
from tests.scale.work import Measure


def run(sources: Any, out: Path) -> dict[str, Any]:
    run_shards(read_sources(sources), Measure(), ScaleSettings(out, {}), InlineEngine())
    import pyarrow.parquet as pq

    return {row["id"]: row for row in pq.read_table(out / "parts").to_pylist()}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def write_parquet(path: Path, **columns: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def write_tar(path: Path, **members: bytes) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, body in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return path


def test_names_of_files_need_not_be_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / "memes"
    put_images(folder)
    for name in (b"bad\xff.png", b"bad\xfe.png"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(BODIES[0])
    Path(os.fsdecode(os.fsencode(folder) + b"/gone\xff.png")).symlink_to("nowhere")
    rows = run([folder], tmp_path / "out")
    assert rows["bad\\udcff.png"]["n"] == rows["bad\\udcfe.png"]["n"] == len(BODIES[0])
    assert "no such file" in rows["gone\\udcff.png"]["reason"]
    assert len(rows) == 6


def test_names_that_come_again_are_told_apart_and_ids_are_not(tmp_path: Path) -> None:
    for place, day in enumerate(("day1", "day2")):
        (tmp_path / day).mkdir()
        (tmp_path / day / "a.png").write_bytes(BODIES[place])
        write(tmp_path / day / "t.jsonl", {"text": day}, {"id": "own", "text": day})
        write_parquet(tmp_path / day / "p.parquet", text=[day])
        write_tar(tmp_path / day / "s.tar", **{"0.png": BODIES[place]})
    names = ("", "a.png", "t.jsonl", "p.parquet")
    given = [tmp_path / day / name for name in names for day in ("day1", "day2")]
    rows = run(given, tmp_path / "out")
    second = f"{tmp_path.as_posix()}/day2"
    told = {"a.png", "t.jsonl:1", "p.parquet:0", "0", "own"}
    told |= {f"{second}/{name}" for name in ("a.png", "t.jsonl:1", "p.parquet:0", "s.tar/0")}
    assert set(rows) == told
    assert rows[f"{second}/s.tar/0"]["n"] == rows[f"{second}/a.png"]["n"] == len(BODIES[1])
    assert {own for own, row in rows.items() if row["status"] == "failed"} == {"own"}


def test_a_row_without_an_id_has_that_of_its_image(tmp_path: Path) -> None:
    put_images(tmp_path)
    lines = [{"file_name": "0.png", "text": "a"}, {"file_name": "0.png", "text": "b"}]
    path = write(tmp_path / "metadata.jsonl", *lines)
    assert set(run([tmp_path], tmp_path / "out")) == {"0.png", f"{path.as_posix()}:2"}


def test_a_changed_file_is_looked_at_again(tmp_path: Path) -> None:
    put_images(tmp_path / "memes")
    table = write_parquet(tmp_path / "t.parquet", image=[BODIES[0]])
    archive = write_tar(tmp_path / "a.tar", **{"m.png": BODIES[0]})
    before = run([tmp_path / "memes", table, archive], tmp_path / "out")
    assert {before[own]["n"] for own in ("0.png", "t.parquet:0", "m")} == {len(BODIES[0])}
    (tmp_path / "memes" / "0.png").write_bytes(BODIES[2])
    write_parquet(table, image=[BODIES[2]])
    write_tar(archive, **{"m.png": BODIES[2]})
    after = run([tmp_path / "memes", table, archive], tmp_path / "out")
    assert {after[own]["n"] for own in ("0.png", "t.parquet:0", "m")} == {len(BODIES[2])}


def test_hidden_files_are_left_out_and_images_of_other_kinds_are_not(tmp_path: Path) -> None:
    put_images(tmp_path)
    for name in ("._0.png", ".DS_Store", "notes.txt", "a.avif", "b.HEIC", "c.jfif", "d.tiff"):
        (tmp_path / name).write_bytes(b"x")
    ids = [ref.id for ref in read_sources([tmp_path])]
    assert ids == ["0.png", "1.png", "2.png", "a.avif", "b.HEIC", "c.jfif", "d.tiff"]


def test_json_lines_of_windows_and_lines_without_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for more, fault in ((-1, False), (0, True), (2 * LONGEST_LINE, True)):
        # A line may be one byte shorter than the most that is read of it.
        long = b'{"id": "long", "text": "' + b"x" * (LONGEST_LINE - 26 + more) + b'"}'
        path.write_bytes(
            b'\xef\xbb\xbf{"id": "a", "text": "b"}\r\n' + long + b"\n" + b'{"text":"c"}'
        )
        refs = list(read_sources([path]))
        assert [ref.id for ref in refs] == ["a", "a.jsonl:2" if fault else "long", "a.jsonl:3"]
        assert [bool(ref.fault) for ref in refs] == [False, fault, False]
    assert "line 2 is longer than 16,777,216 bytes" in refs[1].fault


def test_a_csv_that_is_damaged_says_where(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = ["id,text", "1,今天加班", '2,"a"b', f"3,{'x' * 200_000}", '4,"open', "5,swallowed"]
    path.write_bytes(b"\n".join(row.encode("gbk" if row[0] == "1" else "utf-8") for row in rows))
    refs = list(read_sources([path]))
    assert [(ref.id, ref.fault[:27]) for ref in refs] == [
        ("a.csv:2", "row 2 is not UTF-8; save th"),
        ("a.csv:3", "row 3 is not valid CSV: ','"),
        ("3", ""),
        ("a.csv:5", "row 5 is not valid CSV: une"),
    ]
    path.write_text("id,text\n6,a\u2028b\x0bc\n", encoding="utf-8")
    assert [ref.text for ref in read_sources([path])] == ["a\u2028b\x0bc"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_tables(tmp_path: Path, pack: Any) -> None:
    ending = {"gzip": "gz", "bz2": "bz2", "lzma": "xz"}[pack.__module__]
    lines = tmp_path / f"a.jsonl.{ending}"
    body = b"".join(b'{"id": "%d", "text": "hi"}\n' % n for n in range(3))
    lines.write_bytes(pack(body))
    tabs = tmp_path / f"b.tsv.{ending}"
    tabs.write_bytes(pack('id\ttext\n9\t好, "的"\n'.encode()))
    refs = list(read_sources([lines, tabs]))
    assert [(ref.id, ref.text) for ref in refs[2:]] == [("2", "hi"), ("9", '好, "的"')]
    lines.write_bytes(pack(body)[:-9])
    *_, last = read_sources([lines])
    assert "damaged: the rest is skipped" in last.fault


def test_what_is_no_path_no_text_and_no_column_says_so(tmp_path: Path) -> None:
    put_images(tmp_path)
    path = write(
        tmp_path / "a.jsonl",
        {"image": "https://example.org/a.png"},
        {"image": "data:image/png;base64,AAAA"},
        {"image": [1]},
        {"text": 1450},
        {"image": {"path": "0.png", "bytes": None}},
        {"likes": "b"},
    )
    faults = [ref.fault for ref in read_sources([path])]
    assert ["is a URL" in fault for fault in faults] == [True, True, False, False, False, False]
    assert faults[2] == "the image of row 3 is neither a path nor bytes"
    assert faults[3] == "the text of row 4 is not a text: '1450'"
    assert not faults[4]
    assert faults[5] == "row 6 has neither an image nor a text; it has: likes"


def test_images_in_parquet_of_every_type_and_none(tmp_path: Path) -> None:
    import pyarrow as pa

    held = [BODIES[0], None, BODIES[1], None]
    plain = pa.array(held, pa.binary())
    for kind in (plain, plain.cast(pa.large_binary()), plain.dictionary_encode()):
        path = write_parquet(tmp_path / "a.parquet", image=kind, text=["x", "y", None, None])
        refs = list(read_sources([path]))
        assert bodies(refs[:3]) == [BODIES[0], None, BODIES[1]]
        with pytest.raises(ImageError, match="table cell is empty"):
            Fetcher().fetch(refs[3])
    path = write_parquet(tmp_path / "b.parquet", image=pa.array([[1, 2]]))
    with pytest.raises(InputError, match="'image' has the type list"):
        list(read_sources([path]))


def test_samples_with_several_images_captions_and_hidden_files(tmp_path: Path) -> None:
    members = {
        "a.input.png": BODIES[0],
        "a.mask.png": BODIES[1],
        "._a.png": b"x",
        "b.jpg": BODIES[2],
        "b.json": json.dumps({"caption": "c", "id": 7, "language": "zh"}).encode(),
        "c.png": BODIES[0],
        "c.json": json.dumps({"words": "w"}).encode(),
        "c.txt": b"t",
    }
    path = write_tar(tmp_path / "a.tar", **members)
    refs = list(read_sources([path]))
    assert [(ref.id, ref.text) for ref in refs] == [
        ("a.input.png", None),
        ("a.mask.png", None),
        ("7", "c"),
        ("c", "t"),
    ]
    assert bodies(refs) == [*BODIES, BODIES[0]]
    assert refs[2].language == "zh"
    assert list(read_sources([path], TableColumns(text="words")))[3].text == "w"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.tar", "no such file"),
        ("https://example.org/a.png", "URLs are not supported"),
        ("s3://bucket/memes/", "URLs are not supported"),
    ],
)
def test_every_source_is_checked_before_the_first_is_read(
    tmp_path: Path, name: str, said: str
) -> None:
    refs = read_sources([write(tmp_path / "a.jsonl", {"text": "x"}), name])
    with pytest.raises(InputError, match=said):
        next(refs)


@pytest.mark.parametrize(
    ("name", "said"),
    [("a.jsonl", "give its tables as sources"), ("data.arrow", "export it with to_parquet")],
)
def test_a_folder_of_tables_says_what_to_do(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=said):
        list(read_sources([tmp_path]))


def test_the_cell_limit_of_the_process_does_not_change(tmp_path: Path) -> None:
    """Other readers in the process, such as that of match lists, rely on the usual limit."""
    before = csv.field_size_limit()
    path = tmp_path / "a.csv"
    path.write_text(f"id,text\n1,{'x' * 200_000}\n2,b\n", encoding="utf-8")
    refs = read_sources([path])
    assert len(next(refs).text or "") == 25_000
    assert csv.field_size_limit() == before
    assert [ref.text for ref in refs] == ["b"]
    assert csv.field_size_limit() == before
