"""Question drafts, the choice of their distractors, and the position of the correct option.

A model writes each question draft. The draft goes back to the model with the critic's remarks until
it has no defect or the attempts are used up. A faulty distractor is dropped while enough others are
left. A draft that the model does not repair is kept if it lacks only distractors: the module
``lending`` can take them from other questions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from memantics.construction.questions import records
from memantics.construction.questions.asking import QuestionSubject, ask_draft, read_draft
from memantics.construction.questions.critic import find_defects
from memantics.construction.questions.records import (
    FEWEST_WRONG,
    DraftQuestion,
    QuestionDraft,
    QuestionNeed,
    QuestionOption,
    QuestionSettings,
    Slot,
    draw,
)
from memantics.core.model import Asker, Step
from memantics.core.records import Status
from memantics.core.task import Unparsed
from memantics.understanding.knowledge.records import Knowledge, Provenance


@dataclass(frozen=True, slots=True)
class SlotDraft:
    """Store the result of a planned question (slot): a draft, or the reason for its absence."""

    slot: records.Slot
    status: Status
    draft: records.QuestionDraft | None
    reason: str = ""
    attempts: int = 0
    provenance: Provenance | None = None


def read_sound(
    text: str, slot: records.Slot, knowledge: Knowledge, settings: records.QuestionSettings
) -> records.QuestionDraft:
    """Return a draft without faulty distractors; raise if too few options remain."""
    draft = read_draft(text, knowledge)
    if not slot.focus:  # written from the image only, so it cites no facts
        draft = replace(draft, cites=())
    defects = list(find_defects(draft, slot, knowledge, settings))
    faulty = {defect.option for defect in defects}
    kept = replace(
        draft,
        plausible=tuple(option for option in draft.plausible if option not in faulty),
        implausible=tuple(option for option in draft.implausible if option not in faulty),
    )
    grave = [defect for defect in defects if not defect.option]
    if not grave and len(kept.wrong) >= records.FEWEST_WRONG:
        return kept
    message = "; ".join(defect.message for defect in (grave or defects)[:3])
    raise _Unsound(message, None if grave else kept)


class _Unsound(Unparsed):
    """Signal a draft that is returned to the model; ``kept`` is its usable part."""

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
    """Request one question; return defects to the model for a limited number of attempts."""
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


def reject(drafted: SlotDraft) -> records.RejectedQuestion:
    """Return the rejection record of a planned question (slot) without a usable draft."""
    slot = drafted.slot
    return records.RejectedQuestion(
        slot.id, slot.meme, slot.dimension, "writing", f"{drafted.status}: {drafted.reason}"
    )


FROM_IMAGE = "written from the image alone: nothing was known of it"


@dataclass(frozen=True, slots=True)
class AssembledQuestion:
    """Store a drafted question with the distractors that it shows.

    ``correct`` is None if "None of the others" is the correct option. ``notes`` are remarks of the
    critic.
    """

    drafted: SlotDraft
    draft: QuestionDraft
    correct: QuestionOption | None
    wrong: tuple[QuestionOption, ...]
    notes: tuple[str, ...] = ()
    needs: tuple[QuestionNeed, ...] = ()

    @property
    def id(self) -> str:
        """The id of the planned question (slot)."""
        return self.drafted.slot.id

    @property
    def slot(self) -> Slot:
        """The plan of this question."""
        return self.drafted.slot

    @property
    def shown(self) -> tuple[QuestionOption, ...]:
        """The three content options; the correct one comes first if it is shown."""
        return self.wrong if self.correct is None else (self.correct, *self.wrong)

    @property
    def spares(self) -> list[QuestionOption]:
        """Distractors of the draft that are not shown."""
        shown = {option.text for option in self.wrong}
        return [option for option in self.draft.wrong if option.text not in shown]

    @property
    def key_is_longest(self) -> bool:
        """Whether the correct option is strictly longer than the other two."""
        if self.correct is None:
            return False
        return len(self.correct.text) > max(len(option.text) for option in self.wrong)

    @property
    def key_is_shortest(self) -> bool:
        """Whether the correct option is strictly shorter than the other two."""
        if self.correct is None:
            return False
        return len(self.correct.text) < min(len(option.text) for option in self.wrong)

    @property
    def has_longest(self) -> bool:
        """Whether one of the three options is strictly longer than the other two."""
        sizes = sorted(len(option.text) for option in self.shown)
        return sizes[-1] > sizes[-2]

    def without(self, texts: set[str]) -> AssembledQuestion:
        """Return the item with some distractors removed from its draft; shown options stay."""
        near = tuple(option for option in self.draft.plausible if option not in texts)
        far = tuple(option for option in self.draft.implausible if option not in texts)
        return replace(self, draft=replace(self.draft, plausible=near, implausible=far))

    def swap(self, old: QuestionOption, new: QuestionOption) -> AssembledQuestion:
        """Return the item with one distractor replaced."""
        return replace(self, wrong=tuple(new if option is old else option for option in self.wrong))


def make_item(drafted: SlotDraft, draft: QuestionDraft) -> AssembledQuestion:
    """Return an item with the best two distractors of its draft; missing ones are empty."""
    empty = [QuestionOption("", "plausible") for _ in range(FEWEST_WRONG - len(draft.wrong))]
    wrong = (*draft.wrong, *empty)
    pairs = combinations(wrong, FEWEST_WRONG)
    best = min(pairs, key=lambda pair: _rate(draft.correct, pair, drafted.slot))
    return AssembledQuestion(drafted, draft, QuestionOption(draft.correct, "correct"), best)


def show_others(item: AssembledQuestion) -> AssembledQuestion | None:
    """Return the question with distractors not shown before; None if there are too few."""
    pairs = list(combinations(item.spares, FEWEST_WRONG))
    if not pairs:
        return None
    best = min(pairs, key=lambda pair: _rate(item.draft.correct, pair, item.slot))
    return replace(item, wrong=best)


def _rate(
    correct: str, pair: tuple[QuestionOption, ...], slot: Slot
) -> tuple[bool, bool, bool, int]:
    """Score a pair of distractors by plausibility and length; lower is better."""
    sizes = [len(option.text) for option in pair]
    size, top = len(correct), max(sizes)
    dealt = (size > top) == (slot.longest == "correct")
    mixed = {option.role for option in pair} == {"plausible", "implausible"}
    return (
        not mixed,
        not dealt,
        size in sizes or len(set(sizes)) < len(sizes),
        max(abs(size - other_size) for other_size in sizes),
    )


def make_items(drafted: Sequence[SlotDraft]) -> list[AssembledQuestion]:
    """Return one item per draft; each has a correct option."""
    return [make_item(draft, draft.draft) for draft in drafted if draft.draft is not None]


def deal_none(
    items: Sequence[AssembledQuestion], settings: QuestionSettings
) -> list[AssembledQuestion]:
    """Remove the correct option from a proportion of items; "None of the others" becomes correct.

    Items are sampled evenly from those whose correct option is longest, shortest or neither, so
    that the length of an option does not reveal the answer. An item keeps its correct option if two
    plausible distractors would not remain; otherwise the removed answer would be the only sensible
    one.
    """
    most = math.floor(settings.none_proportion * len(items) + 1e-9)
    strata: dict[tuple[bool, bool], list[AssembledQuestion]] = {}
    order = sorted(items, key=lambda item: draw(2**60, settings.seed, "none", item.id))
    for item in order:
        if settings.may_deny(item.slot.dimension) and _list_thirds(item):
            strata.setdefault((item.key_is_longest, item.key_is_shortest), []).append(item)
    # After any number of samples, the numbers sampled from the strata differ from equal proportions
    # by at most one item.
    queue = sorted(
        ((place + 0.5) / len(members), name, place)
        for name, members in strata.items()
        for place in range(len(members))
    )
    drawn = {strata[name][place].id for _, name, place in queue[:most]}
    return [take_key(item) if item.id in drawn else item for item in items]


def take_key(item: AssembledQuestion) -> AssembledQuestion:
    """Return the item without its correct option; a third distractor replaces it."""
    size = sum(len(option.text) for option in item.wrong) / len(item.wrong)
    third = min(_list_thirds(item), key=lambda option: abs(len(option.text) - size))
    return replace(item, correct=None, wrong=(*item.wrong, third))


def _list_thirds(item: AssembledQuestion) -> list[QuestionOption]:
    """Return spare distractors that leave at most one implausible option among three."""
    far = sum(option.role == "implausible" for option in item.wrong)
    return [option for option in item.spares if far + (option.role == "implausible") <= 1]


def finish(items: Sequence[AssembledQuestion], settings: QuestionSettings) -> list[DraftQuestion]:
    """Shuffle options: the correct option is equally frequent at every position."""
    chance = random.Random(f"{settings.seed}/places")
    deck = [place % 4 for place in range(len(items))]
    chance.shuffle(deck)
    return [_finish(item, place, settings) for item, place in zip(items, deck, strict=True)]


def _finish(item: AssembledQuestion, place: int, settings: QuestionSettings) -> DraftQuestion:
    none = QuestionOption(settings.none_text, "none")
    key = item.correct or none
    others = [option for option in (*item.shown, none) if option is not key]
    random.Random(f"{settings.seed}/{item.id}").shuffle(others)
    options = (*others[:place], key, *others[place:])
    slot, draft = item.slot, item.draft
    why = draft.explanation
    if item.correct is None:
        why = f"{settings.name_absent(draft.correct)} {why}".strip()
    return DraftQuestion(
        slot.id,
        slot.meme,
        slot.dimension,
        draft.question,
        options,
        place,
        why,
        draft.cites,
        slot.focus,
        settings.seed,
        settings.language,
        slot.pair,
        item.drafted.provenance,
        item.notes if slot.focus else (*item.notes, FROM_IMAGE),
        item.needs,
    )
