"""The critic's reply about several plans: their order, their faults, or why a meme is declined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import Field

from memantics.core.records import Closed
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.understanding.reappraisal.messages import say
from memantics.understanding.reappraisal.records import BROKEN, ReappraisalPlan

GraveTopic = Literal["none", "death", "violence", "abuse", "illness", "group"]
PlanFault = Literal["none", "not_kinder", "no_joke", "nonsense", "picture"]
TOPICS: tuple[GraveTopic, ...] = get_args(GraveTopic)
FAULTS: tuple[PlanFault, ...] = get_args(PlanFault)
_WORDS: dict[PlanFault, str] = {
    "none": "",
    "not_kinder": "not kinder than the original",
    "no_joke": "no longer a joke",
    "nonsense": "makes no sense",
    "picture": "does not fit the image",
}


class JudgedPlan(Closed):
    """The critic's judgement of one plan; ``number`` is its number in the request."""

    number: int
    fault: PlanFault
    why: str = Field(default="", max_length=1000)


class PlanChoice(Closed):
    """The critic's reply: the grave topic of the meme if any, and the plans, best first."""

    topic: GraveTopic
    versions: list[JudgedPlan] = Field(min_length=1, max_length=16)
    reason: str = Field(min_length=1, max_length=2000)


def read_choice(text: str, count: int) -> PlanChoice:
    """Parse the critic's reply about ``count`` plans; each plan must be judged once.

    >>> reply = '{"topic": "none", "versions": [{"number": 1, "fault": "none"}], "reason": "ok"}'
    >>> read_choice(reply, 1).versions[0].fault
    'none'
    """
    choice = read_object(text, PlanChoice)
    numbers = [version.number for version in choice.versions]
    if sorted(numbers) != list(range(1, count + 1)):
        given = ", ".join(map(str, numbers))
        raise Unparsed(f"the versions must be 1 to {count}, each once; the reply has {given}")
    return choice.model_copy(update={"reason": clean_line(choice.reason, 500).rstrip(".")})


def apply_choice(
    plan: ReappraisalPlan, valid: Sequence[ReappraisalPlan], choice: PlanChoice
) -> tuple[ReappraisalPlan | None, str]:
    """Return the best plan with the others in the critic's order, or None and the reason.

    ``valid`` are the judged plans by number. Rejected plans are kept, but never drawn.
    """
    if choice.topic != "none":
        return None, say(f"topic_{choice.topic}", reason=choice.reason)
    good = [valid[one.number - 1] for one in choice.versions if one.fault == "none"]
    if not good:
        return None, say("none_chosen", reason=choice.reason)
    rejected = [
        valid[one.number - 1].offer(f"{BROKEN}: the critic says that it {_tell(one)}")
        for one in choice.versions
        if one.fault != "none"
    ]
    broken = [offer for offer in plan.others if offer.lost]
    first, *others = good
    offers = [*(other.offer() for other in others), *rejected, *broken]
    return first.model_copy(update={"others": offers, "choice": choice.reason}), ""


def _tell(judged: JudgedPlan) -> str:
    verb = "is " if judged.fault in ("not_kinder", "no_joke") else ""
    why = clean_line(judged.why, 200).rstrip(".")
    return f"{verb}{_WORDS[judged.fault]}" + (f" ({why})" if why else "")
