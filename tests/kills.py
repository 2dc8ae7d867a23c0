"""Commands that are killed with ``kill -9`` at a change to their files, counted from the first.

Every step that changes a file below the working folder is a point of the series: opening a file for
writing, renaming, removing, making a folder, and half of an appended line. Every statement, commit
and returned connection of SQLAlchemy is a point, too, on SQLite as on PostgreSQL. So the series
covers each state that a kill can leave behind, without waiting for a certain time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa

from memantics.core import files
from tests import forks
from tests.commands import Shell

_CHANGES = frozenset(
    ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate")
)


def _is_change(event: str, given: tuple[Any, ...], folder: str) -> bool:
    if event == "open":
        _, mode, flags = given
        if not set(mode or "") & set("wax+") and not (flags or 0) & (os.O_WRONLY | os.O_RDWR):
            return False
    elif event not in _CHANGES:
        return False
    path = given[0]
    return not isinstance(path, int) and Path.cwd().joinpath(os.fsdecode(path)).is_relative_to(
        folder
    )


def be_killed(arguments: list[str], point: int, count_file: str) -> None:
    """Run a command, and kill this process at a point; at the end, write how many there were."""
    folder, passed, mine = str(Path.cwd()), 0, os.getpid()
    write_whole = files.write_whole

    def note() -> bool:
        nonlocal passed
        if os.getpid() == mine:
            passed += 1
        return passed > point

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if _is_change(event, given, folder) and note():
            os.kill(mine, signal.SIGKILL)

    def write_half(file: IO[bytes], line: bytes) -> None:
        if note():
            write_whole(file, line[: len(line) // 2])
            os.kill(mine, signal.SIGKILL)
        write_whole(file, line)

    def step(*_: object) -> None:
        if note():
            os.kill(mine, signal.SIGKILL)

    files.write_whole = write_half
    sys.addaudithook(watch)
    for kind, name in (
        (sa.Engine, "before_cursor_execute"),
        (sa.Engine, "commit"),
        (sa.pool.Pool, "checkin"),  # after the commit, or when a connection is closed
    ):
        sa.event.listen(kind, name, step)
    try:
        forks.be_command(arguments)
    finally:
        total = passed
        Path(count_file).write_text(str(total), encoding="utf-8")


def run_counted(shell: Shell, arguments: list[str], point: int, count_file: Path) -> forks.Ran:
    """Run a command in a process of its own that is killed at a point."""
    variables = dict(os.environ) | {"MEMANTICS_HOME": str(shell.home)}
    work: Callable[[], None] = partial(be_killed, arguments, point, str(count_file))
    return forks.run(work, forks.Place(shell.folder, variables))


def choose_points(total: int, most: int) -> Iterator[int]:
    """Yield points spread over all of them, always with the first and the last.

    >>> list(choose_points(10, 4)), list(choose_points(3, 9))
    ([0, 3, 6, 9], [0, 1, 2])
    """
    count = min(most, total)
    yield from (round(number * (total - 1) / max(1, count - 1)) for number in range(count))
