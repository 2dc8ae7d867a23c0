"""``python -m perf.suite [--json]``: does a suite keep its server busy, and survive a kill?

Five families, two models, 2,000 items each, against a loopback server that answers 32 calls at a
time, 100 ms each, and lets the others wait. Items are those of the sample data, repeated under
new names until there are enough. The first start is killed (``kill -9``) at half; the second goes
on. The result is the proportion of the wall time of both, from their first line to their last, in
which all of the server's places were taken.

Each model may have 32 calls in flight, together more than the server takes at once: so one sets
``--concurrency`` for a server that is to be kept busy. With ``--places 64`` there are exactly as
many calls as places, and every place stays empty from an answer to the next call: look at the
average then.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count, islice
from pathlib import Path

import orjson

from memantics.core.records import Item, Message, Request
from memantics.core.rundir import last_answers, read_answers, read_items
from memantics.core.task import Task

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = (
    "mquest/qa",
    "memeintent/intent",
    "toxicn_mm/detection",
    "mer_bench/judge",
    "punmemecn/detection",
)
MODELS = ("openai/first", "openai/second")
ITEMS = 2_000
PLACES = 32
SERVICE = 0.1
CONCURRENCY = 32
TARGET = 0.7
_BODY = orjson.dumps(
    {
        "model": "perf",
        "choices": [{"message": {"role": "assistant", "content": "B"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 1},
    }
)
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY)
) + _BODY


@dataclass(slots=True)
class Load:
    """What the server saw: seconds with all places taken, place-seconds, calls."""

    places: int
    full: float = 0.0
    used: float = 0.0
    calls: int = 0
    active: int = 0
    since: float = 0.0

    def move(self, step: int) -> None:
        """Take a place or give it back."""
        now = time.monotonic()
        if self.active == self.places:
            self.full += now - self.since
        self.used += self.active * (now - self.since)
        self.since = now
        self.active += step


class _Chat(asyncio.Protocol):
    """Reads a request by its length, waits for a place, and answers."""

    def __init__(self, load: Load, queue: deque[_Chat]) -> None:
        self._load = load
        self._queue = queue
        self._head = b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._head += data
            head, end, body = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            self._head = b""
            if head.startswith(b"GET"):
                self._load.move(0)
                self._tell()
                return
            lines = head.lower().split(b"\r\n")
            length = next(line for line in lines if line.startswith(b"content-length:"))
            self._missing = int(length[15:]) - len(body)
        if self._missing == 0:
            self._load.calls += 1
            if self._load.active < self._load.places:
                self.serve()
            else:
                self._queue.append(self)

    def serve(self) -> None:
        self._load.move(1)
        asyncio.get_running_loop().call_later(SERVICE, self._answer)

    def _answer(self) -> None:
        self._load.move(-1)
        if self._queue:
            self._queue.popleft().serve()
        if not self._transport.is_closing():
            self._transport.write(_ANSWER)

    def _tell(self) -> None:
        body = orjson.dumps(asdict(self._load))
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


async def serve(places: int) -> None:
    """Serve until standard input closes; ``GET`` tells the load so far."""
    load, queue = Load(places), deque[_Chat]()
    loop = asyncio.get_running_loop()
    load.since = time.monotonic()
    server = await loop.create_server(lambda: _Chat(load, queue), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def enlarge(task: Task, size: int) -> Task:
    """Return the task with as many items: the same memes again, under other names."""
    own = list(task.items())

    def items() -> Iterator[Item]:
        copies = (
            replace(item, id=f"{item.id}~{copy}", group=f"{item.group}~{copy}")
            for copy in count()
            for item in own
        )
        return islice(copies, size)

    def ask(item: Item, complaint: str | None) -> Request:
        request = task.ask(item, complaint)
        *before, last = request.messages
        marked = Message(last.role, (*last.parts, f"({item.id})"))
        return replace(request, messages=(*before, marked))

    return replace(task, items=items, ask=ask)


def run(url: str, out: Path, size: int) -> None:
    """The suite, as the command line runs it."""
    from memantics.evaluation.evaluate import SuiteTotal, conduct
    from memantics.evaluation.facts import Scope, Variation
    from memantics.evaluation.planning import EvaluationPlan, plan_evaluation
    from memantics.models.client import CallSettings

    calls = CallSettings(base_url=url, concurrency=CONCURRENCY, timeout=120.0)
    scope, variation = Scope("sample"), Variation(invalid="wrong")
    wanted = EvaluationPlan(FAMILIES, MODELS, scope, out=out, calls=calls, variation=variation)
    planned, _ = plan_evaluation(wanted)
    tasks = {id(job.task): enlarge(job.task, size) for job in planned}
    jobs = [replace(job, task=tasks[id(job.task)], total=size) for job in planned]
    watch = SuiteTotal(jobs, lambda _: None)
    results = asyncio.run(conduct(jobs, calls, watch))
    assert not any(result.broken for result in results), results


def read_load(url: str) -> Load:
    import urllib.request

    with urllib.request.urlopen(url, timeout=10) as reply:
        return Load(**orjson.loads(reply.read()))


def start(url: str, folder: Path, size: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "perf.suite", "--run", url, str(folder / "runs")]
    environment = os.environ | {"MEMANTICS_HOME": str(folder / "home")}
    return subprocess.Popen([*command, "--items", str(size)], cwd=ROOT, env=environment)


def check(folder: Path, size: int) -> tuple[int, int]:
    """Items that are missing, and answers or items that are there twice."""
    missing = double = 0
    runs = list(folder.iterdir())
    assert len(runs) == len(FAMILIES) * len(MODELS), runs
    for run_folder in runs:
        answers = Counter(answer.item for answer in read_answers(run_folder))
        items = Counter(line.item.id for line in read_items(run_folder))
        missing += size - len(last_answers(run_folder))
        double += answers.total() - len(answers) + items.total() - len(items)
    return missing, double


def measure(size: int, places: int) -> dict[str, float]:
    """Run, kill, run again."""
    whole = size * len(FAMILIES) * len(MODELS)
    command = [sys.executable, "-m", "perf.suite", "--serve", str(places)]
    with (
        tempfile.TemporaryDirectory() as place,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server,
    ):
        assert server.stdout is not None
        assert server.stdin is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        folder = Path(place)
        begin = time.monotonic()
        first = start(url, folder, size)
        while read_load(url).calls < whole // 2:
            time.sleep(0.05)
        first.kill()
        first.wait()
        seconds = time.monotonic() - begin
        killed = read_load(url)
        time.sleep(SERVICE * 3)  # the server ends what it had begun; nobody's time
        before = read_load(url)
        begin = time.monotonic()
        assert start(url, folder, size).wait() == 0
        again = time.monotonic() - begin
        load = read_load(url)
        missing, double = check(folder / "runs", size)
        server.stdin.close()
    full = killed.full + load.full - before.full
    used = killed.used + load.used - before.used
    return {
        "seconds": seconds + again,
        "full": full / (seconds + again),
        "used": used / places / (seconds + again),
        "calls": load.calls,
        "asked again": load.calls - whole,
        "missing": missing,
        "double": double,
    }


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.suite", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--items", type=int, default=ITEMS, help="items of each family")
    parser.add_argument("--places", type=int, default=PLACES, help="calls the server takes at once")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve))
        return 0
    if given.run:
        run(given.run[0], Path(given.run[1]), given.items)
        return 0
    found = measure(given.items, given.places)
    in_flight = len(MODELS) * CONCURRENCY
    kept = (
        found["full"] >= TARGET
        and not found["missing"]
        and not found["double"]
        and found["asked again"] <= in_flight
    )
    if given.json:
        print(orjson.dumps(found | {"kept": kept}).decode())
        return 0 if kept else 1
    print(
        f"{len(FAMILIES)} families, {len(MODELS)} models, {given.items:,} items, kill -9 at half\n"
        f"{'wall time of both starts':<44}{found['seconds']:>8.1f} s\n"
        f"{'all places of the server taken, at least 70 %':<45}{found['full']:>7.0%}\n"
        f"{'places taken on average':<45}{found['used']:>7.0%}\n"
        f"{'items missing, at most 0':<45}{found['missing']:>7.0f}\n"
        f"{'items or answers double, at most 0':<45}{found['double']:>7.0f}\n"
        f"{f'calls asked again, at most {in_flight}':<45}{found['asked again']:>7.0f}\n"
        f"{'kept' if kept else 'MISSED'}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
