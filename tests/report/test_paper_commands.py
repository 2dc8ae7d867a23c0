"""Every ``memantics run`` that a page prints fills the cells that name it, and no others.

Systems are played by a server on the loopback; weights that a command would load are, too: what is
tested is that the command asks what its cell shows, not how weights answer. What only people or
hours of training fill (``annotate``, ``humans``, ``detector study`` and ``tune``) is tested where
it stands: ``test_papers_filled.py``, ``tests/docs/test_own_paper.py``.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.paper import PaperSheet
from memantics.core.rundir import read_facts
from memantics.core.samples import DETECTOR_FILE
from memantics.evaluation.paper import paper
from tests.commands import Shell
from tests.servers.fakes import Scripted, serving

pytestmark = pytest.mark.slow
NAMES = ("memeintent", "mer_bench", "mquest", "punmemecn", "toxicn_mm")
Place = tuple[str, str, str, int]


def list_places(sheet: PaperSheet, kind: str = "paper") -> dict[Place, Any]:
    """Cells of the paper's own rows by where they stand."""
    return {
        (part.label, row.section, row.label, place): cell
        for part in sheet.parts
        for row in part.rows
        if row.kind == kind
        for place, cell in enumerate(row.cells)
    }


def answer(body: dict[str, Any]) -> str:
    """Something that every task can read."""
    return json.dumps({"answer": "B"}) if "response_format" in body else "B"


def name_model(words: list[str], url: str) -> list[str]:
    """The printed words with a server for URL; local weights are asked there as well."""
    told = [url if word == "URL" else word.replace("local/", "openai/") for word in words]
    return told if url in told or not any("openai/" in word for word in told) else [
        *told, "--base-url", url,
    ]  # fmt: skip


def is_asked(run: Path, words: list[str]) -> bool:
    facts = read_facts(run)
    return facts.benchmark in words or facts.task in words


@pytest.mark.parametrize("name", NAMES)
def test_a_printed_run_fills_its_cells_and_no_others(
    name: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    for detector in ("CLIP-MKE", "HateCLIPper-RGCL"):
        shutil.copy(DETECTOR_FILE, shell.folder / detector)
    before = list_places(paper(name, data="sample"))
    wanted = defaultdict[str, set[Place]](set)
    for place, cell in before.items():
        if cell.status == "empty" and cell.fill.startswith("memantics run "):
            wanted[cell.fill].add(place)
    named = {
        text: places
        for text, places in wanted.items()
        if "MODEL" not in text and "JUDGE" not in text
    }
    assert named or name == "mer_bench"
    with serving(Scripted(answer)) as server:
        for command, places in named.items():
            words = name_model(shlex.split(command)[1:], server.url)
            out = shell.folder / f"out-{len(list(shell.folder.iterdir()))}"
            ran = shell.run(*words, "--data", "sample", "--limit", "3", "--out", out)
            assert ran.code in (0, 1), (command, ran)
            # Runs that the wanted one needs (background knowledge, captions) fill tables of theirs.
            found = [path.parent for path in out.rglob("run.json")]
            runs = [run for run in found if is_asked(run, words)]
            after = list_places(paper(name, runs, data="sample"))
            filled = {
                place
                for place, cell in before.items()
                if cell.status == "empty" and place in after and after[place].status != "empty"
            }
            left = {place for place in places if place in after} - filled
            metric = {place for place in left if "--set" in after[place].fill}
            assert left == metric, (command, "left empty", left)
            assert filled <= places, (command, "filled too", filled - places)


def test_a_text_model_has_a_captioner_and_weights_without_a_chat_are_local() -> None:
    told = {cell.fill for cell in list_places(paper("memeintent", data="sample")).values()}
    llama = [text for text in told if "Meta-Llama-3" in text]
    assert llama
    assert all(
        "--captioner openai/llava-hf/" in text and "captions=model" in text for text in llama
    )
    assert all(
        "--captioner" not in text for text in told if "llava-v1.6" in text.split("--captioner")[0]
    )
    told = {cell.fill for cell in list_places(paper("mquest", data="sample")).values()}
    blip = [text for text in told if "blip" in text]
    assert len(blip) == 2
    assert all("--model local/Salesforce/" in text and "--base-url" not in text for text in blip)
