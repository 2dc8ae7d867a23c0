"""Report, files and annotation queue of a set of questions."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.construction.questions.asking import LETTERS, QuestionSubject
from memantics.construction.questions.balance import FAIR_LENGTH, Lengths
from memantics.construction.questions.chain import BuiltQuestions, rate_blind
from memantics.construction.questions.records import (
    DraftQuestion,
    QuestionSettings,
    RejectedQuestion,
    find_toxic_element,
)
from memantics.construction.questions.solver import CHANCE, BlindTrial, fair_chance, solve_blindly
from memantics.core.data import inside
from memantics.core.errors import DataError, InputError, first_fault
from memantics.core.files import read_regular, write_lines
from memantics.core.images import read_bytes
from memantics.core.meaning import Dimension
from memantics.core.queue import QueueCard, QueueItem, Review, Shown, write_queue
from memantics.core.records import STATUSES
from memantics.understanding.extraction.report import IMAGES

QUESTIONS, REJECTED, QUEUE = "questions.jsonl", "rejected.jsonl", "queue"
WORKFLOW, RATING_WORKFLOW = "validate", "rate-questions"
REWRITES = ("a rewritten question", "a new question", "new options")
_QUESTION, _REJECTED = TypeAdapter(DraftQuestion), TypeAdapter(RejectedQuestion)


def write_questions(
    folder: Path, questions: Iterable[DraftQuestion], rejected: Iterable[RejectedQuestion]
) -> None:
    """Write ``questions.jsonl`` and ``rejected.jsonl``."""
    write_lines(folder / QUESTIONS, questions)
    write_lines(folder / REJECTED, rejected)


def read_questions(folder: Path) -> Iterator[DraftQuestion]:
    """Yield the questions of a build; raise an error that names an invalid line."""
    path = folder / QUESTIONS
    if not path.is_file():
        raise DataError(
            folder, f"does not contain {QUESTIONS}", hint="run 'memantics build questions' first"
        )
    for row, line in enumerate(read_regular(path).splitlines(), 1):
        try:
            yield _QUESTION.validate_json(line)
        except ValidationError as error:
            raise DataError(path, first_fault(error), row=row, hint="correct that line") from error


def read_planned(folder: Path) -> dict[str, str]:
    """Return the meme of each question that a build planned, kept or rejected, by its id."""
    planned = {question.id: question.meme for question in read_questions(folder)}
    path = folder / REJECTED
    for row, line in enumerate(read_regular(path).splitlines() if path.is_file() else (), 1):
        try:
            rejected = _REJECTED.validate_json(line)
        except ValidationError as error:
            raise DataError(path, first_fault(error), row=row, hint="correct that line") from error
        planned.setdefault(rejected.id, rejected.meme)
    return planned


@dataclass(frozen=True, slots=True)
class Roles:
    """Name the models that wrote questions, judged them, and answered them without the meme.

    ``critic`` and ``reader`` are empty if no model tested the questions.
    """

    writer: str = ""
    critic: str = ""
    reader: str = ""

    @property
    def shared(self) -> str:
        """A note if one model had several roles; empty if each role had another model."""
        if not self.critic:
            return ""
        if self.writer == self.critic == self.reader:
            return "one model wrote, judged and read the questions"
        if self.writer in (self.critic, self.reader):
            other = "judged" if self.writer == self.critic else "read"
            return f"the writer also {other} the questions"
        same = self.critic == self.reader
        return "one model judged and read the questions" if same else ""


def write_review(
    folder: Path,
    questions: Sequence[DraftQuestion],
    subjects: Mapping[str, QuestionSubject],
    language: str,
    name: str = QUEUE,
    roles: Roles | None = None,
) -> int:
    """Write the queue with its images; paired questions form one item. Return the item count."""
    queue = folder / name
    _copy_images(queue, questions, subjects)
    card = QueueCard(
        title="Questions about memes",
        workflow=WORKFLOW,
        language=language,
        warning="Memes may be offensive. Stop whenever you want to.",
        origin="memantics build questions",
    )
    return write_queue(queue, card, make_queue(questions, subjects, roles))


def write_rating_queue(
    queue: Path, questions: Sequence[DraftQuestion], subjects: Mapping[str, QuestionSubject]
) -> int:
    """Write the queue in which people rate questions; return the number of items."""
    _copy_images(queue, questions, subjects)
    language = questions[0].language if questions else "en"
    card = QueueCard(
        title="Quality of questions about memes",
        workflow=RATING_WORKFLOW,
        language=language,
        warning="Memes may be offensive. Stop whenever you want to.",
        origin="memantics build rate",
    )
    items = (
        QueueItem(
            id=question.id,
            group=question.meme,
            images=[f"{IMAGES}/{subjects[question.meme].meme.image.name}"],
            shown=list(_show_question("", question)),
            hidden={"dimension": question.dimension, "version": fingerprint(question)},
        )
        for question in questions
    )
    return write_queue(queue, card, items)


def _copy_images(
    queue: Path, questions: Sequence[DraftQuestion], subjects: Mapping[str, QuestionSubject]
) -> None:
    (queue / IMAGES).mkdir(parents=True, exist_ok=True)
    for meme in {question.meme for question in questions}:
        source = subjects[meme].meme.image
        place = inside(queue / IMAGES, source.name)
        data = read_bytes(source)
        if not (place.is_file() and read_regular(place) == data):
            place.write_bytes(data)


def make_queue(
    questions: Sequence[DraftQuestion],
    subjects: Mapping[str, QuestionSubject],
    roles: Roles | None = None,
) -> Iterator[QueueItem]:
    """Yield one item per question; the second question of a pair is shown with the first."""
    seconds = {question.pair: question for question in questions if question.pair}
    for question in questions:
        if question.pair:
            continue
        second = seconds.get(question.id)
        subject = subjects[question.meme]
        yield QueueItem(
            id=question.id,
            group=question.meme,
            images=[f"{IMAGES}/{subject.meme.image.name}"],
            shown=list(_show(question, second, subject)),
            hidden=_hide(question, second, subject) | _name_judges(roles),
        )


def _name_judges(roles: Roles | None) -> dict[str, JsonValue]:
    return {} if roles is None else {"critic": roles.critic, "reader": roles.reader}


def _show(
    question: DraftQuestion, second: DraftQuestion | None, subject: QuestionSubject
) -> Iterator[Shown]:
    """Yield what the annotation form shows; the workflow refers to these labels."""
    known = subject.knowledge.by_key
    if question.focus in known:
        focus = known[question.focus]
        yield Shown(label="Knowledge", value=_tell(focus.label, focus.description, focus.kind))
        element = find_toxic_element(subject.knowledge, focus)
        if element is not None:
            yield Shown(label="Element", value=_tell(element.label, element.description))
    yield from _show_question("", question)
    if second is not None:
        yield from _show_question("Second ", second)


def _show_question(which: str, question: DraftQuestion) -> Iterator[Shown]:
    options = [f"{letter}. {c.text}" for letter, c in zip(LETTERS, question.options, strict=True)]
    label = f"{which}question".capitalize()
    yield Shown(label=label, value=question.question)
    yield Shown(label=f"{which}options".capitalize(), value=options, kind="options")
    yield Shown(label=f"{which}answer".capitalize(), value=options[question.answer])
    if question.explanation:
        yield Shown(label=f"{which}explanation".capitalize(), value=question.explanation)


def _tell(label: str, description: str, kind: str = "") -> str:
    text = f"{label}: {description}" if description else label
    return f"{text} ({kind})" if kind else text


def _hide(
    question: DraftQuestion, second: DraftQuestion | None, subject: QuestionSubject
) -> dict[str, JsonValue]:
    """Return the metadata stored with an annotation: questions and the model that wrote them.

    ``focus`` and ``element`` are what annotators confirm. ``version`` distinguishes the annotated
    questions from later ones with the same ids.
    """
    made = question.provenance
    focus = subject.knowledge.by_key.get(question.focus)
    element = find_toxic_element(subject.knowledge, focus) if focus else None
    return {
        "questions": [question.id, *([second.id] if second else [])],
        "dimension": question.dimension,
        "cites": list(question.cites),
        "focus": question.focus,
        **({} if question.focus else {"from_image": True}),
        "element": element.key if element else "",
        "version": fingerprint(question, second),
        "model": made.model if made else "",
        "prompt": made.prompt if made else "",
    }


def fingerprint(*questions: DraftQuestion | None) -> str:
    """Return a hash of the wording of questions, which tells a later version from this one."""
    said = [(q.question, [c.text for c in q.options], q.answer) for q in questions if q]
    return hashlib.sha256(orjson.dumps(said)).hexdigest()[:16]


# Annotation has two rounds, as in the M-QUEST paper. The first round covers toxicity questions and
# the questions paired with them. The second round samples questions of each other dimension from
# memes whose toxicity question was accepted.


def sample_first(questions: Sequence[DraftQuestion], dimension: Dimension) -> list[DraftQuestion]:
    """Return the questions of one dimension and the questions paired with them."""
    firsts = {
        question.id
        for question in questions
        if question.dimension == dimension and not question.pair
    }
    drawn = [question for question in questions if question.id in firsts or question.pair in firsts]
    if not drawn:
        raise InputError(
            f"no question is about {dimension}",
            hint="'memantics build questions' writes such questions if the knowledge has an "
            "entry for it",
        )
    return drawn


def sample_extension(
    questions: Sequence[DraftQuestion], judged: Review, per_dimension: int, seed: int
) -> list[DraftQuestion]:
    """Sample at most ``per_dimension`` questions of each dimension from kept memes.

    Questions annotated before and the dimensions of earlier rounds are excluded.
    """
    kept = {reviewed.item.group for reviewed in judged.annotated if reviewed.kept}
    if not kept:
        raise InputError(
            f"{judged.folder}: annotators kept no question, so there is no meme to sample from",
            hint="see the reasons in annotations.jsonl",
        )
    seen = {
        name
        for reviewed in judged.items
        for name in _list_ids(reviewed.item.hidden.get("questions"))
    }
    before = {reviewed.item.hidden.get("dimension") for reviewed in judged.items}
    left: dict[str, list[DraftQuestion]] = {}
    for question in questions:
        if question.meme in kept and question.id not in seen and question.dimension not in before:
            left.setdefault(question.dimension, []).append(question)
    drawn: set[str] = set()
    for dimension, own_questions in sorted(left.items()):
        # One generator per dimension: adding a dimension does not change other samples.
        chance = random.Random(f"{seed}/{dimension}")
        count = min(per_dimension, len(own_questions))
        drawn |= {question.id for question in chance.sample(own_questions, count)}
    return [replace(question, pair="") for question in questions if question.id in drawn]


def _list_ids(value: object) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


_FEWEST = 60  # with fewer answers, a rate varies by several points by chance


@dataclass(frozen=True, slots=True)
class Leak:
    """Store how often one baseline finds the correct option, and the chance level.

    ``value`` is None if it could not be measured; ``note`` gives the reason.
    """

    name: str
    value: float | None
    chance: float
    n: int
    note: str = ""

    def judge(self, tolerance: float) -> str:
        """Compare the rate with the chance level.

        >>> Leak("longest of the four", 0.28, 0.25, 400).judge(0.05)
        'within tolerance'
        >>> Leak("longest of the four", 0.375, 0.25, 8).judge(0.05)
        'too few to tell'
        """
        if self.value is None:
            return "not measured"
        if self.n < _FEWEST:
            return "too few to tell"
        if abs(self.value - self.chance) <= tolerance + 1e-9:
            return "within tolerance"
        return "leaks" if self.value > self.chance else "below chance"


@dataclass(frozen=True, slots=True)
class QuestionReport:
    """Contents of ``report-questions.json``.

    ``fates`` gives, by dimension, the number of questions planned, kept, and rejected for each
    reason. ``repaired`` counts repaired questions by kind of repair, ``faults`` what the final
    check found, ``retried`` the questions whose reply was sent back, ``rewritten`` those whose
    new version passed, and ``calls`` the attempts at model calls by role and kind, as in the logs.
    ``unchecked`` gives the kept questions without a readable judgement of the critic, and why.
    ``shared`` says whether one model had several roles.
    """

    kind: str
    version: str
    model: str
    critic: str
    critic_model: str
    reader_model: str
    shared: str
    seed: int
    language: str
    slots: int
    questions: int
    rejected: int
    memes: int
    statuses: dict[str, int]
    reasons: dict[str, int]
    dimensions: dict[str, int]
    fates: dict[str, dict[str, int]]
    needs: dict[str, int]
    repaired: dict[str, int]
    none_proportion: float
    places: list[int]
    roles: dict[str, int]
    exchanged: int
    retried: int
    rewritten: int
    faults: dict[str, int]
    unchecked: dict[str, str]
    calls: dict[str, dict[str, int]]
    calls_per_meme: float
    pairs: int
    unpaired: int
    tolerance: float
    leaks: list[Leak]


def report_questions(
    built: BuiltQuestions,
    settings: QuestionSettings,
    roles: Roles,
    second: Mapping[str, BlindTrial] | None = None,
) -> QuestionReport:
    """Summarise a build of questions.

    ``second`` are answers of a second, independent model without the meme. They are only reported
    and reject no question.
    """
    questions = built.questions
    n = len(questions)
    statuses: Counter[str] = Counter(draft.status for draft in built.drafted)
    paired = {question.pair for question in questions if question.pair}
    toxic = [
        question for question in questions if question.dimension == "Toxicity" and not question.pair
    ]
    memes = {question.meme for question in questions} | {one.meme for one in built.rejected}
    return QuestionReport(
        kind="questions",
        version=settings.version,
        model=roles.writer,
        critic=settings.critic,
        critic_model=roles.critic,
        reader_model=roles.reader,
        shared=roles.shared,
        seed=settings.seed,
        language=settings.language,
        slots=n + len(built.rejected),
        questions=n,
        rejected=len(built.rejected),
        memes=len(memes),
        statuses={name: statuses[name] for name in STATUSES},
        reasons=dict(
            Counter(
                _short(rejected.stage, rejected.reason) for rejected in built.rejected
            ).most_common()
        ),
        dimensions=dict(sorted(Counter(question.dimension for question in questions).items())),
        fates=_count_fates(built),
        needs=dict(Counter(need for question in questions for need in question.needs)),
        repaired=dict(built.repaired),
        none_proportion=sum(question.none_is_key for question in questions) / n if n else 0.0,
        places=[sum(question.answer == place for question in questions) for place in range(4)],
        roles=dict(
            Counter(c.role for question in questions for c in question.options).most_common()
        ),
        exchanged=built.exchanged,
        retried=sum(draft.attempts > 1 for draft in built.drafted),
        rewritten=sum(built.repaired.get(kind, 0) for kind in REWRITES),
        faults=dict(built.faults),
        unchecked=dict(built.unchecked),
        calls={role: dict(counts) for role, counts in built.calls.items()},
        calls_per_meme=round(
            sum(sum(counts.values()) for counts in built.calls.values()) / max(1, len(memes)), 2
        ),
        pairs=len(paired),
        unpaired=sum(question.id not in paired for question in toxic),
        tolerance=settings.tolerance,
        leaks=[*measure_leaks(built, settings), *_measure_second(built, second or {})],
    )


def _count_fates(built: BuiltQuestions) -> dict[str, dict[str, int]]:
    kept = Counter(question.dimension for question in built.questions)
    fates = {}
    for dimension in sorted({*kept, *(rejected.dimension for rejected in built.rejected)}):
        why = Counter(
            _short(rejected.stage, rejected.reason)
            for rejected in built.rejected
            if rejected.dimension == dimension
        )
        total = {"planned": kept[dimension] + why.total(), "kept": kept[dimension]}
        fates[dimension] = total | dict(why.most_common())
    return fates


def _short(stage: str, reason: str) -> str:
    """Return the reason for a rejection without the parts that differ between questions."""
    if stage == "writing":
        status, _, rest = reason.partition(": ")
        return f"{status}: {rest.partition(':')[0]}" if status == "unparsed" else status
    return "repetition" if stage == "repetition" else reason.partition(" recurs")[0][:80]


def measure_leaks(built: BuiltQuestions, settings: QuestionSettings) -> Sequence[Leak]:
    """Return the rates at which option length and blind solvers find the correct option."""
    items = built.items
    chance = fair_chance(items)
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
            chance,
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
    chance = fair_chance(built.items)
    note = f"no readable answer to {silent} of {len(found)}" if silent else ""
    return Leak("model without the meme", rate if known else None, chance, len(found), note)


def _measure_second(built: BuiltQuestions, second: Mapping[str, BlindTrial]) -> Iterator[Leak]:
    """Yield how often a second model answers without the meme, and if it agrees with the critic."""
    found = [one for trial in second.values() for one in trial.blind if one is not None]
    if found:
        chance = fair_chance(built.items)
        both = [name for name in second if name in built.trials]
        same = sum(
            second[name].solved_blindly == built.trials[name].solved_blindly for name in both
        )
        note = f"agrees with the critic on {same} of {len(both)}" if both else ""
        yield Leak(
            "embedded reader without the meme", sum(found) / len(found), chance, len(found), note
        )


def _pick_longest(questions: Sequence[DraftQuestion]) -> float | None:
    """Return how often the longest option is correct; ties count in equal parts."""
    if not questions:
        return None
    total = 0.0
    for question in questions:
        sizes = [len(choice.text) for choice in question.options]
        ties = [place for place, size in enumerate(sizes) if size == max(sizes)]
        total += (question.answer in ties) / len(ties)
    return total / len(questions)
