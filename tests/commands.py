"""Run the command line as a user does: its own home folder, nothing remembered."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar
from unittest import mock

from memantics.cli.main import main
from tests import forks
from tests.forks import Ran

__all__ = ["Ran", "Shell", "forget"]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None


@dataclass(frozen=True)
class Shell:
    """A user's terminal in a folder of its own."""

    folder: Path
    alone: bool = False
    readings: ClassVar[Path]

    @property
    def apart(self) -> Shell:
        """The same terminal; its commands run in processes of their own, as a user's do."""
        return replace(self, alone=True)

    @property
    def home(self) -> Path:
        """The user's home folder, in which images need not be read that another test has read."""
        home = self.folder / "home"
        if not home.exists():
            home.mkdir()
            (home / "ocr").symlink_to(self.readings)
        return home

    def run(self, *arguments: str | Path, **environment: str) -> Ran:
        """Run a command in this process: starting another takes longer than most commands.

        What the program remembers is forgotten before, as in a new process. Where a browser is
        open, its event loop runs in this thread, and a command needs a process of its own.
        """
        if self.alone or _running_loop() is not None:
            return self._run_alone(*arguments, **environment)
        forget()
        out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
        code: object = 0
        with (
            contextlib.chdir(self.folder),
            Path(os.devnull).open(encoding="utf-8") as nothing,
            mock.patch.object(sys, "stdin", nothing),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.dict(os.environ, self.environment | environment, clear=True),
            mock.patch.object(sys, "argv", ["memantics", *map(str, arguments)]),
        ):
            try:
                main()
            except SystemExit as stop:
                code = stop.code or 0
        said, told = (one.buffer.getvalue().decode() for one in (out, err))
        return Ran(code if isinstance(code, int) else 1, said, told)

    def _run_alone(self, *arguments: str | Path, **environment: str) -> Ran:
        """In a fork of a process that has everything imported, unless the start is what matters."""
        given = self.environment | environment
        if any(name.startswith(("PYTHON", "LC_", "LANG")) for name in environment):
            ran = self._start_alone(arguments, given)
        else:
            work = partial(forks.be_command, [str(word) for word in arguments])
            ran = forks.run(work, forks.Place(self.folder, given))
        assert "Traceback" not in ran.err, ran.err
        return ran

    def _start_alone(self, arguments: tuple[str | Path, ...], given: dict[str, str]) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "memantics.cli.main", *map(str, arguments)],
            cwd=self.folder,
            env=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OPENAI_", "MEMANTICS_", "COV_"))
        }
        return kept | {"MEMANTICS_HOME": str(self.home), "COLUMNS": "80"}

    def refused(self, *arguments: str | Path, **environment: str) -> str:
        """Run what must be refused: exit code 2, one line, nothing else; return that line."""
        return _read_refusal(self.run(*arguments, **environment))

    run_here, refused_here = run, refused  # the names before this was what is done by default

    def done(self, *arguments: str | Path, **environment: str) -> str:
        """Run what must succeed; return what it printed."""
        ran = self.run(*arguments, **environment)
        assert ran.code == 0, ran
        return ran.out


# Rooms whose caches hold weights and what follows from the package alone, whoever runs it.
_LASTING = {
    "build",
    "detector",
    "knowledge",
    "metrics",
    "models",
    "phonetics",
    "reappraise",
    "vision",
}
# The same of single modules: cards by their content, word lists, the sample data.
_LASTING_MODULES = {f"memantics.{name}" for name in ("core.card", "core.text", "sample")}


def forget() -> None:
    """Empty the caches that depend on a user's folders and settings."""
    for name, module in list(sys.modules.items()):
        package, room = [*name.split("."), ""][:2]
        if package == "memantics" and room not in _LASTING and name not in _LASTING_MODULES:
            for var in list(vars(module).values()):
                if clear := getattr(var, "cache_clear", None):
                    clear()


def _read_refusal(ran: Ran) -> str:
    assert ran.code == 2, ran
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("error: ")
    return lines[0]
