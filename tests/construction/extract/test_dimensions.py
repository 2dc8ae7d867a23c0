"""Dimensions as data: changed, dropped, added, with a model of their own, up to a benchmark."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

import memantics as mm
from memantics.benchmarks.registry import find_benchmark, find_source
from memantics.construction.build import make_extract_settings, with_dimensions
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.meaning import DIMENSIONS
from memantics.core.memes import Meme
from memantics.core.samples import image_path
from memantics.understanding.extraction.plan import (
    DEFAULT,
    Situation,
    adapt_plan,
    ask_individuals,
    list_relations,
)
from memantics.understanding.knowledge.ontology.vocabulary import (
    KIND_TERMS,
    RELATIONS,
    SPATIAL,
    SPECS,
    DimensionSpec,
    read_specs,
)
from memantics.understanding.knowledge.records import Individual, read_knowledge
from tests.commands import Shell

COLOUR = """
label = "colour"
definition = "A colour that matters to what the meme says."
guidance = "Name colours that stand for something."
question = "Test what a colour stands for."
inputs = ["VisualMaterial"]
background = false

[[relation]]
name = "colours"
definition = "What has this colour."
to = ["VisualMaterial"]
"""


def write(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder


def test_the_ten_are_files_and_their_relations_are_the_ontologys() -> None:
    assert set(SPECS) == set(DIMENSIONS)
    for name, own in SPECS.items():
        assert all((own.label, own.definition, own.guidance)), name
        asked = {term.name for term in list_relations(name)}
        allowed = {term.name for term in RELATIONS.values() if name in term.domain}
        assert asked <= allowed
        assert allowed - asked <= {"mappedOnto", *SPATIAL}


def test_toxicity_is_told_the_papers_kinds_and_no_base_rate() -> None:
    step = next(own for own in DEFAULT.steps if own.dimension == "Toxicity")
    meme = Situation(Meme("1", image_path("en-001"), "a text"))
    asked = ask_individuals(meme, step, {}, step.relations())
    said = " ".join(str(part) for own in asked.messages for part in own.parts)
    for term in KIND_TERMS.values():
        assert term.definition.rstrip(".").casefold() in said.casefold(), term.name
    for word in ("most memes", "rare", "seldom", "usually", "per cent", "%"):
        assert word not in said.casefold()


def test_a_plan_is_changed_dropped_from_and_added_to() -> None:
    given = {
        "Emotion": DimensionSpec(drop=True),
        "Scene": DimensionSpec(definition="What is going on.", model="fake/builder"),
        "ColorUse": DimensionSpec(label="colour", definition="A colour.", inputs=("Scene",)),
        "Toxicity": DimensionSpec(inputs=("ColorUse", "TextualMaterial")),
    }
    plan = adapt_plan(DEFAULT, given)
    steps = {step.dimension: step for step in plan.steps}
    names = list(steps)
    assert "Emotion" not in names
    assert not [step for step in plan.steps if "Emotion" in step.inputs]
    assert names.index("Scene") < names.index("ColorUse") < names.index("Toxicity")
    assert steps["Scene"].told.definition == "What is going on."
    assert steps["Scene"].told.guidance == SPECS["Scene"].guidance
    assert steps["Scene"].told.model == "fake/builder"
    assert steps["Scene"].background is False
    assert steps["VisualMaterial"].told is SPECS["VisualMaterial"]


@pytest.mark.parametrize(
    "given",
    [
        {"ColorUse": DimensionSpec(label="colour")},
        {"ColorUse": DimensionSpec(label="c", definition="d", inputs=("Nothing",))},
        {"Scene": DimensionSpec(inputs=("Toxicity",))},
        {"Scene": DimensionSpec(relations=("nearTo",))},
    ],
    ids=["no definition", "unknown input", "circle", "unknown relation"],
)
def test_what_cannot_be_is_said(given: dict[str, DimensionSpec]) -> None:
    def use() -> None:
        for step in adapt_plan(DEFAULT, given).steps:
            step.all_relations()

    with pytest.raises((InputError, UnknownName)):
        use()


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="use only letters in the file name"):
        read_specs(write(tmp_path / "a", **{"color-use": "label = 'x'"}))
    with pytest.raises(DataError, match="modell"):
        read_specs(write(tmp_path / "b", Scene="modell = 'x'"))
    with pytest.raises(DataError, match=r"Scene\.toml"):
        read_specs(write(tmp_path / "c", Scene="label = "))
    with pytest.raises(InputError, match="contains no dimension"):
        read_specs(write(tmp_path / "d"))
    plain = make_extract_settings()
    assert with_dimensions(plain, None) is plain


def check_store(shell: Shell, colours: list[Individual]) -> None:
    """A store keeps what the ontology has no words for, and says so wherever one looks."""
    numbers = json.loads(shell.done("kb", "stats", "--store", "kb", "--json"))
    assert numbers["dimensions"]["ColorUse"]["individuals"] == len(colours)
    count = "SELECT (COUNT(*) AS ?n) { ?one a own:ColorUse ; mm:inMeme ?meme }"
    rows = json.loads(shell.done("kb", "query", count, "--store", "kb", "--json"))
    assert str(len(colours)) in json.dumps(rows)
    found = shell.run("kb", "validate", "--store", "kb", "--json")
    assert "own#ColorUse" not in found.out
    with contextlib.chdir(shell.folder):
        store = mm.KnowledgeStore.open("kb")
        meme = next(own for own in store.ids() if store.get(own).of("ColorUse"))
    assert "color use" in shell.done("kb", "show", meme, "--store", "kb")
    page = (shell.folder / f"{meme}.html").read_text(encoding="utf-8")
    assert 'class="card d-ColorUse"' in page
    for form in ("nq", "trig", "ttl", "jsonld"):
        shell.done("kb", "export", "--store", "kb", "--out", f"out.{form}")
        shell.done("kb", "import", f"out.{form}", "--store", f"kb-{form}")
        again = json.loads(shell.done("kb", "stats", "--store", f"kb-{form}", "--json"))
        assert again["dimensions"] == numbers["dimensions"], form


@pytest.mark.slow
def test_a_dimension_of_ones_own_becomes_questions_of_a_benchmark(shell: Shell) -> None:
    write(
        shell.folder / "mine",
        ColorUse=COLOUR,
        SemioticProjection="drop = true",
        Emotion='model = "fake/drafter"',
    )
    shown = shell.run("build", "knowledge", "--explain", "--dimensions", "mine")
    assert "ColorUse" in shown.out
    assert "SemioticProjection" not in shown.out
    words = ("build", "knowledge", "sample", "--model", "fake/builder", "--limit", "8")
    built = shell.run(*words, "--dimensions", "mine")
    assert built.code == 0, built
    folder = shell.folder / "builds" / "sample"
    known = [own for line in read_knowledge(folder) for own in line.individuals]
    dimensions = {own.dimension for own in known}
    assert "ColorUse" in dimensions
    assert "SemioticProjection" not in dimensions
    models = {
        own.provenance.model for own in known if own.provenance and own.dimension == "Emotion"
    }
    assert models <= {"fake/drafter"}
    assert (folder / "model-1" / "calls.jsonl").is_file()
    links = {r.relation for own in known if own.dimension == "ColorUse" for r in own.relations}
    assert links <= {"colours"}

    asked = shell.run("build", "questions", folder, "--model", "fake/builder")
    assert asked.code == 0, asked
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert "ColorUse" in {json.loads(line)["dimension"] for line in lines}
    stored = shell.run("kb", "import", folder, "--store", "kb")
    assert stored.code == 0, stored
    check_store(shell, [own for own in known if own.dimension == "ColorUse"])
    done = shell.run("publish", folder, "--name", "mine", "--licence", "CC0-1.0", "--unreviewed")
    assert done.code == 0, done
    benchmark = find_benchmark("mine")
    release = benchmark.open(find_source(benchmark, None))
    found = {own.dimension for own in release.questions("all")}  # type: ignore[attr-defined]
    assert "ColorUse" in found
    ran = shell.run("run", "mine", "--model", "fake/keys", "--json")
    scores = json.loads(ran.out)[0]["scores"]["scores"]
    assert "ColorUse" in {score["label"] for score in scores if score["by"] == "dimension"}
    assert shell.run("paper", "mine", "--format", "md").code == 0
