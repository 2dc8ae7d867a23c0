"""One contestant in its own process: ``python -m perf.contest KIND URL FOLDER ITEMS``.

Prints one line of JSON: CPU milliseconds per item of this process (server excluded, imports
excluded), seconds, and peak memory. FOLDER holds ``images/``; the engine works in it.
"""

from __future__ import annotations

import asyncio
import base64
import re
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import orjson

from memantics.core.task import Task

IN_FLIGHT = 64
QUESTION = (
    "Look at the meme and at the caption. Which of the four statements describes best what the "
    "person who posted it wants to say? Think about the scene, the text, the feelings that it "
    "shows and the background that one must know.\n"
    "A. It makes fun of people who plan too much and never begin.\n"
    "B. It shows how a small problem grows while everybody looks away.\n"
    "C. It praises patience where others would have given up long ago.\n"
    "D. It complains about the weather.\n"
    "Answer with one letter."
)
Contest = Callable[[str, Path, int], Awaitable[None]]


def image_paths(folder: Path, count: int) -> Iterator[tuple[int, Path]]:
    """Yield the items: number and image; images repeat when there are more items than files."""
    images = sorted((folder / "images").iterdir())
    return ((number, images[number % len(images)]) for number in range(count))


async def run_bare(url: str, folder: Path, count: int) -> None:
    """The least that anybody can do with aiohttp and orjson; it remembers nothing."""
    await _loop(url, folder, count, base64.b64encode)


async def run_bare64(url: str, folder: Path, count: int) -> None:
    """The bare loop with the Base64 that the engine uses, to compare like with like."""
    import pybase64

    await _loop(url, folder, count, pybase64.b64encode)


async def _loop(url: str, folder: Path, count: int, encode: Callable[[bytes], bytes]) -> None:
    import aiohttp

    jobs = image_paths(folder, count)
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work() -> None:
            for number, path in jobs:
                data = encode(path.read_bytes()).decode()
                body = orjson.dumps(_body(number, f"data:image/png;base64,{data}"))
                async with session.post(
                    f"{url}/chat/completions",
                    data=body,
                    headers={"Content-Type": "application/json", "Authorization": "Bearer none"},
                ) as response:
                    reply = orjson.loads(await response.read())
                assert "B" in reply["choices"][0]["message"]["content"]

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


def _body(number: int, image: str) -> dict[str, object]:
    return {
        "model": "perf",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": image}},
                    {"type": "text", "text": f"{QUESTION} ({number})"},
                ],
            }
        ],
        "temperature": 0.0,
        "max_tokens": 64,
    }


async def run_sdk(url: str, folder: Path, count: int) -> None:
    """The official client, as its documentation shows it."""
    from openai import AsyncOpenAI

    jobs = image_paths(folder, count)
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=2) as client:

        async def work() -> None:
            for number, path in jobs:
                data = base64.b64encode(path.read_bytes()).decode()
                body = _body(number, f"data:image/png;base64,{data}")
                reply = await client.chat.completions.create(**body)  # type: ignore[call-overload]
                assert "B" in reply.choices[0].message.content

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def run_engine(url: str, folder: Path, count: int) -> None:
    """Ours, with all it does: call log, cache, retries, limiter, image checks."""
    await _ask(url, folder, count, Path(tempfile.mkdtemp(dir=folder)) / "cache.sqlite")


async def run_cached(url: str, folder: Path, count: int) -> None:
    """Ours, into a fresh run directory, with all answers in the cache."""
    await _ask(url, folder, count, folder / "warm.sqlite")


async def _ask(url: str, folder: Path, count: int, cache_path: Path) -> None:
    from memantics.core.rundir import RunFacts, RunWriter
    from memantics.evaluation.ask import ask
    from memantics.models.cache import Cache
    from memantics.models.engine import AskSettings
    from memantics.models.openai import OpenAIModel, OpenAISettings

    model = OpenAIModel("perf", url, "none", OpenAISettings(connections=IN_FLIGHT))
    facts = RunFacts(
        benchmark="perf",
        task="perf",
        title="perf",
        main="accuracy",
        unit="items",
        model=model.name,
        model_note="",
        identity=model.identity,
        options={},
        split="",
        limit=None,
        invalid="wrong",
        prompts={},
        data={},
        warning="",
        version="",
        fingerprint="perf",
        started="",
    )
    cache = Cache(cache_path)
    with RunWriter(Path(tempfile.mkdtemp(dir=folder)), facts) as writer:
        settings = AskSettings(concurrency=IN_FLIGHT, total=count)
        summary = await ask(_task(folder, count), model, writer, cache, settings)
    cache.close()
    await model.close()
    assert summary.answered == count, summary


def _task(folder: Path, count: int) -> Task:
    from memantics.core.records import (
        Field,
        Form,
        Image,
        Item,
        Message,
        MessagePart,
        Option,
        Request,
        Sampling,
    )
    from memantics.core.task import Task, Unparsed

    options = tuple(Option(key, f"statement {key}") for key in "ABCD")
    letter = re.compile(r"\b([ABCD])\b")

    def items() -> Iterator[Item]:
        for number, path in image_paths(folder, count):
            form = Form(f"{QUESTION} ({number})", (Field("answer", "choice", options),))
            yield Item(f"item-{number}", f"meme-{number}", "B", form, (Image(path),))

    def make(item: Item, complaint: str | None) -> Request:
        parts: tuple[MessagePart, ...] = (*item.images, f"{item.form.question}{complaint or ''}")
        return Request((Message("user", parts),), item.form, Sampling(max_tokens=64))

    def parse(text: str, _: Form) -> str:
        found = letter.findall(text)
        if not found:
            raise Unparsed("no letter")
        return str(found[-1])

    return Task("perf", items, make, parse, lambda _: (), "accuracy")


CONTESTS: dict[str, Contest] = {
    "bare": run_bare,
    "bare64": run_bare64,
    "sdk": run_sdk,
    "engine": run_engine,
    "cached": run_cached,
}


def peak_mb() -> float:
    """Peak resident memory of this process, in MB."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    kilobytes = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / 1024


def main(kind: str, url: str, folder: str, count: int) -> None:
    """Run one contestant and print its measurements."""
    contest = CONTESTS[kind]
    # Imports happen before the clock starts.
    if kind == "sdk":
        import openai.resources.chat.completions  # noqa: F401
    elif kind.startswith("bare"):
        import aiohttp  # noqa: F401
    else:
        import memantics.evaluation.ask  # noqa: F401
    begin, cpu = time.perf_counter(), time.process_time()
    asyncio.run(contest(url, Path(folder), count))  # type: ignore[arg-type]
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - begin
    measurements = {"cpu_ms": cpu * 1000 / count, "seconds": seconds, "peak_mb": peak_mb()}
    print(orjson.dumps(measurements).decode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
