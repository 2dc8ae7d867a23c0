"""Write the questions of a meme in two steps: what to ask, then wrong options.

A reply with faults goes back to the writer with the reasons. Questions that are sound are kept even
if others of the same reply are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memantics.construction.questions.asking import QuestionSubject
from memantics.construction.questions.assembly import SlotDraft
from memantics.construction.questions.critic import (
    check_citations,
    check_graph,
    check_options,
    check_question,
)
from memantics.construction.questions.form import (
    answers_not,
    find_form_faults,
    find_key_faults,
    find_padding,
    find_told,
    measures_apart,
    speaks_other,
)
from memantics.construction.questions.records import (
    FEWEST_WRONG,
    Defect,
    QuestionDraft,
    QuestionSettings,
    Slot,
)
from memantics.construction.questions.writing import (
    SaidKey,
    SaidWrong,
    add_options,
    ask_keys,
    ask_options,
    is_copied,
    make_draft,
    read_entries,
)
from memantics.core.model import Asker, Step, Taken
from memantics.core.reply import conform_value
from memantics.core.task import Unparsed
from memantics.understanding.knowledge.records import Knowledge, Provenance

Drafts = dict[str, QuestionDraft]


@dataclass(slots=True)
class _Reading:
    """Hold the faultless questions of all attempts at one reply, and the faults of the others."""

    sound: Drafts = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def close(self, slots: Sequence[Slot]) -> Drafts:
        """Return the questions without faults; raise an error with the faults of the others."""
        missing = [(n, slot) for n, slot in enumerate(slots, 1) if slot.id not in self.sound]
        if missing:
            told = "; ".join(f"{n}: {self.faults.get(slot.id, 'missing')}" for n, slot in missing)
            raise Unparsed(told[:580])
        return self.sound


def list_key_defects(
    draft: QuestionDraft, slot: Slot, knowledge: Knowledge, settings: QuestionSettings
) -> Iterator[Defect]:
    """Yield all defects of a question and its key, without options."""
    yield from check_citations(draft, slot, knowledge)
    yield from check_question(draft)
    yield from check_options(draft, settings)
    yield from check_graph(draft, slot, knowledge)
    yield from find_key_faults(draft, knowledge)
    for text in (draft.question, draft.correct):
        if speaks_other(text, settings.language):
            yield Defect("language", f"{text[:60]!r} is in another language than asked for")
    if is_copied(draft, settings):
        yield Defect("copied", "it repeats a worked example: ask about this meme")


def list_option_defects(
    draft: QuestionDraft, slot: Slot, knowledge: Knowledge, settings: QuestionSettings
) -> Iterator[Defect]:
    """Yield the defects of the wrong options, each with the option at fault."""
    for defect in (*check_options(draft, settings), *check_graph(draft, slot, knowledge)):
        if defect.option:
            yield defect
    for text in draft.plausible:
        if speaks_other(text, settings.language):
            yield Defect("language", f"{text[:60]!r} is in another language than asked for", text)
        rest = [draft.correct, *(other for other in draft.plausible if other != text)]
        if answers_not(draft.question, text, rest[:1]):
            yield Defect("no answer", f"{text!r} does not answer the question", text)
        if padding := find_padding(draft.question, text):
            yield Defect("padding", f"{padding!r} at the end of {text!r} adds nothing", text)
        if measures_apart(text, [draft.correct]):
            message = f"{text!r} has {len(text)} characters, the key {len(draft.correct)}"
            yield Defect("length spread", message, text)


def drop_faulty(
    draft: QuestionDraft, slot: Slot, knowledge: Knowledge, settings: QuestionSettings
) -> tuple[QuestionDraft, str]:
    """Return a draft without faulty options, and what is wrong with it as a whole."""
    defects = list(list_option_defects(draft, slot, knowledge, settings))
    faulty = {defect.option for defect in defects}
    kept = tuple(text for text in draft.plausible if text not in faulty)
    draft = replace(draft, plausible=kept)
    message = "; ".join(dict.fromkeys(f"{d.code}: {d.message}" for d in defects[:3]))
    if len(kept) < FEWEST_WRONG:
        return draft, message or f"too few: {len(kept)} wrong options"
    if settings.full_rubric and (way := _find_extreme(draft.correct, kept)):
        told = f"all wrong options are {way} than the key of {len(draft.correct)} characters"
        return draft, f"lengths: {told}: mix longer and shorter ones"
    if find_told(draft.correct, kept) is not None:
        (defect, *_) = find_form_faults(draft.question, draft.correct, kept)
        return draft, f"{defect.code}: {defect.message}"
    return draft, ""


def _find_extreme(key: str, wrong: Sequence[str]) -> str:
    """Return how all wrong options differ from the key in length; empty if they do not."""
    sizes = [len(text) for text in wrong]
    return "shorter" if max(sizes) < len(key) else "longer" if min(sizes) > len(key) else ""


async def _take(
    asker: Asker,
    step: Step[Drafts],
    reading: _Reading,
) -> Taken[Drafts]:
    taken = await asker.take(step)
    # What earlier attempts wrote is kept, whatever the last attempt came to.
    return replace(taken, value=reading.sound or None) if taken.value is None else taken


async def write_keys(
    asker: Asker,
    subject: QuestionSubject,
    slots: Sequence[Slot],
    settings: QuestionSettings,
    earlier: Sequence[str] = (),
) -> tuple[Taken[Drafts], Mapping[str, str]]:
    """Run step 1 for some questions of a meme; return the drafts and the faults of the others."""
    reading = _Reading()

    def read(text: str) -> Drafts:
        entries = read_entries(text, len(slots))
        for number, slot in enumerate(slots, 1):
            if slot.id in reading.sound or number not in entries:
                continue
            try:
                said = conform_value(SaidKey, entries[number])
            except Unparsed as error:
                reading.faults[slot.id] = str(error)
                continue
            draft = make_draft(said, slot, subject.knowledge)
            defects = list(list_key_defects(draft, slot, subject.knowledge, settings))
            if defects:
                reading.faults[slot.id] = "; ".join(f"{d.code}: {d.message}" for d in defects[:2])
            else:
                reading.sound[slot.id] = draft
        return reading.close(slots)

    request = ask_keys(subject, slots, settings, earlier)
    kind = "ask-again" if earlier else "ask"
    step = Step(f"{slots[0].id}/{kind}", request, read, settings.attempts)
    return await _take(asker, step, reading), reading.faults


async def write_options(
    asker: Asker,
    subject: QuestionSubject,
    asked: Sequence[tuple[Slot, QuestionDraft]],
    settings: QuestionSettings,
    faults: Mapping[str, str] | None = None,
    others: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Taken[Drafts], Mapping[str, str]]:
    """Run step 2 for questions with keys; ``faults`` are those of earlier options.

    ``others`` are points of other memes, by id.
    """
    reading, slots = _Reading(), [slot for slot, _ in asked]

    def read(text: str) -> Drafts:
        entries = read_entries(text, len(asked))
        for number, (slot, bare) in enumerate(asked, 1):
            if slot.id in reading.sound or number not in entries:
                continue
            try:
                said = conform_value(SaidWrong, entries[number])
            except Unparsed as error:
                reading.faults[slot.id] = str(error)
                continue
            draft = add_options(bare, said)
            draft, fault = drop_faulty(draft, slot, subject.knowledge, settings)
            if fault:
                reading.faults[slot.id] = fault
            else:
                reading.sound[slot.id] = draft
        return reading.close(slots)

    request = ask_options(subject, asked, settings, faults, others)
    kind = "repair" if faults else "options"
    step = Step(f"{slots[0].id}/{kind}", request, read, settings.attempts)
    return await _take(asker, step, reading), reading.faults


async def write_group(
    asker: Asker,
    subject: QuestionSubject,
    slots: Sequence[Slot],
    settings: QuestionSettings,
    earlier: Mapping[str, str] | None = None,
    others: Mapping[str, Sequence[str]] | None = None,
) -> list[SlotDraft]:
    """Write some questions about one meme; return one result per planned question.

    ``earlier`` are versions that failed a test, and ``others`` points of other memes, by id.
    """
    numbered = enumerate(slots, 1) if earlier else ()
    failed = [f"{n}. {earlier[slot.id]}" for n, slot in numbered if earlier and slot.id in earlier]
    keys, key_faults = await write_keys(asker, subject, slots, settings, failed)
    drafts = keys.value or {}
    asked = [(slot, drafts[slot.id]) for slot in slots if slot.id in drafts]
    results = {slot.id: _fail(slot, keys, key_faults) for slot in slots if slot.id not in drafts}
    if asked:
        made, faults = await write_options(asker, subject, asked, settings, others=others)
        full = made.value or {}
        for slot, _ in asked:
            if slot.id not in full:
                results[slot.id] = _fail(slot, made, faults)
                continue
            source = Provenance(made.model, made.prompt[:16], made.when)
            attempts = max(keys.attempts, made.attempts)
            results[slot.id] = SlotDraft(slot, "answered", full[slot.id], "", attempts, source)
    return [results[slot.id] for slot in slots]


def _fail(slot: Slot, taken: Taken[Drafts], faults: Mapping[str, str]) -> SlotDraft:
    status = "unparsed" if taken.status == "answered" else taken.status
    return SlotDraft(slot, status, None, faults.get(slot.id, taken.reason), taken.attempts)


def group_slots(slots: Sequence[Slot], most: int) -> Iterator[list[Slot]]:
    """Yield planned questions in groups of one meme, of about equal size."""
    memes: dict[str, list[Slot]] = {}
    for slot in slots:
        memes.setdefault(slot.meme, []).append(slot)
    for few in memes.values():
        groups = -(-len(few) // most)
        size = -(-len(few) // groups)
        yield from (few[place : place + size] for place in range(0, len(few), size))
