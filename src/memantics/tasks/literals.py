"""Texts that stand in somebody's Python file, read without running a line of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from memantics.core.errors import DataError

_LARGEST = 4 * 1024 * 1024


def parse_file(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(path, "is too large to be a script")
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError) as error:
        raise DataError(path, f"cannot be read as Python: {error}") from error


def find_function(tree: ast.AST, name: str) -> ast.FunctionDef | None:
    """The first function of that name, at any depth."""
    found = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    return next(found, None)


def assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names and what is assigned to them, in the order of the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                yield target.id, node.value


def read_text(node: ast.expr, holes: Mapping[str, str]) -> str | None:
    """A text of literals, with ``$hole`` for each expression in it; None for anything else.

    ``holes`` says which expression, as Python writes it, is which hole; a dollar sign is doubled.

    >>> tree = ast.parse("f'Hello {user.name}, 5$'", mode="eval")
    >>> read_text(tree.body, {"user.name": "$name"})
    'Hello $name, 5$$'
    >>> read_text(ast.parse("open('x')", mode="eval").body, {}) is None
    True
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace("$", "$$")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [read_text(node.left, holes), read_text(node.right, holes)]
        return None if None in parts else "".join(part for part in parts if part is not None)
    if isinstance(node, ast.JoinedStr):
        read = [
            holes.get(ast.unparse(part.value))
            if isinstance(part, ast.FormattedValue)
            else read_text(part, holes)
            for part in node.values
        ]
        return None if None in read else "".join(part for part in read if part is not None)
    return holes.get(ast.unparse(node))
