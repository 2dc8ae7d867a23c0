"""From knowledge to questions: planned, written, tried, levelled, shuffled."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memantics.build.extract.chain import in_order
from memantics.build.questions.asking import QuestionSubject
from memantics.build.questions.assembly import Item, deal_items, finish, make_item
from memantics.build.questions.balance import Levelled, level, trim_lengths
from memantics.build.questions.blind import Trial, try_items
from memantics.build.questions.lending import complete
from memantics.build.questions.records import (
    WRONG,
    DraftQuestion,
    QuestionSettings,
    SetAside,
    Slot,
)
from memantics.build.questions.slots import draw, plan_slots
from memantics.build.questions.solver import CHANCE
from memantics.build.questions.wording import alike
from memantics.build.questions.writing import Drafted, set_aside, write_draft
from memantics.core.memes import Meme
from memantics.core.step import Asker
from memantics.knowledge.records import Knowledge


@dataclass(frozen=True, slots=True)
class Built:
    """What came of a set of memes. ``trials`` are of the questions that were kept."""

    questions: tuple[DraftQuestion, ...]
    items: tuple[Item, ...]
    aside: tuple[SetAside, ...]
    drafted: tuple[Drafted, ...]
    exchanged: int
    trials: Mapping[str, Trial]


@dataclass(frozen=True, slots=True)
class People:
    """Who writes the questions, and who tries them (None: nobody)."""

    writer: Asker
    critic: Asker | None = None


def pair_subjects(
    memes: Sequence[Meme], knowledge: Sequence[Knowledge]
) -> dict[str, QuestionSubject]:
    """Memes with what is known about them; memes about which nothing is known are left out."""
    known = {own.meme: own for own in knowledge}
    return {meme.id: QuestionSubject(meme, known[meme.id]) for meme in memes if meme.id in known}


def list_slots(subjects: Mapping[str, QuestionSubject], settings: QuestionSettings) -> list[Slot]:
    """All questions that shall be written."""
    return [slot for own in subjects.values() for slot in plan_slots(own.knowledge, settings)]


async def build_questions(
    people: People,
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
    window: int = 64,
) -> Built:
    """Build the questions about memes; what does not become one is set aside with its reason."""
    slots = list_slots(subjects, settings)
    drafted = [own async for own in _write(people.writer, slots, subjects, settings, window)]
    aside = [set_aside(own) for own in drafted if own.draft is None]
    drafted, repeated = _drop_repeated(drafted)
    known = {meme: own.knowledge for meme, own in subjects.items()}
    completed = complete(deal_items(drafted, settings), known, settings)
    items = completed.items
    trials: dict[str, Trial] = {}
    critic = people.critic if settings.critic in ("model", "both") else None
    if critic is not None:
        items, trials = await _try_and_rewrite(people, critic, items, subjects, settings)
    state = Levelled({item.id: item for item in items})
    if settings.critic != "off":
        state = level(items, known, settings)
    if critic is not None:
        before = {item.id: item for item in items}
        stale = [own for own in state.items.values() if before[own.id] != own]
        trials |= await try_items(critic, stale, subjects, settings)
        _trim_solved(state, trials, settings)
        trim_lengths(state, settings)
    kept = [_note(item, trials.get(item.id)) for item in state.items.values()]
    return Built(
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
) -> AsyncIterator[Drafted]:
    jobs = (write_draft(writer, subjects[slot.meme], slot, settings) for slot in slots)
    async for drafted in in_order(jobs, window):
        yield drafted


def _drop_repeated(drafted: Sequence[Drafted]) -> tuple[list[Drafted], list[SetAside]]:
    """Of questions about one meme that ask the same, the first stays."""
    kept: list[Drafted] = []
    aside: list[SetAside] = []
    by_meme: dict[str, list[Drafted]] = {}
    for own in drafted:
        if own.draft is None:
            continue
        earlier = by_meme.setdefault(own.slot.meme, [])
        twin = next((e for e in earlier if e.draft and _ask_the_same(e, own)), None)
        if twin is None:
            earlier.append(own)
            kept.append(own)
            continue
        slot = own.slot
        reason = f"asks the same as {twin.slot.id}"
        aside.append(SetAside(slot.id, slot.meme, slot.dimension, "repetition", reason, own.draft))
    return kept, aside


def _ask_the_same(one: Drafted, other: Drafted) -> bool:
    if one.draft is None or other.draft is None:
        return False
    same = alike(one.draft.question, other.draft.question)
    return same and alike(one.draft.correct, other.draft.correct)


async def _try_and_rewrite(
    people: People,
    critic: Asker,
    items: Sequence[Item],
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
) -> tuple[list[Item], dict[str, Trial]]:
    """Send back what a model solves unfairly, a bounded number of times."""
    trials = await try_items(critic, items, subjects, settings)
    current = {item.id: item for item in items}
    for _ in range(settings.rewrites):
        bad = [
            current[name]
            for name, trial in trials.items()
            if trial.solved_blindly or trial.contradicted
        ]
        jobs = (_rewrite(people.writer, item, subjects[item.slot.meme], settings) for item in bad)
        renewed = [item async for item in in_order(jobs, 64) if item is not None]
        if not renewed:
            break
        current |= {item.id: item for item in renewed}
        trials |= await try_items(critic, renewed, subjects, settings)
    return list(current.values()), trials


async def _rewrite(
    writer: Asker, item: Item, subject: QuestionSubject, settings: QuestionSettings
) -> Item | None:
    earlier = f"{item.draft.question} {item.draft.correct}"
    drafted = await write_draft(writer, subject, item.slot, settings, earlier)
    draft = drafted.draft
    if draft is None or draft == item.draft or len(draft.usable) < len(WRONG):
        return None
    return make_item(drafted, draft, none_is_key=item.correct is None)


def _trim_solved(state: Levelled, trials: Mapping[str, Trial], settings: QuestionSettings) -> None:
    """Set aside what the knowledge contradicts, and what is solved blindly beyond chance."""
    for item in list(state.items.values()):
        if trials[item.id].contradicted:
            _drop(state, item, "trial", "the knowledge leads to another option than the key")
    order = sorted(state.items, key=lambda name: draw(2**60, settings.seed, "trial", name))
    for name in order:
        if rate_blind(state.items, trials) <= CHANCE + settings.tolerance / 2:
            return
        if trials[name].solved_blindly:
            _drop(state, state.items[name], "trial", "a model finds its key without the meme")


def rate_blind(items: Mapping[str, Item], trials: Mapping[str, Trial]) -> float:
    """The share of answered blind trials that found the key."""
    tries = [found for name in items if name in trials for found in trials[name].blind]
    answered = [found for found in tries if found is not None]
    return sum(answered) / len(answered) if answered else CHANCE


def _drop(state: Levelled, item: Item, stage: str, reason: str) -> None:
    del state.items[item.id]
    slot = item.slot
    state.aside.append(SetAside(slot.id, slot.meme, slot.dimension, stage, reason, item.draft))


def _note(item: Item, trial: Trial | None) -> Item:
    if trial is None or not trial.seen:
        return item
    return replace(item, notes=("solved from the meme alone, without the knowledge",))


def _mend_pairs(questions: Sequence[DraftQuestion]) -> tuple[DraftQuestion, ...]:
    """A pair holds only where both questions are there."""
    there = Counter(own.id for own in questions)
    return tuple(
        own if not own.pair or own.pair in there else replace(own, pair="") for own in questions
    )
