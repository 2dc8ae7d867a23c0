"""Processes of their own that need not import everything again.

A helper process imports the program once and does nothing else; every process asked for is a fork
of it: own memory, own folder, own environment, own exit code, nothing remembered from others.
Starting Python and importing the program anew costs more than most commands. What is tested of the
start itself, and of packages that are absent, needs :mod:`subprocess`.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from memantics.cli.main import main

# Every command's module, and the large packages that commands load when they need them.
PRELOADED = (
    "tests.all_commands",
    *("aiohttp", "httpx", "jieba", "onnxruntime", "pandas", "pyarrow.parquet", "rich.progress"),
    *("scipy.stats", "sklearn.linear_model", "sqlalchemy", "torch"),
)


@cache
def _context() -> ForkServerContext:
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(list(PRELOADED))
    return made


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Place:
    """What a process is given: its folder, all its variables, and files as standard streams."""

    folder: Path
    variables: dict[str, str]
    reads: str = os.devnull
    writes: str = os.devnull
    tells: str = os.devnull


def start(work: Callable[[], None], place: Place) -> ForkServerProcess:
    """Do something (a function of a module) in a process of its own."""
    process = _context().Process(target=_be, args=(work, place))
    process.start()
    return process


def run(work: Callable[[], None], place: Place, seconds: float = 300) -> Ran:
    """Do it, and wait for the end."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = start(work, replace(place, writes=str(out), tells=str(err)))
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
        assert process.exitcode is not None, f"not done after {seconds} seconds: {work}"
        ran = Ran(process.exitcode, out.read_bytes().decode(), err.read_bytes().decode())
        process.close()
    return ran


def read_user_seconds() -> float:
    """User CPU time of the helper and of its forks that have ended."""
    helper: Any = forkserver._forkserver
    stat = Path(f"/proc/{helper._forkserver_pid}/stat")
    if helper._forkserver_pid is None or not stat.exists():
        return 0.0
    # After the name in brackets: utime is field 14 of proc(5), that of ended children field 16.
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[13])) / os.sysconf("SC_CLK_TCK")


def end() -> None:
    """End the helper and wait, so that its time is counted among that of this process."""
    helper: Any = forkserver._forkserver
    if helper._forkserver_pid is not None:
        os.kill(helper._forkserver_pid, signal.SIGTERM)
        helper._stop()


def be_command(arguments: list[str]) -> None:
    """What ``memantics ARGUMENTS`` does."""
    sys.argv = ["memantics", *arguments]
    main()


def be_script(code: str) -> None:
    """What ``python -c CODE`` does."""
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


def _be(work: Callable[[], None], place: Place) -> None:
    """Take the place of a new process, and end as Python ends."""
    os.chdir(place.folder)
    os.environ.clear()
    os.environ.update(place.variables)
    reading, writing = os.O_RDONLY | os.O_NOCTTY, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY
    streams = ((place.reads, reading), (place.writes, writing), (place.tells, writing))
    for number, (name, flags) in enumerate(streams):
        opened = os.open(name, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    try:
        work()
    finally:
        atexit._run_exitfuncs()
