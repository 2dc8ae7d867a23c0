"""What ``perf.size`` counts, and that every package has a budget."""

from __future__ import annotations

from pathlib import Path

import pytest
from perf.size import PACKAGE, PAGE, Budget, PartSize, count_code_lines, measure, read_budgets

SOURCE = '''"""A module.

With a long docstring.
"""

# A comment.
import os  # with a comment behind it

TEXT = """first

last"""


class Thing:
    """What it is."""

    size = (
        1,

        2,
    )

    async def grow(self) -> str:
        """Grow."""
        "a string that is no docstring"
        return os.sep


def shrink() -> None: ...
'''


def test_code_lines_are_neither_blank_comment_nor_docstring() -> None:
    # import, two of TEXT, class, four of size, def, string, return, def.
    assert count_code_lines(SOURCE) == 12
    assert count_code_lines("") == count_code_lines('"""Only this."""\n') == 0


def test_parts_are_measured_against_the_table(tmp_path: Path) -> None:
    for name, text in (
        ("__init__.py", "a = 1\n"),
        ("core/a.py", "b = 1\nc = 2\n"),
        ("cli/b.py", ""),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    budgets = [Budget(("core",), 2), Budget(("cli", "root"), 0)]
    assert measure(tmp_path, budgets) == [
        PartSize(("core",), 2, 2, 1),
        PartSize(("cli", "root"), 0, 1, 2),
    ]
    assert [one.over for one in measure(tmp_path, budgets)] == [False, True]
    with pytest.raises(SystemExit, match="cli, root: no budget"):
        measure(tmp_path, budgets[:1])


@pytest.mark.slow
def test_every_package_has_a_budget() -> None:
    budgets = read_budgets(PAGE.read_text(encoding="utf-8"))
    assert len(measure(PACKAGE, budgets)) == 9
    assert {one.lines for one in budgets} >= {7_000, 9_000, 13_000, 14_000}


def test_a_page_without_the_table_is_named() -> None:
    with pytest.raises(SystemExit, match="no table of budgets"):
        read_budgets("## Sizes\n\nNothing.\n")
