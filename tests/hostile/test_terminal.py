"""Nothing from outside speaks to the terminal: every command, on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer.main

from memantics.cli.main import main, make_app
from memantics.cli.terminal import Guarded
from memantics.core.samples import image_path
from memantics.core.text import neutralise
from tests.commands import Shell

# A window title, a cleared screen, a C1 code, a turned direction, and a letter to look for.
HOSTILE = "PWN\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
FORBIDDEN = ("\x1b]", "\x07", "\x1b[2J", "\x9b", "\u202e", "\udcff")


def drive(shell: Shell, *words: str | Path) -> str:
    """What a command writes to a terminal, both streams together."""
    master, slave = pty.openpty()
    seen = bytearray()
    ended = threading.Event()

    def read() -> None:
        with contextlib.suppress(OSError):  # Linux says EIO where the other end is closed
            while True:
                # A helper process that outlives the command may hold the other end open.
                last = ended.is_set()
                if select.select([master], [], [], 0.05)[0]:
                    seen.extend(os.read(master, 65536))
                elif last:
                    return

    reader = threading.Thread(target=read)
    reader.start()
    environment = shell.environment | {"TERM": "xterm-256color", "COLUMNS": "200"}
    with (
        open(slave, "w", encoding="utf-8") as out,  # noqa: PTH123 - a descriptor, not a path
        contextlib.chdir(shell.folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        mock.patch.object(sys, "stdin", io.StringIO()),
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "argv", ["memantics", *(str(word) for word in words)]),
        contextlib.suppress(SystemExit),
    ):
        main()
    ended.set()
    reader.join()
    os.close(master)
    return seen.decode("utf-8")


def check(shown: str) -> str:
    for code in FORBIDDEN:
        assert code not in shown, (code, shown)
    assert "Traceback" not in shown
    assert shown.strip()
    return shown


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(leaves(typer.main.get_command(make_app(lazy=False))))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_hostile_arguments_of_every_command(path: tuple[str, ...], shell: Shell) -> None:
    command = COMMANDS[path]
    # Chinese first: what is read aloud is no English then, whose recogniser is large.
    text = "压力山大" * (path == ("pun",)) + HOSTILE
    arguments = [text for own in command.params if own.param_type_name == "argument"]
    check(drive(shell, *path, *arguments, "--no-such-" + HOSTILE))
    if arguments:
        needed = {"--model": HOSTILE, "--name": HOSTILE, "--licence": HOSTILE}
        named = [
            word
            for own in command.params
            for opt in own.opts
            if opt in needed
            for word in (opt, needed[opt])
        ]
        check(drive(shell, *path, *arguments, *named))


class Rude(BaseHTTPRequestHandler):
    """A server whose error holds control codes."""

    def do_POST(self) -> None:
        body = json.dumps({"error": {"message": HOSTILE, HOSTILE: HOSTILE}}, ensure_ascii=False)
        self.send_response(400)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_a_servers_words(shell: Shell) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Rude) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        words = ("run", "mquest/qa", "--limit", "2", "--base-url", url, "--no-cache")
        shown = check(drive(shell, *words, "--model", "openai/" + HOSTILE))
        server.shutdown()
    assert "PWN" in shown


def test_what_files_hold(shell: Shell) -> None:
    ran = shell.run("run", "mquest/qa", "--model", "baseline/random", "--limit", "3", "--json")
    folder = shell.folder / json.loads(ran.out)[0]["folder"]
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    facts |= {"model": HOSTILE, "title": HOSTILE, "options": {HOSTILE: HOSTILE}}
    (folder / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    for words in (("report", folder, "--format", "md"), ("report", folder, "--format", "csv")):
        assert "PWN" in check(drive(shell, *words))
    table = shell.folder / f"{HOSTILE}.json"
    table.write_text(json.dumps([{HOSTILE: 1}]), encoding="utf-8")
    assert "PWN" in check(drive(shell, "audit", "mer_bench", "--published", table))
    shown = drive(shell, "report", folder, "--format", "json")
    assert "PWN" in check(shown)


def test_json_escapes_what_cannot_be_seen(shell: Shell) -> None:
    words = ("run", "mquest/qa", "--model", "baseline/random", "--limit", "2", "--json")
    out = shell.folder / HOSTILE
    ran = shell.run(*words, "--out", out)
    assert json.loads(ran.out)[0]["folder"].startswith(str(out))
    for code in FORBIDDEN:
        assert code not in ran.out


@pytest.mark.slow
def test_file_names_that_are_not_utf8(shell: Shell) -> None:
    memes = shell.folder / "memes"
    memes.mkdir()
    strange = os.fsdecode(b"caf\xff.png")
    (memes / strange).write_bytes(image_path("CN90001").read_bytes())
    (memes / "good.png").write_bytes(image_path("CN90002").read_bytes())
    for words in (
        ("score", memes / strange),
        ("report", memes / strange),
        ("analyze", memes / "no" / strange),
        ("data", "add", "mquest", memes / strange),
        ("build", "knowledge", memes / strange, "--model", "baseline/random"),
    ):
        shown = check(drive(shell, *words))
        assert "caf\ufffd" in shown
    for line in (
        ("collect", memes, "--out", shell.folder / "collected"),
        ("collect", memes, "--out", shell.folder / "collected", "--json"),
        ("analyze", memes / strange, memes / "good.png"),
        ("analyze", memes / strange, memes / "good.png", "--json"),
    ):
        check(drive(shell, *line))


def test_the_neutraliser_keeps_what_people_write() -> None:
    kept = "a\tb\n\u3000全角\u00a0👩\u200d🔬 ❤\ufe0f é ي\u200cن"
    assert neutralise(kept) == kept
    assert neutralise("\x1b\x00\x7f\x9b\u202a\u2066\ufeff\ud800") == "\ufffd" * 8
    stream = io.StringIO()
    Guarded(stream, colours=True).write("\x1b[1;31mred\x1b[0m\x1b[2J")
    assert stream.getvalue() == "\x1b[1;31mred\x1b[0m\ufffd[2J"
