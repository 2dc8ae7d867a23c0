"""What a suite would send, before anything is sent: calls, images, tokens, cost.

The estimates are plain and documented, not exact: every server has its own tokenizer.

- Text: one token for a Chinese, Japanese or Korean character, one for four other characters,
  four for each message.
- Images: scaled into 2,048 × 2,048 pixels, then to a shorter side of at most 768, then 170 tokens
  for each tile of 512 × 512 and 85 for the whole, which is how hosted models charge. Servers that
  count patches of 28 × 28 pixels come to about the same for a meme.
- Replies: 60 tokens for a letter with its reason or for a text, 30 for each field of a JSON reply,
  never more than the task's token limit. Models that think aloud need many times that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memantics.core.cache import Cache, cache_key, request_digest
from memantics.core.errors import ImageError
from memantics.core.images import load_images, probe
from memantics.core.records import Answer, Item, LoadedImage, Request
from memantics.core.rundir import RUN, last_answers
from memantics.core.task import Task
from memantics.run.evaluate import Job, read_fed
from memantics.run.tokens import count_image, count_reply, count_request

# Stands for an answer that is not there yet; about as long as one.
_PLACEHOLDER = "words that are not there yet " * 8


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one run would send.

    ``done`` of the ``items`` are finished by an earlier start, ``cached`` are in the cache; of
    the rest, ``calls`` are sent at least and ``most_calls`` at most, when every answer is invalid
    up to the last attempt. ``guessed`` says that requests will hold answers that are not there
    yet, so that their length is a guess.
    """

    job: Job
    items: int = 0
    done: int = 0
    cached: int = 0
    calls: int = 0
    most_calls: int = 0
    images: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    guessed: bool = False

    def cost(self, prices: tuple[float, float]) -> float:
        """What the calls would cost; prices are per million tokens in and out.

        A model that is no language model costs nothing.
        """
        if not self.job.model.cacheable:
            return 0.0
        return (self.tokens_in * prices[0] + self.tokens_out * prices[1]) / 1e6

    def dump(self, prices: tuple[float, float] | None) -> dict[str, object]:
        """The estimate as plain data."""
        facts = self.job.facts
        names = [*("items", "done", "cached", "calls", "most_calls", "images")]
        names += ["tokens_in", "tokens_out", "guessed"]
        return {
            "folder": self.job.folder,
            "task": facts.task,
            "model": facts.model,
            "options": facts.options,
            **{name: getattr(self, name) for name in names},
            "cost": self.cost(prices) if prices else None,
        }


@dataclass(frozen=True, slots=True)
class _Sheet:
    """One item's request, measured."""

    item: Item
    request: Request
    digest: str
    images: int
    tokens_in: int
    tokens_out: int


def estimate(jobs: Sequence[Job], cache: Cache | None) -> list[Estimate]:
    """What each run would send now; nothing is asked and nothing is written."""
    found: dict[int, Estimate] = {}
    for group in _group(jobs):
        task, guessed = _feed(group[0])
        last = [_read_last(job) for job in group]
        counts = [Estimate(job, guessed=guessed) for job in group]
        for sheet in _measure(task):
            for place, count in enumerate(counts):
                counts[place] = _add(count, sheet, last[place].get(sheet.item.id), cache)
        found.update((id(count.job), count) for count in counts)
    return [found[id(job)] for job in jobs]


def _group(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Jobs that send the same requests to different models: these are measured once."""
    same: dict[tuple[int, ...], list[Job]] = {}
    for job in jobs:
        key = (id(job.task), *((id(job),) if job.needs else ()))
        same.setdefault(key, []).append(job)
    yield from same.values()


def _read_last(job: Job) -> Mapping[str, Answer]:
    return last_answers(job.folder) if (job.folder / RUN).exists() else {}


def _feed(job: Job) -> tuple[Task, bool]:
    """The task with the answers it needs, as far as they are there."""
    if job.task.feed is None or not job.needs:
        return job.task, False
    memes = {item.group for item in job.task.items()}
    guessed = False
    fed: dict[str, Mapping[str, str]] = {}
    for name, first in job.needs.items():
        known, ended = read_fed(first)
        missing = memes - ended
        guessed = guessed or bool(missing)
        fed[name] = dict.fromkeys(missing, _PLACEHOLDER) | known
    return job.task.feed(fed), guessed


def _measure(task: Task) -> Iterator[_Sheet]:
    """All requests of a task. Those whose images cannot be read are never sent."""
    for item in task.items():
        try:
            request = task.ask(item, None)
            loaded = load_images(request)
            facts = [
                probe(part.data, part.path.name)
                for message in loaded.messages
                for part in message.parts
                if isinstance(part, LoadedImage)
            ]
        except ImageError:
            continue
        yield _Sheet(
            item,
            request,
            request_digest(loaded),
            len(facts),
            count_request(request) + sum(count_image(fact.width, fact.height) for fact in facts),
            count_reply(request),
        )


def _add(count: Estimate, sheet: _Sheet, last: Answer | None, cache: Cache | None) -> Estimate:
    job = count.job
    attempts = job.task.invalid.attempts
    count = replace(count, items=count.items + 1)
    if last is not None and (
        last.status == "answered" or (last.status != "failed" and last.attempt + 1 >= attempts)
    ):
        return replace(count, done=count.done + 1)
    if cache is not None and job.model.cacheable and last is None:
        key = cache_key(job.model.identity, sheet.request.sampling, sheet.digest, 0)
        if cache.get(key) is not None:
            return replace(count, cached=count.cached + 1)
    return replace(
        count,
        calls=count.calls + 1,
        most_calls=count.most_calls + max(1, attempts - _used(last)),
        images=count.images + sheet.images,
        tokens_in=count.tokens_in + sheet.tokens_in,
        tokens_out=count.tokens_out + sheet.tokens_out,
    )


def _used(last: Answer | None) -> int:
    """Attempts that an earlier start used up; a failed one is made again."""
    if last is None:
        return 0
    return last.attempt if last.status == "failed" else last.attempt + 1
