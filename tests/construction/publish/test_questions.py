"""From images to a scored run: built questions, people's annotations, a benchmark."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.core.queue import AggregatedAnnotation, read_queue, write_annotations
from tests.commands import Shell
from tests.places import ROOT

pytestmark = pytest.mark.slow

BUILDER = ("--model", "fake/builder")


@pytest.fixture(scope="module")
def first_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shell = Shell(tmp_path_factory.mktemp("first"))
    shell.done("build", "knowledge", "sample", *BUILDER, "--limit", "8")
    shell.done("build", "questions", "builds/sample", *BUILDER)
    return shell.folder / "builds" / "sample"


@pytest.fixture
def build(shell: Shell, first_build: Path) -> Path:
    """A copy of the build, for each test its own."""
    return shutil.copytree(first_build, shell.folder / "builds" / "sample")


def confirm(queue: Path, rejected: set[str], half: set[str]) -> list[str]:
    """Annotations: all confirmed but the rejected; of ``half`` only the first of two questions."""
    _, items = read_queue(queue)
    annotations, kept = [], []
    for item in items:
        values: dict[str, JsonValue] = {"question": "yes", "answer": "yes"}
        second = "no" if item.id in half else "yes"
        values |= {"second_question": "yes", "second_answer": second}
        good = item.id not in rejected
        annotations.append(
            AggregatedAnnotation(
                item=item.id, group=item.group, workflow="validate", kept=good, values=values
            )
        )
        ids = item.hidden["questions"]
        assert isinstance(ids, list)
        if good:
            kept += [str(own) for own in (ids[:1] if item.id in half else ids)]
    write_annotations(queue / "annotations.jsonl", annotations)
    return kept


def test_only_what_people_confirmed_is_published(shell: Shell, build: Path) -> None:
    _, items = read_queue(build / "queue")
    pairs = [item.id for item in items if len(item.hidden["questions"]) == 2]  # type: ignore[arg-type]
    kept = confirm(build / "queue", {items[0].id}, set(pairs[:1]))
    shell.done("publish", str(build), "--name", "mine", "--licence", "CC0-1.0")
    folder = shell.folder / "published" / "mine" / "data"
    files = list(folder.rglob("*.jsonld"))
    assert len(files) == len(kept)
    count = len(items) - 1
    assert f"| drafted by fake/builder | {count} of {count} |" in (
        (folder.parent / "README.md").read_text()
    )
    shell.done("run", "mine", "-m", "fake/keys")
    (run,) = (shell.folder / "runs").iterdir()
    assert len((run / "items.jsonl").read_text().splitlines()) == len(kept)


def test_every_published_question_is_grounded(shell: Shell, build: Path) -> None:
    shell.done("publish", str(build), "--name", "mine", "--licence", "CC0-1.0", "--unreviewed")
    folder = shell.folder / "published" / "mine" / "data"
    for path in folder.rglob("*.jsonld"):
        pair = json.loads(path.read_text())
        meme = path.parts[-3].removesuffix("_qa")
        base = json.loads((folder / "kb" / f"{meme}_dimensions_reversed_raw.json").read_text())
        names = {own["instance_name"] for own in base["dimensions"]}
        assert pair["relatedInstances"]
        assert set(pair["relatedInstances"]) <= names
        assert sum(answer["is_correct"] for answer in pair["answers"]) == 1


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def run_script(shell: Shell, stop: Callable[[], bool]) -> tuple[int | None, str]:
    """Run the documented script; kill it and all that it started as soon as ``stop`` says so."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = shell.folder / "said.txt"
    with said.open("w") as file:
        process = subprocess.Popen(
            ["bash", str(ROOT / "examples" / "build_benchmark.sh"), "sample", "fake/builder", "4"],
            cwd=shell.folder,
            env=shell.environment | {"PATH": path},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        while process.poll() is None and not stop():
            time.sleep(0.02)
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, said.read_text()
    return process.returncode, said.read_text()


def test_the_documented_script_survives_being_killed(shell: Shell) -> None:
    """Killed in each of its parts it still ends with the same benchmark, and asks nothing twice."""
    build = shell.folder / "builds" / "memes"
    calls = build / "calls.jsonl"
    assert run_script(shell, lambda: count_lines(calls) > 0)[0] is None
    known = 4 * 10  # one call a dimension
    assert run_script(shell, lambda: count_lines(calls) > known)[0] is None
    assert not (build / "questions.jsonl").exists()
    assert run_script(shell, (shell.folder / "runs").exists)[0] is None
    code, said = run_script(shell, lambda: False)
    assert code == 0, said
    keys = [json.loads(line)["key"] for line in calls.read_text().splitlines()]
    assert len(keys) == len(set(keys)) > known
    assert "accuracy" in said


def test_a_recorded_build_gives_the_same_questions_again(shell: Shell, build: Path) -> None:
    """Without the model: its call log stands in for it."""
    recorded = ("--model", f"recorded/{build / 'calls.jsonl'}")
    shell.done("build", "knowledge", "sample", *recorded, "--limit", "8", "--out", "again")
    shell.done("build", "questions", "again", *recorded)

    def read(folder: Path) -> list[tuple[str, str, list[str], int]]:
        lines = (folder / "questions.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        return [
            (row["id"], row["question"], [c["text"] for c in row["options"]], row["answer"])
            for row in rows
        ]

    assert read(shell.folder / "again") == read(build)
