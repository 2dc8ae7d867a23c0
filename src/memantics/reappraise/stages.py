"""Structured model calls: what a meme feels like, the plan, and the mood of the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from memantics.build.drafts import show_material
from memantics.core.memes import BESIDE, HEARD, TEMPLATE
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.records import Field, Form, Image, Message, Request, Sampling
from memantics.core.reply import describe_object, describe_reply, read_object
from memantics.core.step import Asker, Step, Taken
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.reappraise.records import (
    LOOKS,
    PAIRS,
    Emotion,
    MemeFeeling,
    Mood,
    ReappraisalPlan,
)
from memantics.reappraise.rules import find_faults
from memantics.vision.page import Page

_SAMPLING = Sampling(temperature=0.0, max_tokens=1500)


@dataclass(frozen=True, slots=True)
class ReappraisalSubject:
    """A meme on its way: its id, its image on disk, its structure, and notes on it by name.

    ``emotion`` is its feeling where that was given: such a meme counts as negative.
    """

    id: str
    image: Path
    page: Page
    notes: Mapping[str, str] = field(default_factory=dict)
    emotion: Emotion | None = None


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
    """Asks a model, and asks again with the reason where a reply breaks a rule."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.asker.model

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
        step = Step(
            f"{subject.id}/plan",
            ask_plan(subject, feeling),
            lambda text: read_plan(text, subject.page, feeling),
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
    fields, schema = describe_reply(MemeFeeling)
    return _request(subject, text, fields, schema)


def read_feeling(text: str) -> MemeFeeling:
    """The value of stage one."""
    feeling = read_object(text, MemeFeeling)
    return feeling.model_copy(update={"description": clean_line(feeling.description, 4000)})


def ask_plan(subject: ReappraisalSubject, feeling: MemeFeeling) -> Request:
    """The request of stage two."""
    target = PAIRS[feeling.emotion]
    text = find_prompts()["plan"].fill(
        description=enclose("description", feeling.description),
        emotion=feeling.emotion,
        target=target,
        captions=list_captions(subject.page, budgets=True),
    )
    regions = [str(number) for number in range(1, len(subject.page.captions) + 1)]
    string: dict[str, JsonValue] = {"type": "string"}
    fields, schema = describe_reply(
        ReappraisalPlan,
        target={"type": "string", "enum": [target]},
        captions=describe_object(**dict.fromkeys(regions, string)),
        scenario={"type": "array", "items": string},
    )
    return _request(subject, text, fields, schema)


def read_plan(text: str, page: Page, feeling: MemeFeeling) -> ReappraisalPlan:
    """The value of stage two; a plan that breaks a rule is refused with all reasons.

    Words that it lists as kept and that are not are left out: whether it keeps the scenario is
    seen from the captions.
    """
    plan = read_object(text, ReappraisalPlan)
    old = " ".join(caption.text for caption in page.captions).casefold()
    new = plan.rewritten.casefold()
    plan = plan.model_copy(
        update={
            "captions": {key: clean_line(said, 500) for key, said in plan.captions.items()},
            "visual": clean_line(plan.visual),
            "keep": clean_line(plan.keep),
            "scenario": [
                word
                for word in map(clean_line, plan.scenario)
                if word and word.casefold() in old and word.casefold() in new
            ],
        }
    )
    faults = find_faults(plan, feeling.emotion, page)
    if faults:
        raise Unparsed("; ".join(faults))
    return plan


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


def list_captions(page: Page, *, budgets: bool) -> str:
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
    fields: tuple[Field, ...],
    schema: dict[str, JsonValue],
) -> Request:
    """The image, then what was read of the meme before, then the task."""
    said = " ".join(caption.text for caption in subject.page.captions)
    form = Form("", fields, subject.page.language, "json", {"caption": said})
    told = show_material(
        {name: subject.notes.get(name, "") for name in (HEARD, TEMPLATE, BESIDE)}, ""
    )
    parts = (Image(subject.image), *((told,) if told else ()), text)
    return Request((Message("user", parts),), form, _SAMPLING, schema)
