"""What a set of questions amounts to: how many, what was set aside, shortcuts to the key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memantics.build.questions.balance import FAIR_LENGTH, Lengths
from memantics.build.questions.blind import BlindTrial
from memantics.build.questions.chain import BuiltQuestions, rate_blind
from memantics.build.questions.records import DraftQuestion, QuestionSettings
from memantics.build.questions.solver import CHANCE, solve_blindly
from memantics.core.records import STATUSES

_FEWEST = 60  # of fewer answers a rate lies many points from chance by chance


@dataclass(frozen=True, slots=True)
class Leak:
    """One way to find keys without understanding: its rate, and what chance gives.

    ``value`` is None where it could not be measured; ``note`` says why.
    """

    name: str
    value: float | None
    chance: float
    n: int
    note: str = ""

    def judge(self, tolerance: float) -> str:
        """Whether the rate lies within the tolerance of chance, or on which side of it.

        >>> Leak("longest of the four", 0.28, 0.25, 400).judge(0.05)
        'level'
        >>> Leak("longest of the four", 0.375, 0.25, 8).judge(0.05)
        'too few to tell'
        """
        if self.value is None:
            return "not measured"
        if self.n < _FEWEST:
            return "too few to tell"
        if abs(self.value - self.chance) <= tolerance + 1e-9:
            return "level"
        return "leaks" if self.value > self.chance else "below chance"


@dataclass(frozen=True, slots=True)
class QuestionReport:
    """``report-questions.json``.

    ``fates`` are, by dimension, how many were planned, kept, and set aside for which reason;
    ``mended`` how questions that a critic guessed were saved.
    """

    kind: str
    model: str
    critic: str
    critic_model: str
    seed: int
    language: str
    slots: int
    questions: int
    set_aside: int
    memes: int
    statuses: dict[str, int]
    reasons: dict[str, int]
    dimensions: dict[str, int]
    fates: dict[str, dict[str, int]]
    needs: dict[str, int]
    mended: dict[str, int]
    none_share: float
    places: list[int]
    roles: dict[str, int]
    exchanged: int
    rewritten: int
    pairs: int
    unpaired: int
    tolerance: float
    leaks: list[Leak]


def report_questions(
    built: BuiltQuestions,
    settings: QuestionSettings,
    model: str,
    critic_model: str = "",
    second: Mapping[str, BlindTrial] | None = None,
) -> QuestionReport:
    """Add up a build; ``second`` are the trials of another reader, who decides nothing."""
    questions = built.questions
    n = len(questions)
    statuses: Counter[str] = Counter(draft.status for draft in built.drafted)
    failed = [aside for aside in built.aside if aside.stage == "writing"]
    statuses.update(aside.reason.partition(":")[0] for aside in failed)
    paired = {question.pair for question in questions if question.pair}
    toxic = [
        question for question in questions if question.dimension == "Toxicity" and not question.pair
    ]
    return QuestionReport(
        kind="questions",
        model=model,
        critic=settings.critic,
        critic_model=critic_model,
        seed=settings.seed,
        language=settings.language,
        slots=n + len(built.aside),
        questions=n,
        set_aside=len(built.aside),
        memes=len({question.meme for question in questions} | {one.meme for one in built.aside}),
        statuses={name: statuses[name] for name in STATUSES},
        reasons=dict(
            Counter(_short(aside.stage, aside.reason) for aside in built.aside).most_common()
        ),
        dimensions=dict(sorted(Counter(question.dimension for question in questions).items())),
        fates=_count_fates(built),
        needs=dict(Counter(need for question in questions for need in question.needs)),
        mended=dict(built.mended),
        none_share=sum(question.none_is_key for question in questions) / n if n else 0.0,
        places=[sum(question.answer == place for question in questions) for place in range(4)],
        roles=dict(
            Counter(c.role for question in questions for c in question.options).most_common()
        ),
        exchanged=built.exchanged,
        rewritten=sum(draft.attempts > 1 for draft in built.drafted),
        pairs=len(paired),
        unpaired=sum(question.id not in paired for question in toxic),
        tolerance=settings.tolerance,
        leaks=[*measure_leaks(built, settings), *_measure_second(built, second or {})],
    )


def _count_fates(built: BuiltQuestions) -> dict[str, dict[str, int]]:
    kept = Counter(question.dimension for question in built.questions)
    fates = {}
    for dimension in sorted({*kept, *(aside.dimension for aside in built.aside)}):
        why = Counter(
            _short(aside.stage, aside.reason)
            for aside in built.aside
            if aside.dimension == dimension
        )
        total = {"planned": kept[dimension] + why.total(), "kept": kept[dimension]}
        fates[dimension] = total | dict(why.most_common())
    return fates


def _short(stage: str, reason: str) -> str:
    """A reason without what differs from item to item."""
    if stage == "writing":
        status, _, rest = reason.partition(": ")
        return f"{status}: {rest.partition(':')[0]}" if status == "unparsed" else status
    return "repetition" if stage == "repetition" else reason.partition(" recurs")[0][:80]


def measure_leaks(built: BuiltQuestions, settings: QuestionSettings) -> Sequence[Leak]:
    """The rates at which length and blind solvers find the key."""
    items = built.items
    lengths = Lengths.of(items)
    solved = solve_blindly(items, settings.seed + 1000, repeats=3)
    leaks = [
        Leak(
            "longest of the three",
            lengths.rate if lengths.keyed else None,
            lengths.fair if lengths.keyed else FAIR_LENGTH,
            lengths.keyed,
        ),
        Leak(
            "shortest of the three",
            lengths.rate_shortest if lengths.keyed else None,
            FAIR_LENGTH,
            lengths.keyed,
        ),
        Leak("longest of the four", _pick_longest(built.questions), CHANCE, len(items)),
        Leak(
            "statistical solver",
            None if solved is None else solved.accuracy,
            CHANCE,
            len(items),
            "" if solved else "too few questions or memes to learn from",
        ),
    ]
    if built.trials:
        leaks.append(_measure_trials(built))
    return leaks


def _measure_trials(built: BuiltQuestions) -> Leak:
    found = [one for trial in built.trials.values() for one in trial.blind]
    silent = sum(one is None for one in found)
    rate = rate_blind({item.id: item for item in built.items}, built.trials)
    known = silent * 2 <= len(found)
    note = f"no readable answer to {silent} of {len(found)}" if silent else ""
    return Leak("model without the meme", rate if known else None, CHANCE, len(found), note)


def _measure_second(built: BuiltQuestions, second: Mapping[str, BlindTrial]) -> Iterator[Leak]:
    """How often a reader who wrote nothing finds the key, and how far both critics agree."""
    found = [one for trial in second.values() for one in trial.blind if one is not None]
    if found:
        both = [name for name in second if name in built.trials]
        same = sum(
            second[name].solved_blindly == built.trials[name].solved_blindly for name in both
        )
        note = f"agrees with the critic on {same} of {len(both)}" if both else ""
        yield Leak(
            "embedded reader without the meme", sum(found) / len(found), CHANCE, len(found), note
        )


def _pick_longest(questions: Sequence[DraftQuestion]) -> float | None:
    """How often the longest option is the key; ties are drawn by lot."""
    if not questions:
        return None
    total = 0.0
    for question in questions:
        sizes = [len(choice.text) for choice in question.options]
        ties = [place for place, size in enumerate(sizes) if size == max(sizes)]
        total += (question.answer in ties) / len(ties)
    return total / len(questions)
