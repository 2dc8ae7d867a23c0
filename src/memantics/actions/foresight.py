"""What a build will send, before it asks: tried on a few memes with invented answers.

Nothing is sent. Later steps hold what earlier ones answered, so the figure is a guess; text and
images are counted as :mod:`memantics.run.estimate` counts them, repairs are not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from memantics.core.images import probe, read_bytes
from memantics.core.records import Image, Reply
from memantics.core.step import Step, Taken, Value
from memantics.models.fake import draft_reply
from memantics.run.desk import Desk
from memantics.run.engine import read_reply
from memantics.run.estimate import count_image, count_request, count_text

SAMPLE = 3  # memes that are tried


class Trial:
    """An asker that counts tokens and answers like ``fake/drafter``, each step once."""

    model = "fake/drafter"

    def __init__(self) -> None:
        self.tokens_in = self.tokens_out = 0

    def expect(self, steps: int) -> None:
        """Nobody waits for these."""

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Count a step, and answer it."""
        request = step.request
        self.tokens_in += count_request(request)
        for message in request.messages:
            for part in message.parts:
                if isinstance(part, Image):
                    facts = probe(read_bytes(part.path), part.path.name)
                    self.tokens_in += count_image(facts.width, facts.height)
        text = draft_reply(request)
        self.tokens_out += count_text(text)
        status, value, reason = read_reply(Reply(text), step.read)
        return Taken(step.id, status, value, reason, 1, model=self.model)


async def foresee(desk: Desk, memes: int, work: Callable[[Trial], Awaitable[object]]) -> None:
    """Tell whoever watches what ``memes`` memes will cost; ``work`` does the first few of them.

    A model that costs nothing (no language model) is not tried.
    """
    if not memes or not desk.costs:
        return
    trial = Trial()
    await work(trial)
    share = memes / min(memes, SAMPLE)
    desk.foresee(memes, round(share * trial.tokens_in), round(share * trial.tokens_out))


async def drain(results: AsyncIterator[object]) -> None:
    """Wait for all of them."""
    async for _ in results:
        pass
