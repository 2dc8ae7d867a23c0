"""Structured model calls for the emotion of a meme, the plan, and the check of faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pydantic import Field, JsonValue

from memantics.core.errors import MissingExtra
from memantics.core.lines import TextLine
from memantics.core.memes import BESIDE, NOTED
from memantics.core.model import Asker, Step, Taken
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.records import Closed, Form, Image, Message, Request, Sampling
from memantics.core.records import Field as FormField
from memantics.core.reply import describe_object, describe_reply, read_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.models.drafts import show_material
from memantics.understanding.reappraisal.choice import (
    FAULTS,
    TOPICS,
    PlanChoice,
    apply_choice,
    read_choice,
)
from memantics.understanding.reappraisal.messages import say
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
from memantics.understanding.reappraisal.situation import find_reading
from memantics.understanding.vision.page import MemeStructure

NO_MODEL = "none"  # name of the planner that declines every meme
PROMPTS = 2  # version of the prompts; part of the planner's name, so that old plans are made again
_FACTS = 20  # maximum number of facts in a prompt
_SAMPLING = Sampling(temperature=0.0, max_tokens=1500)


@dataclass(frozen=True, slots=True)
class ReappraisalSubject:
    """A meme in progress: id, image path, structure and notes by name.

    ``emotion`` is the given emotion; a meme with one counts as negative. ``others`` are lines of
    text that are not captions, with their roles.
    """

    id: str
    image: Path
    page: MemeStructure
    notes: Mapping[str, str] = field(default_factory=dict)
    emotion: SourceEmotion | None = None
    others: Sequence[TextLine] = ()


class Planner(Protocol):
    """Protocol of a planner for the first two stages, such as a model.

    If the planner answers without a value, it declines the meme; ``reason`` explains why.
    """

    @property
    def name(self) -> str:
        """The name shown to users."""
        ...

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Determine the emotion of a meme (stage one of a reappraisal)."""
        ...

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Make the plan for new captions (stage two of a reappraisal)."""
        ...


@dataclass(frozen=True, slots=True)
class NoPlanner:
    """Decline every meme, since new captions need a model."""

    name: str = NO_MODEL

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Decline the meme with the reason."""
        return Taken(f"{subject.id}/feeling", "answered", None, say("needs_model"), model=self.name)

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Decline the meme; a stored emotion does not need the first stage."""
        del feeling
        return Taken(f"{subject.id}/plan", "answered", None, say("needs_model"), model=self.name)


class MoodJudge(Protocol):
    """Protocol of the check whether faces match captions."""

    @property
    def name(self) -> str:
        """The name shown to users."""
        ...

    async def judge_mood(self, meme: str, image: Path) -> Taken[Mood]:
        """Compare faces and captions of a result."""
        ...


class ModelPlanner:
    """Ask a model for ``count`` plans in one call; a critic then puts them in order or declines.

    If no plan is valid, the model is asked again with the reasons. A single plan uses the prompt of
    the MER-Bench paper. Without a critic of its own, the model judges its own plans.
    """

    def __init__(self, asker: Asker, count: int = 1, critic: Asker | None = None) -> None:
        self.asker, self._count, self._critic = asker, count, critic or asker

    @property
    def name(self) -> str:
        """The models, the number of plans and the prompts, which affect the result."""
        some = f", best of {self._count}" if self._count > 1 else ""
        return f"{self.asker.model}{some}, chosen by {self._critic.model} (prompts {PROMPTS})"

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Determine the emotion of a meme (stage one of a reappraisal)."""
        step = Step(
            f"{subject.id}/feeling",
            ask_feeling(subject),
            read_feeling,
        )
        return await self.asker.take(step)

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Make the plan for new captions (stage two of a reappraisal)."""
        read = read_plan if self._count == 1 else read_plans
        step = Step(
            f"{subject.id}/plan",
            ask_plan(subject, feeling, self._count),
            lambda text: read(text, subject.page, feeling),
        )
        taken = await self.asker.take(step)
        if taken.value is None:
            return taken
        return await self._choose(subject, feeling, taken, taken.value)

    async def _choose(
        self,
        subject: ReappraisalSubject,
        feeling: MemeFeeling,
        taken: Taken[ReappraisalPlan],
        plan: ReappraisalPlan,
    ) -> Taken[ReappraisalPlan]:
        """Let the critic put the valid plans in order, or decline the meme."""
        valid = list_valid(plan)
        step = Step(
            f"{subject.id}/choice",
            ask_choice(subject, feeling, valid),
            lambda text: read_choice(text, len(valid)),
        )
        judged = await self._critic.take(step)
        if judged.value is None:
            return replace(
                taken, status=judged.status, value=None, reason=f"the critic: {judged.reason}"
            )
        chosen, reason = apply_choice(plan, valid, judged.value)
        return replace(taken, value=chosen, reason=reason)

    async def judge_mood(self, meme: str, image: Path) -> Taken[Mood]:
        """Ask the model about faces and captions of the finished image."""
        return await self.asker.take(Step(f"{meme}/mood", ask_mood(image), read_mood))


find_prompts = prompts_beside(__file__)


def ask_feeling(subject: ReappraisalSubject) -> Request:
    """Build the request for the emotion of a meme (stage one)."""
    page = subject.page
    text = find_prompts()["feeling"].fill(
        panels=str(len(page.panels)), captions=list_captions(page, budgets=False)
    )
    fields, schema = describe_reply(MemeFeeling, word={"type": "string"})
    return _request(subject, text, fields, schema)


def read_feeling(text: str) -> MemeFeeling:
    """Parse the reply about the emotion of a meme (stage one)."""
    feeling = read_object(text, MemeFeeling)
    word = clean_line(feeling.word, 60).casefold()
    return feeling.model_copy(
        update={
            "description": clean_line(feeling.description, 4000),
            "word": "" if word == feeling.emotion else word,
        }
    )


def ask_plan(subject: ReappraisalSubject, feeling: MemeFeeling, count: int = 1) -> Request:
    """Build the request for a plan (stage two): one plan as in MER-Bench, or several."""
    target = PAIRS[feeling.emotion]
    text = find_prompts()["plan" if count == 1 else "plans"].fill(
        description=enclose("description", feeling.description),
        emotion=feeling.emotion + (f' (in one word: "{feeling.word}")' if feeling.word else ""),
        target=target,
        captions=list_captions(subject.page, budgets=True),
        facts=list_facts(subject),
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
    """Parse the reply with a plan (stage two); reject a plan that breaks rules, with reasons."""
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
    """Parse several plans and return the best one with the alternatives.

    The reply is rejected with all reasons if no plan follows the rules.
    """
    said = read_object(text, OfferedPlans)
    plans = []
    for offer in said.plans:
        parts = offer.model_dump(exclude={"lost"}) | {"target": said.target}
        plans.append(_settle(ReappraisalPlan(keep=said.keep, **parts), page, feeling))
    faults = ["; ".join(find_faults(plan, feeling.emotion, page)) for plan in plans]
    valid = [plan for plan, fault in zip(plans, faults, strict=True) if not fault]
    if not valid:
        raise Unparsed("; ".join(f"plan {n}: {fault}" for n, fault in enumerate(faults, 1)))
    broken = [
        plan.offer(f"{BROKEN}: {fault}") for plan, fault in zip(plans, faults, strict=True) if fault
    ]
    # The order is the model's, best first: the program's ranking put duller captions first.
    by_text = {tuple(plan.texts): plan for plan in reversed(valid)}
    first, *others = (by_text[text] for text in dict.fromkeys(tuple(plan.texts) for plan in valid))
    return first.model_copy(update={"others": [*(plan.offer() for plan in others), *broken]})


def list_valid(plan: ReappraisalPlan) -> list[ReappraisalPlan]:
    """Return the plan and its alternatives that follow the rules, in their order."""
    alone = plan.model_copy(update={"others": []})
    return [alone, *(plan.take(offer) for offer in plan.others if not offer.lost)]


def ask_choice(
    subject: ReappraisalSubject, feeling: MemeFeeling, plans: Sequence[ReappraisalPlan]
) -> Request:
    """Build the request that puts plans in order or declines the meme."""
    numbers: list[JsonValue] = list(range(1, len(plans) + 1))
    shown = "\n".join(
        f"version {number}, region {region}: {text}"
        for number, plan in enumerate(plans, 1)
        for region, text in plan.captions.items()
    )
    text = find_prompts()["choice"].fill(
        description=enclose("description", feeling.description),
        captions=list_captions(subject.page, budgets=False),
        facts=list_facts(subject),
        versions=enclose("versions", shown),
        count=str(len(plans)),
    )
    word: dict[str, JsonValue] = {"type": "string"}
    version = describe_object(
        number={"type": "integer", "enum": numbers},
        fault={"type": "string", "enum": list(FAULTS)},
        why=word,
    )
    count = len(plans)
    fields, schema = describe_reply(
        PlanChoice,
        topic={"type": "string", "enum": list(TOPICS)},
        versions={"type": "array", "items": version, "minItems": count, "maxItems": count},
        reason=word,
    )
    return _request(subject, text, fields, schema)


def _settle(plan: ReappraisalPlan, page: MemeStructure, feeling: MemeFeeling) -> ReappraisalPlan:
    """Clean the texts of a plan and add the model's own word for the emotion.

    Words that the plan wrongly lists as kept are removed; the captions themselves show whether the
    scenario is kept.
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
            "others": [],
        }
    )


def ask_mood(image: Path) -> Request:
    """Build the request about faces and captions of a result."""
    *some, last = (f'"{name}"' for name in LOOKS if name != "none")
    text = find_prompts()["mood"].fill(moods=f"{', '.join(some)} or {last}")
    fields, schema = describe_reply(Mood)
    form = Form("", fields, "en", "json")
    return Request((Message("user", (Image(image), text)),), form, _SAMPLING, schema)


def read_mood(text: str) -> Mood:
    """Parse the answer about faces and captions."""
    mood = read_object(text, Mood)
    return mood.model_copy(update={"reason": clean_line(mood.reason, 300)})


def list_captions(page: MemeStructure, *, budgets: bool) -> str:
    """List the captions of a page for a prompt, optionally with their character budgets."""
    if not page.captions:
        return "(none)"
    lines = []
    for number, caption in enumerate(page.captions, 1):
        room = f", holds {caption.budget}" if budgets else ""
        place = f"panel {caption.block.panel + 1}, {caption.lettering.kind}{room}"
        lines.append(f"{number} ({place}): {clean_line(caption.text, 500)}")
    return enclose("captions", "\n".join(lines))


def list_facts(subject: ReappraisalSubject) -> str:
    """List the panels, the homophone readings of captions, and other text with its role."""
    facts = [f"Panels: {len(subject.page.panels)}."]
    for number, caption in enumerate(subject.page.captions, 1):
        with suppress(MissingExtra):
            if reading := find_reading(caption.text):
                pairs = ", ".join(f"{one.written} for {one.homophone}" for one in reading.changes)
                facts.append(f"Region {number} is probably a pun on {reading.text} ({pairs}).")
    # One letter alone is mostly a part of the drawing that OCR takes for text.
    said = [line for line in subject.others if sum(map(str.isalpha, line.text)) > 1]
    facts += [f"Text that stays, {line.role}: {line.text}" for line in said]
    return enclose("facts", "\n".join(clean_line(fact, 500) for fact in facts[:_FACTS]))


def _request(
    subject: ReappraisalSubject,
    text: str,
    fields: tuple[FormField, ...],
    schema: dict[str, JsonValue],
) -> Request:
    """Build a request: the image, the notes about the meme, then the task."""
    said = " ".join(caption.text for caption in subject.page.captions)
    form = Form("", fields, subject.page.language, "json", {"caption": said})
    # Other text is listed with its roles in the task.
    named = [name for name in NOTED if name != BESIDE or not subject.others]
    told = show_material({name: subject.notes.get(name, "") for name in named}, "")
    parts = (Image(subject.image), *((told,) if told else ()), text)
    return Request((Message("user", parts),), form, _SAMPLING, schema)
