"""``python -m perf.size [--json]``: code lines and modules of each part, against its budget.

A code line is one that is neither blank, comment nor docstring. The budgets stand in the table
"Sizes" of ``docs/architecture.md``, in code lines. A part over its budget is marked and discussed
in review; the exit code is always 0.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "memantics"
PAGE = ROOT / "docs" / "architecture.md"
HEADING = "## Sizes"
# Modules that lie in no package, such as `memantics/__init__.py`.
BARE = "root"
_ROW = re.compile(r"^\| ([^|]+) \| ([\d,]+) \|", re.MULTILINE)
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True, slots=True)
class Budget:
    """The line budget of a group of packages."""

    packages: tuple[str, ...]
    lines: int


@dataclass(frozen=True, slots=True)
class PartSize:
    """The code lines and modules of a group of packages."""

    packages: tuple[str, ...]
    budget: int
    lines: int
    modules: int

    @property
    def over(self) -> bool:
        return self.lines > self.budget


def count_code_lines(source: str) -> int:
    r"""Count lines of Python that are neither blank, comment nor docstring.

    >>> count_code_lines("'About.'\n\n# Why.\nx = 1\n\ndef f():\n    'Do.'\n    return x\n")
    3
    """
    docstrings = set(_find_docstrings(ast.parse(source)))
    text = source.splitlines()
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT and token.start not in docstrings:
            found.update(range(token.start[0], token.end[0] + 1))
    return sum(bool(text[number - 1].strip()) for number in found)


def _find_docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Where docstrings begin: row and column."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, node.body[0].col_offset


def read_budgets(page: str) -> list[Budget]:
    r"""The rows of the table under "Sizes": names of packages, and how many lines they may have.

    >>> read_budgets("## Sizes\n\n| packages | budget |\n|---|---|\n| `core`, `web` | 9,000 |\n")
    [Budget(packages=('core', 'web'), lines=9000)]
    """
    _, heading, section = page.partition(HEADING)
    rows = _ROW.findall(section.partition("\n## ")[0])
    if not heading or not rows:
        raise SystemExit(f"{PAGE.name} has no table of budgets under '{HEADING}'")
    return [
        Budget(tuple(re.findall(r"`([\w-]+)`", names)), int(lines.replace(",", "")))
        for names, lines in rows
        if "`" in names
    ]


def measure(package: Path, budgets: Sequence[Budget]) -> list[PartSize]:
    """Lines and modules of every part; a package without a budget is refused."""
    counted: dict[str, list[int]] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        name = parts[0] if len(parts) > 1 else BARE
        counted.setdefault(name, []).append(count_code_lines(path.read_text(encoding="utf-8")))
    if unknown := sorted(set(counted) - {name for one in budgets for name in one.packages}):
        raise SystemExit(f"{', '.join(unknown)}: no budget in the table of {PAGE.name}")
    return [
        PartSize(
            one.packages,
            one.lines,
            sum(sum(counted.get(name, ())) for name in one.packages),
            sum(len(counted.get(name, ())) for name in one.packages),
        )
        for one in budgets
    ]


def show(sizes: Sequence[PartSize]) -> None:
    """Print the table, and mark what is over its budget."""
    print(f"{'packages':<60}{'budget':>8}{'lines':>9}{'modules':>9}")
    for one in sizes:
        mark = "  OVER" if one.over else ""
        names = ", ".join(one.packages)
        print(f"{names:<60}{one.budget:>8,}{one.lines:>9,}{one.modules:>9,}{mark}")
    budget, lines, modules = (
        sum(values)
        for values in zip(*((one.budget, one.lines, one.modules) for one in sizes), strict=True)
    )
    print(f"{'all':<60}{budget:>8,}{lines:>9,}{modules:>9,}{'  OVER' if lines > budget else ''}")


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(prog="python -m perf.size", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    given = parser.parse_args()
    sizes = measure(PACKAGE, read_budgets(PAGE.read_text(encoding="utf-8")))
    if given.json:
        rows = [asdict(one) | {"over": one.over} for one in sizes]
        print(orjson.dumps(rows).decode())
    else:
        show(sizes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
