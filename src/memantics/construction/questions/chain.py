"""Build questions from known facts: plan, write, try to answer, remove answer cues, shuffle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import get_args

from memantics.construction.questions import assembly, lending, records
from memantics.construction.questions.asking import QuestionSubject
from memantics.construction.questions.assembly import SlotDraft, reject, write_draft
from memantics.construction.questions.balance import (
    QuestionSet,
    bound_none,
    remove_cues,
    trim_lengths,
)
from memantics.construction.questions.critic import alike
from memantics.construction.questions.solver import CHANCE, FEWEST, BlindTrial, try_items
from memantics.core.memes import Meme
from memantics.core.model import Asker
from memantics.understanding.extraction.chain import in_order
from memantics.understanding.knowledge.records import Knowledge

SOLVED = "a model finds the correct option without the meme"
_OTHERS = 6  # facts about other memes given in the prompt
_NEEDS: Mapping[str, records.QuestionNeed] = {
    "TextualMaterial": "words",
    "VisualMaterial": "picture",
    "Scene": "picture",
    "BackgroundKnowledge": "background",
}


@dataclass(frozen=True, slots=True)
class BuiltQuestions:
    """Store the questions built from a set of memes; ``trials`` cover the kept questions.

    ``repaired`` counts questions that a critic answered without the meme and that were repaired, by
    kind of repair. ``faults`` counts what the final check found, and ``calls`` the attempts
    at model calls by role and kind. ``unchecked`` gives the kept questions that the critic gave no
    readable judgement of, with the reason.
    """

    questions: tuple[records.DraftQuestion, ...]
    items: tuple[assembly.AssembledQuestion, ...]
    rejected: tuple[records.RejectedQuestion, ...]
    drafted: tuple[SlotDraft, ...]
    exchanged: int
    trials: Mapping[str, BlindTrial]
    repaired: Mapping[str, int]
    faults: Mapping[str, int] = field(default_factory=dict)
    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)


def pair_subjects(
    memes: Sequence[Meme], knowledge: Sequence[Knowledge]
) -> dict[str, QuestionSubject]:
    """Pair each meme with the known facts about it; leave out memes without facts."""
    known = {meme_knowledge.meme: meme_knowledge for meme_knowledge in knowledge}
    return {meme.id: QuestionSubject(meme, known[meme.id]) for meme in memes if meme.id in known}


def list_slots(
    subjects: Mapping[str, QuestionSubject], settings: records.QuestionSettings
) -> list[records.Slot]:
    """Return the plan of all questions to write."""
    return [
        slot
        for subject in subjects.values()
        for slot in records.plan_slots(subject.knowledge, settings)
    ]


async def build_in_one_step(
    writer: Asker,
    subjects: Mapping[str, QuestionSubject],
    settings: records.QuestionSettings,
    critic: Asker | None = None,
    window: int = 64,
) -> BuiltQuestions:
    """Build questions with version 1 of prompts and checks: one step.

    ``critic`` is the model that tries to answer the questions without the meme, if the settings ask
    for one; with None, no model tries them.
    """
    slots = list_slots(subjects, settings)
    drafted = [draft async for draft in _write(writer, slots, subjects, settings, window)]
    rejected = [reject(draft) for draft in drafted if draft.draft is None]
    sound, repeated = drop_repeated(drafted)
    known = {meme: subject.knowledge for meme, subject in subjects.items()}
    completed = lending.complete(assembly.make_items(sound), known, settings)
    items = completed.items
    trials: dict[str, BlindTrial] = {}
    repaired: Counter[str] = Counter()
    critic = critic if settings.judged else None
    state = QuestionSet({item.id: item for item in items})
    if critic is not None:
        items, trials, repaired = await _try_and_repair(writer, critic, items, subjects, settings)
        state = QuestionSet({item.id: item for item in items})
        drop_solved(state, trials, settings)
    # Models try to answer while every question still shows its correct option.
    keyed = dict(state.items)
    dealt, rejected_before = assembly.deal_none(list(keyed.values()), settings), state.rejected
    state = QuestionSet({item.id: item for item in dealt})
    if settings.critic != "off":
        state = remove_cues(dealt, known, settings)
    state.rejected[:0] = rejected_before
    if critic is not None:
        stale = [question for question in state.items.values() if keyed[question.id] != question]
        again = await try_items(critic, stale, subjects, settings, blind_only=True)
        trials |= {name: replace(trials[name], blind=trial.blind) for name, trial in again.items()}
        drop_solved(state, trials, settings)
        if len(dealt) >= FEWEST:
            trim_lengths(state, settings)
    bound_none(state, settings)
    kept = [note(item, trials.get(item.id), known[item.slot.meme]) for item in state.items.values()]
    return BuiltQuestions(
        clear_broken_pairs(assembly.finish(kept, settings)),
        tuple(kept),
        (*rejected, *repeated, *completed.rejected, *state.rejected),
        tuple(drafted),
        completed.lent + state.exchanged,
        {item.id: trials[item.id] for item in kept if item.id in trials},
        repaired,
    )


async def _write(
    writer: Asker,
    slots: Sequence[records.Slot],
    subjects: Mapping[str, QuestionSubject],
    settings: records.QuestionSettings,
    window: int,
) -> AsyncIterator[SlotDraft]:
    asked: dict[str, list[records.Slot]] = {}
    for slot in slots:
        asked.setdefault(slot.dimension, []).append(slot)
    jobs = (
        write_draft(
            writer,
            subjects[slot.meme],
            slot,
            settings,
            others=list_elements(slot, asked[slot.dimension], subjects, settings),
        )
        for slot in slots
    )
    async for drafted in in_order(jobs, window):
        yield drafted


def drop_repeated(
    drafted: Sequence[SlotDraft],
) -> tuple[list[SlotDraft], list[records.RejectedQuestion]]:
    """Keep the first of several questions about one meme that ask the same."""
    kept: list[SlotDraft] = []
    rejected: list[records.RejectedQuestion] = []
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
        rejected.append(
            records.RejectedQuestion(
                slot.id, slot.meme, slot.dimension, "repetition", reason, draft.draft
            )
        )
    return kept, rejected


def _ask_the_same(one: SlotDraft, other: SlotDraft) -> bool:
    if one.draft is None or other.draft is None:
        return False
    same = alike(one.draft.question, other.draft.question)
    return same and alike(one.draft.correct, other.draft.correct)


async def _try_and_repair(
    writer: Asker,
    critic: Asker,
    items: Sequence[assembly.AssembledQuestion],
    subjects: Mapping[str, QuestionSubject],
    settings: records.QuestionSettings,
) -> tuple[list[assembly.AssembledQuestion], dict[str, BlindTrial], Counter[str]]:
    """Try all questions and repair those answered without the meme; return counts by repair.

    Repairs, in order: other distractors of the draft, correct answers to questions about other
    memes, a rewritten question.
    """
    trials = await try_items(critic, items, subjects, settings)
    current = {item.id: item for item in items}
    repaired: Counter[str] = Counter()
    known = {meme: subject.knowledge for meme, subject in subjects.items()}
    pool = lending.OptionPool(items, known, settings.seed)
    for name, repair in (
        ("other distractors", assembly.show_others),
        ("one borrowed distractor", partial(lending.borrow_one, pool)),
        ("borrowed distractors", partial(lending.borrow_others, pool)),
    ):
        guessed = [current[one] for one, trial in trials.items() if trial.solved_blindly]
        tried = [made for item in guessed if (made := repair(item)) is not None]
        again = await try_items(critic, tried, subjects, settings)
        for item in tried:
            if not again[item.id].solved_blindly:
                current[item.id], trials[item.id] = item, again[item.id]
                repaired[name] += 1
                continue
            for option in item.wrong:
                pool.take_back(option)
    for _ in range(settings.rewrites):
        bad = [current[one] for one, trial in trials.items() if is_bad(trial)]
        asked: dict[str, list[assembly.AssembledQuestion]] = {}
        for item in current.values():
            asked.setdefault(item.slot.dimension, []).append(item)
        jobs = (
            _rewrite(
                writer,
                item,
                subjects[item.slot.meme],
                settings,
                _list_answers(item, asked[item.slot.dimension], settings),
            )
            for item in bad
        )
        renewed = [item async for item in in_order(jobs, 64) if item is not None]
        if not renewed:
            break
        current |= {item.id: item for item in renewed}
        trials |= await try_items(critic, renewed, subjects, settings)
        repaired["a rewritten question"] += sum(not is_bad(trials[item.id]) for item in renewed)
    return list(current.values()), trials, +repaired


def is_bad(trial: BlindTrial) -> bool:
    """Return whether a question must be repaired or rejected."""
    return trial.solved_blindly or trial.contradicted


def _list_answers(
    item: assembly.AssembledQuestion,
    items: Sequence[assembly.AssembledQuestion],
    settings: records.QuestionSettings,
) -> list[str]:
    """Return correct answers about other memes in the same dimension, same form first."""
    form, chance = (
        lending.find_form(item.draft.correct),
        random.Random(f"{settings.seed}/{item.id}"),
    )
    found = [
        other.draft.correct
        for other in chance.sample(items, min(len(items), 4 * _OTHERS))
        if other.slot.meme != item.slot.meme and not alike(other.draft.correct, item.draft.correct)
    ]
    return sorted(dict.fromkeys(found), key=lambda text: lending.find_form(text) != form)[:_OTHERS]


def list_elements(
    slot: records.Slot,
    slots: Sequence[records.Slot],
    subjects: Mapping[str, QuestionSubject],
    settings: records.QuestionSettings,
) -> list[str]:
    """Return facts about other memes in the same dimension that do not apply to this meme."""
    known = subjects[slot.meme].knowledge.of(slot.dimension)
    chance = random.Random(f"{settings.seed}/{slot.id}")
    found: dict[str, str] = {}
    for other in chance.sample(slots, min(len(slots), 4 * _OTHERS)):
        focus = subjects[other.meme].knowledge.by_key.get(other.focus)
        if focus is None or other.meme == slot.meme:
            continue
        if not any(alike(focus.label, individual.label) for individual in known):
            found.setdefault(focus.label, f"{focus.label}: {focus.description}")
    return list(found.values())[:_OTHERS]


async def _rewrite(
    writer: Asker,
    item: assembly.AssembledQuestion,
    subject: QuestionSubject,
    settings: records.QuestionSettings,
    others: Sequence[str],
) -> assembly.AssembledQuestion | None:
    wrong = "; ".join(option.text for option in item.wrong)
    earlier = f"{item.draft.question} Right: {item.draft.correct}. Wrong: {wrong}."
    drafted = await write_draft(writer, subject, item.slot, settings, earlier, others)
    draft = drafted.draft
    if draft is None or draft == item.draft or len(draft.wrong) < records.FEWEST_WRONG:
        return None
    return assembly.make_item(drafted, draft)


def drop_solved(
    state: QuestionSet, trials: Mapping[str, BlindTrial], settings: records.QuestionSettings
) -> None:
    """Reject questions that known facts contradict or that a model answers without the meme.

    Questions answered without the meme are kept and marked until their dimension has the number
    that the settings require.
    """
    judged = [(item, trials.get(item.id)) for item in list(state.items.values())]
    kept = Counter(item.slot.dimension for item, trial in judged if not trial or not is_bad(trial))
    for item, trial in judged:
        if trial is None or not is_bad(trial):
            continue
        if not trial.solved_blindly:
            drop(
                state, item, "trial", "the knowledge supports an option other than the correct one"
            )
        elif kept[item.slot.dimension] < settings.keep_per_dimension:
            kept[item.slot.dimension] += 1
        else:
            drop(state, item, "trial", SOLVED)


def rate_blind(
    items: Mapping[str, assembly.AssembledQuestion], trials: Mapping[str, BlindTrial]
) -> float:
    """Return how often a model without the meme finds the correct option, as a proportion."""
    tries = [found for name in items if name in trials for found in trials[name].blind]
    answered = [found for found in tries if found is not None]
    return sum(answered) / len(answered) if answered else CHANCE


def drop(state: QuestionSet, item: assembly.AssembledQuestion, stage: str, reason: str) -> None:
    """Move a question from the set to the rejected ones."""
    del state.items[item.id]
    slot = item.slot
    state.rejected.append(
        records.RejectedQuestion(slot.id, slot.meme, slot.dimension, stage, reason, item.draft)
    )


def note(
    item: assembly.AssembledQuestion,
    trial: BlindTrial | None,
    knowledge: Knowledge,
    unchecked: str = "",
) -> assembly.AssembledQuestion:
    """Add notes of the models that tried to answer, and what a reader needs to answer.

    ``unchecked`` says why no model judged the question in its final form.
    """
    notes = []
    if unchecked:
        notes.append(f"no model judged its final form: {unchecked}")
    if trial is not None and None in trial.blind:
        notes.append("no readable answer of a model without the meme")
    if trial is not None and trial.solved_blindly:
        notes.append("a model finds the correct option without the meme; kept for its dimension")
    if trial is not None and trial.seen:
        notes.append("answered from the meme alone, without the knowledge")
    return replace(item, notes=tuple(notes), needs=find_needs(item, trial, knowledge))


def find_needs(
    item: assembly.AssembledQuestion, trial: BlindTrial | None, knowledge: Knowledge
) -> tuple[records.QuestionNeed, ...]:
    """Return what is needed to answer: words, picture or background.

    The needs follow from the dimensions that the question cites. A question that the critic answers
    with the known facts, but not with the image alone, also needs background.
    """
    cited = {knowledge.by_key[key].dimension for key in item.draft.cites if key in knowledge.by_key}
    found = {_NEEDS[name] for name in (item.slot.dimension, *cited) if name in _NEEDS}
    if trial is not None and trial.known and trial.seen is False:
        found.add("background")
    if not found & {"words", "picture"}:  # otherwise the meaning needs text and image together
        found |= {"words", "picture"}
    return tuple(need for need in get_args(records.QuestionNeed) if need in found)


def clear_broken_pairs(
    questions: Sequence[records.DraftQuestion],
) -> tuple[records.DraftQuestion, ...]:
    """Clear the pair id of questions whose partner was rejected."""
    there = Counter(question.id for question in questions)
    return tuple(
        question if not question.pair or question.pair in there else replace(question, pair="")
        for question in questions
    )
