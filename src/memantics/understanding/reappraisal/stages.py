"""Structured model calls: what a meme feels like, the plan, and the mood of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pydantic import Field, JsonValue

from memantics.core.memes import NOTED
from memantics.core.model import Asker, Step, Taken
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.records import Closed, Form, Image, Message, Request, Sampling
from memantics.core.records import Field as FormField
from memantics.core.reply import describe_object, describe_reply, read_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.models.drafts import show_material
from memantics.understanding.reappraisal.ranking import rank_captions
from memantics.understanding.reappraisal.records import (
    BROKEN,
    LOOKS,
    PAIRS,
    MemeFeeling,
    Mood,
    PlanOffer,
    ReappraisalPlan,
    SourceEmotion,
    TargetEmotion,
)
from memantics.understanding.reappraisal.rules import find_faults
from memantics.understanding.vision.page import MemeStructure

_SAMPLING = Sampling(temperature=0.0, max_tokens=1500)


@dataclass(frozen=True, slots=True)
class ReappraisalSubject:
    """A meme on its way: its id, its image on disk, its structure, and notes on it by name.

    ``emotion`` is its feeling where that was given: such a meme counts as negative.
    """

    id: str
    image: Path
    page: MemeStructure
    notes: Mapping[str, str] = field(default_factory=dict)
    emotion: SourceEmotion | None = None


class Planner(Protocol):
    """Whoever takes the first two stages: a model, or the embedded planner.

    A stage that is answered without a value is declined; its ``reason`` says why.
    """

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Stage one."""
        ...

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Stage two."""
        ...


class MoodJudge(Protocol):
    """Whoever sees whether the faces of a result go with its captions."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    async def judge_mood(self, meme: str, image: Path) -> Taken[Mood]:
        """Look at the result of a meme."""
        ...


class ModelPlanner:
    """Asks a model for ``count`` plans in one call, and again with the reason where none is valid.

    One plan is what MER-Bench's authors ask for, by another prompt.
    """

    def __init__(self, asker: Asker, count: int = 1) -> None:
        self.asker, self._count = asker, count

    @property
    def name(self) -> str:
        """The name of the model, and how many plans it makes: other numbers give other plans."""
        return self.asker.model + (f", best of {self._count}" if self._count > 1 else "")

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Stage one."""
        step = Step(
            f"{subject.id}/feeling",
            ask_feeling(subject),
            read_feeling,
        )
        return await self.asker.take(step)

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Stage two."""
        read = read_plan if self._count == 1 else read_plans
        step = Step(
            f"{subject.id}/plan",
            ask_plan(subject, feeling, self._count),
            lambda text: read(text, subject.page, feeling),
        )
        return await self.asker.take(step)

    async def judge_mood(self, meme: str, image: Path) -> Taken[Mood]:
        """One short call about the finished picture."""
        return await self.asker.take(Step(f"{meme}/mood", ask_mood(image), read_mood))


find_prompts = prompts_beside(__file__)


def ask_feeling(subject: ReappraisalSubject) -> Request:
    """The request of stage one."""
    page = subject.page
    text = find_prompts()["feeling"].fill(
        panels=str(len(page.panels)), captions=list_captions(page, budgets=False)
    )
    fields, schema = describe_reply(MemeFeeling, word={"type": "string"})
    return _request(subject, text, fields, schema)


def read_feeling(text: str) -> MemeFeeling:
    """The value of stage one."""
    feeling = read_object(text, MemeFeeling)
    word = clean_line(feeling.word, 60).casefold()
    return feeling.model_copy(
        update={
            "description": clean_line(feeling.description, 4000),
            "word": "" if word == feeling.emotion else word,
        }
    )


def ask_plan(subject: ReappraisalSubject, feeling: MemeFeeling, count: int = 1) -> Request:
    """The request of stage two: for one plan, as MER-Bench's authors ask, or for several."""
    target = PAIRS[feeling.emotion]
    text = find_prompts()["plan" if count == 1 else "plans"].fill(
        description=enclose("description", feeling.description),
        emotion=feeling.emotion + (f' (in one word: "{feeling.word}")' if feeling.word else ""),
        target=target,
        captions=list_captions(subject.page, budgets=True),
        **({} if count == 1 else {"count": str(count)}),
    )
    regions = [str(number) for number in range(1, len(subject.page.captions) + 1)]
    string: dict[str, JsonValue] = {"type": "string"}
    captions = describe_object(**dict.fromkeys(regions, string))
    scenario: dict[str, JsonValue] = {"type": "array", "items": string}
    fields, schema = describe_reply(
        ReappraisalPlan,
        target={"type": "string", "enum": [target]},
        captions=captions,
        scenario=scenario,
    )
    if count > 1:
        offer = describe_object(captions=captions, visual=string, scenario=scenario, why=string)
        plans: JsonValue = {"type": "array", "items": offer, "minItems": count, "maxItems": count}
        aim: JsonValue = {"type": "string", "enum": [target]}
        schema = describe_object(target=aim, keep=string, plans=plans)
    sampling = replace(_SAMPLING, max_tokens=1000 + 500 * count)
    return replace(_request(subject, text, fields, schema), sampling=sampling)


def read_plan(text: str, page: MemeStructure, feeling: MemeFeeling) -> ReappraisalPlan:
    """The value of stage two; a plan that breaks a rule is refused with all reasons."""
    plan = _settle(read_object(text, ReappraisalPlan), page, feeling)
    faults = find_faults(plan, feeling.emotion, page)
    if faults:
        raise Unparsed("; ".join(faults))
    return plan


class OfferedPlans(Closed):
    """Several plans in one reply."""

    target: TargetEmotion
    keep: str = Field(min_length=1, max_length=2000)
    plans: list[PlanOffer] = Field(min_length=1, max_length=16)


def read_plans(text: str, page: MemeStructure, feeling: MemeFeeling) -> ReappraisalPlan:
    """The best of several plans by our score; it holds the others, and why some cannot be.

    It is refused where no plan keeps the rules, with all reasons.
    """
    said = read_object(text, OfferedPlans)
    plans = []
    for offer in said.plans:
        parts = offer.model_dump(exclude={"lost", "score"}) | {"target": said.target}
        plans.append(_settle(ReappraisalPlan(keep=said.keep, **parts), page, feeling))
    faults = ["; ".join(find_faults(plan, feeling.emotion, page)) for plan in plans]
    valid = [plan for plan, fault in zip(plans, faults, strict=True) if not fault]
    if not valid:
        raise Unparsed("; ".join(f"plan {n}: {fault}" for n, fault in enumerate(faults, 1)))
    broken = [
        plan.offer(f"{BROKEN}: {fault}") for plan, fault in zip(plans, faults, strict=True) if fault
    ]
    return order_plans(valid, page, broken)


def order_plans(
    plans: Sequence[ReappraisalPlan], page: MemeStructure, broken: Sequence[PlanOffer] = ()
) -> ReappraisalPlan:
    """The best of plans by the score of their captions, holding the others in their order."""
    by_text = {tuple(plan.texts): plan for plan in reversed(plans)}
    offers = []
    for ranked in rank_captions([caption.text for caption in page.captions], by_text):
        # What our words call no kinder comes last, and may still pass the checks of its picture.
        offer = by_text[ranked.captions].offer()
        offers.append(offer.model_copy(update={"score": round(ranked.score, 4)}))
    return plans[0].take(offers[0]).model_copy(update={"others": [*offers[1:], *broken]})


def _settle(plan: ReappraisalPlan, page: MemeStructure, feeling: MemeFeeling) -> ReappraisalPlan:
    """A plan in clean lines, with the word of its feeling.

    Words that it lists as kept and that are not are left out: whether it keeps the scenario is
    seen from the captions.
    """
    old = " ".join(caption.text for caption in page.captions).casefold()
    new = plan.rewritten.casefold()
    return plan.model_copy(
        update={
            "captions": {key: clean_line(said, 500) for key, said in plan.captions.items()},
            "visual": clean_line(plan.visual),
            "keep": clean_line(plan.keep),
            "scenario": [
                word
                for word in map(clean_line, plan.scenario)
                if word and word.casefold() in old and word.casefold() in new
            ],
            "why": clean_line(plan.why, 500),
            "word": feeling.word,
            "score": None,
            "others": [],
        }
    )


def ask_mood(image: Path) -> Request:
    """The request for the mood of a result."""
    *some, last = (f'"{name}"' for name in LOOKS if name != "none")
    text = find_prompts()["mood"].fill(moods=f"{', '.join(some)} or {last}")
    fields, schema = describe_reply(Mood)
    form = Form("", fields, "en", "json")
    return Request((Message("user", (Image(image), text)),), form, _SAMPLING, schema)


def read_mood(text: str) -> Mood:
    """What a model says about the mood of a result."""
    mood = read_object(text, Mood)
    return mood.model_copy(update={"reason": clean_line(mood.reason, 300)})


def list_captions(page: MemeStructure, *, budgets: bool) -> str:
    """The captions of a page for a prompt, with what their places hold if wanted."""
    if not page.captions:
        return "(none)"
    lines = []
    for number, caption in enumerate(page.captions, 1):
        room = f", holds {caption.budget}" if budgets else ""
        place = f"panel {caption.block.panel + 1}, {caption.lettering.kind}{room}"
        lines.append(f"{number} ({place}): {clean_line(caption.text, 500)}")
    return enclose("captions", "\n".join(lines))


def _request(
    subject: ReappraisalSubject,
    text: str,
    fields: tuple[FormField, ...],
    schema: dict[str, JsonValue],
) -> Request:
    """The image, then what was read of the meme before, then the task."""
    said = " ".join(caption.text for caption in subject.page.captions)
    form = Form("", fields, subject.page.language, "json", {"caption": said})
    told = show_material({name: subject.notes.get(name, "") for name in NOTED}, "")
    parts = (Image(subject.image), *((told,) if told else ()), text)
    return Request((Message("user", parts),), form, _SAMPLING, schema)
