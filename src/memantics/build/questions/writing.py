"""Have questions written: each slot one step, sent back with the critic's words until it is sound.

A wrong option at fault does not cost the draft while enough others are left. A draft that the
model does not mend is kept if it lacks nothing but wrong options: others may lend (``lending``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memantics.build.questions import records
from memantics.build.questions.asking import QuestionSubject, ask_draft, read_draft
from memantics.build.questions.critic import find_defects
from memantics.core.records import Status
from memantics.core.step import Asker, Step
from memantics.core.task import Unparsed
from memantics.knowledge.records import Knowledge, Provenance


@dataclass(frozen=True, slots=True)
class SlotDraft:
    """How a slot ended: with a draft, or with the reason why there is none."""

    slot: records.Slot
    status: Status
    draft: records.QuestionDraft | None
    reason: str = ""
    attempts: int = 0
    provenance: Provenance | None = None


def read_sound(
    text: str, slot: records.Slot, knowledge: Knowledge, settings: records.QuestionSettings
) -> records.QuestionDraft:
    """A draft without the wrong options at fault; where too much is wrong, it is told."""
    draft = read_draft(text, knowledge)
    if not slot.focus:  # written from the image alone, so it rests on nothing that is known
        draft = replace(draft, cites=())
    defects = list(find_defects(draft, slot, knowledge, settings))
    faulty = {defect.option for defect in defects}
    kept = replace(
        draft,
        plausible=tuple(name for name in draft.plausible if name not in faulty),
        implausible=tuple(name for name in draft.implausible if name not in faulty),
    )
    grave = [defect for defect in defects if not defect.option]
    if not grave and len(kept.wrong) >= records.FEWEST_WRONG:
        return kept
    message = "; ".join(defect.message for defect in (grave or defects)[:3])
    raise _Unsound(message, None if grave else kept)


class _Unsound(Unparsed):
    """A draft that is sent back; ``kept`` is what could be used of it if it is not mended."""

    def __init__(self, message: str, kept: records.QuestionDraft | None) -> None:
        super().__init__(message)
        self.kept = kept


async def write_draft(
    asker: Asker,
    subject: QuestionSubject,
    slot: records.Slot,
    settings: records.QuestionSettings,
    earlier: str = "",
    others: Sequence[str] = (),
) -> SlotDraft:
    """Have one question written; defects are told to the model, a bounded number of times."""
    spared: list[records.QuestionDraft] = []

    def read(text: str) -> records.QuestionDraft:
        try:
            return read_sound(text, slot, subject.knowledge, settings)
        except _Unsound as error:
            spared.extend([error.kept] if error.kept else [])
            raise

    request = ask_draft(subject, slot, settings, earlier, others)
    name = f"{slot.id}/{'rewrite' if earlier else 'question'}"
    taken = await asker.take(Step(name, request, read, settings.attempts))
    draft = taken.value
    if draft is None and taken.status == "unparsed" and spared:
        draft = max(reversed(spared), key=lambda question_draft: len(question_draft.wrong))
    return SlotDraft(
        slot,
        "answered" if draft is not None else taken.status,
        draft,
        "" if taken.value is not None else taken.reason,
        taken.attempts,
        Provenance(taken.model, taken.prompt[:16], taken.when),
    )


def set_aside(drafted: SlotDraft) -> records.SetAside:
    """The record of a slot without a usable draft."""
    slot = drafted.slot
    return records.SetAside(
        slot.id, slot.meme, slot.dimension, "writing", f"{drafted.status}: {drafted.reason}"
    )
