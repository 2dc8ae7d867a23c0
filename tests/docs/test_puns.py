"""The examples of the page on puns come out as it says, with the least that may be installed."""

from __future__ import annotations

import re

import pytest

from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.reading import Settings
from tests.places import ROOT

PAGE = (ROOT / "docs" / "how-to" / "read-homophones.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_ten_examples_are_read() -> None:
    section = PAGE.partition("## Ten examples")[2].partition("##")[0]
    rows = re.findall(r"^\| (\S+) \| (\S+) \|$", section, flags=re.MULTILINE)
    pairs = [row for row in rows if row[0] != "written"]
    assert len(pairs) == 10
    for written, reading in pairs:
        intended = read_homophones(written, settings=Settings(model="dictionary")).intended
        assert intended is not None, written
        assert intended.text == reading


@pytest.mark.slow
def test_the_python_example_runs() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL))
    names: dict[str, object] = {}
    exec(compile(code, "docs", "exec"), names)  # our own page
    assert {"readings", "verdict"} <= set(names)
