"""Readers of benchmark data: each fault is named with its file, row and field."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import orjson
import pytest
from pydantic import BaseModel, JsonValue

from memantics.core.data import (
    Source,
    check_record,
    checksum,
    checksum_rows,
    conform,
    dump_json,
    find_file,
    inside,
    judge,
    list_names,
    list_plain_files,
    load_toml,
    match_digits,
    note_gaps,
    note_part,
    open_once,
    read_file,
    read_json,
    read_jsonl,
    read_record_lines,
    read_records,
    read_toml,
    toml_beside,
)
from memantics.core.errors import DataError, MemanticsError


class Inner(BaseModel, extra="forbid"):
    size: int


class Shape(BaseModel, extra="forbid"):
    text: str
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("value", "paper", "digits", "match"),
    [
        (2.0, 2, None, "exact"),
        (2.1, 2, None, ""),
        ("a", "a", 1, "exact"),
        ("a", 1.0, 1, ""),
        (1.0, "a", 1, ""),
        (None, 1.0, 1, ""),
        # Both sides of half a unit, and of a whole one.
        (10.65, 10.6, 1, "rounded"),
        (10.55, 10.6, 1, "rounded"),
        (10.651, 10.6, 1, "truncated"),
        (10.699, 10.6, 1, "truncated"),
        (10.7, 10.6, 1, ""),
        (10.549, 10.6, 1, ""),
        # A truncated number is nearer to zero, and has the same sign.
        (-10.68, -10.6, 1, "truncated"),
        (-10.52, -10.6, 1, ""),
        (10.68, -10.6, 1, ""),
        (0.9, 0.0, 0, "truncated"),
        (-0.9, 0.0, 0, "truncated"),
        (0.06, -0.0, 1, "truncated"),
        (0.06, -0.1, 1, ""),
        (3, 3, 0, "rounded"),
        (1234.0, 1200.0, -2, "rounded"),
    ],
)
def test_how_a_printed_value_follows_from_a_value(
    value: JsonValue, paper: JsonValue, digits: int | None, match: str
) -> None:
    assert match_digits(value, paper, digits) == match
    if value is not None:
        assert judge(value, paper, digits) == ("reproduced" if match else "differs")


def test_a_value_that_is_absent_is_not_recomputable() -> None:
    assert judge(None, None) == "not recomputable"
    assert judge(0, 0) == "reproduced"


def test_json_and_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": [1]}')
    assert read_json(path) == {"a": [1]}
    path.write_text('{"a": \n1,}')
    with pytest.raises(DataError) as caught:
        read_json(path)
    assert str(caught.value).startswith("a.json: not valid JSON: ")
    assert "line 2" in str(caught.value)
    assert caught.value.hint == "repair the file, or download it again"
    lines = tmp_path / "a.jsonl"
    lines.write_bytes(b'{"a": 1}\n\n  \t\n[2]\nnull')
    assert list(read_jsonl(lines)) == [(1, {"a": 1}), (4, [2]), (5, None)]
    lines.write_bytes(b"1\n\n{\n")
    with pytest.raises(DataError, match=r"^a\.jsonl: row 3: not valid JSON: .*; repair that line$"):
        list(read_jsonl(lines))


@pytest.mark.parametrize(
    "read",
    [
        read_json,
        read_file,
        lambda path: list(read_jsonl(path)),
        lambda path: list(read_record_lines(path)),
        lambda path: list(read_records(Shape, path)),
    ],
)
def test_an_unreadable_file_is_named(read: object, tmp_path: Path) -> None:
    for path, problem in (
        (tmp_path / "gone", "gone: cannot be read: No such file or directory; check the path"),
        (tmp_path, f"{tmp_path.name}: cannot be read: Is a directory; check the path"),
    ):
        with pytest.raises(DataError) as caught:
            read(path)  # type: ignore[operator]
        assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"text": "x", "txt": "y"}, "unknown field 'txt'"),
        ({}, "missing field 'text'"),
        ({"text": "x", "inner": {}}, "missing field 'inner.size'"),
        ({"text": "x", "inner": {"size": 1, "b": 1}}, "unknown field 'inner.b'"),
        ({"text": 1}, "field 'text': Input should be a valid string"),
        ({"text": "x", "inner": {"size": "1"}}, "field 'inner.size': Input should be a valid int"),
        (7, "Input should be a valid dictionary or instance of Shape"),
    ],
)
def test_a_record_that_does_not_conform(value: JsonValue, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        conform(Shape, value, "a.jsonl", row=3)
    assert str(caught.value).startswith(f"a.jsonl: row 3: {problem}")
    with pytest.raises(DataError) as caught:
        conform(Shape, value, "a.json")
    assert str(caught.value).startswith(f"a.json: {problem}")
    # Records of a file end in the same error.
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\n{"text": "x"}\n' + orjson.dumps(value) + b"\n")
    records = read_records(Shape, path)
    assert next(records) == (2, Shape(text="x"))
    with pytest.raises(DataError) as caught:
        next(records)
    assert str(caught.value).startswith(f"a.jsonl: row 3: {problem}")


def test_records_are_strict_and_their_lines_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b' \n{"text": "x", "inner": {"size": 2}}\n\n{"text": "y"}')
    assert list(read_records(Shape, path)) == [
        (2, Shape(text="x", inner=Inner(size=2))),
        (4, Shape(text="y")),
    ]
    assert [number for number, _ in read_record_lines(path)] == [2, 4]
    with pytest.raises(DataError, match=r"^a\.jsonl: row 9: not valid JSON"):
        check_record(Shape, b"{", path, 9)


def test_the_first_of_several_names_is_found(tmp_path: Path) -> None:
    names = ("data/a.json", "b.json")
    (tmp_path / "b.json").touch()
    assert find_file(tmp_path, names, "Memes") == tmp_path / "b.json"
    (tmp_path / "data" / "a.json").mkdir(parents=True)
    assert find_file(tmp_path, names, "Memes") == tmp_path / "b.json", "a folder is no file"
    (tmp_path / "data" / "a.json").rmdir()
    (tmp_path / "data" / "a.json").touch()
    assert find_file(tmp_path, names, "Memes") == tmp_path / "data" / "a.json"
    with pytest.raises(DataError) as caught:
        find_file(tmp_path, ("x/c.json", "d.json"), "Memes")
    assert str(caught.value) == (
        f"{tmp_path}: not a Memes release: none of these files was found: x/c.json, d.json; "
        "give the cloned repository of Memes, or the folder with c.json"
    )


def test_names_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "names"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.png").touch()
    (folder / "link").symlink_to("a.png")
    assert list_names(folder) == {"a.png", "sub", "link"}
    assert list_plain_files(folder) == {"a.png"}
    for absent in (folder / "gone", folder / "a.png"):
        assert list_names(absent) == list_plain_files(absent) == frozenset()
    assert list_names(None) == frozenset()
    (folder / "loop").symlink_to("loop")
    with pytest.raises(DataError, match="loop: cannot be read: Too many levels of symbolic links;"):
        list_names(folder / "loop")


def test_a_checksum_covers_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    one, two = tmp_path / "sub" / "a", tmp_path / "b"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    expected = hashlib.sha256()
    for name, data in (("b", b"2"), ("sub/a", b"1")):
        expected.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    assert checksum([one, two], tmp_path) == expected.hexdigest()
    assert checksum([two, one], tmp_path) == expected.hexdigest()
    assert checksum([one], tmp_path) != checksum([one], tmp_path / "sub")
    two.write_bytes(b"3")
    assert checksum([one, two], tmp_path) != expected.hexdigest()


def test_a_checksum_of_rows_ignores_the_order_of_rows_and_keys_alone() -> None:
    rows: list[JsonValue] = [{"a": 1, "b": 2}, {"c": 3}]
    parts = sorted(hashlib.sha256(row).digest() for row in (b'{"a":1,"b":2}', b'{"c":3}'))
    assert checksum_rows(rows) == hashlib.sha256(b"".join(parts)).hexdigest()
    assert checksum_rows([{"c": 3}, {"b": 2, "a": 1}]) == checksum_rows(rows)
    assert checksum_rows([*rows, rows[0]]) != checksum_rows(rows)


@pytest.mark.parametrize(
    "name",
    ["", "..", "../x", "a/../../x", "/etc/passwd", "a\0b", "out/x", "out", "loop/x"],
)
def test_names_that_lead_outside(name: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to(tmp_path / "root-2")
    with pytest.raises(DataError, match="points outside its folder; use a path in it") as caught:
        inside(root, name)
    assert str(caught.value).startswith(f"{name or '(empty name)'}: ")


def test_names_that_stay_inside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "x").touch()
    (root / "link").symlink_to("a/x")
    (tmp_path / "other").symlink_to(root)
    for name in ("x", "a/x", "a/../x", "link", "a/y/z", ".", "..x", str(root / "a")):
        assert inside(root, name) == root / name
        assert inside(tmp_path / "other", name) == tmp_path / "other" / name
    assert inside(Path("/"), "etc/x") == Path("/etc/x")
    # A folder beside the root may begin with its name.
    (tmp_path / "root-2").mkdir()
    with pytest.raises(DataError, match="points outside"):
        inside(root, "../root-2/x")
    with pytest.raises(DataError, match="points outside"):
        inside(root, str(tmp_path / "root-2" / "x"))
    # Relative roots are those of the working folder.
    here = Path(os.path.relpath(root))
    assert inside(here, "a/x") == here / "a/x"


def test_a_folder_is_read_once() -> None:
    read: list[Source] = []

    def reader(source: Source) -> list[Source]:
        read.append(source)
        return read

    one, other = Source("sample", Path("a")), Source("sample", Path("b"))
    assert open_once(reader, one) is open_once(reader, one) is read
    assert read == [one]
    open_once(reader, other)
    assert read == [one, other]


def test_which_copies_are_official() -> None:
    assert Source("release", Path()).official
    assert not Source("sample", Path()).official
    assert not Source("release", Path(), published=True).official


def test_notes_about_missing_images() -> None:
    assert list(note_gaps(0, 9, None, "Get them.")) == [
        "Images are not in this copy: tasks that need them cannot run. Get them."
    ]
    assert list(note_gaps(1, 1235, Path("pics"), "")) == ["1,234 memes have no image in pics."]
    assert list(note_gaps(8, 9, None, "")) == ["1 memes have no image in this copy."]
    assert list(note_gaps(9, 9, None, "")) == []


def test_notes_about_an_incomplete_release() -> None:
    release = Source("release", Path())
    assert list(note_part(release, 999, 1000)) == [
        "This copy holds 999 of the release's 1,000 memes, so its counts differ from the paper's."
    ]
    assert list(note_part(release, 1000, 1000)) == []
    assert list(note_part(Source("sample", Path()), 1, 1000)) == []
    assert list(note_part(Source("release", Path(), published=True), 1, 1000)) == []


def test_toml_files(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('text = "表情包"\n[inner]\nsize = 2\n', encoding="utf-8")
    shape = Shape(text="表情包", inner=Inner(size=2))
    assert read_toml(path, Shape, "FORM", "SEE") == shape
    assert toml_beside(str(tmp_path / "module.py"), "a.toml") == {
        "text": "表情包",
        "inner": {"size": 2},
    }
    for body, problem, hint in (
        ("a = ", "Invalid value", "FORM"),
        ("a = " + "9" * 5000, "Exceeds the limit", "FORM"),
        ("a = " + "[" * 100_000, "nested too deeply", "FORM"),
        ("text = 1", "text: Input should be a valid string", "SEE"),
        (b"\xff", "'utf-8' codec can't decode", "FORM"),
    ):
        path.write_bytes(body if isinstance(body, bytes) else body.encode())
        with pytest.raises(DataError) as caught:
            read_toml(path, Shape, "FORM", "SEE")
        assert str(caught.value).startswith(f"{path}: {problem}")
        assert caught.value.hint == hint
    with pytest.raises(MemanticsError, match=r"a\.toml: .*No such file.*; FORM"):
        read_toml(tmp_path / "none" / "a.toml", Shape, "FORM", "SEE")
    assert load_toml("a = 1\n") == {"a": 1}


def test_written_json_is_readable_and_stable() -> None:
    assert dump_json({"b": ["表"], "a": 1}) == '{\n  "b": [\n    "表"\n  ],\n  "a": 1\n}\n'
