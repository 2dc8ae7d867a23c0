"""Every example of the guide runs as it stands; container and unit start what there is."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.commands import Shell
from tests.kinder import MODEL
from tests.places import ROOT
from tests.serve.site import MEME, Site

GUIDE = (ROOT / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE, flags=re.DOTALL)


@pytest.fixture
def client(tmp_path: Path) -> Path:
    shutil.copy(MEME, tmp_path / "meme.png")
    return tmp_path


def run(command: list[str], client: Path) -> str:
    done = subprocess.run(
        command, cwd=client, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_examples_for_curl_run(site: Site, client: Path) -> None:
    (shown,) = (block for block in blocks("sh") if "curl" in block)
    said = run(["sh", "-ec", shown.replace(ADDRESS, site.address)], client)
    assert '"status":"scored"' in said
    assert '"text":"最近有点键忘"' in said
    assert '"caption":"压力山大"' in said
    assert '"variables":["meme","scene"]' in said
    assert '"error"' not in said


@pytest.mark.slow
def test_the_examples_for_python_run(site: Site, client: Path) -> None:
    with_client, plain = (block.replace(ADDRESS, site.address) for block in blocks("python"))
    assert "scored 0." in run([sys.executable, "-c", with_client], client)
    alone = plain.replace(', "model": "openai/NAME"', "")
    assert run([sys.executable, "-c", alone], client).startswith("declined captions need a model")
    assert not (client / "kinder.png").exists()
    assert not run([sys.executable, "-c", plain.replace("openai/NAME", MODEL)], client)
    assert (client / "kinder.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_example_for_javascript_runs(site: Site, client: Path) -> None:
    (shown,) = blocks("javascript")
    file = client / "ask.mjs"
    file.write_text(shown.replace(ADDRESS, site.address), encoding="utf-8")
    lines = run(["node", str(file)], client).splitlines()
    assert "scored false" in lines[0]
    assert "not_scored true the text is in ja" in lines[1]


def test_commands_of_the_guide_are_understood(shell: Shell, tmp_path: Path) -> None:
    """Starting is tried elsewhere; here a missing file or token ends each command."""
    starts = re.findall(r"^memantics serve (.*?)(?: +#.*)?$", GUIDE, flags=re.MULTILINE)
    flags = [line for line in starts if line]
    assert len(flags) >= 3
    for line in flags:
        said = shell.refused("serve", "--port", "0", *shlex.split(line))
        assert re.search("tokens.toml|detector.zip", said), said
    (made,) = re.findall(r"^memantics (serve-token .*)$", GUIDE, flags=re.MULTILINE)
    assert shell.run(*shlex.split(made)).out.startswith("mm-")


def test_the_container_runs_as_nobody_and_starts_what_there_is(shell: Shell) -> None:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    last = len(steps) - 1 - [name for name, _ in steps][::-1].index("FROM")
    named = dict(steps[last:])
    assert int(named["USER"]) > 0
    entry = ast.literal_eval(named["ENTRYPOINT"])
    assert entry[0] == "memantics"
    assert "needs a token" in shell.refused(*entry[1:])
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = re.findall(r"'\.\[([a-z,]+)\]'", "\n".join(lines))
    assert set(wanted.split(",")) <= set(extras["optional-dependencies"])
    for name, rest in steps:
        assert name != "ADD", rest
        if name == "COPY" and not rest.startswith("--from"):
            assert all((ROOT / part).exists() for part in rest.split()[:-1])


def test_the_unit_starts_what_there_is(shell: Shell) -> None:
    unit = (ROOT / "docs" / "deploy" / "memantics.service").read_text()
    (command,) = re.findall(r"^ExecStart=(.*)$", unit, flags=re.MULTILINE)
    words = shlex.split(command)
    assert words[0].endswith("/memantics")
    assert "tokens" in shell.refused(*words[1:])
    assert "DynamicUser=yes" in unit
