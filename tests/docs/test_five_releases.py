"""The guide from five releases to a table: its commands, and the LaTeX file at their end."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import memantics as mm
from tests.background import serve_in_background
from tests.commands import Shell, forget
from tests.docs.test_commands import SERVER, client, commands, expand
from tests.latex import check_latex
from tests.places import ROOT

__all__ = ["client"]
pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "how-to" / "five-releases-to-a-table.md"


def test_the_guide_ends_in_a_table_that_latex_takes(
    client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(client)
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    with serve_in_background() as server:
        for command in commands(PAGE):
            words = shlex.split(command.replace(SERVER, server.url))
            ran = shell.run(*(part for word in words[1:] for part in expand(word, client)))
            assert ran.code == 0, f"{command}\n{ran.out}\n{ran.err}"
    forget()
    text = (client / "table.tex").read_text(encoding="utf-8")
    assert check_latex(text) >= 5
    # Two models, four tasks, two seeds each.
    results = mm.results(client / "paper")
    assert len(results) == 2 * 4 * 2
    for task in ("mquest/qa", "punmemecn/chat", "memeintent/intent", "jokes/humor"):
        assert task in text
    assert re.search(r"openai/one.*\$\\pm\$", text)
    assert "Holm-corrected over all 4 comparisons" in text
    assert "circle" in (client / "differences.svg").read_text(encoding="utf-8")
    assert len(mm.compare(list(results)).to_pandas()) == 4
