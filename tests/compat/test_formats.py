"""What the version before wrote is read by this one, and says the same.

The fixtures were written by the commit in ``fixtures/COMMIT``; ``make.py`` tells how. Everything
goes through the commands, so that no test depends on where the code behind them lives.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import memantics
from tests.commands import Shell
from tests.compat.make import FAKES, MEMES, MOST_BYTES, TEXTS, WRITTEN, pick_reported
from tests.tolerances import NEAR, holds, list_differences

FIXTURES = Path(__file__).parent / "fixtures"
PACKAGE = Path(memantics.__file__).parent
RUNS = sorted(path.name for path in (FIXTURES / "runs").iterdir())
PREDICTIONS: dict[str, list[dict[str, Any]]] = json.loads(
    (FIXTURES / "predictions.json").read_text(encoding="utf-8")
)
SAID: dict[str, dict[str, Any]] = json.loads(
    (FIXTURES / "queries.json").read_text(encoding="utf-8")
)


@pytest.fixture
def runs(shell: Shell) -> Path:
    """The runs as they would lie on this machine: images where this package has them."""
    folder = shell.folder / "runs"
    shutil.copytree(FIXTURES / "runs", folder)
    for path in folder.glob("*/items.jsonl"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("@PACKAGE@", str(PACKAGE)), encoding="utf-8")
    return folder


def read_all(folder: Path, name: str) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(folder.glob(f"*/{name}"))}


def done(shell: Shell, *words: str | Path) -> str:
    ran = shell.run(*words)
    assert ran.code == 0, ran
    return ran.out


def test_the_fixtures_are_small_and_name_no_machine() -> None:
    files = [path for path in FIXTURES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    texts = [p for p in files if p.suffix in {".json", ".jsonl", ".toml", ".md", ".html", ".nq"}]
    assert len(texts) > 60
    for path in texts:
        found = re.search(rb'"/(?:home|tmp|work|root|Users|var)/', path.read_bytes())
        assert found is None, path
    assert len((FIXTURES / "COMMIT").read_text().strip()) == 40


def test_every_family_and_every_end_of_an_item_is_there() -> None:
    counts: dict[str, int] = {}
    families = set()
    for name in RUNS:
        facts = json.loads((FIXTURES / "runs" / name / "run.json").read_bytes())
        scores = json.loads((FIXTURES / "runs" / name / "scores.json").read_bytes())
        families.add(facts["benchmark"])
        for status, count in scores["counts"].items():
            counts[status] = counts.get(status, 0) + count
    assert families == {"mquest", "memeintent", "toxicn_mm", "mer_bench", "punmemecn"}
    assert all(counts[status] for status in ("answered", "refused", "unparsed", "failed"))


@pytest.mark.slow
def test_rescoring_gives_the_same_digits(shell: Shell, runs: Path) -> None:
    before = read_all(runs, "scores.json")
    for path in runs.glob("*/scores.json"):
        path.unlink()
    done(shell, "score", *(runs / name for name in RUNS))
    after = read_all(runs, "scores.json")
    assert sorted(after) == sorted(before) == RUNS
    for name in RUNS:
        scored = json.loads(after[name])
        assert scored.pop("rescored") == {}  # a field of later versions; the options are the run's
        assert list_differences(scored, json.loads(before[name])) == [], name


@pytest.mark.slow
def test_scores_say_with_which_options_they_were_computed(shell: Shell, runs: Path) -> None:
    """``score --set alpha=2`` left no trace, so the paper's page compared its values."""
    (folder,) = runs.glob("mer-bench-judge-*")
    for words, told in (
        (("--set", "alpha=2"), {"alpha": "2"}),
        (("--invalid", "drop"), {"invalid": "drop"}),
        ((), {}),
    ):
        done(shell, "score", folder, *words)
        assert json.loads((folder / "scores.json").read_text())["rescored"] == told


ASK = ("--limit", "3", "--data", "sample", "--out", "runs", "--no-cache", "--model")


def run_on(shell: Shell, task: str, model: str) -> None:
    """Go on with a run; one without a readable reply says so, and ends with 1."""
    ran = shell.run("run", task, *ASK, model)
    assert ran.code == (1 if "replies could be parsed (" in ran.err else 0), ran


@pytest.mark.slow
def test_going_on_asks_nothing_again(shell: Shell, runs: Path) -> None:
    before = read_all(runs, "answers.jsonl")
    done(shell, "run", "suite", *ASK, "embedded/reader")
    for task, model in FAKES:
        if model != "fake/break":
            run_on(shell, task, model)
    after = read_all(runs, "answers.jsonl")
    assert after == before


def test_going_on_asks_again_what_failed(shell: Shell, runs: Path) -> None:
    [folder] = runs.glob("mquest-qa-fake-babble*")
    path = folder / "answers.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    failed = rows[-1]["item"]
    rows = [row for row in rows if row["item"] != failed or row["attempt"] == 0]
    lines = [
        json.dumps(row | ({"status": "failed"} if row["item"] == failed else {})) for row in rows
    ]
    before = "".join(line + "\n" for line in lines)
    path.write_text(before, encoding="utf-8")
    run_on(shell, "mquest/qa", "fake/babble")
    after = path.read_text(encoding="utf-8")
    assert after.startswith(before)
    asked = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert {row["item"] for row in asked} == {failed}
    assert asked[-1]["status"] == "unparsed"


@pytest.mark.slow
def test_the_report_is_the_same(shell: Shell, runs: Path) -> None:
    folders = [f"runs/{path.name}" for path in pick_reported(runs)]
    done(shell, "report", *folders, "--format", "json", "--out", "report.json")
    before = json.loads((FIXTURES / "report.json").read_bytes())
    assert list_differences(json.loads((shell.folder / "report.json").read_bytes()), before) == []
    done(shell, "report", *folders, "--no-images", "--out", "report.html")
    page = (shell.folder / "report.html").read_text(encoding="utf-8")
    old = (FIXTURES / "report.html").read_text(encoding="utf-8")
    assert numbers_of(page) == numbers_of(old)


def numbers_of(page: str) -> list[str]:
    """The numbers in the cells of a page's tables, in order."""
    cells = re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", page, flags=re.DOTALL)
    texts = [re.sub(r"<[^>]+>", " ", cell) for cell in cells]
    found = [number for text in texts for number in re.findall(r"\d+\.\d+", text)]
    assert len(found) > 50
    return found


def check_probability(found: float | None, expected: float | None) -> None:
    """A text that was not scored has no probability."""
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found == pytest.approx(expected, rel=0, abs=NEAR)


def check_predictions(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(rows) == len(expected) == len(TEXTS)
    for row, old in zip(rows, expected, strict=True):
        assert (row["id"], row["label"], row["type"]) == (old["id"], old["label"], old["type"])
        check_probability(row["probability"], old["probability"])
        assert row["types"] == pytest.approx(old["types"], rel=0, abs=NEAR)


def test_a_fast_detector_says_the_same(shell: Shell) -> None:
    rows = json.loads(done(shell, "detector", "predict", FIXTURES / "fast.zip", *TEXTS, "--json"))
    check_predictions(rows, PREDICTIONS["fast.zip"])
    done(shell, "detector", "explain", FIXTURES / "fast.zip", TEXTS[0])


def test_a_classifier_says_the_same(shell: Shell) -> None:
    file = FIXTURES / "classifier.zip"
    rows = json.loads(done(shell, "classifier", "predict", file, *WRITTEN, "--json"))
    expected = PREDICTIONS["classifier.zip"]
    assert len(rows) == len(expected) == len(WRITTEN)
    for row, old in zip(rows, expected, strict=True):
        assert (row["label"], row["labels"]) == (old["label"], old["labels"])
        assert row["chances"] == pytest.approx(old["chances"], rel=0, abs=NEAR)
    done(shell, "classifier", "explain", file, WRITTEN[2])


@pytest.mark.slow
def test_a_neural_detector_says_the_same(shell: Shell) -> None:
    for name in ("torch", "transformers", "safetensors"):
        pytest.importorskip(name)
    shutil.copytree(FIXTURES / "neural", shell.folder / "neural")
    rows = json.loads(shell.apart.done("detector", "predict", "neural", *TEXTS, "--json"))
    assert [row["label"] for row in rows] == [row["label"] for row in PREDICTIONS["neural"]]
    for row, old in zip(rows, PREDICTIONS["neural"], strict=True):
        check_probability(row["probability"], old["probability"])


@pytest.fixture
def store(shell: Shell) -> Path:
    with zipfile.ZipFile(FIXTURES / "store.zip") as packed:
        packed.extractall(shell.folder)
    return shell.folder / "store"


def ask_store(shell: Shell, store: Path) -> dict[str, Any]:
    words = ("--store", store, "--json")
    return {
        name: json.loads(done(shell, "kb", "query", query, *words))
        for name, query in SAID["queries"].items()
    }


def drop_ontology(answers: dict[str, Any]) -> dict[str, Any]:
    """What is said of memes: the ontology that a new store is given may have grown."""
    rows = answers["classes"]["rows"]
    kept = [row for row in rows if not row["c"].startswith("http://www.w3.org/2002/07/owl#")]
    return answers | {"classes": answers["classes"] | {"rows": kept}}


@pytest.mark.slow
def test_a_store_answers_the_same_queries(shell: Shell, store: Path) -> None:
    assert ask_store(shell, store) == SAID["answers"]
    for ending in ("nq", "trig"):
        done(shell, "kb", "export", "--store", store, "--out", f"again.{ending}")
        before = (FIXTURES / f"export.{ending}").read_text(encoding="utf-8")
        after = (shell.folder / f"again.{ending}").read_text(encoding="utf-8")
        assert sorted(after.splitlines()) == sorted(before.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["nq", "trig", "jsonld"])
def test_an_export_is_read_again(shell: Shell, ending: str) -> None:
    made = shell.folder / "made"
    done(shell, "kb", "import", FIXTURES / f"export.{ending}", "--store", made)
    assert drop_ontology(ask_store(shell, made)) == drop_ontology(SAID["answers"])


@pytest.fixture
def builds(shell: Shell) -> Path:
    shutil.copytree(FIXTURES / "builds", shell.folder / "builds")
    shutil.copytree(FIXTURES / "builds" / "memes" / "images", shell.folder / "memes")
    rows = [{"id": n, "image": f"{n}.png", "text": t, "language": la} for n, t, la, _ in MEMES]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (shell.folder / "memes" / "memes.jsonl").write_text(text, encoding="utf-8")
    return shell.folder / "builds"


def build_all(shell: Shell) -> None:
    words = ("--model", "fake/builder")
    done(shell, "build", "knowledge", "memes", *words, "--out", "builds/memes")
    done(shell, "build", "questions", "builds/memes", *words)
    done(shell, "build", "intents", "memes", "--model", "fake/drafter", "--out", "builds/intents")


@pytest.mark.slow
def test_a_build_goes_on_and_asks_nothing_twice(shell: Shell, builds: Path) -> None:
    """Prompts are no format: a later version asks again where they differ, and keeps the log."""
    before = {p: p.read_bytes() for p in builds.rglob("calls.jsonl")}
    assert len(before) == 2
    build_all(shell)
    kept = ("knowledge.jsonl", "questions.jsonl", "intents.jsonl", "calls.jsonl")
    after = {p: p.read_bytes() for p in builds.rglob("*") if p.name in kept}
    assert len(after) == 5
    for path, data in before.items():
        assert after[path].startswith(data), path.relative_to(builds)
    build_all(shell)
    for path, data in after.items():
        assert path.read_bytes() == data, path.relative_to(builds)


@pytest.mark.slow
def test_a_build_is_imported_and_published_the_same(shell: Shell, builds: Path) -> None:
    done(shell, "kb", "import", "builds/memes", "--store", "made")
    assert ask_store(shell, shell.folder / "made")["labels"] == SAID["answers"]["labels"]
    done(shell, "publish", "builds/memes", "--name", "compat_memes", "--licence", "CC0-1.0")
    before, after = (read_tree(p / "published") for p in (FIXTURES, shell.folder))
    assert sorted(after) == sorted(before)
    changed = {name for name in before if after[name] != before[name]}
    # Later versions tell more on the card; what was told stays.
    assert changed <= {"compat_memes/README.md", "compat_memes/croissant.json"}
    card = after["compat_memes/README.md"].decode()
    assert "Nobody rated a sample of these questions" in card
    told = before["compat_memes/README.md"].decode().splitlines()
    assert [line for line in told if line not in card] == []


def read_tree(folder: Path) -> Mapping[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_a_published_benchmark_runs(shell: Shell) -> None:
    shutil.copytree(FIXTURES / "published", shell.folder / "published")
    place = {"MEMANTICS_BENCHMARKS": str(shell.folder / "published")}
    ask = ("--model", "fake/keys", "--model", "baseline/longest", "--json")
    results = json.loads(shell.apart.done("run", "compat_memes", *ask, **place))
    assert [row["facts"]["benchmark"] for row in results] == ["compat_memes"] * 2
    rows = (FIXTURES / "published/compat_memes/data/metadata.jsonl").read_text(encoding="utf-8")
    questions = len(re.findall(r'"question":', rows))
    assert questions > 5
    assert {row["scores"]["counts"]["answered"] for row in results} == {questions}


@pytest.fixture
def database(shell: Shell) -> Path:
    pytest.importorskip("sqlalchemy")
    shutil.copytree(FIXTURES / "annotate", shell.folder / "annotate")
    return shell.folder / "annotate" / "annotate.db"


def check_exports(shell: Shell, database: Path) -> None:
    for name, project, kind in (
        ("annotations", "1", "annotations"),
        ("raw-1", "1", "raw"),
        ("aggregated-2", "2", "aggregated"),
    ):
        out = shell.folder / f"{name}.jsonl"
        done(shell, "annotate", "export", project, "--what", kind, "--db", database, "--out", out)
        before = (FIXTURES / "annotate" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        after = out.read_text(encoding="utf-8").splitlines()
        pairs = zip(after, before, strict=True)
        assert all(holds(json.loads(new), json.loads(old)) for new, old in pairs)


def test_a_database_opens_and_answers_come_out(shell: Shell, database: Path) -> None:
    check_exports(shell, database)


def test_a_backup_is_restored(shell: Shell, database: Path) -> None:
    archive = shell.folder / "annotate" / "backup.zip"
    fresh = shell.folder / "fresh" / "annotate.db"
    fresh.parent.mkdir()
    done(shell, "annotate", "restore", archive, "--db", fresh)
    check_exports(shell, fresh)
    media = {path.name: path.read_bytes() for path in (fresh.parent / "media").rglob("*/*")}
    old = {p.name: p.read_bytes() for p in (FIXTURES / "annotate" / "media").rglob("*/*")}
    assert media == old
    assert len(media) == 6


def test_work_goes_on_in_a_database(database: Path) -> None:
    """The people, their passwords and what they hold are still theirs."""
    from memantics.annotation.service import open_service
    from tests.annotation.team import PASSWORD, quick_hasher, work_through

    service = open_service(database, database.parent / "media", hasher=quick_hasher())
    try:
        dan = service.accounts.log_in("dan", PASSWORD).actor
        numbers = work_through(service, dan, 2, lambda _: {"harmful": "no"})
        assert sorted(numbers) == [1, 2, 3, 4]
    finally:
        service.close()


def test_fixtures_are_left_as_they_are() -> None:
    """A test that writes into the fixtures would hide a change of format."""
    assert not list(FIXTURES.rglob(".lock"))
    assert not os.path.lexists(FIXTURES / "annotate" / "annotate.db-wal")
