"""The modules of the package as syntax trees: each is parsed once for all checks of a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parse_module(path: Path) -> ast.Module:
    """Return the syntax tree of a module; no check may change it."""
    return ast.parse(path.read_text(encoding="utf-8"))
