"""Every way to start the service that the guide to the studio shows, and the pages it promises."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from tests.places import ROOT

GUIDE = ROOT / "docs" / "studio.md"
PAGES = {
    "--store": ("/browse/store?q=keyboard", "CN90001"),
    "--runs": ("/browse/runs", "embedded/reader"),
    "--model": ("/", "openai/NAME</option>"),
}


def test_every_start_of_the_guide_serves_what_it_promises(tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    variables = os.environ | {"MEMANTICS_HOME": str(tmp_path / "home"), "COLUMNS": "80"}
    program = [sys.executable, "-m", "memantics.cli.main"]
    seen: set[str] = set()
    for line in re.findall(r"^(?:\$ )?memantics .*$", text, flags=re.MULTILINE):
        words = shlex.split(line.removeprefix("$ "))[1:]
        if words[0] != "serve":
            subprocess.run([*program, *words], cwd=tmp_path, env=variables, check=True)
            continue
        started = subprocess.Popen(
            [*program, *words, "--port", "0"],
            cwd=tmp_path,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert started.stdout is not None
            said = started.stdout.readline()
            found = re.search(r"http://\S+", said)
            assert found, said
            for flag, (path, promised) in {"": ("/", "What does this meme say?"), **PAGES}.items():
                if not flag or flag in words:
                    with urlopen(found[0] + path, timeout=60) as page:
                        assert promised in page.read().decode(), (line, path)
                    seen.add(flag)
        finally:
            started.send_signal(signal.SIGINT)
            started.wait(60)
            assert started.stdout is not None
            started.stdout.close()
    assert seen == {"", *PAGES}
