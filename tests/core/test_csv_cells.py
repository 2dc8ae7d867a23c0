"""CSV that spreadsheets do not execute: every cell stays in its row, and none is a formula."""

from __future__ import annotations

import csv
import io
import itertools

import pytest

from memantics.core.tables import dump_csv, guard_cell, make_csv_writer

_SIGNS = "=+-@＝＋－＠"


@pytest.mark.parametrize("sign", _SIGNS)
@pytest.mark.parametrize(
    "before", ["", " ", "\n", "\r", "\t", "\u200b", "\ufeff", "\u3000", "\xa0"]
)
def test_a_formula_gets_a_quote(before: str, sign: str) -> None:
    text = f"{before}{sign}cmd|' /C calc'!A0"
    assert guard_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["\tx", "\rx", "\nx"])
def test_a_leading_line_break_gets_a_quote(text: str) -> None:
    assert guard_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "1-1", " a=b", "好", "'=1", "a\r=1", "#x", "(=1)"])
def test_other_text_is_unchanged(text: str) -> None:
    assert guard_cell(text) == text
    assert guard_cell(-1.5) == -1.5


def test_every_cell_stays_in_its_row() -> None:
    texts = ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", "\r", "", "a\r=cmd()", "b\u2028c", "d\x0be"]
    rows = [list(pair) for pair in itertools.product(texts, texts)]
    written = dump_csv(["one", "x\r=two"], rows)
    read = list(csv.reader(io.StringIO(written, newline="")))
    assert read == [["one", "x\r=two"], *([guard_cell(cell) for cell in row] for row in rows)]


def test_no_line_begins_with_a_formula() -> None:
    """A reader that breaks rows at a bare carriage return sees none outside of quotes."""
    written = dump_csv(["=a", "＠b"], [["label\r=cmd|x", "\n+1"]])
    assert written == '\'=a,\'＠b\n"label\r=cmd|x","\'\n+1"\n'


def test_tab_separated_rows() -> None:
    out = io.StringIO()
    make_csv_writer(out, "\t").writerows([["a\tb", "c,d"], ["e\rf", "g"]])
    assert out.getvalue() == '"a\tb"\tc,d\n"e\rf"\tg\n'
