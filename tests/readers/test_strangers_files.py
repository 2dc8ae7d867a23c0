"""Layouts as people have them: folders of splits, empty headers, repeated keys, odd cells."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from memantics.benchmarks.dataset_reader import ConfiguredMeme, ConfiguredRelease
from memantics.benchmarks.registry import find_benchmark
from memantics.core.images import read_bytes
from memantics.core.registry import find_registered, read_registry
from tests.commands import Shell
from tests.readers import layouts as made

GROUPS = ("gender_annotators", "age_annotators")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))


def open_set(name: str) -> list[ConfiguredMeme]:
    release = find_benchmark(name).open(find_registered(name).source)
    assert isinstance(release, ConfiguredRelease)
    return list(release.memes)


def join(out: str) -> str:
    return " ".join(out.split())


def write_image(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made.draw(number))


def write_exist(folder: Path) -> None:
    """Training and test folders with memes/; the test file describes annotators without labels."""
    for part, split, first in (("training", "training", 0), ("test", "test_clean", 3)):
        rows: dict[str, Any] = {}
        for number in range(first, first + 3):
            row: dict[str, Any] = {"id_EXIST": f"{number}", "lang": "en", "text": f"t{number}"}
            row |= {"meme": f"{number}.jpeg", "annotators": ["a", "b"]}
            row |= {name: ["F", "M"] for name in GROUPS}
            if part == "training":
                yes: list[list[Any]] = [["YES"], ["DIRECT"], [["OBJECTIFICATION"]]]
                for task, value in zip(("task4", "task5", "task6"), yes, strict=True):
                    row[f"labels_{task}"] = value * 2
            rows[f"{number}"] = row
            write_image(folder / part / f"memes/{number}.jpeg", number)
        path = folder / part / f"EXIST2024_{split}.json"
        made.write(path, orjson.dumps(rows))


def test_exist_is_read_from_its_folders_and_a_test_part_without_labels(tmp_path: Path) -> None:
    write_exist(tmp_path / "set")
    shell = Shell(tmp_path)
    assert "recognised by its files: exist_2024" in join(shell.done("data", "add", "set"))
    memes = open_set("exist_2024")
    assert [meme.labels["sexist"] for meme in memes] == [("YES",)] * 3 + [()] * 3
    assert [meme.split for meme in memes] == ["train"] * 3 + ["test"] * 3
    assert all(meme.image and read_bytes(meme.image) for meme in memes)
    told = shell.refused("run", "exist_2024/sexist", "--model", "baseline/majority")
    assert told.endswith("unknown labelled split of exist_2024/sexist: 'test'; known: train")


def test_files_that_differ_from_a_known_set_are_told_the_difference(tmp_path: Path) -> None:
    write_exist(tmp_path / "set")
    path = tmp_path / "set/training/EXIST2024_training.json"
    path.write_bytes(path.read_bytes().replace(b'"labels_task5"', b'"labels_five"'))
    told = Shell(tmp_path).refused("data", "add", "set")
    assert "named like those of exist_2024, but differ" in told
    assert "no file has the column 'labels_task5'" in told
    path.write_bytes(path.read_bytes().replace(b'"labels_five"', b'"labels_task5"'))
    path.write_bytes(path.read_bytes().replace(b'"YES"', b'"MAYBE"', 1))
    assert "unknown value 'MAYBE'" in Shell(tmp_path).refused("data", "add", "set")
    assert not read_registry()


def test_images_are_found_in_folders_named_after_splits(tmp_path: Path) -> None:
    """Memotion 3: a column of numbers without a name; both splits have an image 0.jpg."""
    for split, mark in (("train", ","), ("val", "\t")):
        lines = [mark.join(("", "image_url", "ocr", "overall", "humour", "sarcastic"))]
        lines[0] += mark + mark.join(("offensive", "motivational"))
        for number in range(2):
            cells = [f"{number}", f"https://x.example/{split}{number}", f"{split} {number}"]
            values = ["neutral", "funny", "general", ("slight", "hateful")[number], "no"]
            lines.append(mark.join((*cells, *values)))
            write_image(tmp_path / f"set/{split}Images/{number}.jpg", number + len(split))
        made.write(tmp_path / f"set/{split}.csv", "\n".join(lines) + "\n")
    (tmp_path / "set/trainImages/1.jpg").unlink()
    write_image(tmp_path / "set/other/1.jpg", 9)  # another folder is never searched
    out = join(Shell(tmp_path).done("data", "add", "set"))
    assert "recognised by its files: memotion3" in out
    assert "images: 3 of 4" in out
    assert "1 of 4 images are missing: 1.jpg" in out
    memes = open_set("memotion3")
    found = [meme.image.parent.name if meme.image else "" for meme in memes]
    assert found == ["trainImages", "", "valImages", "valImages"]
    assert [meme.labels["offence"] for meme in memes] == [("slight",), ("hateful",)] * 2


def test_a_folder_of_each_set_beats_sets_with_the_same_names(tmp_path: Path) -> None:
    """Every folder of RA-HMD alone looks like Hateful Memes."""
    for place in ("FB", "MAMI"):
        for split in ("train", "test"):
            rows: list[dict[str, Any]] = [
                {"id": f"{split}{n}", "img": "", "text": f"t{n}", "label": n % 2} for n in (0, 1)
            ]
            made.write_lines(tmp_path / f"data/{place}/{split}.jsonl", rows)
    Shell(tmp_path).done("data", "add", "data")
    assert sorted(read_registry()) == ["ra_hmd_fb", "ra_hmd_mami"]
    Shell(tmp_path).done("data", "add", "hateful_memes", "data/FB")
    assert find_registered("hateful_memes").records == 4


def test_a_file_that_two_names_fit_is_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "set/subtask2a"
    rows: list[dict[str, Any]] = [
        {"id": f"{n}", "text": f"t{n}", "image": f"{n}.png", "labels": []} for n in range(3)
    ]
    made.write(folder / "train.json", orjson.dumps(rows))
    dev = [row | {"id": f"d{row['id']}", "labels": ["Smears"]} for row in rows]
    made.write(folder / "dev_gold_labels/dev_subtask2a_en.json", orjson.dumps(dev))
    out = join(Shell(tmp_path).done("data", "add", "set"))
    assert "recognised by its files: semeval2024_task4" in out
    assert "memes 6, split train 3, split dev 3" in out
    assert "excluded" not in out


def write_archive(path: Path, texts: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for number, text in enumerate(texts):
            body = orjson.dumps({"text": text, "label": "ab"[number % 2]})
            for name, data in ((f"{number}.png", made.draw(number)), (f"{number}.json", body)):
                facts = tarfile.TarInfo(name)
                facts.size = len(data)
                archive.addfile(facts, io.BytesIO(data))


def test_keys_that_start_again_in_each_archive_name_different_memes(tmp_path: Path) -> None:
    write_archive(tmp_path / "set/test-0.tar", ["a", "b"])
    write_archive(tmp_path / "set/test-1.tar", ["c", "d"])
    out = join(Shell(tmp_path).done("data", "add", "set"))
    assert "column '__key__' repeats: rows are named by file and row number" in out
    assert [meme.text for meme in open_set("set")] == ["a", "b", "c", "d"]


def test_a_row_with_the_id_of_another_meme_is_not_dropped(tmp_path: Path) -> None:
    head = "id,text,label\n1,one,a\n2,two,b\n"
    made.write(tmp_path / "memes.csv", f"{head}1,three,a\n")
    Shell(tmp_path).done("data", "add", "memes.csv")
    assert [meme.text for meme in open_set("memes")] == ["one", "two", "three"]
    made.write(tmp_path / "same.csv", f"{head}1,one,a\n")
    assert "excluded: 1" in join(Shell(tmp_path).done("data", "add", "same.csv"))


def test_ids_texts_and_images_may_be_fields_of_records(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"meta": {"id": f"m{n}"}, "meme": {"ocr": f"t{n}", "file": f"{n}.png"}, "label": "ab"[n]}
        for n in (0, 1)
    ]
    made.write_lines(tmp_path / "memes.jsonl", rows)
    write_image(tmp_path / "0.png", 0)
    flags = ("--id", "meta.id", "--text", "meme.ocr", "--image", "meme.file")
    Shell(tmp_path).done("data", "add", "memes.jsonl", *flags)
    first, second = open_set("memes")
    assert (first.id, first.text, second.image) == ("m0", "t0", None)
    assert first.image == tmp_path / "0.png"
    told = Shell(tmp_path).refused("data", "add", "memes.jsonl", "--text", "meme.none")
    assert "unknown column of memes.jsonl: 'meme.none'" in told


def test_images_as_urls_or_base64_are_told_in_one_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    head = "id,text,image,label\n"
    url = "https://x.example/a/{}.png?w=3"
    made.write(tmp_path / "urls.csv", f"{head}1,t,{url.format(1)},a\n2,u,{url.format(2)},b\n")
    out = join(shell.done("data", "add", "urls.csv"))
    assert "Nothing is downloaded: save them in a folder, and name it with --images DIR" in out
    write_image(tmp_path / "pics/1.png", 1)
    assert "images: 1 of 2" in shell.done("data", "add", "urls.csv", "--images", "pics")
    code = "iVBORw0KGgo" + "A" * 5000
    made.write(tmp_path / "code.csv", f"{head}1,t,{code},a\n2,u,{code},b\n")
    out = join(shell.done("data", "add", "code.csv"))
    assert "text (base64) in the table, which is not read: save them as files" in out
    assert len(out) < 2000


def test_a_column_cannot_name_an_image_outside_of_its_file(tmp_path: Path) -> None:
    """Only the reader of archives and Parquet files may say where the bytes of an image are."""
    write_image(tmp_path / "secret.png", 1)
    rows = "".join(f"{n},t{n},x.png,{tmp_path}/secret.png,{'ab'[n]}\n" for n in (0, 1))
    made.write(tmp_path / "set/memes.csv", "id,text,image,image.bytes,label\n" + rows)
    told = Shell(tmp_path).refused("data", "add", "set/memes.csv")
    assert "row 1: column 'image.bytes' names no image inside the file" in told
    assert not read_registry()


def test_a_failed_registration_leaves_the_earlier_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    path, config = tmp_path / "memes.csv", shell.home / "datasets/memes.toml"
    good = "id,text,label,tone\n1,one,a,x\n2,two,b,y\n"
    made.write(path, good)
    shell.done("data", "add", "memes.csv")
    before = config.read_bytes()
    # The config is written before the rows are checked: an empty id is found by the check.
    made.write(path, good + ",three,a,x\n")
    shell.refused("data", "add", "memes.csv", "--label", "tone")
    assert config.read_bytes() == before
    made.write(path, good)
    shell.done("data", "check", "memes")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("memes.tar.gz", "memes.tar.gz is not a table that can be read; unpack archives first"),
        ("", "contains no table, but memes.tar.gz; unpack archives first"),
    ],
)
def test_packed_archives_are_named(name: str, said: str, tmp_path: Path) -> None:
    made.write(tmp_path / "set/memes.tar.gz", b"\x1f\x8b")
    assert said in Shell(tmp_path).refused("data", "add", f"set/{name}")


def test_utf_16_without_a_mark_is_asked_for(tmp_path: Path) -> None:
    made.write(tmp_path / "memes.csv", "id,text,label\n1,one,a\n2,two,b\n".encode("utf-16-le"))
    shell = Shell(tmp_path)
    told = shell.refused("data", "add", "memes.csv")
    assert "looks like UTF-16 without a byte order mark; name it: --encoding utf-16-le" in told
    shell.done("data", "add", "memes.csv", "--encoding", "utf-16-le")
    assert [meme.text for meme in open_set("memes")] == ["one", "two"]


@pytest.mark.parametrize("column", ["label|gold", "te\x7fst", "{label}"])
def test_columns_with_signs_of_the_config_are_read(column: str, tmp_path: Path) -> None:
    made.write(tmp_path / "memes.csv", f"id;text;{column}\n1;one;a\n2;two;b\n")
    Shell(tmp_path).done("data", "add", "memes.csv", "--label", column)
    assert [list(meme.labels.values()) for meme in open_set("memes")] == [[("a",)], [("b",)]]


def test_missing_images_of_a_tree_are_named(tmp_path: Path) -> None:
    for place in ("en/one", "de/two"):
        rows: list[dict[str, Any]] = [
            {"id": f"{n}", "text": f"t{n}", "image": f"{n}.png", "label": "ab"[n]} for n in (0, 1)
        ]
        made.write_lines(tmp_path / f"tree/{place}/train.jsonl", rows)
    out = join(Shell(tmp_path).done("data", "add", "tree"))
    assert "en/one: 2 of 2 images are missing: 0.png, 1.png" in out
