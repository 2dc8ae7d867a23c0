"""``python tests/compat/make.py CHECKOUT``: write the fixtures with the code of another checkout.

The tests beside this file prove that what an older version wrote still opens. They are worth
something only if the files come from that version, so this script runs the commands of CHECKOUT
(``git worktree add CHECKOUT COMMIT``), never those of the tree it stands in. The folders of
``fixtures/`` are named after what is in them; ``fixtures/COMMIT`` says which commit wrote them.

Absolute paths, which run directories hold for their images, become ``@PACKAGE@``; the tests put
the place of the installed package there. Everything is drawn or scripted: no meme of a person.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

if TYPE_CHECKING:
    from memantics.annotation.records import AnnotationTask

FIXTURES = Path(__file__).resolve().parent / "fixtures"
MOST_BYTES = 1_500_000
MEMES = (
    ("kettle", "When the kettle boils before the meeting ends", "en", (200, 80, 40)),
    ("ladder", "Me explaining the ladder to the cat", "en", (40, 120, 200)),
)
TEXTS = ("今天天气不错", "一起去市场买菜", "Monday again", "", "加班到天亮 又是一天")
# A classifier refuses a meme without a text.
WRITTEN = tuple(filter(None, TEXTS))
LABEL = "mer_bench/emotion"
# What a reviewer may tick about a question, beside the choices that have to be made.
FLAGS = ("unclear", "also_right", "absurd")
QUERIES = {
    "classes": "SELECT ?c (COUNT(?x) AS ?n) { GRAPH ?g { ?x a ?c } } GROUP BY ?c ORDER BY ?c",
    "labels": "SELECT ?x ?l { GRAPH ?g { ?x rdfs:label ?l } } ORDER BY ?x ?l LIMIT 20",
    "graphs": "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g",
    "ask": "ASK { GRAPH ?g { ?x a mm:Scene } }",
}
FAKES = (
    ("mquest/qa", "fake/babble"),
    ("toxicn_mm/detection", "fake/decline"),
    ("punmemecn/sentiment", "fake/break"),
    ("memeintent/intent", "baseline/longest"),
)


class Maker:
    """Runs the commands of a checkout in a folder of its own."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.checkout, self.folder = checkout, folder
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("OPENAI_", "MEMANTICS_"))}
        self.environment = kept | {
            "PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{checkout}",
            "MEMANTICS_HOME": str(folder / "home"),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "80",
        }

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        return self._call([sys.executable, "-m", "memantics.cli.main", *words], codes)

    def script(self, *words: str) -> str:
        return self._call([sys.executable, str(Path(__file__).resolve()), *words], (0,))

    def _call(self, words: list[str], codes: tuple[int, ...]) -> str:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in codes:
            sys.exit(f"{' '.join(words)} ended with {done.returncode}\n{done.stderr}")
        return done.stdout


def make_runs(maker: Maker) -> None:
    """Every task of every family, and runs in which answers are unparsed, refused and failed."""
    model = ("--data", "sample", "--out", "runs", "--no-cache", "--model")
    maker.run("run", "suite", "--limit", "3", *model, "embedded/reader")
    for task, name in FAKES:
        maker.run("run", task, "--limit", "3", *model, name, codes=(0, 1))
    folders = [f"runs/{path.name}" for path in pick_reported(maker.folder / "runs")]
    maker.run("report", *folders, "--no-images", "--out", "report.html")
    maker.run("report", *folders, "--format", "json", "--out", "report.json")


def pick_reported(runs: Path) -> list[Path]:
    """Two tasks with two models each: a page of all runs would fill the fixtures alone."""
    return sorted([*runs.glob("mquest-qa-*"), *runs.glob("memeintent-intent-*")])


def make_detectors(maker: Maker) -> None:
    """A fast detector, a classifier and a tiny network, with what each said about a few texts."""
    maker.run("detector", "train", "--data", "sample", "--out", "fast.zip")
    maker.run("classifier", "train", LABEL, "--data", "sample", "--out", "classifier.zip")
    maker.script("encoder", "encoder")
    maker.run(
        *("detector", "train-neural", "--preset", "text", "--text-backbone", "encoder"),
        *("--data", "sample", "--seeds", "0", "--epochs", "1", "--share", "0.2"),
        *("--device", "cpu", "--out", "neural"),
    )
    said = {
        name: json.loads(maker.run(kind, "predict", name, *texts, "--json"))
        for name, kind, texts in (
            *(("fast.zip", "detector", TEXTS), ("neural", "detector", TEXTS)),
            ("classifier.zip", "classifier", WRITTEN),
        )
    }
    _write_json(maker.folder / "predictions.json", said)


def make_build(maker: Maker) -> None:
    """Knowledge and questions of two drawn memes, judged by three people, and published."""
    from PIL import Image

    memes = maker.folder / "memes"
    memes.mkdir()
    for name, _, _, colour in MEMES:
        Image.new("RGB", (160, 120), colour).save(memes / f"{name}.png")
    rows = [{"id": n, "image": f"{n}.png", "text": t, "language": la} for n, t, la, _ in MEMES]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (memes / "memes.jsonl").write_text(text, encoding="utf-8")
    maker.run("build", "knowledge", "memes", "--model", "fake/builder", "--out", "builds/memes")
    maker.run("build", "questions", "builds/memes", "--model", "fake/builder")
    maker.run("build", "intents", "memes", "--model", "fake/drafter", "--out", "builds/intents")
    maker.script("annotate", "builds/memes/queue", "annotate")
    shutil.copy(
        maker.folder / "annotate" / "annotations.jsonl",
        maker.folder / "builds" / "memes" / "queue" / "annotations.jsonl",
    )
    maker.run("publish", "builds/memes", "--name", "compat_memes", "--licence", "CC0-1.0")


def make_store(maker: Maker) -> None:
    """A store on disk, its exports in four formats, and the answers to a few queries."""
    maker.run("kb", "import", "builds/memes", "--store", "store")
    said = {
        name: json.loads(maker.run("kb", "query", query, "--store", "store", "--json"))
        for name, query in QUERIES.items()
    }
    _write_json(maker.folder / "queries.json", {"queries": QUERIES, "answers": said})
    for ending in ("nq", "trig", "jsonld"):
        maker.run("kb", "export", "--store", "store", "--out", f"export.{ending}")
    # The database's own log of what it did: not data, and full of paths.
    (maker.folder / "store" / "graphs" / "LOG").unlink()


def annotate(queue: str, target: str) -> None:
    """Inside the checkout: three people answer a queue; one item waits; a backup is taken."""
    from memantics.annotation.backup import backup
    from memantics.annotation.service import open_service
    from tests.annotation.team import (
        add_people,
        answer_by_number,
        make_lead,
        make_queue,
        plain_items,
        quick_hasher,
        work_through,
    )

    folder = Path(target)
    folder.mkdir()
    service = open_service(folder / "annotate.db", folder / "media", hasher=quick_hasher())
    lead = make_lead(service)
    questions = service.exchange.open_queue(lead, Path(queue))
    judges = add_people(service, lead, questions.id, ["ann", "eve", "fay"], ["annotator"])
    memes = make_queue(folder / "queue", "label-by-vote", plain_items(4))
    votes = service.exchange.open_queue(lead, memes)
    people = add_people(service, lead, votes.id, ["bea", "cyd", "dan"], ["annotator"])
    for judge in judges:
        work_through(service, judge, questions.id, _review)
    for number, person in enumerate(people[:2]):
        table = {item: _vote(item, number) for item in range(1, 5)}
        work_through(service, person, votes.id, answer_by_number(table))
    for project, kind in ((questions, "annotations"), (questions, "raw"), (votes, "aggregated")):
        name = "annotations" if kind == "annotations" else f"{kind}-{project.id}"
        data = service.exchange.export(lead, project.id, kind).data
        (folder / f"{name}.jsonl").write_bytes(data)
    backup(service, folder / "backup.zip")
    service.close()


def _review(task: AnnotationTask) -> dict[str, JsonValue]:
    """All is right, apart from the answer of the second question."""
    return {
        name: "no" if (task.number, name) == (2, "answer") else "yes"
        for name in task.fields
        if name not in FLAGS
    }


def _vote(item: int, person: int) -> dict[str, JsonValue]:
    """They agree on all but every third item."""
    if item % 3 == 0 and person == 1:
        return {"harmful": "yes", "type": "dispirited", "modality": "text"}
    return {"harmful": "no"}


def make_encoder(target: str) -> None:
    """Inside the checkout: a text encoder with random weights, as its own tests use."""
    from tests.moderation.neural import tiny

    tiny.make_text(Path(target))


def gather(maker: Maker) -> None:
    """Scrub the paths, pack the store, and put everything under ``fixtures/``."""
    shutil.rmtree(FIXTURES, ignore_errors=True)
    FIXTURES.mkdir()
    work = maker.folder
    for name in ("runs", "builds", "published", "annotate", "neural"):
        shutil.copytree(work / name, FIXTURES / name)
    for name in (
        *("report.html", "report.json", "fast.zip", "classifier.zip", "predictions.json"),
        *("queries.json", "export.nq", "export.trig", "export.jsonld"),
    ):
        shutil.copy(work / name, FIXTURES / name)
    with zipfile.ZipFile(FIXTURES / "store.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for path in sorted((work / "store").rglob("*")):
            if path.is_file():
                out.write(path, path.relative_to(work))
    commit = subprocess.run(
        ["git", "-C", str(maker.checkout), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    )
    (FIXTURES / "COMMIT").write_text(commit.stdout, encoding="utf-8")
    package = str(maker.checkout / "src" / "memantics").encode()
    for path in [found for found in FIXTURES.rglob("*") if found.is_file()]:
        if path.name == ".lock":
            path.unlink()
            continue
        data = path.read_bytes()
        if package in data:
            path.write_bytes(data := data.replace(package, b"@PACKAGE@"))
        for place in (maker.checkout, maker.folder):
            if str(place).encode() in data:
                sys.exit(f"{path} holds the path {place}")
    size = sum(path.stat().st_size for path in FIXTURES.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        sys.exit(f"the fixtures take {size:,} bytes, more than {MOST_BYTES:,}")
    print(f"{size:,} bytes in {FIXTURES}")


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main(words: list[str]) -> None:
    """Make all, or the part that has to run inside the checkout."""
    if words[:1] == ["annotate"]:
        annotate(*words[1:])
    elif words[:1] == ["encoder"]:
        make_encoder(*words[1:])
    elif len(words) == 1:
        with tempfile.TemporaryDirectory() as place:
            maker = Maker(Path(words[0]).resolve(), Path(place))
            for make in (make_runs, make_detectors, make_build, make_store, gather):
                print(make.__name__, flush=True)
                make(maker)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
