"""``python -m perf.compare [RUNS]``: CPU time of ``compare`` over a suite and over one pair.

The suite has 40 runs by default: half of PunMemeCN's detection (F1), half of M-QUEST (accuracy),
with 150 items each. Every pair of models on each task is tested. One pair of runs is the unit for a
ratio between two versions, since CPU times of different machines are not comparable.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from memantics.core.records import Answer, Field, Form, Item, Option, Reply
from memantics.core.rundir import RunFacts, RunWriter
from memantics.evaluation.compare import compare, compare_models
from memantics.evaluation.evaluate import score

ITEMS = 150
LETTERS = Form("?", (Field("answer", "choice", tuple(Option(k, k) for k in "ABCD")),))
PUNS = Form(
    "?",
    (Field("label", "choice", (Option("双关", "双关"), Option("非双关", "非双关"))),),
    language="zh",
)


def describe_run(task: str, model: str) -> RunFacts:
    """Make the facts of a run."""
    return RunFacts(
        benchmark=task.partition("/")[0],
        task=task,
        title=task,
        main="",
        unit="memes",
        model=model,
        model_note="",
        identity={"name": model},
        options={},
        split="all",
        limit=None,
        invalid="wrong",
        prompts={},
        data={"checksum": "sum", "kind": "sample"},
        warning="",
        version="0",
        fingerprint=f"{task}{model}",
        started="",
    )


def write(folder: Path, task: str, place: int) -> Path:
    """Write and score a run of made-up answers, about three items per meme."""
    chance, puns = random.Random(place), task.startswith("punmemecn")
    rate = 0.5 + 0.4 * chance.random()
    with RunWriter(folder, describe_run(task, f"fake/model{place}")) as writer:
        for n in range(ITEMS):
            gold = ("pun" if n % 3 == 0 else "non-pun") if puns else "ABCD"[n % 4]
            right = chance.random() < rate
            wrong = ("非双关" if gold == "pun" else "双关") if puns else "ABCD"[(n + 1) % 4]
            said = (
                ({"pun": "双关", "non-pun": "非双关"}[gold] if puns else gold) if right else wrong
            )
            tags = {"role": "pun"} if puns else {"dimension": "Scene", "kind": "R"}
            form = PUNS if puns else LETTERS
            writer.add_item(Item(str(n), str(n // 3), gold, form, tags=tags), ())
            text = said if puns else f"Answer: {said}"
            writer.add_answer(Answer(str(n), 0, "answered", Reply(text), said))
    score(folder)
    return folder


def main() -> None:
    """Print the CPU times."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as made:
        tasks = ("punmemecn/detection", "mquest/qa")
        folders = [
            write(Path(made) / f"{place}", tasks[place % 2], place // 2) for place in range(count)
        ]
        start = time.process_time()
        compare(folders[0], folders[2])
        pair = time.process_time() - start
        print(f"one pair, F1: {pair:.2f} s of CPU time", flush=True)
        start = time.process_time()
        found = compare_models(folders)
        suite = time.process_time() - start
        print(f"{count} runs, {len(found.rows)} comparisons: {suite:.1f} s of CPU time")


if __name__ == "__main__":
    main()
