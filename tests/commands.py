"""Run the command line as a user does: another process, its own home folder."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from memantics.cli.main import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Shell:
    """A user's terminal in a folder of its own."""

    folder: Path

    def run(self, *arguments: str | Path, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "memantics.cli.main", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OPENAI_", "MEMANTICS_", "COV_"))
        }
        return kept | {"MEMANTICS_HOME": str(self.folder / "home"), "COLUMNS": "80"}

    def refused(self, *arguments: str | Path, **environment: str) -> str:
        """Run what must be refused: exit code 2, one line, nothing else; return that line."""
        return _read_refusal(self.run(*arguments, **environment))

    def run_here(self, *arguments: str | Path) -> Ran:
        """Run without another process, whose start takes longer than most commands."""
        out, err = io.StringIO(), io.StringIO()
        code: object = 0
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.dict(os.environ, self.environment, clear=True),
            mock.patch.object(sys, "argv", ["memantics", *map(str, arguments)]),
        ):
            try:
                main()
            except SystemExit as stop:
                code = stop.code or 0
        return Ran(code if isinstance(code, int) else 1, out.getvalue(), err.getvalue())

    def refused_here(self, *arguments: str | Path) -> str:
        """Like ``refused``, in this process."""
        return _read_refusal(self.run_here(*arguments))

    def done(self, *arguments: str | Path, **environment: str) -> str:
        """Run what must succeed; return what it printed."""
        ran = self.run(*arguments, **environment)
        assert ran.code == 0, ran
        return ran.out


def _read_refusal(ran: Ran) -> str:
    assert ran.code == 2, ran
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("error: ")
    return lines[0]
