"""Commands of ``annotate`` on PostgreSQL: addresses, roles without rights, and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import psycopg
import pytest

from memantics.annotation.backup import backup, restore
from memantics.annotation.database import Database
from memantics.annotation.service import AnnotationService, open_service
from memantics.core.errors import InputError
from tests.annotation.postgres import Postgres
from tests.annotation.team import add_people, open_project, plain_items, quick_hasher, work_through
from tests.commands import Shell
from tests.places import ROOT


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a@[::1/x",
        "postgresql://a:secret@host:port/x",
        "postgresql://a:secret@host:99999999999999999999/x",
        "postgresql://[",
    ],
)
def test_an_invalid_address_is_refused_in_one_line(url: str, shell: Shell) -> None:
    """A12: a traceback."""
    with pytest.raises(InputError):
        Database(url).migrate()
    said = shell.refused("annotate", "setup", "1", "--db", url)
    assert "PostgreSQL" in said
    assert "secret" not in said


@pytest.mark.slow
def test_a_role_without_rights_is_told_so(postgres: Postgres, shell: Shell) -> None:
    """A12: a traceback for each of the three: no schema, no tables, no writing."""
    url = postgres.make_tables()
    role = postgres.as_role(url, "nobody_special")
    schema = url.rpartition("%3D")[2]
    grants = [
        "",
        f"GRANT USAGE ON SCHEMA {schema} TO nobody_special",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO nobody_special",
    ]
    for grant in grants:
        with psycopg.connect(url, autocommit=True) as connection:
            if grant:
                connection.execute(grant.encode())
        for words in (["backup", "b.zip"], ["password", "lead"]):
            if words[0] == "backup" and "SELECT" in grant:
                continue  # reading is all that it needs
            said = shell.refused("annotate", *words, "--db", role)
            assert "rights" in said or "cannot be opened" in said, said


def fill(service: AnnotationService, folder: Path) -> None:
    lead, project = open_project(service, folder / "q", "label-by-vote", plain_items(40))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    work_through(service, ann, project.id, lambda _: {"harmful": "no"})


def run_and_kill(seconds: float, *words: str) -> None:
    """Start a command, and end it with kill -9 after this time."""
    command = [sys.executable, "-m", "memantics", "annotate", *words]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_killed_backups_and_exports_are_whole_or_absent(
    service: AnnotationService, database_url: str, tmp_path: Path
) -> None:
    fill(service, tmp_path)
    place = ("--db", database_url, "--media", str(tmp_path / "media"))
    out, table, hub = tmp_path / "b.zip", tmp_path / "raw.jsonl", tmp_path / "hub"
    began = time.monotonic()
    run_and_kill(60, "backup", str(out), *place)
    whole = time.monotonic() - began
    expected = zipfile.ZipFile(out).read("tables/revisions.jsonl")
    run_and_kill(60, "export", "1", "--what", "raw", "--out", str(table), *place)
    lines = table.read_bytes()
    for part in (0.5, 0.7, 0.8, 0.9, 0.95, 1.0):
        run_and_kill(whole * part, "backup", str(out), *place)
        run_and_kill(whole * part, "export", "1", "--what", "raw", "--out", str(table), *place)
        kind = ("--what", "huggingface")
        run_and_kill(whole * part, "export", "1", *kind, "--out", str(hub), *place)
        assert zipfile.ZipFile(out).read("tables/revisions.jsonl") == expected
        assert table.read_bytes() == lines
        assert not hub.exists() or len(list(hub.rglob("*.png"))) == 40
    again = backup(service, out)
    assert again.tables["revisions"] == 40
    restore(out, f"sqlite:///{tmp_path / 'copy.db'}", tmp_path / "copy")
    copy = open_service(tmp_path / "copy.db", tmp_path / "copy", hasher=quick_hasher())
    lead = copy.accounts.local_admin()
    assert lead is not None
    assert copy.lead.progress(lead, 1).stages[0].done == 40
    copy.close()
