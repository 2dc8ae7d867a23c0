"""Files that are no files: named pipes, devices, sockets, folders, loops, and damaged ones."""

from __future__ import annotations

import os
import random
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.hostile.cases import Case

KINDS = ("pipe", "zero", "random", "socket", "folder", "loop", "missing", "unreadable name")
DAMAGES = ("empty", "cut", "garbage", "flipped", *KINDS[:3], "folder", "missing")


def generate(seed: int, count: int, names: Sequence[str], kinds: Sequence[str]) -> Iterator[Case]:
    """Cases for these files, every kind in turn."""
    chance = random.Random(seed)
    for number in range(count):
        yield {
            "name": chance.choice(list(names)),
            "kind": kinds[number % len(kinds)],
            "at": round(chance.random(), 3),
        }


def damage(path: Path, case: Case) -> None:
    """Put what the case describes in the place of a file."""
    kind, data = case["kind"], path.read_bytes() if path.is_file() else b""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind in ("zero", "random"):
        path.symlink_to({"zero": "/dev/zero", "random": "/dev/urandom"}[kind])
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(data[: int(len(data) * case["at"])])
    elif kind == "garbage":
        path.write_bytes(random.Random(case["at"]).randbytes(len(data) or 100))
    elif kind == "flipped" and data:
        place = int((len(data) - 1) * case["at"])
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x5A]) + data[place + 1 :])
