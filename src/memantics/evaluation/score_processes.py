"""Score runs in separate processes, so that scoring does not delay model calls.

``python -m memantics.evaluation.score_processes`` is such a process. It reads one JSON line per run
and writes one line when the run is scored. It exits when its input ends, so it never outlives the
command that started it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import orjson
from pydantic import TypeAdapter

from memantics.core.errors import MemanticsError
from memantics.core.rundir import BaselineScores, Scores, read_facts, read_scores, write_scores
from memantics.evaluation.metrics import recall_metrics
from memantics.evaluation.run import Job, score_here
from memantics.evaluation.scoring import name_baselines, score_run
from memantics.evaluation.tasks import open_baselines, open_task_of_run

# Runs with at most this many items are scored faster than a process starts.
_SMALL = 200


@dataclass(frozen=True, slots=True)
class ScoringOrder:
    """An order to a scoring process: one run to score."""

    folder: str
    invalid: str
    baselines: bool
    metrics: tuple[str, ...] | None = None


_ORDER = TypeAdapter(ScoringOrder)


class ScoringPool:
    """Scores small runs on a thread and large ones in other processes.

    Scoring is pure computation, which would block the event loop of the process that calls models.
    Trivial baselines do not depend on the model, so runs of one task share their baseline scores.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(max(1, (os.cpu_count() or 1) // 2))
        self._idle: list[Process] = []
        self._known: dict[tuple[int, tuple[str, ...]], tuple[BaselineScores, ...]] = {}

    async def score(self, job: Job) -> Scores:
        """Score a run."""
        async with self._places:
            metrics = recall_metrics(job.folder) if job.metrics is None else job.metrics
            shared = self._known.get((id(job.task), metrics))
            if shared is not None:
                scores = await self._count(replace(job, baselines=()))
                baselines = tuple(one for one in shared if one.model != job.facts.model)
                scores = replace(scores, baselines=baselines)
                write_scores(job.folder, scores)
                return scores
            scores = await self._count(job)
            if not job.needs and len(scores.baselines) == len(name_baselines(job.baselines)):
                self._known[id(job.task), metrics] = scores.baselines
            return scores

    async def _count(self, job: Job) -> Scores:
        if job.total > _SMALL and await self._count_apart(job):
            return read_scores(job.folder)
        # If the other process fails, the run is scored in this process, which then raises any
        # error.
        return await score_here(job)

    async def _count_apart(self, job: Job) -> bool:
        process = self._idle.pop() if self._idle else await _start()
        folder, invalid = str(job.folder.resolve()), str(job.task.invalid)
        order = ScoringOrder(folder, invalid, bool(job.baselines), job.metrics)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(orjson.dumps(order, option=orjson.OPT_APPEND_NEWLINE))
            await process.stdin.drain()
            answer = await process.stdout.readline()
        except OSError:
            answer = b""
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if not answer:
            await process.wait()
            return False
        self._idle.append(process)
        return bool(orjson.loads(answer))

    async def close(self) -> None:
        """Stop the scoring processes."""
        for process in self._idle:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()
        self._idle.clear()


async def _start() -> Process:
    command = (sys.executable, "-m", "memantics.evaluation.score_processes")
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)


def work(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Score each requested run; write true when its scores are stored."""
    for line in orders:
        order = _ORDER.validate_json(line)
        try:
            _score(order)
            answer = b"true\n"
        except MemanticsError:
            answer = b"false\n"
        answers.write(answer)
        answers.flush()


def _score(order: ScoringOrder) -> None:
    folder = Path(order.folder)
    ref, task = open_task_of_run(read_facts(folder), order.invalid)
    trivial = open_baselines(ref.card) if order.baselines else ()
    asyncio.run(score_run(folder, task, trivial, order.metrics))


def main() -> None:
    """Score runs until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Text printed by a package must not be parsed as a result.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    work(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
