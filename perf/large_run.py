"""``python -m perf.large_run PHASE FOLDER ITEMS [read]``: a run of very many items, by phases.

``ask`` plans the run, asks a model that answers at once, and writes everything down; ``resume``
starts the finished run again; ``score`` scores it. Prints one line of JSON: CPU seconds to the
first call, of the phase, and peak memory. No network: only our own work is measured.

The items are made on the fly and have the same four options, or, with ``read``, come from the
records of ``examples/meanings``: each has an image, a text and four statements of its own, and
reading and checking the file counts.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson
from pydantic import JsonValue

from memantics.benchmarks.card import Card, SampleCard, TaskCard, read_card
from memantics.benchmarks.factories import LETTERS, hits, letter_field
from memantics.benchmarks.parsing import parse_letter
from memantics.benchmarks.registry import SAMPLE_IMAGES, Benchmark, DataFacts, TaskRef
from memantics.core.model import Model
from memantics.core.records import Form, Item, Message, Outcome, Reply, Request, Score
from memantics.core.task import Task
from memantics.evaluation.facts import Scope
from memantics.evaluation.run import Job, evaluate, plan, pose
from memantics.evaluation.scoring import score_run
from memantics.evaluation.tasks import pose_task
from memantics.metrics.classification import accuracy
from memantics.metrics.interval import clustered_wilson
from memantics.models.engine import AskSettings, Progress
from perf.contest import QUESTION, peak_mb

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "meanings"
STATEMENTS = (
    "It makes fun of people who plan too much and never begin.",
    "It shows how a small problem grows while everybody looks away.",
    "It praises patience where others would have given up long ago.",
    "It complains about the weather.",
)


class Instant:
    """Answers at once; notes when it was asked first."""

    name, note, cacheable = "perf/instant", "", False
    identity: Mapping[str, JsonValue] = {}
    first: float | None = None

    async def answer(self, _: Request) -> Reply:
        if self.first is None:
            self.first = time.process_time()
        return Reply("The answer is B.", finish="stop", tokens_in=900, tokens_out=6)

    async def close(self) -> None:
        """Nothing is open."""


def make_task(count: int) -> Task:
    """Return a question about very many memes, with the same four statements for each."""
    field = letter_field(STATEMENTS, "A")

    def items() -> Iterator[Item]:
        for number in range(count):
            form = Form(QUESTION, (field,), context={"text": f"what meme {number} says"})
            yield Item(f"item-{number}", f"meme-{number}", LETTERS[number % 4], form)

    def ask(item: Item, complaint: str | None) -> Request:
        parts = (f"{item.form.context['text']}\n{item.form.question}{complaint or ''}",)
        return Request((Message("user", parts),), item.form)

    def parse(text: str, form: Form) -> JsonValue:
        return parse_letter(text, {option.key: option.text for option in form.fields[0].options})

    def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
        right = hits(outcomes)
        low, high = clustered_wilson(right, [o.item.group for o in outcomes]) or (None, None)
        return (Score("accuracy", accuracy(right), len(right), low, high),)

    return Task("perf/choose", items, ask, parse, score, "accuracy")


def make_job(model: Model, folder: Path, count: int) -> Job:
    """Plan the run as a suite does: every item is walked before the first call is paid."""
    sample = SampleCard(licence="CC0-1.0", images="shared")
    task_card = TaskCard(name="choose", title="Choosing", main="accuracy", baselines=())
    card = Card(
        name="perf",
        title="Perf",
        summary="",
        languages=("en",),
        citation="",
        sample=sample,
        task=(task_card,),
    )
    data = DataFacts("sample", "", count, "", "")
    posed = pose((card, task_card), make_task(count), lambda: data, Scope(split="all"))
    return plan(posed, model, (), (folder, None))


def write_records(folder: Path, count: int) -> Path:
    """Return a copy of the example benchmark whose sample has so many memes."""
    home = folder / "meanings"
    if not home.is_dir():
        shutil.copytree(EXAMPLE, home)
        images = sorted(path.name for path in SAMPLE_IMAGES.glob("*.png"))
        words = " ".join(STATEMENTS).split()
        chance = random.Random(1)
        with (home / "sample" / "memes.jsonl").open("wb") as file:
            for number in range(count):
                texts = [f"{' '.join(chance.choices(words, k=10))} {end}" for end in "abcde"]
                record = {
                    "id": f"meme-{number}",
                    "image": images[number % len(images)],
                    "text": texts[0],
                    "meaning": texts[1],
                    "others": texts[2:],
                }
                file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    return home


def find_task(folder: Path) -> TaskRef:
    """Return the task of the copy, as a user's folder of benchmarks is found."""
    home = folder / "meanings"
    card = read_card(home / "card.toml")
    return TaskRef(Benchmark(home, card), card.task[0])


async def measure(phase: str, folder: Path, count: int, *, read: bool) -> dict[str, float]:
    """Return one phase; CPU seconds are of this process, from its start of planning."""
    model, runs = Instant(), folder / "runs"
    if read:
        write_records(folder, count)
    begin = time.process_time()
    if phase == "score":
        done = next(path for path in runs.iterdir() if path.is_dir())
        task = find_task(folder).make({}, "all", None, None) if read else make_task(count)
        await score_run(done, task, ())
        return {"seconds": time.process_time() - begin, "peak_mb": peak_mb()}
    last: list[Progress] = []

    async def skip(_: Job) -> object:
        return None

    if read:
        job = plan(pose_task(find_task(folder), {}, Scope()), model, (), (runs, None))
    else:
        job = make_job(model, runs, count)
    ended = await evaluate(
        job,
        None,
        AskSettings(concurrency=64),
        last.append,
        skip,  # type: ignore[arg-type]  # scored in a phase of its own
    )
    assert ended.progress.answered == count, ended
    assert ended.progress.resumed == (count if phase == "resume" else 0), ended
    return {
        "first": (model.first or begin) - begin,
        "seconds": time.process_time() - begin,
        "peak_mb": peak_mb(),
    }


def main(phase: str, folder: str, count: str, source: str = "") -> None:
    """Measure one phase and print the result."""
    measurements = asyncio.run(measure(phase, Path(folder), int(count), read=source == "read"))
    print(orjson.dumps(measurements).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
