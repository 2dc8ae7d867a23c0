"""Python as the docs show it runs: page by page as scripts, and the quickstart as a notebook."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memantics.core.samples import IMAGES
from tests import forks
from tests.background import serve_in_background
from tests.commands import Shell
from tests.docs.test_commands import PAGES, SERVER, client
from tests.kinder import REPLIES
from tests.places import ROOT

pytestmark = pytest.mark.slow

__all__ = ["client"]  # the fixture: a folder in which the paths of the docs exist
NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"
# Run elsewhere: tests/docs/test_tutorial.py builds a benchmark of one's blocks, and
# tests/serve talks to a service with those of the others.
TUTORIALS = {"add-a-benchmark.md", "serve.md", "move-from-perspective.md", "integrations.md"}
# What a command on the same page has made before.
MADE = {"toxicn.zip": 'import memantics as mm\nmm.Detector.load_sample().save("toxicn.zip")\n'}


def python_blocks(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


SHOWN = [page for page in PAGES if python_blocks(page) and page.name not in TUTORIALS]


def environment(folder: Path) -> dict[str, str]:
    return dict(os.environ) | {"MEMANTICS_HOME": str(Shell(folder).home), "OPENAI_API_KEY": ""}


def test_the_guide_to_python_is_among_the_pages() -> None:
    assert "use-from-python.md" in {page.name for page in SHOWN}
    assert not any("memantics.cli" in python_blocks(page) for page in SHOWN)


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, client: Path) -> None:
    with serve_in_background() as server:
        code = python_blocks(page).replace(SERVER, server.url)
        code = "".join(make for file, make in MADE.items() if file in code) + code
        done = forks.run(
            partial(forks.be_script, code), forks.Place(client, environment(client)), 600
        )
    assert done.code == 0, done.err


SNIPPET = """
import memantics as mm
hundred, server = mm.EvaluationSettings(limit=100), mm.CallSettings(base_url=URL)
run = mm.evaluate("mquest/qa", "openai/NAME", settings=hundred, calls=server)
run.scores["accuracy"].value, run.scores["accuracy"].interval, run.counts, run.folder
other = mm.evaluate("mquest/qa", "baseline/longest", settings=hundred)
mm.score(run.folder); mm.compare(run, other); mm.audit("mquest")
mm.report([run, other], "report.html")
data = mm.load_dataset("punmemecn", split="test")
frame = data.to_pandas()
a = mm.analyze("meme.png")
a.text, a.readings, a.harm, a.knowledge, a.save("page.html")
mm.read_homophones("压力山大").intended
quiet = mm.ReappraiseSettings(mood=False)
mm.reappraise("meme.png", model="recorded/replies.jsonl", settings=quiet).save("kinder.png")
d = mm.Detector.train("toxicn_mm", preset="fast"); d.save("d.zip"); d = mm.Detector.load("d.zip")
d.predict(["今天天气真好", "meme.png"]); d.explain("今天天气真好"); d.evaluate("toxicn_mm")
kb = mm.KnowledgeStore.open("kb"); kb.query(SPARQL); kb.get("en-001")
collected = mm.collect("memes/")
built = mm.build.knowledge("memes", model="fake/builder", out="builds/k")
asked = mm.build.questions("builds/k", model="fake/builder")
mm.publish(asked.folder, name="mine", licence="CC0-1.0", unreviewed=True)
mm.list_benchmarks(); mm.list_models()
"""
CHECK = """
assert run.counts["answered"] == len(frame) or sum(run.counts.values()) > 0
assert 0 <= run.scores["accuracy"].value <= 1 and len(run.scores["accuracy"].interval) == 2
assert a.text and (page := open("page.html", encoding="utf-8").read()).startswith("<!doctype html>")
assert open("kinder.png", "rb").read(8).startswith(b"\\x89PNG")
assert "mine" in [each.name for each in mm.list_benchmarks()]
explanation = d.explain("今天天气真好")
for shown in (run, other, a, data, explanation, mm.compare(run, other), mm.audit("mquest")):
    assert "<" in shown._repr_html_() and shown.to_dict()
"""
QUERY = "SPARQL = 'SELECT (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } }'\n"


@pytest.mark.parametrize("face", ["script", "notebook"])
def test_every_public_verb_runs_in_a_script_and_in_a_notebook(face: str, client: Path) -> None:
    shutil.copy(IMAGES / "en-035.png", client / "meme.png")
    shutil.copy(REPLIES, client)
    Shell(client).done("kb", "import", "sample", "--store", "kb")
    with serve_in_background() as server:
        code = f"URL = {server.url!r}\n{QUERY}{SNIPPET}{CHECK}"
        if face == "notebook":
            run_notebook([code], client)
            return
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=client,
            env=environment(client),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_quickstart_runs_and_shows_results(client: Path) -> None:
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    with serve_in_background() as server:
        done = run_notebook([cell.replace(SERVER, server.url) for cell in cells], client)
    shown = [
        out for cell in done.cells for out in cell.outputs if "text/html" in out.get("data", {})
    ]
    assert len(shown) >= 5


def run_notebook(cells: list[str], folder: Path) -> Any:
    nbformat: Any = importlib.import_module("nbformat.v4")
    client: Any = importlib.import_module("nbclient").NotebookClient
    book = nbformat.new_notebook(cells=[nbformat.new_code_cell(cell) for cell in cells])
    place = {"metadata": {"path": str(folder)}}
    client(book, timeout=600, kernel_name="python3", resources=place).execute(
        env=environment(folder)
    )
    return book
