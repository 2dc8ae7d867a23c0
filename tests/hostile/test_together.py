"""Two processes where one is expected, and kills at any moment: nothing mixed, nothing lost."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from memantics.core.journal import whole_file
from memantics.serve import tokens
from tests import forks
from tests.commands import Shell
from tests.hostile.cases import SEED

MEMES = 300


def start(shell: Shell, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "memantics.cli.main", *words],
        cwd=shell.folder,
        env=shell.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=240)
    assert "Traceback" not in said, said
    return process.returncode, said


def put_texts(shell: Shell) -> None:
    rows = (json.dumps({"id": str(n), "text": f"{n} good mornings"}) + "\n" for n in range(MEMES))
    (shell.folder / "texts.jsonl").write_text("".join(rows))


def digest(folder: Path, names: Sequence[str]) -> str:
    """What a command left, less what differs from run to run (times)."""
    found = sha256()
    for name in names:
        for path in sorted(folder.glob(name)):
            body = path.read_bytes()
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    body = b"".join(archive.read(part) for part in sorted(archive.namelist()))
            body = re.sub(rb'"(seconds|when|place)":("[^"]*"|[0-9.e-]+)', b"", body)
            found.update(path.name.encode() + b"".join(sorted(body.splitlines())))
    return found.hexdigest()


# What is run twice at once, and the files that must be as after one run.
TOGETHER = {
    "run": ("run mquest -m fake/keys --data starter --out runs", ["runs/*/answers.jsonl"]),
    "screen": ("screen texts.jsonl --out out --workers 1 --csv", ["out/parts/*", "out/*.csv"]),
    "build": ("build knowledge starter -m fake/builder --out b --limit 3", ["b/knowledge.jsonl"]),
    "detector": ("detector train --data starter --preset words --out d.zip", ["d.zip"]),
    "kb": ("kb import starter --store kb", []),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TOGETHER))
def test_two_processes_leave_what_one_leaves(shell: Shell, name: str) -> None:
    """One waits or is refused in one line, or both are right."""
    command, files = TOGETHER[name]
    put_texts(shell)
    ended = [end(process) for process in [start(shell, *command.split()) for _ in range(2)]]
    assert any(code == 0 for code, _ in ended), ended
    for code, said in ended:
        assert code in (0, 2), said
        if code:
            errors = [line for line in said.splitlines() if line.startswith("error: ")]
            assert len(errors) == 1, said
    assert not [path for path in shell.folder.rglob("*.part*") if path.is_file()]
    both = digest(shell.folder, files)
    alone = Shell(shell.folder / "alone")
    alone.folder.mkdir()
    put_texts(alone)
    assert end(start(alone, *command.split()))[0] == 0
    assert digest(alone.folder, files) == both
    if name == "kb":
        told = [space.done("kb", "stats", "--store", "kb", "--json") for space in (shell, alone)]
        assert told[0] == told[1]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    """One name for both halves: the second cut off what the first had written, and wrote on."""
    path, gate = tmp_path / "a", tmp_path / "gate"
    child = os.fork()
    if child == 0:
        with whole_file(path) as file:
            file.write(b"child\n" * 10_000)
            while not gate.exists():
                time.sleep(0.01)
        os._exit(0)
    while not list(tmp_path.glob("*.part")):
        time.sleep(0.01)
    with whole_file(path) as file:
        file.write(b"parent\n" * 20_000)
    assert path.read_bytes() == b"parent\n" * 20_000
    gate.touch()
    assert os.waitpid(child, 0)[1] == 0
    assert path.read_bytes() == b"child\n" * 10_000


def add_token(name: str) -> None:
    read = tokens.read_tokens

    def read_slowly(*given: Any) -> tuple[tokens.Token, ...]:
        found = read(*given)
        time.sleep(0.2)
        return found

    setattr(tokens, "read_tokens", read_slowly)  # noqa: B010 - in a process of its own
    tokens.make_token(Path("tokens"), name)


def test_tokens_that_are_made_at_once_all_count(shell: Shell) -> None:
    """Each read the file, added its token and wrote: the last one won."""
    names = [f"client-{number}" for number in range(4)]
    tokens.make_token(shell.folder / "tokens", "first")
    place = forks.Place(shell.folder, shell.environment)
    started = [forks.start(partial(add_token, name), place) for name in names]
    for process in started:
        process.join(120)
    kept = tokens.read_tokens(shell.folder / "tokens", {})
    assert sorted(token.name for token in kept) == [*names, "first"]


KILLED = {
    "detector train": (TOGETHER["detector"][0], ["d.zip"]),
    "build": (TOGETHER["build"][0], ["b/knowledge.jsonl", "b/memes.jsonl"]),
    "kb import": (TOGETHER["kb"][0], []),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KILLED))
def test_ten_kills_and_a_rerun_give_the_same(shell: Shell, name: str) -> None:
    command, files = KILLED[name]
    alone = Shell(shell.folder / "alone")
    alone.folder.mkdir()
    began = time.monotonic()
    assert end(start(alone, *command.split()))[0] == 0
    takes, chance = time.monotonic() - began, random.Random(SEED)
    killed = 0
    for _ in range(10):
        process = start(shell, *command.split())
        time.sleep(takes * chance.uniform(0.4, 1))
        process.send_signal(signal.SIGKILL)
        killed += end(process)[0] == -signal.SIGKILL
    assert killed
    assert end(start(shell, *command.split()))[0] == 0
    assert digest(shell.folder, files) == digest(alone.folder, files)
    if name == "kb import":
        told = [space.done("kb", "stats", "--store", "kb", "--json") for space in (shell, alone)]
        assert told[0] == told[1]
