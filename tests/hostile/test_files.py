"""Files that no parser can follow: each ends in one line, and never the process."""

from __future__ import annotations

import io
import os
import zipfile
from hashlib import sha256
from pathlib import Path

import orjson
import pytest

from memantics.annotation.backup import _open_archive
from memantics.annotation.workflow import parse_workflow
from memantics.benchmarks.card import read_card
from memantics.benchmarks.dataset_config import read_dataset_config
from memantics.cli import main
from memantics.core import samples as sample
from memantics.core.errors import DataError, InputError
from memantics.core.releases import parse_turtle
from memantics.evaluation.judging.rubrics import open_rubric
from memantics.moderation import storage
from memantics.moderation.columns import TableColumns
from memantics.moderation.scale.tables import _read_separated
from memantics.moderation.wrapped import read_map
from memantics.understanding.knowledge.formats import GraphFormat, parse
from memantics.understanding.knowledge.official import _read_head
from memantics.understanding.knowledge.validation import _Compiler
from tests.commands import Shell


def nest_quoted(depth: int) -> bytes:
    inner = b"<<( <a:a> <a:b> " * depth + b"<a:c>" + b" )>>" * depth
    return b"<a:a> <a:b> " + inner + b" .\n"


def nest_objects(depth: int) -> bytes:
    return b'{"a:a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize("form", ["nquads", "turtle", "trig"])
def test_quoted_statements_are_counted(form: GraphFormat) -> None:
    assert len(list(parse(nest_quoted(50), form, "x"))) == 1
    for depth in (51, 20_000):
        with pytest.raises(DataError, match=f"has {2 * depth:,} nested brackets; the limit is 100"):
            list(parse(nest_quoted(depth), form, "x"))


def test_the_official_turtle_is_counted() -> None:
    assert len(list(parse_turtle(nest_quoted(50), "x"))) == 1
    for read in (
        lambda: list(parse_turtle(nest_quoted(51), "x")),
        lambda: _read_head(nest_quoted(51)),
    ):
        with pytest.raises(DataError, match="has 102 nested brackets; the limit is 100"):
            read()


def test_objects_in_objects_are_counted() -> None:
    assert list(parse(nest_objects(100), "jsonld", "x"))
    for depth in (101, 20_000):
        with pytest.raises(DataError, match=f"has {depth:,} nested brackets"):
            list(parse(nest_objects(depth), "jsonld", "x"))


def test_shapes_are_counted() -> None:
    with pytest.raises(DataError, match="has 40,000 nested brackets"):
        _Compiler(nest_quoted(20_000), "x").compile()


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5000])
def test_toml_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    for read in (read_card, read_dataset_config, lambda own: parse_workflow(own.read_text(), "x")):
        with pytest.raises(DataError, match=r"nested too deeply|digits"):
            read(path)


@pytest.mark.parametrize("kind", [RecursionError, MemoryError])
def test_what_no_reader_foresaw_is_one_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def make() -> None:
        raise kind

    monkeypatch.setattr(main, "make_app", lambda: lambda **_: make())
    ran = shell.run("models", "list")
    assert ran.code == 2
    assert ran.err == f"error: {main._BEYOND[kind]}\n"


def test_a_header_of_an_array_that_is_no_python_is_refused(tmp_path: Path) -> None:
    held = Path(sample.__file__).with_name("detector.zip")
    with zipfile.ZipFile(held) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = b"{" + b"(" * 20 + b"\n"
    parts["biases.npy"] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    manifest = orjson.loads(parts["model.json"])
    manifest["parts"]["biases.npy"] = sha256(parts["biases.npy"]).hexdigest()
    parts["model.json"] = orjson.dumps(manifest)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body in parts.items():
            archive.writestr(name, body)
    path = tmp_path / "detector.zip"
    path.write_bytes(packed.getvalue())
    with pytest.raises(InputError, match="its parts are inconsistent"):
        storage.load(path)


def test_columns_that_are_no_csv_are_refused() -> None:
    columns = TableColumns("", "", "")
    with pytest.raises(DataError, match="its first row is not valid CSV"):
        next(_read_separated(io.StringIO('"id"x,text\na,b\n'), Path("x.csv"), columns, ","))
    sound = io.StringIO('"id",text\na,b\n')
    assert next(_read_separated(sound, Path("x.csv"), columns, ",")).id == "a"


def test_archives_are_not_waited_for_at_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "x.zip"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a detector file"):
        storage.load(pipe)
    with pytest.raises(DataError, match="is not a regular file"), _open_archive(pipe):
        pass


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 100_000, '"\\ud800"', "\0"])
def test_a_rubric_and_a_label_map_are_refused_in_one_line(tmp_path: Path, value: str) -> None:
    """A number of 5,000 digits ended in a traceback of tomllib."""
    file = tmp_path / "a.toml"
    file.write_text(f"a = {value}")
    for read in (open_rubric, read_map):
        with pytest.raises(InputError, match=r"TOML|cannot be read"):
            read(file)
