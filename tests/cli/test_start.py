"""The command line starts fast: the list of commands is a table, and the table is true."""

from __future__ import annotations

import inspect
import json
import re
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import pytest
import typer.main

from memantics.cli import main
from memantics.cli.expose import expose
from memantics.cli.main import make_app
from memantics.cli.terminal import say
from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag
from memantics.models.client import CallSettings
from tests.commands import Shell


def walk(group: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """Every command and its line in the help, two levels deep."""
    found: dict[tuple[str, ...], str] = {}
    for name, command in group.commands.items():
        found[*path, name] = " ".join((command.help or "").split("\n\n")[0].split())
        if any(listed.startswith(f"{name} ") for listed in main.COMMANDS):
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
    for heavy in ("numpy", "pydantic", "aiohttp", "memantics.benchmarks", "PIL"):
        assert heavy not in names, heavy


def test_a_command_shows_its_options_wherever_it_stands(shell: Shell) -> None:
    for words in (("run",), ("build", "knowledge"), ("data", "add"), ("models", "list")):
        assert f"memantics {' '.join(words)}" in shell.run(*words, "--help").out
    assert "--base-url" in shell.run("audit", "--help").out
    assert "Did you mean 'run'?" in shell.refused("rum")
    assert "Did you mean 'questions'?" in shell.refused("build", "question")


@dataclass(frozen=True)
class Draw:
    count: Annotated[int, Flag("How many.", min=1, max=9)] = 3
    seed: int = 0


def test_flags_reach_the_action_as_its_parameters_and_records() -> None:
    seen: list[object] = []

    def draw(
        name: Annotated[str | Path, Argument("Whose.", "file")],
        *,
        topics: Annotated[Sequence[str], Flag("About what.", "--topic -t")] = ("all",),
        pairs: Annotated[Mapping[str, str], Flag("More.", "--set")] = MappingProxyType({}),
        again: Annotated[bool, Flag("Once more.")] = False,
        settings: Draw | None = None,
        progress: object = None,
        calls: CallSettings | None = None,
    ) -> list[str]:
        seen[:] = [name, topics, dict(pairs), again, settings, progress, calls]
        return ["drawn"]

    @expose(
        draw,
        watch=lambda prices: nullcontext({"progress": prices}),
        defaults={"concurrency": 8},
        hide=("again",),
        first=("count",),
    )
    def command(
        done: list[str], topics: Sequence[str], times: Annotated[int, Flag("Shown.")] = 1
    ) -> None:
        """Draw."""
        say(f"{done * times} {topics}")

    parameters = list(inspect.signature(command).parameters)
    assert parameters[:4] == ["file", "count", "topics", "pairs"]
    assert parameters[-2:] == ["use_cache", "as_json"]
    assert "again" not in parameters

    app = typer.Typer()
    app.command()(command)
    call = partial(typer.main.get_command(app), standalone_mode=False)
    line = ["x", "--base-url", "http://h/v1", "--param", "a=b", "--price", "1,2", "--no-cache"]
    call([*line, "-t", "a", "-t", "b", "--set", "c=d=e", "--count", "9"])
    *others, calls = seen
    assert others == [Path("x"), ["a", "b"], {"c": "d=e"}, False, Draw(9), (1.0, 2.0)]
    assert isinstance(calls, CallSettings)
    assert (calls.prices, calls.use_cache, calls.concurrency) == ((1.0, 2.0), False, 8)
    assert (calls.model_settings.base_url, calls.model_settings.params) == (
        "http://h/v1",
        {"a": "b"},
    )
    assert calls.model_settings.timeout == 300.0
    call(["x"])
    assert seen[1:5] == [("all",), {}, False, Draw()]
    for wrong in (["x", "--count", "10"], ["x", "--count", "0"]):
        with pytest.raises(typer.BadParameter):
            call(wrong)
    with pytest.raises(InputError, match="--price"):
        call(["x", "--price", "-1,2"])
    with pytest.raises(InputError, match="--set"):
        call(["x", "--set", "c"])


def test_a_command_shows_its_result_or_prints_it_once(shell: Shell) -> None:
    listed = shell.run("models", "list")
    assert listed.out.split()[:2] == ["name", "what"]
    assert "openai/NAME" in listed.out
    assert {"name", "what"} == set(json.loads(shell.run("models", "list", "--json").out)[0])


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
