"""Texts of official Python scripts: found by reading, never by running them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from memantics.benchmarks.parsing import assigned, find_function, parse_file, read_text
from memantics.core.errors import DataError

SCRIPT = """
PROMPT = "a" + "b" + f"{x}$"
first = second = "chain"
first, second = "two", "values"
item.name = "attribute"
def outer():
    INNER = "inside"
    def ask(): return 1
class Box:
    def ask(self): return 2
"""


def test_assignments_of_one_name_are_listed() -> None:
    found = dict(assigned(ast.parse(SCRIPT)))
    assert list(found) == ["PROMPT", "INNER"]
    assert read_text(found["PROMPT"], {"x": "$name"}) == "ab$name$$"
    assert read_text(found["PROMPT"], {}) is None


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("'a' + 'b'", "ab"),
        ("'a' + b", "a$b"),
        ("b + 'a'", "$ba"),
        ("'a' + c", None),
        ("c + 'a'", None),
        ("'a' * 3", None),
        ("'a' + 3", None),
        ("3", None),
        ("f'{b}'", "$b"),
        ("f'{b}{c}'", None),
        ("'' + ''", ""),
        ("'5$'", "5$$"),
    ],
)
def test_only_literals_and_known_expressions_are_texts(source: str, text: str | None) -> None:
    assert read_text(ast.parse(source, mode="eval").body, {"b": "$b"}) == text


def test_functions_are_found_at_any_depth() -> None:
    tree = ast.parse(SCRIPT)
    found = find_function(tree, "ask")
    assert found is not None
    assert ast.unparse(found).endswith(("return 1", "return 2"))
    assert find_function(tree, "outer") is not None
    assert find_function(tree, "missing") is None


def test_scripts_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1")
    assert [name for name, _ in assigned(parse_file(path))] == ["x"]
    for body in (b"def", b"x = '\xff'", b"x = \0"):
        path.write_bytes(body)
        with pytest.raises(DataError, match="is not valid Python"):
            parse_file(path)
    with pytest.raises(DataError, match=r"is not valid Python: .*No such file"):
        parse_file(tmp_path / "gone.py")
    size = 4 * 1024 * 1024
    path.write_bytes(b"#" * size)
    assert parse_file(path).body == []
    path.write_bytes(b"#" * (size + 1))
    with pytest.raises(DataError, match="is too large for a script"):
        parse_file(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(DataError, match="not a regular file"):
        parse_file(path)
