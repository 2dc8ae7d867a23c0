"""Have questions written: each slot one step, sent back with the critic's words until it is sound.

A draft is not lost when the model does not mend it, if its only faults are ones of length (the
set is levelled afterwards, see ``balance``) or of wrong options (see ``lending``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memantics.build.questions.asking import QuestionSubject, ask_draft, complain, read_draft
from memantics.build.questions.critic import find_defects
from memantics.build.questions.records import (
    Defect,
    QuestionDraft,
    QuestionSettings,
    SetAside,
    Slot,
)
from memantics.core.records import Request, Status
from memantics.core.step import Asker, Step
from memantics.core.task import Unparsed
from memantics.knowledge.records import Provenance


@dataclass(frozen=True, slots=True)
class Drafted:
    """How a slot ended: with a draft, or with the reason why there is none."""

    slot: Slot
    status: Status
    draft: QuestionDraft | None
    reason: str = ""
    attempts: int = 0
    provenance: Provenance | None = None
    tokens_in: int = 0
    tokens_out: int = 0


async def write_draft(
    asker: Asker,
    subject: QuestionSubject,
    slot: Slot,
    settings: QuestionSettings,
    earlier: str = "",
) -> Drafted:
    """Have one question written; defects are told to the model, a bounded number of times."""
    spared: list[QuestionDraft] = []

    def ask(complaint: str | None) -> Request:
        return complain(ask_draft(subject, slot, settings, earlier), complaint)

    def read(text: str) -> QuestionDraft:
        draft = read_draft(text, subject.knowledge)
        defects = list(find_defects(draft, slot, subject.knowledge, settings))
        if not defects:
            return draft
        if all(defect.mendable or defect.role for defect in defects):
            spared.append(_empty(draft, defects))
        raise Unparsed("; ".join(f"{own.code}: {own.message}" for own in defects[:3]))

    stage = "rewrite" if earlier else "question"
    taken = await asker.take(Step(f"{slot.id}/{stage}", ask, read, settings.attempts))
    draft = taken.value
    if draft is None and taken.status == "unparsed" and spared:
        draft = max(reversed(spared), key=lambda own: len(own.usable))
    return Drafted(
        slot,
        "answered" if draft is not None else taken.status,
        draft,
        "" if taken.value is not None else taken.reason,
        taken.attempts,
        Provenance(taken.model, taken.prompt[:16], taken.when),
        taken.tokens_in,
        taken.tokens_out,
    )


def _empty(draft: QuestionDraft, defects: Sequence[Defect]) -> QuestionDraft:
    """A draft without the wrong options that are at fault."""
    faulty = {own.role for own in defects}
    return replace(
        draft,
        plausible="" if "plausible" in faulty else draft.plausible,
        spare="" if "spare" in faulty else draft.spare,
        implausible="" if "implausible" in faulty else draft.implausible,
    )


def set_aside(drafted: Drafted) -> SetAside:
    """The record of a slot without a usable draft."""
    slot = drafted.slot
    return SetAside(
        slot.id, slot.meme, slot.dimension, "writing", f"{drafted.status}: {drafted.reason}"
    )
