"""``build sample``: choose the questions of a build that people annotate, round by round."""

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
    Path | str, Argument("Build folder written by 'memantics build knowledge'.", kind=Path)
]


@dataclass(frozen=True, slots=True)
class QuestionSample(Result):
    """Store a sampled queue: its folder, its items, and its questions by dimension."""

    queue: Path
    items: int
    memes: int
    questions: Mapping[str, int]

    def table(self) -> Table:
        """Return a table of question counts by dimension."""
        rows = tuple((name, f"{n:,}") for name, n in self.questions.items())
        return Table(("dimension", ">questions"), rows)


def sample_questions(
    folder: KnownBuild,
    *,
    first: Annotated[
        str | None,
        Flag(
            "Create the first round: questions about this dimension and the questions "
            "paired with them."
        ),
    ] = None,
    per_dimension: Annotated[
        int, Flag("Questions per remaining dimension in a further round.", min=1)
    ] = 50,
    seed: Annotated[int, Flag("Random seed.", min=0)] = 0,
) -> QuestionSample:
    """Sample the questions of a build for annotation, without calling a model.

    With ``first``, the first round (``queue``) contains the questions about that dimension and the
    questions paired with them. Without it, a further round (``queue-2``, …) contains at most
    ``per_dimension`` questions of each other dimension. They are sampled with ``seed`` from the
    memes that annotators kept in earlier rounds.
    """
    place = Path(folder)
    questions = list(read_questions(place))
    if first is not None:
        dimension = find_dimension(first)
        if dimension is None:
            raise UnknownName("dimension", first, DIMENSIONS)
        if (place / QUEUE / ANNOTATIONS).is_file():
            raise InputError(
                f"{place / QUEUE} is already annotated",
                hint="omit --first to sample the next round",
            )
        name, drawn = QUEUE, sample_first(questions, dimension)
    else:
        rounds = [place / QUEUE, *(place / f"{QUEUE}-{n}" for n in range(2, _MOST_ROUNDS))]
        done = list(takewhile(lambda path: (path / ANNOTATIONS).is_file(), rounds))
        if not done:
            raise InputError(
                f"{place / QUEUE} has no annotations yet",
                hint="annotate the first round; 'build sample BUILD --first Toxicity' creates it",
            )
        # A round without annotations is sampled again.
        name = rounds[len(done)].name
        drawn = sample_extension(questions, read_reviews(done), per_dimension, seed)
        if not drawn:
            raise InputError(
                "no question is left to sample",
                hint="write more questions with 'memantics build questions --per-dimension 2'",
            )
    subjects = pair_subjects(read_memes(place), list(read_knowledge(place)))
    items = write_review(place, drawn, subjects, drawn[0].language, name)
    counts = Counter(question.dimension for question in drawn)
    ordered = {name: counts[name] for name in (*DIMENSIONS, *sorted(counts)) if counts[name]}
    return QuestionSample(place / name, items, len({question.meme for question in drawn}), ordered)
