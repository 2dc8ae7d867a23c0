"""The command line starts fast: the list of commands is a table, and the table is true."""

from __future__ import annotations

import inspect
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from memantics.actions.asking import Asking
from memantics.cli import main
from memantics.cli.flags import asks_models
from memantics.cli.main import make_app
from memantics.core.errors import InputError
from tests.commands import Shell


def walk(group: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """Every command and its line in the help, two levels deep."""
    found: dict[tuple[str, ...], str] = {}
    for name, command in group.commands.items():
        found[*path, name] = " ".join((command.help or "").split("\n\n")[0].split())
        if name == "build":
            found |= walk(command, (*path, name))
    return found


def test_the_listed_lines_are_those_of_the_commands() -> None:
    listed = walk(typer.main.get_command(make_app()))
    real = walk(typer.main.get_command(make_app(lazy=False)))
    assert listed == real


def cpu_seconds(*words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_and_the_package_load_nothing_heavy() -> None:
    bare = cpu_seconds("-c", "pass")
    # Twice what is wanted of a quiet machine: the suite runs on busy ones.
    assert cpu_seconds("-m", "memantics.cli.main", "--help") - bare < 0.8
    assert cpu_seconds("-c", "import memantics") - bare < 0.2
    loaded = "import sys, memantics.cli.main; print(*sys.modules)"
    names = subprocess.check_output([sys.executable, "-c", loaded], text=True).split()
    for heavy in ("numpy", "pydantic", "aiohttp", "memantics.registry", "PIL"):
        assert heavy not in names, heavy


def test_a_command_shows_its_options_wherever_it_stands(shell: Shell) -> None:
    for words in (("run",), ("build", "knowledge"), ("data", "add"), ("models", "list")):
        assert f"memantics {' '.join(words)}" in shell.run(*words, "--help").out
    assert "--base-url" in shell.run("audit", "--help").out
    assert "Did you mean 'run'?" in shell.refused("rum")
    assert "Did you mean 'questions'?" in shell.refused("build", "question")


def test_shared_options_reach_the_command_as_one_record() -> None:
    seen: list[tuple[str, Asking]] = []

    @asks_models(concurrency=8)
    def command(name: str, *, asking: Asking, as_json: bool = False) -> None:
        """Remember what came."""
        seen.append((name, asking))

    app = typer.Typer()
    app.command()(command)
    line = ["x", "--base-url", "http://h/v1", "--param", "a=b", "--price", "1,2", "--no-cache"]
    typer.main.get_command(app)(line, standalone_mode=False)
    ((name, asking),) = seen
    assert name == "x"
    assert (asking.prices, asking.use_cache, asking.concurrency) == ((1.0, 2.0), False, 8)
    assert (asking.settings.base_url, asking.settings.params) == ("http://h/v1", {"a": "b"})
    assert asking.settings.timeout == 300.0
    assert "asking" not in inspect.signature(command).parameters
    with pytest.raises(InputError, match="--price"):
        typer.main.get_command(app)(["x", "--price", "-1,2"], standalone_mode=False)


def test_one_module_speaks_to_the_terminal() -> None:
    wrong = re.compile(r"typer\.echo|\bprint\(|sys\.std(out|err)\.write|\bConsole\(")
    folder = Path(main.__file__).parent
    found = [
        f"{path.name}: {line.strip()}"
        for path in folder.glob("*.py")
        if path.name != "terminal.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if wrong.search(re.sub(r"\w+\(?\)?\.print\(", "", line))
    ]
    assert found == [], "say(), tell(), print_data() and console() of cli/terminal.py are neutral"
