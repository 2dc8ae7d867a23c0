"""Commands run in this process: what they import is imported once."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from memantics.cli.main import make_app


def run(*arguments: str | Path) -> str:
    """What ``memantics detector …`` prints; errors are raised as they are."""
    words = ["detector", *map(str, arguments)]
    done = CliRunner().invoke(make_app(), words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout
