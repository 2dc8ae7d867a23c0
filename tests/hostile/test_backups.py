"""A backup is restored whole, or refused in one line that shows no secret and leaves nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands import Ran, Shell
from tests.hostile.backups import build, generate, password_hashes
from tests.hostile.cases import SEED, Case, count_cases, noted, read_corpus, write_case

pytest.importorskip("sqlalchemy")


def restore(shell: Shell, folder: Path, case: Case) -> Ran:
    folder.mkdir()
    (folder / "changed.zip").write_bytes(build(case))
    words = ("--db", folder / "fresh.db", "--media", folder / "media")
    return shell.run("annotate", "restore", folder / "changed.zip", *words)


def check(ran: Ran, folder: Path) -> str:
    """``refused`` or ``restored``; anything else is a failure."""
    said = ran.out + ran.err
    assert not any(part in said for hashed in password_hashes() for part in (hashed, hashed[30:]))
    assert list(folder.parent.rglob("passwd")) == []
    if ran.code == 0:
        assert count_users(folder) > 0
        return "restored"
    assert ran.code == 2, ran
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("error: ")
    assert lines[0].isprintable()
    assert len(lines[0]) < 1000
    assert count_users(folder) == 0
    assert [path for path in (folder / "media").rglob("*") if path.is_file()] == []
    return "refused"


def count_users(folder: Path) -> int:
    if not (folder / "fresh.db").exists():
        return 0
    with closing(sqlite3.connect(folder / "fresh.db")) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'users'")
        if tables.fetchone() is None:
            return 0
        (count,) = connection.execute("SELECT COUNT(*) FROM users").fetchone()
    connection.close()
    return int(count)


@pytest.mark.parametrize("case", read_corpus("backups"), ids=write_case)
def test_known_backups_are_refused(shell: Shell, case: Case) -> None:
    folder = shell.folder / "try"
    assert check(restore(shell, folder, case), folder) == "refused"


@pytest.mark.slow
def test_changed_backups_are_refused_or_restored(shell: Shell) -> None:
    ends = {"refused": 0, "restored": 0}
    for number, case in enumerate(generate(SEED, count_cases(25))):
        folder = shell.folder / f"{number}"
        with noted("backups", case):
            ends[check(restore(shell, folder, case), folder)] += 1
    assert ends["refused"] > 0.3 * sum(ends.values())


def test_the_sound_backup_is_restored(shell: Shell) -> None:
    folder = shell.folder / "try"
    assert check(restore(shell, folder, {}), folder) == "restored"
