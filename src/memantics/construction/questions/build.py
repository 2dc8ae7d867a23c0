"""Build questions: write them, try them without the meme, repair them, check the final form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from memantics.construction.questions import assembly, chain, records
from memantics.construction.questions.asking import QuestionSubject
from memantics.construction.questions.assembly import AssembledQuestion, SlotDraft, reject
from memantics.construction.questions.balance import (
    QuestionSet,
    bound_none,
    remove_cues,
    trim_lengths,
)
from memantics.construction.questions.chain import BuiltQuestions
from memantics.construction.questions.drafting import group_slots, write_group, write_options
from memantics.construction.questions.final import Examiner, FinalCheck
from memantics.construction.questions.records import FEWEST_WRONG, QuestionOption
from memantics.construction.questions.solver import (
    FEWEST,
    BlindTrial,
    try_blind,
    try_facts,
)
from memantics.core.model import Asker, Step, Taken, Value
from memantics.models.embedded.encoder import StaticEncoder
from memantics.understanding.extraction.chain import in_order

Subjects = Mapping[str, QuestionSubject]
_OTHERS = 3  # points of other memes given with a question
_OPTION_FAULTS = frozenset({"two right", "options equivalent", "no answer", "form tells"})


@dataclass(slots=True)
class CallCounter:
    """An asker that counts model calls by the kind of step, which is the last part of its id.

    The counts are those of the call log: a repeated request is one call, and a call that a resumed
    build takes from the log counts like a new one.
    """

    asker: Asker
    made: dict[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.asker.model

    @property
    def counts(self) -> Counter[str]:
        """The number of calls of each kind."""
        counts: Counter[str] = Counter()
        for kind, attempts in self.made.values():
            counts[kind] += attempts
        return counts

    async def take(self, step: Step[Value]) -> Taken[Value]:
        """Run one step and count its attempts."""
        taken = await self.asker.take(step)
        kind = step.id.rpartition("/")[2]
        self.made.setdefault(taken.prompt or step.id, (kind, taken.attempts))
        return taken


async def build_questions(
    writer: Asker,
    subjects: Subjects,
    settings: records.QuestionSettings,
    critic: Asker | None = None,
    window: int = 64,
    reader: Asker | None = None,
) -> BuiltQuestions:
    """Build questions about memes; unusable ones are rejected with a reason.

    ``critic`` judges questions with the facts and the image, and ``reader`` (default: the critic)
    answers them without; both only if the settings ask for a model.
    """
    counters = {"writer": CallCounter(writer)}
    judge = critic if settings.judged else None
    if judge is not None:
        counters["critic"] = CallCounter(judge)
        counters["reader"] = CallCounter(reader or judge)
    if settings.version == "1":
        built = await chain.build_in_one_step(
            counters["writer"], subjects, settings, counters.get("critic"), window
        )
    else:
        bench = _Bench(counters, subjects, settings, window)
        built = await bench.build()
    calls = {role: dict(counter.counts) for role, counter in counters.items() if counter.made}
    return replace(built, calls=calls)


@dataclass(slots=True)
class _Bench:
    """Hold the questions of one build, their trials and checks, between its steps."""

    askers: Mapping[str, Asker]
    subjects: Subjects
    settings: records.QuestionSettings
    window: int
    trials: dict[str, BlindTrial] = field(default_factory=dict)
    checks: dict[str, FinalCheck] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    current: dict[str, AssembledQuestion] = field(default_factory=dict)

    async def build(self) -> BuiltQuestions:
        settings = self.settings
        slots = chain.list_slots(self.subjects, settings)
        drafted = await self._write(slots)
        rejected = [reject(draft) for draft in drafted if draft.draft is None]
        kept, repeated = chain.drop_repeated(drafted)
        examiner = Examiner(self.askers.get("critic"), self.subjects, settings, StaticEncoder())
        self._choose(assembly.make_items(kept), examiner)
        await self._try(self.current.values())
        await self._show_others(examiner)
        for _ in range(settings.rewrites):
            await self._check(examiner, self.current.values())
            if not await self._repair(examiner):
                break
        if len(self.current) < FEWEST:  # in larger sets, cues are removed from the whole set
            await self._level(examiner)
        dealt = assembly.deal_none(list(self.current.values()), settings)
        known = {meme: subject.knowledge for meme, subject in self.subjects.items()}
        state = QuestionSet({item.id: item for item in dealt})
        if settings.critic != "off":
            state = remove_cues(dealt, known, settings)
        await self._finish(state, examiner)
        if len(dealt) >= FEWEST and settings.critic != "off":
            trim_lengths(state, settings)
        bound_none(state, settings)
        silent = {name: check.silent for name, check in self.checks.items() if check.silent}
        items = [
            chain.note(item, self.trials.get(name), known[item.slot.meme], silent.get(name, ""))
            for name, item in state.items.items()
        ]
        return BuiltQuestions(
            chain.clear_broken_pairs(assembly.finish(items, settings)),
            tuple(items),
            (*rejected, *repeated, *state.rejected),
            tuple(drafted),
            state.exchanged,
            {item.id: self.trials[item.id] for item in items if item.id in self.trials},
            +self.repaired,
            +self.faults,
            unchecked={item.id: silent[item.id] for item in items if item.id in silent},
        )

    async def _write(
        self, slots: Sequence[records.Slot], earlier: Mapping[str, str] | None = None
    ) -> list[SlotDraft]:
        writer, settings = self.askers["writer"], self.settings
        others = self._list_others(slots)
        jobs = (
            write_group(writer, self.subjects[few[0].meme], few, settings, earlier, others)
            for few in group_slots(slots, settings.at_a_time)
        )
        return [draft async for drafts in in_order(jobs, self.window) for draft in drafts]

    def _list_others(self, slots: Iterable[records.Slot]) -> dict[str, list[str]]:
        """Return statements about other memes, by planned question, as ideas for wrong options."""
        planned: dict[str, list[records.Slot]] = {}
        for slot in chain.list_slots(self.subjects, self.settings):
            planned.setdefault(slot.dimension, []).append(slot)
        return {
            slot.id: chain.list_elements(
                slot, planned.get(slot.dimension, []), self.subjects, self.settings
            )[:_OTHERS]
            for slot in slots
        }

    def _count_ranks(self) -> Counter[int]:
        """Count the length ranks of the keys of all questions that need no repair."""
        standing = (item for item in self.current.values() if not self._is_bad(item))
        return Counter(rank_key(item) for item in standing)

    def _choose(self, items: Iterable[AssembledQuestion], examiner: Examiner) -> list[str]:
        """Show two wrong options per question, so that the key is not the longest too often."""
        chosen, ranks = [], self._count_ranks()
        for item in items:
            self.checks.pop(item.id, None)  # a judgement of an earlier form
            self.current[item.id] = choose_pair(item, examiner, ranks)
            ranks[rank_key(self.current[item.id])] += 1
            chosen.append(item.id)
        return chosen

    async def _try(self, items: Iterable[AssembledQuestion]) -> None:
        """Let the reader answer questions without the meme."""
        if "reader" in self.askers:
            new = await try_blind(self.askers["reader"], list(items), self.subjects, self.settings)
            self.trials |= new

    async def _show_others(self, examiner: Examiner) -> None:
        """Show other wrong options for questions whose key the reader found without the meme."""
        solved = [self.current[n] for n, trial in self.trials.items() if trial.solved_blindly]
        ranks, others = self._count_ranks(), []
        for item in solved:
            other = choose_pair(item, examiner, ranks, without=item.wrong)
            if other != item and not examiner.find_faults(other):
                ranks[rank_key(other)] += 1
                others.append(other)
        await self._offer(others, "other distractors")

    async def _level(self, examiner: Examiner) -> None:
        """Show other wrong options, so that the length of the key does not reveal it."""
        standing = [item for item in self.current.values() if not self._is_bad(item)]
        ranks, fair = Counter(map(rank_key, standing)), -(-len(standing) // 3)
        others = []
        for item in standing:
            old = rank_key(item)
            other = choose_pair(item, examiner, ranks)
            new = rank_key(other)
            if ranks[old] > fair > ranks[new] and not examiner.find_faults(other):
                ranks.update({old: -1, new: 1})
                others.append(other)
        await self._offer(others, "balanced lengths")

    async def _offer(self, others: Sequence[AssembledQuestion], kind: str) -> None:
        """Replace questions by versions with other wrong options, unless the reader solves them."""
        if not others:
            return
        before = dict(self.trials)
        await self._try(others)
        for item in others:
            if self._solved(item):
                self.trials[item.id] = before[item.id]
            else:
                self.checks.pop(item.id, None)
                self.current[item.id] = item
                self.repaired[kind] += 1

    async def _check(self, examiner: Examiner, items: Iterable[AssembledQuestion]) -> None:
        """Check questions in their final form, and count what was found."""
        # A question that the reader solved is checked only if it may be kept in spite of that.
        listed = [
            item for item in items if self.settings.keep_per_dimension or not self._solved(item)
        ]
        new = [item for item in listed if examiner.done.get(item.id, (None,))[0] != item]
        self.checks |= await examiner.check(listed)
        codes = [{defect.code for defect in self.checks[item.id].faults} for item in new]
        self.faults.update(code for found in codes for code in found)
        if "critic" in self.askers:
            sound = [item for item in new if not self.checks[item.id].faults]
            self.trials |= await try_facts(
                self.askers["critic"], sound, self.trials, self.subjects, self.settings
            )

    def _solved(self, item: AssembledQuestion) -> bool:
        return item.id in self.trials and self.trials[item.id].solved_blindly

    def _is_bad(self, item: AssembledQuestion) -> bool:
        trial = self.trials.get(item.id)
        return self.checks.get(item.id, FinalCheck()).faults != () or (
            trial is not None and chain.is_bad(trial)
        )

    async def _repair(self, examiner: Examiner) -> bool:
        """Write new options, or a new question where the key is at fault; try them again."""
        bad = [item for item in self.current.values() if self._is_bad(item)]
        if not bad:
            return False
        optional = [item for item in bad if self._needs_options_only(item)]
        renewed = await self._renew_options(optional)
        again = [item for item in bad if item not in optional]
        drafts = await self._write(
            [item.slot for item in again], {item.id: self._tell(item) for item in again}
        )
        renewed += assembly.make_items([draft for draft in drafts if draft.draft is not None])
        chosen = {name: self.current[name] for name in self._choose(renewed, examiner)}
        await self._try(chosen.values())
        await self._check(examiner, chosen.values())
        for item in chosen.values():
            if not self._is_bad(item):
                kind = "new options" if item.id in {o.id for o in optional} else "a new question"
                self.repaired[kind] += 1
        return bool(chosen)

    def _needs_options_only(self, item: AssembledQuestion) -> bool:
        faults = self.checks.get(item.id, FinalCheck()).faults
        trial = self.trials.get(item.id)
        fine = trial is None or not chain.is_bad(trial)
        return bool(faults) and fine and all(f.code in _OPTION_FAULTS and f.option for f in faults)

    async def _renew_options(self, items: Sequence[AssembledQuestion]) -> list[AssembledQuestion]:
        by_meme: dict[str, list[AssembledQuestion]] = {}
        for item in items:
            by_meme.setdefault(item.slot.meme, []).append(item)

        async def renew(few: Sequence[AssembledQuestion]) -> list[AssembledQuestion]:
            asked = [(item.slot, replace(item.draft, plausible=(), implausible=())) for item in few]
            faults = {item.id: self._tell(item) for item in few}
            writer, subject = self.askers["writer"], self.subjects[few[0].slot.meme]
            others = self._list_others(item.slot for item in few)
            taken, _ = await write_options(writer, subject, asked, self.settings, faults, others)
            made = taken.value or {}
            return [
                assembly.make_item(replace(item.drafted, draft=draft), draft)
                for item in few
                if (draft := made.get(item.id)) is not None
            ]

        jobs = (renew(few) for few in by_meme.values())
        return [item async for items in in_order(jobs, self.window) for item in items]

    def _tell(self, item: AssembledQuestion) -> str:
        """Describe an earlier version of a question to the writer, and why it failed."""
        trial = self.trials.get(item.id)
        why = [defect.message for defect in self.checks.get(item.id, FinalCheck()).faults]
        if trial is not None and trial.solved_blindly:
            why.append("readers found the key without the meme")
        elif trial is not None and trial.contradicted:
            why.append("what is known of the meme leads to another option")
        wrong = "; ".join(option.text for option in item.wrong)
        said = f"{item.draft.question} Key: {item.draft.correct}. Wrong: {wrong}."
        return f"{said} Faults: {'; '.join(why)}."

    async def _finish(self, state: QuestionSet, examiner: Examiner) -> None:
        """Check every question after its last change, and reject what is still at fault."""
        changed = [item for item in state.items.values() if self.current[item.id] != item]
        if changed:
            facts = dict(self.trials)
            await self._try(changed)
            for item in changed:
                self.checks.pop(item.id, None)
                if item.id in facts:
                    blind = self.trials[item.id].blind
                    self.trials[item.id] = replace(facts[item.id], blind=blind)
        await self._check(examiner, state.items.values())
        for item in list(state.items.values()):
            faults = self.checks.get(item.id, FinalCheck()).faults
            if faults:
                chain.drop(state, item, "final check", f"final check: {faults[0].code}")
        chain.drop_solved(state, self.trials, self.settings)


def rank_key(item: AssembledQuestion) -> int:
    """Return how many wrong options are at least as long as the key: 0 if it is the longest."""
    size = len(item.draft.correct)
    return sum(len(option.text) >= size for option in item.wrong)


def choose_pair(
    item: AssembledQuestion,
    examiner: Examiner,
    ranks: Counter[int],
    without: Sequence[QuestionOption] = (),
) -> AssembledQuestion:
    """Return the question with the two wrong options that have the fewest faults together.

    ``ranks`` counts the ranks of the lengths of all other keys: the rarest rank is preferred.
    ``without`` are options that were shown before: at least one of the two is another.
    """
    pairs = [
        pair for pair in combinations(item.draft.wrong, FEWEST_WRONG) if set(pair) != set(without)
    ]
    if not pairs or item.correct is None:
        return item

    def rate(pair: tuple[QuestionOption, ...]) -> tuple[int, int, int, bool, int]:
        shown = replace(item, wrong=pair)
        repeated = sum(option in without for option in pair)
        sizes = [len(text) for text in (item.draft.correct, *(option.text for option in pair))]
        tied = len(set(sizes)) < len(sizes)
        spread = max(abs(sizes[0] - size) for size in sizes[1:])
        faults = len(examiner.find_faults(shown))
        return faults, repeated, ranks[rank_key(shown)], tied, spread

    return replace(item, wrong=min(pairs, key=rate))
