"""``memantics kb`` as people type it."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from memantics.cli.main import main
from memantics.understanding.knowledge.records import dump_knowledge
from tests.commands import Ran, Shell
from tests.knowledge.samples import DUEL, GENERAL, UNTIDY, write_raw, write_refined


@dataclass(frozen=True)
class ModelClient:
    """A user's terminal in a folder, without the seconds that a process takes to start."""

    folder: Path

    def run(self, *arguments: str | Path) -> Ran:
        out, err, here, code = io.StringIO(), io.StringIO(), Path.cwd(), 0
        words = ["memantics", *map(str, arguments)]
        os.chdir(self.folder)
        try:
            with redirect_stdout(out), redirect_stderr(err), mock.patch("sys.argv", words):
                main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            os.chdir(here)
        return Ran(code, out.getvalue(), err.getvalue())

    def refused(self, *arguments: str | Path) -> str:
        ran = self.run(*arguments)
        assert ran.code == 2, ran
        assert ran.err.startswith("error: ")
        assert ran.err.count("\n") == 1
        return ran.err


@pytest.fixture
def client(tmp_path: Path) -> ModelClient:
    folder = tmp_path / "client"
    folder.mkdir()
    return ModelClient(folder)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> ModelClient:
    """A folder into which the sample data was imported."""
    client = ModelClient(tmp_path_factory.mktemp("pack"))
    assert client.run("kb", "import", "sample").code == 0
    return client


def test_a_terminal_sees_the_same(pack: ModelClient) -> None:
    shell = Shell(pack.folder)
    assert shell.apart.run("kb", "stats").out == pack.run("kb", "stats").out
    assert "did you mean" in shell.apart.refused("kb", "show", "en-0012")


def test_the_sample_pack_is_counted(pack: ModelClient) -> None:
    ran = pack.run("kb", "stats")
    assert "79 memes, 837 individuals" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    told = json.loads(pack.run("kb", "stats", "--json").out)
    assert told["dimensions"]["Scene"]["individuals"] == 87
    assert told["dangling"] == 0


def test_the_sample_pack_is_valid(pack: ModelClient) -> None:
    ran = pack.run("kb", "validate")
    assert ran.code == 0
    assert "79 graphs checked: 0 violations" in ran.out
    told = json.loads(pack.run("kb", "validate", "--json").out)
    assert {one["severity"] for one in told["breaches"]} == {"Info"}


def test_questions_get_tables_or_json(pack: ModelClient) -> None:
    query = "SELECT ?label { meme:en-012 ^mm:inMeme ?one . ?one a mm:Toxicity ; rdfs:label ?label }"
    assert "teasing a group" in pack.run("kb", "query", query).out
    told = json.loads(pack.run("kb", "query", query, "--json").out)
    assert told == {"variables": ["label"], "rows": [{"label": "teasing a group"}], "cut": False}
    cut = pack.run("kb", "query", "SELECT ?s { ?s a mm:Scene }", "--limit", "2")
    assert "2 rows, and more" in cut.out


def test_a_meme_is_shown_as_tree_page_and_json(pack: ModelClient) -> None:
    ran = pack.run("kb", "show", "en-012", "--out", "out/duel.html")
    assert "toxic through → upper caption [text]" in ran.out
    page = (pack.folder / "out" / "duel.html").read_text(encoding="utf-8")
    assert "data:image/webp;base64," in page
    assert "http:" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    before = set(pack.folder.iterdir())
    assert json.loads(pack.run("kb", "show", "en-012", "--json").out)["@graph"]
    assert pack.run("kb", "show", "en-012", "--no-page").code == 0
    assert set(pack.folder.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all.nq", "all.trig", "all.ttl", "all.jsonld"])
def test_what_is_exported_imports_again(pack: ModelClient, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    assert "79 memes" in pack.run("kb", "export", "--out", file).out
    other = ModelClient(tmp_path)
    assert other.run("kb", "import", file, "--store", "again").code == 0
    first = pack.run("kb", "export", "--format", "nquads").out
    assert other.run("kb", "export", "--store", "again").out == first
    assert len(first.splitlines()) > 5_000


def test_some_memes_can_be_exported(pack: ModelClient) -> None:
    ran = pack.run("kb", "export", "en-012", "--format", "jsonld")
    assert json.loads(ran.out)["@id"] == "meme:en-012"


def test_official_files_and_builds_are_imported_with_an_account(client: ModelClient) -> None:
    folder = client.folder / "release" / "kb"
    folder.mkdir(parents=True)
    write_raw(folder, "00042")
    write_refined(folder, "00042", GENERAL)
    build = client.folder / "build"
    build.mkdir()
    (build / "knowledge.jsonl").write_bytes(dump_knowledge(DUEL) + dump_knowledge(UNTIDY))
    ran = client.run("kb", "import", "release", "build")
    assert ran.code == 0, ran.err
    assert "references repaired" in ran.out
    listed = client.run("kb", "stats", "--dangling")
    assert "sword" in listed.out
    assert "5 references point to missing individuals" in listed.out
    ran = client.run("kb", "validate")
    assert ran.code == 1
    assert "a relation leads to an unknown individual" in " ".join(ran.out.split())
    page = client.run("kb", "show", "00042")
    assert page.code == 0
    text = (client.folder / "00042.html").read_text(encoding="utf-8")
    assert "may attack people" in text


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("stats",), "there is no knowledge store in knowledge"),
        (("show", "x"), "there is no knowledge store"),
        (("query", "SELECT"), "there is no knowledge store"),
        (("validate",), "there is no knowledge store"),
        (("export",), "there is no knowledge store"),
        (("import", "nowhere"), "nowhere: no such file or folder"),
    ],
)
def test_without_a_store_one_line_says_so(
    client: ModelClient, arguments: tuple[str, ...], part: str
) -> None:
    assert part in client.refused("kb", *arguments)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("show", "en-0012"), "did you mean"),
        (("show", "../../etc/passwd"), "'../../etc/passwd'"),
        (("export", "nobody"), "'nobody'"),
        (("export", "--out", "x.docx"), "unknown file format"),
        (("query", "SELECT ?s { ?s ?p"), "not valid SPARQL"),
        (("query", "DROP ALL"), "not valid SPARQL"),
        (("query", "SELECT * { SERVICE <http://127.0.0.1:1/> { } }"), "another machine"),
        (("validate", "--shapes", "nowhere.ttl"), "cannot be read"),
        (("show", "en-012", "--images", "nowhere"), "is not a folder"),
    ],
)
def test_mistakes_are_told_in_one_line(
    pack: ModelClient, arguments: tuple[str, ...], part: str
) -> None:
    assert part in pack.refused("kb", *arguments)


def test_broken_turtle_is_told_with_its_line(client: ModelClient) -> None:
    (client.folder / "broken.ttl").write_text("<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b")
    line = client.refused("kb", "import", "broken.ttl")
    assert "broken.ttl" in line
    assert "turtle" in line
