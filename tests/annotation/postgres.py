"""A PostgreSQL server of our own for tests, from Debian's packages."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import sqlalchemy as sa
from psycopg import sql

from memantics.annotation.database import Database

_NUMBERS = count(1)


def find_programs() -> Path | None:
    """The folder with initdb, wherever Debian or the path has it."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    path = shutil.which("initdb")
    return Path(path).parent if path else None


def why_not() -> str:
    """Why no server can be started here; empty: it can."""
    if find_programs() is None:
        return "PostgreSQL's programs are not installed"
    if os.geteuid() == 0 and (_user() is None or shutil.which("runuser") is None):
        return "PostgreSQL refuses to run as root, and there is no user to run it as"
    return ""


def _user() -> str | None:
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return None


def _run(program: str, *arguments: str) -> None:
    folder = find_programs()
    assert folder is not None
    call = [str(folder / program), *arguments]
    if os.geteuid() == 0:
        call = ["runuser", "-u", str(_user()), "--", *call]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr


class Postgres:
    """A running server; every test gets an empty schema of its own, cheaper than a database."""

    def __init__(self, sockets: Path) -> None:
        self._folder = sockets
        self._address = f"postgresql://tester@/postgres?host={_quote(sockets)}"
        self._tables = ""

    def make_database(self) -> str:
        """The address of an empty place for tables."""
        name = f"t{next(_NUMBERS)}"
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"{self._address}&options=-csearch_path%3D{name}"

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all processes of the server: connections stay open, and nothing is answered."""
        main = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        found = [main, *_children(main)]
        for process in found:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def as_role(self, url: str, role: str) -> str:
        """The address of the same tables for another role, which has no rights yet."""
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        return url.replace("//tester@", f"//{role}@")

    def make_tables(self) -> str:
        """The address of tables without rows: migrated once, then made by the same statements."""
        url = self.make_database()
        if not self._tables:
            self._tables = ";".join(_record_migrations(url))
        else:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(self._tables.encode())
        return url


def _children(process: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found


def _record_migrations(url: str) -> list[str]:
    """Migrate, and return what was said to the server on the way."""
    said: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().startswith(("CREATE", "ALTER", "INSERT", "UPDATE")):
            said.append(statement)

    database = Database(url)
    sa.event.listen(database.engine, "before_cursor_execute", note)
    database.migrate()
    database.close()
    return said


def _quote(path: Path) -> str:
    return quote(str(path), safe="")


def _find_memory() -> str | None:
    """Memory that looks like a disk, where there is plenty: thousands of small files come."""
    memory = Path("/dev/shm")
    try:
        return str(memory) if shutil.disk_usage(memory).free > 2 * 1024**3 else None
    except OSError:
        return None


@contextmanager
def start_postgres() -> Iterator[Postgres]:
    """Start a server that listens on a socket file only, and stop it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="memantics-pg-", dir=_find_memory()))
    data = folder / "data"
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, str(_user()))
        options = ["--auth=trust", "--username=tester", "--encoding=UTF8", "--locale=C.UTF-8"]
        _run("initdb", "--no-sync", *options, "-D", str(data))
        settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        log = str(folder / "log")
        _run("pg_ctl", "-D", str(data), "-w", "-l", log, "-o", settings, "start")
        try:
            yield Postgres(folder)
        finally:
            _run("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
