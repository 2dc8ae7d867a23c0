"""Best of N: several plans of a model, ordered by a judge and by how well they fit their places."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pydantic import JsonValue

from memantics.core.closed import Lenient
from memantics.core.prompt import enclose
from memantics.core.records import Form, Image, Message, Request, Sampling
from memantics.core.reply import describe_reply, read_object
from memantics.core.step import Asker, Step, Taken
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.reappraise.records import PAIRS, MemeFeeling, ReappraisalPlan
from memantics.reappraise.stages import (
    ModelPlanner,
    ReappraisalSubject,
    ask_plan,
    find_prompts,
    list_captions,
    read_plan,
)
from memantics.vision.page import Page
from memantics.vision.typesetting import fit_text

_LIVELY = 0.9  # temperature at which plans differ
_APART = 100  # seeds: a plan that is asked for again takes the next one
_LAYOUT = 0.5  # of the judge's word


class Order(Lenient):
    """A judge's order of plans, by their numbers from 1."""

    order: list[int]
    reason: str = ""


class ChoosingPlanner(ModelPlanner):
    """Asks for ``count`` plans and takes the best: a judge's order, corrected by layout.

    The judge is the same model in another call, which sees the meme and all valid plans. Where it
    gives no usable order, layout alone decides.
    """

    def __init__(self, asker: Asker, count: int) -> None:
        super().__init__(asker)
        self._count = count

    @property
    def name(self) -> str:
        """The model, and among how many plans it chooses: other numbers give other plans."""
        return f"{super().name}, best of {self._count}"

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Stage two; it fails only where no plan is valid."""
        taken = await asyncio.gather(
            *(self._draw(subject, feeling, number) for number in range(1, self._count + 1))
        )
        valid = {
            str(step_result.value.captions): step_result
            for step_result in taken
            if step_result.value is not None
        }
        if len(valid) < 2:
            return next(iter(valid.values()), taken[0])
        found = list(valid.values())
        plans = [step_result.value for step_result in found if step_result.value is not None]
        step = Step(
            f"{subject.id}/choice",
            ask_choice(subject, feeling, plans),
            partial(read_order, count=len(plans)),
        )
        judged = await self.asker.take(step)
        return found[choose(plans, subject.page, judged.value)]

    async def _draw(
        self, subject: ReappraisalSubject, feeling: MemeFeeling, number: int
    ) -> Taken[ReappraisalPlan]:
        request = ask_plan(subject, feeling)
        sampling = replace(request.sampling, temperature=_LIVELY, seed=_APART * number)
        return await self.asker.take(
            Step(
                f"{subject.id}/plan-{number}",
                replace(request, sampling=sampling),
                lambda text: read_plan(text, subject.page, feeling),
            )
        )


def choose(plans: Sequence[ReappraisalPlan], page: Page, judged: Order | None) -> int:
    """The place of the best plan; of equals the first."""
    last = max(1, len(plans) - 1)

    def rate(place: int) -> float:
        word = 0.0 if judged is None else 1 - judged.order.index(place + 1) / last
        return word + _LAYOUT * rate_layout(plans[place], page)

    return max(range(len(plans)), key=rate)


def rate_layout(plan: ReappraisalPlan, page: Page) -> float:
    """How much of their size the letters of the worst caption keep, at most 1."""
    sizes = [1.0]
    for number, caption in enumerate(page.captions, 1):
        text = plan.captions[str(number)]
        if text.strip() != caption.text:
            made = fit_text(text, caption.lettering, caption.ink.room)
            sizes.append(min(1.0, made.size / caption.lettering.size))
    return min(sizes)


def ask_choice(
    subject: ReappraisalSubject, feeling: MemeFeeling, plans: Sequence[ReappraisalPlan]
) -> Request:
    """The request for an order of plans."""
    shown = "\n".join(
        f"{number}: {clean_line(plan.rewritten, 500)}" for number, plan in enumerate(plans, 1)
    )
    text = find_prompts()["choice"].fill(
        emotion=feeling.emotion,
        target=PAIRS[feeling.emotion],
        captions=list_captions(subject.page, budgets=False),
        plans=enclose("plans", shown),
    )
    number: dict[str, JsonValue] = {"type": "integer", "minimum": 1, "maximum": len(plans)}
    order: dict[str, JsonValue] = {"type": "array", "items": number}
    fields, schema = describe_reply(Order, order=order, reason={"type": "string"})
    form = Form("", fields, subject.page.language, "json")
    sampling = Sampling(temperature=0.0, max_tokens=400)
    return Request((Message("user", (Image(subject.image), text)),), form, sampling, schema)


def read_order(text: str, count: int) -> Order:
    """A judge's order; every plan must be in it once."""
    order = read_object(text, Order)
    if sorted(order.order) != list(range(1, count + 1)):
        raise Unparsed(f"order must hold each number from 1 to {count} once")
    return order
