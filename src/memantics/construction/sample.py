"""``build sample``: which questions of a build people judge, and in which round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Annotated

from memantics.construction.questions.chain import pair_subjects
from memantics.construction.questions.report import (
    QUEUE,
    read_questions,
    sample_extension,
    sample_first,
    write_review,
)
from memantics.core.errors import InputError, UnknownName
from memantics.core.meaning import DIMENSIONS
from memantics.core.memes import read_memes
from memantics.core.parameters import Argument, Flag
from memantics.core.queue import ANNOTATIONS, read_reviews
from memantics.core.result import Result, Table
from memantics.understanding.knowledge.ontology.vocabulary import find_dimension
from memantics.understanding.knowledge.records import read_knowledge

_MOST_ROUNDS = 100


KnownBuild = Annotated[
    Path | str, Argument("A folder that 'memantics build knowledge' made.", kind=Path)
]


@dataclass(frozen=True, slots=True)
class QuestionSample(Result):
    """A queue that was drawn: its folder, its items, and its questions by dimension."""

    queue: Path
    items: int
    memes: int
    questions: Mapping[str, int]

    def table(self) -> Table:
        """Questions by dimension, as people read them."""
        rows = tuple((name, f"{n:,}") for name, n in self.questions.items())
        return Table(("dimension", ">questions"), rows)


def sample_questions(
    folder: KnownBuild,
    *,
    first: Annotated[
        str | None,
        Flag("Make the first round: this dimension with the questions linked to it."),
    ] = None,
    per_dimension: Annotated[
        int, Flag("Questions for each other dimension in a further round.", min=1)
    ] = 50,
    seed: Annotated[int, Flag("Seed of every draw.", min=0)] = 0,
) -> QuestionSample:
    """Draw the questions of a build that people judge; asks no model.

    With ``first``, the questions about that dimension and those linked with them become the first
    round, ``queue``. Without, a further round (``queue-2``, …) holds at most ``per_dimension``
    questions of each other dimension, drawn by ``seed`` among the memes that people kept so far.
    """
    place = Path(folder)
    questions = list(read_questions(place))
    if first is not None:
        dimension = find_dimension(first)
        if dimension is None:
            raise UnknownName("dimension", first, DIMENSIONS)
        if (place / QUEUE / ANNOTATIONS).is_file():
            raise InputError(
                f"{place / QUEUE} has been judged already",
                hint="leave --first out to draw the next round",
            )
        name, drawn = QUEUE, sample_first(questions, dimension)
    else:
        rounds = [place / QUEUE, *(place / f"{QUEUE}-{n}" for n in range(2, _MOST_ROUNDS))]
        done = list(takewhile(lambda path: (path / ANNOTATIONS).is_file(), rounds))
        if not done:
            raise InputError(
                f"{place / QUEUE} has no annotations yet",
                hint="let people judge the first round: build sample BUILD --first Toxicity",
            )
        # A round that nobody has judged yet is drawn anew.
        name = rounds[len(done)].name
        drawn = sample_extension(questions, read_reviews(done), per_dimension, seed)
        if not drawn:
            raise InputError(
                "no question is left to draw", hint="write more: build questions --per-dimension 2"
            )
    subjects = pair_subjects(read_memes(place), list(read_knowledge(place)))
    items = write_review(place, drawn, subjects, drawn[0].language, name)
    counts = Counter(question.dimension for question in drawn)
    ordered = {name: counts[name] for name in (*DIMENSIONS, *sorted(counts)) if counts[name]}
    return QuestionSample(place / name, items, len({question.meme for question in drawn}), ordered)
