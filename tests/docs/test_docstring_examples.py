"""The examples in docstrings of public functions run, in a folder that has the files they name."""

from __future__ import annotations

import doctest
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from docs.python_reference import list_functions, read_docstring

from memantics.core.samples import IMAGES
from tests import forks
from tests.commands import Shell
from tests.docs.test_python import environment
from tests.places import ROOT

pytestmark = pytest.mark.slow

FUNCTIONS = dict(list_functions())
EXAMPLES = {
    name: read_docstring(function).example
    for name, function in FUNCTIONS.items()
    if "+SKIP" in read_docstring(function).example
}
QUEUE = "build reappraisal memes --editor none --limit 1 --out"
CHATS = "build chats sample -m fake/drafter --out chats --limit 2 --per-meme 1"
QA = "run mquest/qa --data sample --limit 8 --no-cache --out"
# The commands that make a file or folder which an example names.
MADE = {
    "runs/one": f"{QA} runs/made -m baseline/longest",
    "runs/other": f"{QA} runs/made -m baseline/random",
    "runs/mquest-qa": f"{QA} runs/made -m fake/keys",
    "runs/mquest-qa-longest": f"{QA} runs/made -m baseline/longest",
    "runs/memeintent": "run memeintent -m fake/drafter --data sample --limit 2 --out runs/made",
    "builds/mine": "build intents sample -m fake/drafter --out builds/mine --limit 2",
    "builds/memes": "build knowledge memes -m fake/builder --out builds/memes --limit 2",
    "builds/memes-reappraisal": f"{QUEUE} builds/memes-reappraisal",
    "screened/today": "screen memes --out screened/today",
    "screened/may": "screen memes --out screened/may",
}


def make(place: str, folder: Path) -> None:
    """Make what an example names; a run gets the name that the example gives it."""
    aim = folder / place
    if aim.exists():
        return
    aim.parent.mkdir(parents=True, exist_ok=True)
    Shell(folder).done(*MADE[place].split())
    if place.startswith("runs/"):
        [made] = (path.parent for path in (folder / "runs" / "made").rglob("answers.jsonl"))
        shutil.move(made, aim)
        shutil.rmtree(folder / "runs" / "made")


def write_code(name: str, example: str) -> str:
    """The example as a script; models behind a server are replaced by one that needs none."""
    source = "".join(part.source for part in doctest.DocTestParser().get_examples(example))
    model = "fake/builder" if name in {"build.knowledge", "build.questions"} else "fake/drafter"
    source = source.replace("openai/NAME", "baseline/random" if name == "judge" else model)
    source = source.replace('licence="CC0-1.0"', 'licence="CC0-1.0", unreviewed=True')
    if "await " in source:
        body = "".join(f"    {line}\n" for line in source.splitlines())
        source = f"import asyncio\nasync def main():\n{body}asyncio.run(main())\n"
    return f"import memantics as mm\nruns = []\n{source}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "memes").mkdir()
    for name in ("en-001", "en-012", "CN90001"):
        shutil.copy(IMAGES / f"{name}.png", tmp_path / "memes")
    shutil.copy(IMAGES / "en-012.png", tmp_path / "meme.png")
    shutil.copy(ROOT / "examples" / "answers" / "full_results.csv", tmp_path / "answers.csv")
    return tmp_path


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs(name: str, folder: Path) -> None:
    code = write_code(name, EXAMPLES[name])
    for place in sorted(set(re.findall(r'"([\w/-]+)"', code)) & MADE.keys()):
        make(place, folder)
    ran = forks.run(partial(forks.be_script, code), forks.Place(folder, environment(folder)), 300)
    assert ran.code == 0, f"{code}\n{ran.err}"
