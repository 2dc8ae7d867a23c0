"""The examples in docstrings of public functions run and print what they show.

Each runs in its own copy of a folder with the files that the examples name: memes, two runs and
the answers of another tool. What needs a server or people is marked ``+SKIP``, with the reason.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

import memantics as mm
from conftest import PUBLIC
from memantics.core.queue import AggregatedAnnotation, IndividualAnnotation, write_annotations
from memantics.core.samples import IMAGES
from memantics.moderation.decisions.webhooks import VARIABLE
from tests.kinder import REPLIES
from tests.places import ROOT

SOURCES = ROOT / "src" / "memantics"
MEMES = ("en-001", "en-005", "en-012", "CN90008")
RUNS = {"one": "baseline/constant", "other": "baseline/majority"}
# Examples that take more than two seconds of CPU time: they read images or train.
LONG = {
    *("analyze", "captions_async", "chats_async", "collect", "demo", "draft_reappraisals_async"),
    *("drift", "edit_async", "intents_async", "knowledge_async", "measure_chats"),
    *("questions_async", "reappraise", "reappraise_async", "retrieve", "retrieve_background"),
    *("analyze_async", "screen", "study"),
}
SKIPPED = {
    "audit_reasoning": "a reasoning model",
    "compare_questions": "people",
    "group_hard_negatives": "people",
    "measure_policy": "a language model",
    "publish": "people",
    "regenerate_async": "people",
    "score_human_eval": "people",
    "score_preferences": "people",
    "summarise_ratings": "people",
}


def find_examples() -> Iterator[tuple[str, doctest.DocTest]]:
    """Yield the examples that use ``mm``, with the name of the function."""
    parser = doctest.DocTestParser()
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not PUBLIC.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            said = ast.get_docstring(node) or ""
            if PUBLIC.search(said) and "import memantics as mm" not in said:
                known = {"mm": mm, "asyncio": asyncio}
                yield node.name, parser.get_doctest(said, known, node.name, str(path), node.lineno)


EXAMPLES = dict(find_examples())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "memes").mkdir()
    for name in MEMES:
        shutil.copy(IMAGES / f"{name}.png", folder / "memes")
    shutil.copy(IMAGES / "CN90008.png", folder / "meme.png")
    shutil.copy(REPLIES, folder)
    shutil.copy(ROOT / "examples/answers/full_results.csv", folder / "answers.csv")
    settings = mm.EvaluationSettings(limit=12)
    prepare_decisions(folder)
    for name, model in RUNS.items():
        made = tmp_path_factory.mktemp(name)
        run = mm.evaluate("memeintent/intent", model, settings=settings, out=made)
        shutil.copytree(run.folder, folder / "runs" / name)
    return folder


def prepare_decisions(folder: Path) -> None:
    """Write two versions of a policy, a review, the log of its decision, and a reviewed appeal."""
    for name, version in (("policy.md", "forum.md"), ("v2.md", "forum-2.md")):
        shutil.copy(ROOT / "examples/policies" / version, folder / name)
    found: dict[str, JsonValue] = {"id": "post-1", "text": "the old turnip again", "language": "en"}
    gold: dict[str, JsonValue] = {"gold": "none", "text": "my boss and the old carrot again"}
    reviews = [
        annotate("1", "reviewer-1", {"harmful": "yes", "clause": "1"}, found),
        annotate("2", "reviewer-1", {"harmful": "no"}, gold),
    ]
    write_annotations(folder / "annotations.jsonl", reviews)
    log = str(folder / "decisions.db")
    recorded = mm.record_reviews(
        folder / "annotations.jsonl", log, policy=folder / "policy.md", keep_texts=30
    )
    case = recorded.decisions[0].id
    mm.appeal_decision(case, log, statement="It is a swede.")
    again = annotate(case, "reviewer-2", {"harmful": "no"}, {"decision": case})
    write_annotations(folder / "appeals.jsonl", [again])


def annotate(
    item: str, person: str, values: dict[str, JsonValue], hidden: dict[str, JsonValue]
) -> AggregatedAnnotation:
    """Return the annotation of one item by one person."""
    one = IndividualAnnotation(
        annotator=person,
        stage="review",
        values=values,
        at="2026-11-18T12:00:00Z",
        roles=["reviewer"],
    )
    return AggregatedAnnotation(
        item=item, group=item, workflow="review-policy", kept=True,
        values=values, annotations=[one], hidden=hidden,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
        for name in sorted(EXAMPLES)
    ],
)
def test_an_example_prints_what_it_shows(
    name: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(prepared, tmp_path / "work"))
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(VARIABLE, "a secret of the tests")
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(EXAMPLES[name], out=said.append)
    assert runner.failures == 0, "".join(said)


def test_what_does_not_run_is_listed_with_its_need() -> None:
    skip = doctest.OPTIONFLAGS_BY_NAME["SKIP"]
    left = {
        name for name, test in EXAMPLES.items() if any(skip in e.options for e in test.examples)
    }
    assert left == set(SKIPPED)
    assert len(EXAMPLES) > 40
