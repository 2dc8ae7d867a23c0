"""Nothing from outside speaks to the terminal, and no name ends a command in a traceback."""

from __future__ import annotations

import contextlib
import os
import pty
import re
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from tests import forks
from tests.background import serve_in_background
from tests.commands import Shell
from tests.faults import FaultServer
from tests.hostile.cases import SEED, Case, count_cases, noted, read_corpus, write_case
from tests.hostile.names import COMMANDS, generate

# What our own tables and progress bars send: styles, hide and show the cursor, up, erase a line.
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\x1b\[0?K")


def run_on_terminal(shell: Shell, *words: str) -> tuple[int, bytes]:
    """Run a command in a process of its own on a pseudo-terminal."""
    terminal, inner = pty.openpty()
    name, given = os.ttyname(inner), shell.environment | {"TERM": "xterm-256color"}
    place = forks.Place(shell.folder, given, reads=name, writes=name, tells=name)
    process = forks.start(partial(forks.be_command, list(words)), place)
    shown = b""
    while process.sentinel not in (ready := wait([terminal, process.sentinel], 120)):
        assert ready, f"nothing shown in two minutes, and no end: {words}"
        shown += os.read(terminal, 65536)
    os.close(inner)
    with contextlib.suppress(OSError):  # how a terminal says that its processes have gone
        while data := os.read(terminal, 65536):
            shown += data
    os.close(terminal)
    process.join()
    assert process.exitcode is not None
    return process.exitcode, shown


def find_faults(code: int, shown: bytes) -> list[str]:
    """What a command did on the terminal that it must not do."""
    text = shown.decode("utf-8")
    left = OURS.sub("", text).replace("\r\n", "\n").replace("\r", "")
    strange = sorted({char for char in left if not char.isprintable() and char != "\n"})
    faults = ["a traceback"] if "Traceback" in text else []
    faults += [] if code in (0, 1, 2) else [f"exit code {code}"]
    faults += ["a colour that is not ours"] if "\x1b[38;5;201m" in text else []
    faults += [f"control characters {strange}"] if strange else []
    return [f"{fault}: {text[:600]!r}" for fault in faults]


def try_name(shell: Shell, case: Case) -> list[str]:
    place = os.fsencode(shell.folder) + b"/" + os.fsencode(case["name"])
    with contextlib.suppress(OSError):  # some names are too long, or hold a slash
        if case["there"] == "file":
            Path(os.fsdecode(place)).write_bytes(b'{"\\u001b]0;PWNED\\u0007": [')
        elif case["there"] == "folder":
            os.mkdir(place)  # noqa: PTH102 - bytes
            with open(place + b"/\x1b[2J\xff.png", "wb") as file:  # noqa: PTH123 - bytes
                file.write(b"no image")
    words = [word.replace("{}", case["name"]) for word in case["command"].split(" ")]
    return find_faults(*run_on_terminal(shell, *words))


@pytest.mark.parametrize("case", read_corpus("names"), ids=write_case)
def test_known_names_stay_silent(shell: Shell, case: Case) -> None:
    assert try_name(shell, case) == []


@pytest.mark.slow
def test_names_in_every_command_stay_silent(shell: Shell) -> None:
    broken = []
    for case in generate(SEED, max(len(COMMANDS), count_cases(len(COMMANDS)))):
        try:
            with noted("names", case):
                assert try_name(shell, case) == []
        except AssertionError as error:
            broken.append((case, str(error)[:300]))
    assert broken == []


def test_what_a_server_says_stays_silent(shell: Shell) -> None:
    """The body of an error goes into an error line."""
    with serve_in_background(FaultServer(always="speaks")) as server:
        words = ("run", "mquest", "-m", "openai/x", "--base-url", server.url, "--data", "sample")
        code, shown = run_on_terminal(shell, *words, "--limit", "2")
    assert b"PWNED" in shown
    assert find_faults(code, shown) == []


def test_the_check_sees_what_it_should() -> None:
    assert find_faults(2, b"error: plain \x1b[1mbold\x1b[0m text\r\n") == []
    for speech in ("\x1b]0;PWNED\x07", "\x1b[2J", "\x9b31m", "\u202e", "\x07"):
        assert find_faults(2, f"error: {speech}\n".encode()), speech
    assert find_faults(-9, b"killed\n")
    assert find_faults(1, b"Traceback (most recent call last):\n")
