"""Every command shown in the docs runs, in order, page by page, in a folder of its own."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memantics.benchmarks.registry import SAMPLE_IMAGES, find_benchmarks
from tests.background import serve_in_background
from tests.commands import Ran, Shell
from tests.places import ROOT
from tests.punmemecn.official_script import write_script

PAGES = [
    ROOT / "README.md",
    ROOT / "README.zh.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.parent.name not in {"reference", "research"}
    ),
    ROOT / "docs" / "reference" / "sample-data.md",
    ROOT / "docs" / "reference" / "ontology.md",
]
# Pages whose commands take more than three seconds of CPU time.
LONG = {
    *("add-a-benchmark.md", "any-model.md", "audit-a-benchmark.md", "build-a-benchmark.md"),
    *("build-chats-and-intents.md", "compare-editors.md", "detect-harmful-memes.md"),
    *(
        "evaluate-a-model.md",
        "explore-knowledge.md",
        "five-releases-to-a-table.md",
        "make-a-meme-kinder.md",
        "memeintent.md",
    ),
    *("mer_bench.md", "mquest.md", "publish-a-benchmark.md", "punmemecn.md"),
    *("read-homophones.md", "read-the-report.md", "reproduce-a-paper.md", "screen-at-scale.md"),
    *("screen-memes.md", "toxicn_mm.md", "train-a-classifier.md", "train-neural-detectors.md"),
    *("use-official-data.md", "compare-runs.md", "collect-memes.md", "studio.md"),
    *("add-metrics-and-plugins.md", "exchange-answers.md", "llm-judges.md"),
    "perturbation-tests.md",
    *("README.md", "disagreement.md"),
    *("README.zh.md", "analyze-a-meme.md", "first-evaluation.md", "moderate-a-forum.md"),
    *("build-a-benchmark-with-a-team.md", "understand-one-meme.md", "quote-a-judge.md"),
}
CLONES = {
    "semantic-memes": "mquest",
    "PunMemeCN": "punmemecn",
    "MemeIntent": "memeintent",
    "ToxiCN_MM": "toxicn_mm",
    "MER-Bench": "mer_bench",
}
# Where a clone has its data, if not at its root.
INNER = {"PunMemeCN": "data/pun_meme/cn"}
# What stands in for a user's folder of memes.
MEMES = ("en-001", "en-005", "en-009", "en-012", "CN90001", "CN90002", "CN90003")
SERVER = "http://localhost:8000/v1"


def commands(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                yield line[2:].partition("    #")[0].strip()


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """A folder in which the paths of the docs exist: the samples stand in for the releases."""
    for clone, name in CLONES.items():
        root = tmp_path / "path" / "to" / clone
        folder = root / INNER.get(clone, "")
        shutil.copytree(find_benchmarks()[name].folder / "sample", folder)
        for place in {root, folder}:
            (place / "images").symlink_to(SAMPLE_IMAGES)
    write_script(tmp_path / "path" / "to" / "PunMemeCN")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "memes").mkdir()
    for name in MEMES:
        shutil.copy(SAMPLE_IMAGES / f"{name}.png", tmp_path / "memes")
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in LONG else ()) for page in PAGES],
    ids=[page.name for page in PAGES],
)
def test_the_commands_of_a_page_run(page: Path, client: Path) -> None:
    shown = list(commands(page))
    shell, variables = Shell(client), dict[str, str]()
    with serve_in_background() as server:
        for command in shown:
            words = shlex.split(command.replace(SERVER, server.url))
            if words[0] == "make":
                assert_target(words[1])
                continue
            if words[0] == "export":
                name, _, value = words[1].partition("=")
                variables[name] = value
                continue
            if words[0] == "python":
                ran = run_in_shell(shell, command, variables)
                assert ran.code == 0, f"{command}\n{ran.out}\n{ran.err}"
                continue
            assert words[0] == "memantics", command
            if set(command) & set("|<>;&$`"):
                ran = run_in_shell(shell, command.replace(SERVER, server.url), variables)
            else:
                expanded = [part for word in words[1:] for part in expand(word, client)]
                ran = shell.run(*expanded, **variables)
            # The server says "B" to everything: where that is no answer, the command says so.
            mute = ran.code == 1 and "replies could be parsed (" in ran.err
            assert ran.code == 0 or mute, f"{command}\n{ran.out}\n{ran.err}"
            for text in ran.out.splitlines():
                if not text.startswith(("runs/", "{", "|")) and "--json" not in command:
                    # A path is not wrapped, so that it can be copied. A lone "/…" is a line break
                    # in a shortened answer.
                    copied = re.sub(r"(?<!\S)/\w\S*", "PATH", text)
                    assert display_width(copied) <= 80 or "," in text, text


def expand(word: str, folder: Path) -> list[str]:
    """A word as a shell would give it to a command."""
    found = sorted(folder.glob(word)) if "*" in word else []
    return [str(path.relative_to(folder)) for path in found] or [word]


def run_in_shell(shell: Shell, command: str, variables: dict[str, str]) -> Ran:
    """A line with pipes or the like, in a shell and another process."""
    program, _, arguments = command.partition(" ")
    runs = {"memantics": f"{sys.executable} -m memantics.cli.main", "python": sys.executable}
    done = subprocess.run(
        f"{runs[program]} {arguments}",
        shell=True,
        cwd=shell.folder,
        env=shell.environment | variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def display_width(text: str) -> int:
    return sum(2 if "\u2e80" <= char <= "\uffef" else 1 for char in text)


def assert_target(name: str) -> None:
    """``make`` targets run the tests themselves: only that they exist is checked here."""
    known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert name in known


def test_every_long_page_is_there() -> None:
    assert {page.name for page in PAGES} >= LONG


def test_every_command_is_shown_somewhere_in_the_reference() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.build", "--check"], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
