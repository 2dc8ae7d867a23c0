"""From knowledge to questions: planned, written, tried, levelled, shuffled."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memantics.build.extract.chain import in_order
from memantics.build.questions.asking import QuestionSubject
from memantics.build.questions.assembly import (
    AssembledQuestion,
    deal_none,
    finish,
    make_item,
    make_items,
)
from memantics.build.questions.balance import Levelled, bound_none, level, trim_lengths
from memantics.build.questions.blind import BlindTrial, try_items
from memantics.build.questions.lending import complete
from memantics.build.questions.records import (
    FEWEST_WRONG,
    DraftQuestion,
    QuestionSettings,
    SetAside,
    Slot,
    plan_slots,
)
from memantics.build.questions.solver import CHANCE, FEWEST
from memantics.build.questions.wording import alike
from memantics.build.questions.writing import SlotDraft, set_aside, write_draft
from memantics.core.memes import Meme
from memantics.core.step import Asker
from memantics.knowledge.records import Knowledge


@dataclass(frozen=True, slots=True)
class BuiltQuestions:
    """What came of a set of memes. ``trials`` are of the questions that were kept."""

    questions: tuple[DraftQuestion, ...]
    items: tuple[AssembledQuestion, ...]
    aside: tuple[SetAside, ...]
    drafted: tuple[SlotDraft, ...]
    exchanged: int
    trials: Mapping[str, BlindTrial]


def pair_subjects(
    memes: Sequence[Meme], knowledge: Sequence[Knowledge]
) -> dict[str, QuestionSubject]:
    """Memes with what is known about them; memes about which nothing is known are left out."""
    known = {value.meme: value for value in knowledge}
    return {meme.id: QuestionSubject(meme, known[meme.id]) for meme in memes if meme.id in known}


def list_slots(subjects: Mapping[str, QuestionSubject], settings: QuestionSettings) -> list[Slot]:
    """All questions that shall be written."""
    return [
        slot for subject in subjects.values() for slot in plan_slots(subject.knowledge, settings)
    ]


async def build_questions(
    writer: Asker,
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
    critic: Asker | None = None,
    window: int = 64,
) -> BuiltQuestions:
    """Build the questions about memes; what does not become one is set aside with its reason.

    ``critic`` tries them where the settings want a model to; None: nobody does.
    """
    slots = list_slots(subjects, settings)
    drafted = [draft async for draft in _write(writer, slots, subjects, settings, window)]
    aside = [set_aside(draft) for draft in drafted if draft.draft is None]
    drafted, repeated = _drop_repeated(drafted)
    known = {meme: subject.knowledge for meme, subject in subjects.items()}
    completed = complete(make_items(drafted), known, settings)
    items = completed.items
    trials: dict[str, BlindTrial] = {}
    critic = critic if settings.critic in ("model", "both") else None
    state = Levelled({item.id: item for item in items})
    if critic is not None:
        items, trials = await _try_and_rewrite(writer, critic, items, subjects, settings)
        state = Levelled({item.id: item for item in items})
        _drop_solved(state, trials)
    # Whether a question can be solved blindly is found out with its right option beside others.
    keyed = dict(state.items)
    dealt, aside_before = deal_none(list(keyed.values()), settings), state.aside
    state = Levelled({item.id: item for item in dealt})
    if settings.critic != "off":
        state = level(dealt, known, settings)
    state.aside[:0] = aside_before
    if critic is not None:
        stale = [value for value in state.items.values() if keyed[value.id] != value]
        again = await try_items(critic, stale, subjects, settings, blind_only=True)
        trials |= {name: replace(trials[name], blind=trial.blind) for name, trial in again.items()}
        _drop_solved(state, trials)
        if len(dealt) >= FEWEST:
            trim_lengths(state, settings)
    bound_none(state, settings)
    kept = [_note(item, trials.get(item.id)) for item in state.items.values()]
    return BuiltQuestions(
        _mend_pairs(finish(kept, settings)),
        tuple(kept),
        (*aside, *repeated, *completed.aside, *state.aside),
        tuple(drafted),
        completed.lent + state.exchanged,
        {item.id: trials[item.id] for item in kept if item.id in trials},
    )


async def _write(
    writer: Asker,
    slots: Sequence[Slot],
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
    window: int,
) -> AsyncIterator[SlotDraft]:
    jobs = (write_draft(writer, subjects[slot.meme], slot, settings) for slot in slots)
    async for drafted in in_order(jobs, window):
        yield drafted


def _drop_repeated(drafted: Sequence[SlotDraft]) -> tuple[list[SlotDraft], list[SetAside]]:
    """Of questions about one meme that ask the same, the first stays."""
    kept: list[SlotDraft] = []
    aside: list[SetAside] = []
    by_meme: dict[str, list[SlotDraft]] = {}
    for draft in drafted:
        if draft.draft is None:
            continue
        earlier = by_meme.setdefault(draft.slot.meme, [])
        twin = next((e for e in earlier if e.draft and _ask_the_same(e, draft)), None)
        if twin is None:
            earlier.append(draft)
            kept.append(draft)
            continue
        slot = draft.slot
        reason = f"asks the same as {twin.slot.id}"
        aside.append(
            SetAside(slot.id, slot.meme, slot.dimension, "repetition", reason, draft.draft)
        )
    return kept, aside


def _ask_the_same(one: SlotDraft, other: SlotDraft) -> bool:
    if one.draft is None or other.draft is None:
        return False
    same = alike(one.draft.question, other.draft.question)
    return same and alike(one.draft.correct, other.draft.correct)


async def _try_and_rewrite(
    writer: Asker,
    critic: Asker,
    items: Sequence[AssembledQuestion],
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
) -> tuple[list[AssembledQuestion], dict[str, BlindTrial]]:
    """Send back what a model solves unfairly, a bounded number of times."""
    trials = await try_items(critic, items, subjects, settings)
    current = {item.id: item for item in items}
    for _ in range(settings.rewrites):
        bad = [
            current[name]
            for name, trial in trials.items()
            if trial.solved_blindly or trial.contradicted
        ]
        jobs = (_rewrite(writer, item, subjects[item.slot.meme], settings) for item in bad)
        renewed = [item async for item in in_order(jobs, 64) if item is not None]
        if not renewed:
            break
        current |= {item.id: item for item in renewed}
        trials |= await try_items(critic, renewed, subjects, settings)
    return list(current.values()), trials


async def _rewrite(
    writer: Asker, item: AssembledQuestion, subject: QuestionSubject, settings: QuestionSettings
) -> AssembledQuestion | None:
    wrong = "; ".join(option.text for option in item.wrong)
    earlier = f"{item.draft.question} Right: {item.draft.correct}. Wrong: {wrong}."
    drafted = await write_draft(writer, subject, item.slot, settings, earlier)
    draft = drafted.draft
    if draft is None or draft == item.draft or len(draft.wrong) < FEWEST_WRONG:
        return None
    return make_item(drafted, draft)


def _drop_solved(state: Levelled, trials: Mapping[str, BlindTrial]) -> None:
    """Set aside what the knowledge contradicts, and what a model solved blindly in both orders."""
    for item in list(state.items.values()):
        trial = trials.get(item.id)
        if trial is not None and trial.solved_blindly:
            _drop(state, item, "trial", "a model finds its key without the meme")
        elif trial is not None and trial.contradicted:
            _drop(state, item, "trial", "the knowledge leads to another option than the key")


def rate_blind(items: Mapping[str, AssembledQuestion], trials: Mapping[str, BlindTrial]) -> float:
    """The share of answered blind trials that found the key."""
    tries = [found for name in items if name in trials for found in trials[name].blind]
    answered = [found for found in tries if found is not None]
    return sum(answered) / len(answered) if answered else CHANCE


def _drop(state: Levelled, item: AssembledQuestion, stage: str, reason: str) -> None:
    del state.items[item.id]
    slot = item.slot
    state.aside.append(SetAside(slot.id, slot.meme, slot.dimension, stage, reason, item.draft))


def _note(item: AssembledQuestion, trial: BlindTrial | None) -> AssembledQuestion:
    if trial is None or not trial.seen:
        return item
    return replace(item, notes=("solved from the meme alone, without the knowledge",))


def _mend_pairs(questions: Sequence[DraftQuestion]) -> tuple[DraftQuestion, ...]:
    """A pair holds only where both questions are there."""
    there = Counter(question.id for question in questions)
    return tuple(
        question if not question.pair or question.pair in there else replace(question, pair="")
        for question in questions
    )
