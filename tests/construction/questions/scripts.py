"""Scripted writers and solvers of questions, honest and otherwise, over the sample data."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from memantics.construction.questions.asking import QuestionSubject
from memantics.construction.questions.build import build_questions
from memantics.construction.questions.chain import BuiltQuestions
from memantics.construction.questions.records import QuestionSettings
from memantics.core.memes import Meme
from memantics.core.records import Request
from memantics.core.samples import image_path, read_samples
from memantics.models.client import ModelClient
from memantics.models.fake import FakeModel, ScriptedReply
from memantics.understanding.knowledge.records import Individual, Knowledge, Relation


def one_step(**changes: Any) -> QuestionSettings:
    """Settings of version 1 (one step, no check of the final form), to test what both share."""
    return QuestionSettings(**{"version": "1", "none_proportion": 0.25, **changes})


Writer = Callable[[Request], ScriptedReply]
Entry = dict[str, object]
THINGS = (
    "banana ladder teapot bicycle lighthouse pillow trumpet cactus submarine violin anchor kettle "
    "balloon carpet dolphin elevator feather giraffe hammock iceberg jigsaw lantern mirror needle"
)
MANNERS = (
    "shiny wooden purple frozen hollow crooked dusty elegant fuzzy gentle humble itchy jolly lazy "
    "mighty noisy patient quick rusty silent tiny urgent velvet wobbly"
)
WRONG = ("plausible", "spare", "implausible")
NOUNS, ADJECTIVES = re.findall(r"\w+", THINGS), re.findall(r"\w+", MANNERS)


@cache
def sample_subjects() -> Mapping[str, QuestionSubject]:
    found = {}
    for meme in read_samples():
        individuals = tuple(
            Individual(
                own.dimension,
                own.name,
                own.label,
                own.description,
                tuple(Relation(link.relation, link.target) for link in own.relations),
            )
            for own in meme.knowledge
        )
        known = Knowledge(meme.id, individuals, meme.file, "en")
        found[meme.id] = QuestionSubject(Meme(meme.id, image_path(meme.id), meme.text), known)
    return found


def text_of(request: Request) -> str:
    return "\n".join(part for part in request.messages[0].parts if isinstance(part, str))


def read_focus(request: Request) -> tuple[str, str]:
    """The key and label of the element that a question is asked about."""
    found = re.search(r"<element \w{8}>\n(\S+): (.*?) \(", text_of(request))
    assert found is not None
    return found.group(1), found.group(2)


def complaint_of(request: Request) -> str:
    said = str(request.messages[-1].parts[-1])
    found = re.search(r"Your last reply could not be used: (.*)\. Reply again", said)
    return found.group(1) if found else ""


def trim(text: str, words: int = 8) -> str:
    return " ".join(text.split()[:words])


@cache
def labels(dimension: str) -> list[str]:
    """What individuals of a dimension are called, in all memes."""
    subjects = sample_subjects().values()
    found = (own for subject in subjects for own in subject.knowledge.individuals)
    return sorted({trim(own.label) for own in found if own.dimension == dimension})


def write_honestly(request: Request) -> Entry:
    """A well-behaved draft: wrong options are right ones of other memes, about as long."""
    key, label = read_focus(request)
    chance = random.Random(text_of(request))
    correct = trim(label)
    known = re.sub(r"(?s)<other memes \w+>.*?</other memes \w+>", "", text_of(request))
    others = [text for text in labels(key.split("/")[0]) if text not in known]
    near = sorted(others, key=lambda text: abs(len(text) - len(correct)))[:12]
    wrong = chance.sample(near, 3)
    return {
        "question": f"What is number {chance.randrange(10**6)} of those that fit best here?",
        "correct": correct,
        **dict(zip(WRONG, wrong, strict=True)),
        "explanation": "It can be seen.",
        "cites": [key],
    }


def invent(request: Request, place: str, size: int) -> str:
    """A wrong option in words that no right one has."""
    chance = random.Random(place + text_of(request))
    words = [chance.choice(ADJECTIVES), chance.choice(NOUNS)]
    while len(" ".join(words)) + 6 < size and len(words) < 8:
        words.append(chance.choice(NOUNS))
    return " ".join(words)[: max(size, 5)].strip()


def say(entry: Entry) -> str:
    return json.dumps(entry)


def build(
    folder: Path,
    writer: Writer,
    settings: QuestionSettings | None = None,
    critic: Writer | None = None,
    subjects: Mapping[str, QuestionSubject] | None = None,
) -> BuiltQuestions:
    async def run() -> BuiltQuestions:
        with (
            ModelClient(FakeModel(writer, "writer"), folder / "writer") as client,
            ModelClient(FakeModel(critic or writer, "critic"), folder / "critic") as second,
        ):
            return await build_questions(
                client,
                subjects or sample_subjects(),
                settings or one_step(),
                second if critic else None,
            )

    return asyncio.run(run())
