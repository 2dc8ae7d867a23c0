"""Parts of a redone paper by name, and their sections in text."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.benchmarks.paper import Cell, PaperPart, PaperRow
from memantics.core.errors import UnknownName
from memantics.evaluation.paper import list_sections, paper
from memantics.moderation.study.running import read_study, read_verdicts
from tests.commands import Shell


def test_a_table_is_shown_alone_with_what_belongs_to_it(shell: Shell) -> None:
    shell.done("detector", "study", "ridge", "linear", "--against", "ridge", "--data", "sample")
    words = ("paper", "toxicn_mm", "--data", "sample", "--detectors", "study")
    told = shell.done(*words, "--part", "table 5", "--format", "md")
    heads = [line for line in told.splitlines() if line.startswith("## ")]
    assert [head.partition(":")[0] for head in heads] == ["## Table 5", "## Table 5, tests"]
    assert "| **Other detectors** |" in told
    assert "| ridge → linear |" in told
    assert "unknown table or figure" in shell.refused(*words, "--part", "Table 50")
    sheet = paper("toxicn_mm", data="sample", parts=["Table C1", "Figure 1"])
    assert [part.label for part in sheet.parts] == ["Figure 1", "Table C1"]
    with pytest.raises(UnknownName):
        paper("toxicn_mm", data="sample", parts=["Table"])


def test_studies_are_told_apart_by_their_folder(shell: Shell) -> None:
    for name in ("one", "two"):
        shell.done("detector", "study", "ridge", "--data", "sample", "--out", name)
    (shell.folder / "two" / "ridge.json").unlink()
    folders = [shell.folder / name for name in ("one", "two")]
    sheet = paper("toxicn_mm", data="sample", detectors=folders, parts=["Table 5"])
    first, tests = sheet.parts
    rows = [row.label for row in first.rows if row.section == "Other detectors"]
    assert rows == ["ridge (one)", "ridge (two)"]
    assert [cell.status for cell in tests.cells] == ["empty"] * 3, "one variant has no contrast"
    said = [read_verdicts(folder, read_study(folder)) for folder in folders]
    assert [list(own) for own in said] == [["ridge"], []], "the second's answers are gone"


def test_a_section_is_named_where_it_begins() -> None:
    rows = [
        PaperRow(name, (Cell(value=1),), section=own)
        for name, own in zip("abcd", "xxyx", strict=True)
    ]
    part = PaperPart("Table 1", "", ("v",), tuple(rows))
    assert [section for section, _ in list_sections(part)] == ["x", "", "y", "x"]
    assert list(list_sections(PaperPart("Table 1", ""))) == []


def test_latex_keeps_sections(tmp_path: Path) -> None:
    sheet = paper("toxicn_mm", data="sample", parts=["Table 5"])
    text = sheet.save(tmp_path / "t.tex").read_text(encoding="utf-8")
    assert text.index("Text & ") < text.index("Image & ") < text.index("Multimodal & ")
