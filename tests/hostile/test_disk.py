"""A disk that fills up, on a file system of 20 MB: one line, no scrap, and the rerun completes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memantics.actions import screen as action
from tests.commands import Ran, Shell
from tests.scale.inline import InlineEngine

pytestmark = pytest.mark.slow

ROOM = (0, 8, 40, 150, 600, 2_000)  # KB that are left
SCRAP = re.compile(r".*\.(partial|part|tmp)$|^tmp")
QUEUE = "screen texts.jsonl --out screened --review 0.0..1.0"
# What runs beforehand, with room; and what meets a full disk.
COMMANDS = {
    "starter copy": ("", "starter copy copied"),
    "run": ("", "run mquest -m fake/keys --data starter --out runs"),
    "score": (
        "run mquest -m fake/keys --data starter --out runs",
        "score runs/*",
    ),
    "report": ("run mquest -m fake/keys --data starter --out runs", "report runs/* --out r.html"),
    "screen": ("", "screen texts.jsonl --out screened --csv --review 0.1..0.9"),
    "detector train": ("", "detector train --data starter --preset words --out d.zip"),
    "expert train": ("", "expert train labels.csv/label --out e.zip"),
    "kb import": ("", "kb import starter --store kb"),
    "kb export": ("kb import starter --store kb", "kb export --store kb --out all.nq"),
    "build knowledge": ("", "build knowledge starter -m fake/builder --out built --limit 2"),
    "build intents": ("", "build intents starter -m fake/drafter --out built --limit 2"),
    "build captions": ("", "build captions starter -m fake/drafter --out built --limit 2"),
    "annotate import": (
        QUEUE,
        "annotate import screened/review --db a.db",
    ),
    "annotate backup": (
        f"{QUEUE}; annotate import screened/review --db a.db",
        "annotate backup b.zip --db a.db",
    ),
    "audit": ("", "audit mquest --data starter --out audit.html"),
    "export-task": (
        "",
        "export-task mquest/qa --data starter --format openai-batch -m x --out task",
    ),
    "serve-token": ("", "serve-token me --tokens tokens"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)]
    if os.getuid() or subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("a file system of 20 MB can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, left: int) -> None:
    """Take all room but so many KB."""
    free = shutil.disk_usage(place).free
    (place / "ballast").write_bytes(bytes(max(0, free - left * 1024)))


def list_scrap(place: Path) -> list[str]:
    files = (path for path in place.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(place)) for path in files if SCRAP.match(path.name))


def prepare(disk: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(action, "PoolEngine", lambda *_: InlineEngine())
    rows = (f'{{"id":"{n}","text":"{n} good mornings to you all"}}\n' for n in range(300))
    (disk / "texts.jsonl").write_text("".join(rows))
    labels = (
        f"{n},{('joy', 'fear')[n % 2]},{('sun is up', 'dark night')[n % 2]} {n}\n"
        for n in range(40)
    )
    (disk / "labels.csv").write_text("id,label,text\n" + "".join(labels))
    shell = Shell(disk)
    for before in filter(None, COMMANDS[command][0].split("; ")):
        shell.done(*expand(disk, before))
    return shell


def expand(disk: Path, command: str) -> list[str]:
    """The words of a command; a star stands for the one folder there is."""
    return [
        str(next(disk.glob(word)).relative_to(disk)) if "*" in word else word
        for word in command.split()
    ]


def check(ran: Ran) -> None:
    said = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in ran.err, ran.err
    assert len(said) == 1, ran
    assert re.search("No space left|disk", said[0]), said


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_full_disk_is_one_line(disk: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = prepare(disk, command, monkeypatch)
    words = expand(disk, COMMANDS[command][1])
    for left in ROOM:
        fill(disk, left)
        ran = shell.run(*words)
        (disk / "ballast").unlink()
        assert not list_scrap(disk), (command, left)
        if ran.code == 0:
            return
        assert ran.code == 2, ran
        check(ran)
    shell.done(*words)
