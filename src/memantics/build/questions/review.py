"""Files of a set of questions: lines to keep, lines set aside, and the queue that people judge."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.build.extract.report import IMAGES
from memantics.build.questions.asking import LETTERS, QuestionSubject
from memantics.build.questions.records import DraftQuestion, SetAside, find_toxic_element
from memantics.core.data import inside
from memantics.core.errors import DataError, InputError, first_fault
from memantics.core.images import read_bytes
from memantics.core.journal import write_lines
from memantics.core.queue import QueueCard, QueueItem, Review, Shown, write_queue
from memantics.knowledge.ontology.vocabulary import Dimension

QUESTIONS, SET_ASIDE, QUEUE = "questions.jsonl", "set_aside.jsonl", "queue"
WORKFLOW = "validate"
_QUESTION = TypeAdapter(DraftQuestion)


def write_questions(
    folder: Path, questions: Iterable[DraftQuestion], aside: Iterable[SetAside]
) -> None:
    """Write ``questions.jsonl`` and ``set_aside.jsonl``."""
    write_lines(folder / QUESTIONS, questions)
    write_lines(folder / SET_ASIDE, aside)


def read_questions(folder: Path) -> Iterator[DraftQuestion]:
    """The questions of a build; a bad line is an error that names it."""
    path = folder / QUESTIONS
    if not path.is_file():
        raise DataError(
            folder, f"holds no {QUESTIONS}", hint="run 'memantics build questions' first"
        )
    for row, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            yield _QUESTION.validate_json(line)
        except ValidationError as error:
            raise DataError(path, first_fault(error), row=row, hint="mend that line") from error


def write_review(
    folder: Path,
    questions: Sequence[DraftQuestion],
    subjects: Mapping[str, QuestionSubject],
    language: str,
    name: str = QUEUE,
) -> int:
    """Write the queue, images and all; a pair is judged together. Return how many items."""
    queue = folder / name
    (queue / IMAGES).mkdir(parents=True, exist_ok=True)
    for meme in {question.meme for question in questions}:
        source = subjects[meme].meme.image
        place = inside(queue / IMAGES, source.name)
        data = read_bytes(source)
        if not (place.is_file() and place.read_bytes() == data):
            place.write_bytes(data)
    card = QueueCard(
        title="Questions about memes",
        workflow=WORKFLOW,
        language=language,
        warning="Memes may be offensive. Stop whenever you want to.",
        origin="memantics build questions",
    )
    return write_queue(queue, card, make_queue(questions, subjects))


def make_queue(
    questions: Sequence[DraftQuestion], subjects: Mapping[str, QuestionSubject]
) -> Iterator[QueueItem]:
    """One item for each question; the second of a pair comes with the first."""
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
            hidden=_hide(question, second, subject),
        )


def _show(
    question: DraftQuestion, second: DraftQuestion | None, subject: QuestionSubject
) -> Iterator[Shown]:
    """The labels are those that the workflow's judgements wait for."""
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
    """What comes back with the verdict: which questions it is about, and who wrote them.

    ``focus`` and ``element`` are what people are asked to confirm, ``version`` tells the judged
    questions from others that a later build gives the same ids.
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
        "version": _fingerprint(question, second),
        "model": made.model if made else "",
        "prompt": made.prompt if made else "",
    }


def _fingerprint(*questions: DraftQuestion | None) -> str:
    said = [(q.question, [c.text for c in q.options], q.answer) for q in questions if q]
    return hashlib.sha256(orjson.dumps(said)).hexdigest()[:16]


# Which questions people judge, in two rounds: toxicity first, then a draw among accepted memes.
#
# As in the M-QUEST paper: the first round is about toxicity with the questions linked to it; the
# second draws a number of questions for each other dimension among the memes whose toxicity
# question people accepted.


def draw_first(questions: Sequence[DraftQuestion], dimension: Dimension) -> list[DraftQuestion]:
    """The questions of one dimension, and those that are paired with one of them."""
    firsts = {
        question.id
        for question in questions
        if question.dimension == dimension and not question.pair
    }
    drawn = [question for question in questions if question.id in firsts or question.pair in firsts]
    if not drawn:
        raise InputError(
            f"no question is about {dimension}",
            hint="memantics build questions writes one where knowledge has such an individual",
        )
    return drawn


def draw_extension(
    questions: Sequence[DraftQuestion], judged: Review, per_dimension: int, seed: int
) -> list[DraftQuestion]:
    """At most so many questions for each dimension among the memes that were kept.

    What people judged before, and the dimensions of their first round, are left out.
    """
    kept = {reviewed.item.group for reviewed in judged.judged if reviewed.kept}
    if not kept:
        raise InputError(
            f"{judged.folder}: people kept no question, so there is no meme to draw from",
            hint="look at their reasons in verdicts.jsonl",
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
        # One generator a dimension: another dimension more or fewer changes no other draw.
        chance = random.Random(f"{seed}/{dimension}")
        count = min(per_dimension, len(own_questions))
        drawn |= {question.id for question in chance.sample(own_questions, count)}
    return [replace(question, pair="") for question in questions if question.id in drawn]


def _list_ids(value: object) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []
