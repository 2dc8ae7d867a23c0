"""Every way to start the service that the guide to the studio shows, and the pages it promises."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.request import urlopen

import pytest

from tests import forks
from tests.commands import Shell
from tests.places import ROOT

pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "how-to" / "studio.md"
PAGES = {
    "--store": ("/browse/store?q=keyboard", "CN90001"),
    "--runs": ("/browse/runs", "embedded/reader"),
    "--model": ("/", "openai/NAME</option>"),
}


@contextmanager
def serving(shell: Shell, words: list[str]) -> Iterator[str]:
    """The command in a process of its own, and the address it prints."""
    out, err = (shell.folder / f"serve.{name}" for name in ("out", "err"))
    out.write_text("")
    place = forks.Place(shell.folder, shell.environment, writes=str(out), tells=str(err))
    process = forks.start(partial(forks.be_command, [*words, "--port", "0"]), place)
    try:
        while not (found := re.search(r"http://\S+\n", out.read_text())):
            assert process.is_alive(), err.read_text()
            time.sleep(0.02)
        yield found[0].strip()
    finally:
        if process.pid is not None:
            os.kill(process.pid, signal.SIGINT)
        process.join(60)
        process.close()


def test_every_start_of_the_guide_serves_what_it_promises(shell: Shell) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    seen: set[str] = set()
    for line in re.findall(r"^(?:\$ )?memantics .*$", text, flags=re.MULTILINE):
        words = shlex.split(line.removeprefix("$ "))[1:]
        if words[0] != "serve":
            shell.done(*words)
            continue
        with serving(shell, words) as address:
            for flag, (path, promised) in {"": ("/", "Analyse a meme"), **PAGES}.items():
                if not flag or flag in words:
                    with urlopen(address + path, timeout=60) as page:
                        assert promised in page.read().decode(), (line, path)
                    seen.add(flag)
    assert seen == {"", *PAGES}
