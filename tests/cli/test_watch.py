"""``run --watch``: a page about the runs while they go on."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest

from memantics.cli.evaluation import _serve_page
from tests.commands import Shell

pytestmark = pytest.mark.slow
WORDS = ("run", "mquest/qa", "-m", "baseline/random", "--data", "sample", "--limit", "3")


def test_the_page_is_there_while_a_run_goes_on_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    with _serve_page(tmp_path / "runs"):
        told = capsys.readouterr().err
        found = re.search(r"progress: (http://127\.0\.0\.1:\d+/browse/runs)", told)
        assert found, told
        assert Shell(tmp_path).run(*WORDS, "--out", tmp_path / "runs").code == 0
        with urllib.request.urlopen(found[1], timeout=120) as page:
            assert b"mquest/qa" in page.read()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(found[1], timeout=5)


def test_a_run_prints_the_address_and_ends(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    ran = Shell(tmp_path).run(*WORDS, "--watch")
    assert ran.code == 0, ran
    assert "progress: http://127.0.0.1:" in ran.err
    assert "later: memantics serve --runs runs" in ran.err


def test_help_names_types_in_words(tmp_path: Path) -> None:
    shown = Shell(tmp_path).run("serve", "--help").out
    assert "PATH…" in shown
    assert "<" not in shown.replace("<=", "")
