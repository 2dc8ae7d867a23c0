"""Chains of commands that a page prints run to their end; simulated people replace the web app.

``annotate open`` waits for people in a browser. Here the same queue is opened in the same database,
and every person answers every item. All other commands run as printed.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.commands import Storage, find_admin, import_annotations, open_annotations
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import AnnotationTask
from memantics.annotation.values import visible
from memantics.annotation.workflow import Workflow, WorkflowField
from memantics.benchmarks.paper import PaperPart
from memantics.benchmarks.protocol import list_differences
from memantics.benchmarks.published import read_published
from memantics.benchmarks.registry import find_benchmark
from memantics.core.rundir import read_facts
from memantics.core.samples import image_path
from memantics.evaluation.paper import paper
from tests.commands import Shell
from tests.construction.publish.queues import pick_memes
from tests.servers.fakes import Scripted, serving

pytestmark = pytest.mark.slow
PEOPLE = ("ann", "bob", "cleo", "dan", "eve")  # three who write, two who review
ROLES = ("annotator", "reviewer", "adjudicator")


def say(field: WorkflowField, person: int, number: int) -> JsonValue:
    """Return an answer of the field's kind; the third person differs on every third item."""
    turn = int(person == 2 and number % 3 == 0)
    match field.kind:
        case "choice":
            first = field.allowed.index("yes") if "yes" in field.allowed else 0
            if field.id == "pun":  # two memes in three are not puns
                first, turn = field.allowed.index("no" if number % 3 else "yes"), 0
            return field.allowed[(first + turn) % len(field.allowed)]
        case "boolean":
            return field.required  # an optional box marks an exception
        case "scale":
            return field.low + (number + turn) % (field.high - field.low + 1)
        case "pairwise":
            return "first"
        case "text" | "longtext":
            return "fish"
        case _:
            return ["a fish"]


def answer(workflow: Workflow, task: AnnotationTask, person: int) -> dict[str, JsonValue]:
    labels = frozenset(entry.label.casefold() for entry in task.shown)
    values: dict[str, JsonValue] = {}
    for name in task.fields:
        field = workflow.field(name)
        if name in visible(workflow, task.fields, values, labels):
            listed = task.state.get(field.each) if field.each else None
            each = listed if isinstance(listed, list) else []
            said = say(field, person, task.number)
            values[name] = [said for _ in each] if field.each else said
    return values


def simulate(shell: Shell, words: list[str]) -> None:
    """Open the queue of ``annotate open QUEUE --db FILE`` and answer everything."""
    flags = dict(zip(words[1::2], words[2::2], strict=True))
    given = flags.get("--db")
    place = shell.folder / given if given else shell.home / "annotate" / "annotate.db"
    place.parent.mkdir(parents=True, exist_ok=True)
    storage = Storage(str(place))
    made = import_annotations(storage, shell.folder / words[0], workflow=flags.get("--workflow"))
    with open_annotations(storage) as service:
        lead = find_admin(service)
        project = service.projects.get(lead, made.project)
        plain = ProjectSettings.model_validate(
            project.settings.model_copy(update={"training": False})
        )
        service.projects.set_settings(lead, made.project, plain)
        people = []
        for name in PEOPLE:
            person = service.accounts.create(lead, name, secrets.token_urlsafe(24))
            service.projects.add_member(lead, made.project, name, ROLES)
            service.projects.consent(person, made.project)
            people.append(person)
        for turn in range(3 * len(people)):  # stages open one after the other
            who = turn % len(people)
            while (task := service.work.next(people[who], made.project)) is not None:
                values = answer(project.workflow, task, who)
                service.work.submit(people[who], task.assignment, values, task.version, 9.0)


def follow(shell: Shell, chain: str, filled: Mapping[str, list[str]]) -> str:
    """Run every command of a chain, with ``filled`` for its placeholders; the last output."""
    said = ""
    for line in (part.strip() for text in chain.splitlines() for part in text.split("&&")):
        words: list[str] = []
        for word in shlex.split(line)[1:]:
            words += filled.get(word, [word])
        if words[:2] == ["annotate", "open"]:
            simulate(shell, words[2:])
        elif words:
            said = shell.done(*words)
    return said


def find_part(name: str, label: str, **more: list[Path]) -> PaperPart:
    parts = paper(name, more.get("runs", []), data="sample", parts=[label]).parts
    return parts[0]


def make_runs(shell: Shell, *words: str) -> list[str]:
    shell.done("run", *words, "--data", "sample")
    return sorted(str(path.parent) for path in (shell.folder / "runs").glob("*/run.json"))


@pytest.fixture(autouse=True)
def _at_home(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))


def read_cells(said: str, label: str) -> list[str]:
    """Return the table lines of a part of a Markdown page."""
    body = said.partition(f"## {label}")[2].partition("\n## ")[0]
    return [line for line in body.splitlines() if line.startswith("|")][2:]


def test_memeintent_figure_6(shell: Shell) -> None:
    runs = make_runs(shell, "memeintent/intent", "-m", "fake/keys", "--limit", "4")
    (chain,) = find_part("memeintent", "Figure 6").commands
    assert "annotate export" in chain
    said = follow(shell, f"{chain} --format md", {"RUN…": runs, "PROJECT": ["1"]})
    (line,) = read_cells(said, "Figure 6")
    assert "n = 4" in line
    assert "empty" not in line


def test_mer_bench_figure_4(shell: Shell) -> None:
    options = ("--set", "rationale=RF,RL", "--limit", "6")
    runs = make_runs(shell, "mer_bench", "-m", "fake/keys", *options)
    assert len(runs) == 2
    part = find_part("mer_bench", "Figure 4")
    (chain,) = part.commands
    said = follow(shell, f"{chain} --format md", {"RUN…": runs, "PROJECT": ["1"]})
    lines = read_cells(said, "Figure 4")
    assert len(lines) == 8
    assert not any("empty" in line for line in lines)
    assert read_cells(said, "Figure 4, win rates")


def test_mquest_figure_1(shell: Shell) -> None:
    (shell.folder / "IMAGES").mkdir()
    for meme in pick_memes("en", 6):
        path = shell.folder / "IMAGES" / meme.file
        path.write_bytes(image_path(meme.id).read_bytes())
    (text,) = find_part("mquest", "Figure 1").texts
    assert text.body.count("annotate export") == text.body.count("annotate open") == 2
    filled = {
        "MODEL": ["fake/builder"], "PROJECT": ["1"], "NAME": ["chained"], "LICENCE": ["CC0-1.0"],
    }  # fmt: skip
    *steps, run, page = text.body.strip().splitlines()
    follow(shell, "\n".join(steps), filled)
    shell.done("run", "chained", "-m", "fake/keys")
    assert run == "memantics run NAME --model MODEL"
    (folder,) = (str(path.parent) for path in (shell.folder / "runs").glob("*/run.json"))
    said = follow(shell, f"{page} --format md", filled | {"RUN": [folder]})
    toxic, extension, whole = read_cells(said, "Table 1")
    assert "empty" not in toxic + extension
    assert whole.startswith("| M-Quest")


@pytest.mark.parametrize("label", ["Table 2", "Appendix B.3"])
def test_toxicn_mm_people(shell: Shell, label: str) -> None:
    (shell.folder / "MEMES").mkdir()
    for meme in pick_memes("zh", 6):
        path = shell.folder / "MEMES" / meme.file
        path.write_bytes(image_path(meme.id).read_bytes())
    (chain,) = find_part("toxicn_mm", label).commands
    said = follow(shell, f"{chain} --data sample --format md", {"PROJECT": ["1"]})
    lines = read_cells(said, label)
    assert lines
    assert not all("empty" in line for line in lines)


@pytest.mark.parametrize("name", ["memeintent", "mer_bench", "mquest", "punmemecn", "toxicn_mm"])
def test_every_chain_with_people_exports_before_it_reads(name: str) -> None:
    sheet = paper(name, data="sample")
    texts = [text.body for part in sheet.parts for text in part.texts]
    chains = [command for part in sheet.parts for command in part.commands]
    for chain in (*chains, *texts):
        if "memantics annotate" in chain and "--annotations" in chain:
            assert "annotate export" in chain, chain
            assert ";" not in chain, chain


def test_a_run_records_its_wording_and_decoding(shell: Shell) -> None:
    """A run with its own prompt at temperature 1.5 cannot be taken for the paper's."""
    own = shell.folder / "own" / "mquest"
    own.mkdir(parents=True)
    (own / "explain_first.md").write_text("Answer by chance.\n$question\n$options\n")
    words = ("run", "mquest", "--limit", "2", "--data", "sample", "--model")
    with serving(Scripted(lambda _: "Answer: A")) as server:
        served = ("openai/Qwen/Qwen2-VL-7B-Instruct", "--base-url", server.url)
        shell.run(*words, *served, "--prompts", "own", "--param", "temperature=1.5")
    (path,) = (shell.folder / "runs").glob("*/run.json")
    facts = read_facts(path.parent)
    assert facts.wording == "own (mquest)"
    assert facts.decoding["temperature"] == 1.5
    row = next(
        row
        for row in read_published(find_benchmark("mquest").home / "expected" / "published.json")
        if row.system == "Qwen2-VL-7B-Instruct"
    )
    told = list(list_differences(facts, row))
    assert "wording: own (mquest) instead of the authors' prompts" in told
    assert "temperature: 1.5 instead of 0" in told


def copy_memes(folder: Path, language: str, count: int) -> None:
    folder.mkdir()
    for meme in pick_memes(language, count):
        (folder / meme.file).write_bytes(image_path(meme.id).read_bytes())


def test_memeintent_section_3_3(shell: Shell) -> None:
    copy_memes(shell.folder / "MEMES", "en", 5)
    chain = next(c for c in find_part("memeintent", "Section 3.3").commands if "annotate" in c)
    said = follow(shell, f"{chain} --data sample --format md", {"PROJECT": ["1"]})
    rated = [line for line in read_cells(said, "Section 3.3") if "ness of intents" in line]
    assert len(rated) == 4
    assert not any("empty" in line for line in rated)


def test_toxicn_mm_section_5_4(shell: Shell) -> None:
    first = make_runs(shell, "toxicn_mm/detection", "-m", "fake/keys", "--limit", "12")
    second = ("toxicn_mm/detection", "-m", "baseline/random", "--limit", "12")
    runs = {*first, *make_runs(shell, *second)}
    (chain,) = find_part("toxicn_mm", "Section 5.4").commands
    filled = {"RUN…": sorted(runs), "PROJECT": ["1"]}
    said = follow(shell, f"{chain} --data sample --format md", filled)
    lines = read_cells(said, "Section 5.4")
    assert lines
    assert not any("empty" in line for line in lines)


def test_punmemecn_hard_negatives(shell: Shell) -> None:
    (chain,) = find_part("punmemecn", "Hard negatives").commands
    said = follow(shell, f"{chain} --data sample --format md", {})
    (line,) = read_cells(said, "Hard negatives")
    assert "empty" not in line


def test_punmemecn_figure_2(shell: Shell) -> None:
    copy_memes(shell.folder / "MEMES", "zh", 24)
    texts = find_part("punmemecn", "Figure 2").texts
    chain = "\n".join(text.body.strip() for text in texts)
    assert chain.count("annotate open") == chain.count("annotate export") == 2
    filled = {
        "FOLDER": ["MEMES"], "MODEL": ["fake/drafter"], "PROJECT": ["1"], "NAME": ["chained"],
        "ID": ["CC0-1.0"],
    }  # fmt: skip
    follow(shell, chain, filled)
    groups = (shell.folder / "MEMES" / "hard-negatives.jsonl").read_text().splitlines()
    assert len(groups) == 8
    card = (shell.folder / "published/chained/README.md").read_text(encoding="utf-8")
    unchecked = [line for line in card.splitlines() if line.startswith("| not checked")]
    assert len(set(unchecked)) == len(unchecked) > 3
    for task in ("detection", "chat"):
        shell.done("run", f"chained/{task}", "-m", "fake/keys")
