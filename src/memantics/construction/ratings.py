"""Ratings of a sample of questions by people: queue, proportion of good ones, comparisons."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from memantics.construction.questions.chain import pair_subjects
from memantics.construction.questions.records import DraftQuestion
from memantics.construction.questions.report import (
    QUESTIONS,
    RATING_WORKFLOW,
    fingerprint,
    read_planned,
    read_questions,
    write_rating_queue,
)
from memantics.construction.sample import KnownBuild
from memantics.core.errors import InputError
from memantics.core.memes import read_memes
from memantics.core.parameters import Argument, Flag
from memantics.core.queue import ANNOTATIONS, CARD, Reviewed, read_queue, read_review
from memantics.core.result import Result, Table
from memantics.metrics.agreement import Label, krippendorff_alpha
from memantics.metrics.interval import clustered_wilson
from memantics.metrics.paired import PairedTest, compare_hits
from memantics.understanding.knowledge.records import read_knowledge

RATINGS = "ratings"
RUBRIC = ("key_right", "one_right", "needs_image", "needs_understanding", "well_worded")


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """Store the ratings of one question: whether each rater confirmed all criteria."""

    id: str
    meme: str
    dimension: str
    votes: tuple[bool, ...]
    raters: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether every rater called the question good."""
        return all(self.votes)


@dataclass(frozen=True, slots=True)
class RatingQueue(Result):
    """Store a queue of questions to rate, and how many questions the build has."""

    queue: Path
    items: int
    questions: int


@dataclass(frozen=True, slots=True)
class Goodness:
    """Store the proportion of good questions with its interval, which counts memes as clusters."""

    name: str
    good: int
    n: int
    low: float
    high: float
    agreement: float | None
    alpha: float | None

    @property
    def share(self) -> float:
        """The proportion of good questions."""
        return self.good / self.n


@dataclass(frozen=True, slots=True)
class Ratings(Result):
    """Store the ratings of a build: all questions first, then each dimension.

    ``unrated`` counts the questions of the sample that nobody rated, ``alone`` those that one
    person rated, and ``changed`` the ratings left out because the question changed since.
    """

    folder: Path
    raters: int
    rows: tuple[Goodness, ...]
    faults: Mapping[str, int]
    unrated: int = 0
    alone: int = 0
    changed: int = 0

    def warnings(self) -> Iterator[str]:
        """Yield what the proportion of good questions does not show."""
        n = self.rows[0].n
        if self.unrated:
            yield f"{self.unrated} of {n + self.unrated} questions of the sample are not rated"
        if self.alone:
            yield f"one person alone rated {self.alone} of {n} questions"
        if self.changed:
            yield f"{self.changed} rated questions changed since and do not count"

    def table(self) -> Table:
        """Return a table by dimension."""
        rows = tuple(
            (
                row.name,
                f"{row.good} of {row.n}",
                f"{row.share:.0%}",
                f"{row.low:.0%} to {row.high:.0%}",
                "–" if row.agreement is None else f"{row.agreement:.0%}",
                "–" if row.alpha is None else f"{row.alpha:.2f}",
            )
            for row in self.rows
        )
        columns = ("questions", ">good", ">share", ">95 % interval", ">agreement", ">alpha")
        return Table(columns, rows, f"Questions that all of {self.raters} raters call good")


@dataclass(frozen=True, slots=True)
class Compared(Result):
    """Store a paired comparison of two builds on the same memes.

    Each planned question counts in both builds; one that a build did not keep is not good there.
    ``unrated`` counts the planned questions left out because a build that kept them did not rate
    them.
    """

    first: str
    second: str
    memes: int
    questions: int
    good_first: int
    good_second: int
    kept_first: int
    kept_second: int
    test: PairedTest | None
    unrated: int = 0

    def table(self) -> Table:
        """Return both builds side by side."""
        rows = (
            (self.first, str(self.kept_first), str(self.good_first)),
            (self.second, str(self.kept_second), str(self.good_second)),
        )
        title = f"{self.questions} planned questions about {self.memes} memes"
        return Table(("build", ">kept", ">good"), rows, title)

    def lines(self) -> Iterator[str]:
        """Yield the difference with its interval, and what it lacks."""
        if self.unrated:
            yield (
                f"left out: {self.unrated} kept but not rated; without them, questions that a "
                "build rejected weigh more: rate both builds in whole (build rate --size)"
            )
        if self.test is not None:
            low, high = self.test.low, self.test.high
            yield (
                f"difference {self.test.difference:+.1%} (95 % interval {low:+.1%} to "
                f"{high:+.1%}, p = {self.test.p:.3f}, {self.test.name})"
            )


def rate_questions(
    folder: KnownBuild,
    *,
    size: Annotated[int, Flag("Number of questions to rate.", min=1)] = 60,
    seed: Annotated[int, Flag("Random seed of the sample.", min=0)] = 0,
) -> RatingQueue:
    """Write a queue in which people rate a random sample of the questions of a build.

    The queue lies in ``ratings`` in the build folder. Save the exported annotations as
    ``annotations.jsonl`` in it; ``publish`` then puts the proportion of good questions with its
    interval on the card.

    Args:
        folder: A folder with ``questions.jsonl``.
        size: Number of questions; a smaller build is rated in whole.
        seed: Seed of the sample, which is even over dimensions.

    Returns:
        The queue, its number of items, and the number of questions of the build.

    Raises:
        InputError: The build has no questions, or its sample was rated before.

    Example:
        >>> built = mm.build.knowledge("memes", model="fake/builder")  # for real texts, a VLM
        >>> asked = mm.build.questions("builds/memes", model="fake/builder")
        >>> mm.rate_questions("builds/memes", size=5).items
        5
    """
    place = Path(folder)
    questions = list(read_questions(place))
    if not questions:
        raise InputError(f"{place}: the build has no questions", hint="write more questions")
    if (place / RATINGS / ANNOTATIONS).is_file():
        raise InputError(
            f"{place / RATINGS} is already annotated", hint="move that folder to rate again"
        )
    subjects = pair_subjects(read_memes(place), list(read_knowledge(place)))
    drawn = draw_sample(questions, size, seed)
    items = write_rating_queue(place / RATINGS, drawn, subjects)
    return RatingQueue(place / RATINGS, items, len(questions))


def draw_sample(questions: Sequence[DraftQuestion], size: int, seed: int) -> list[DraftQuestion]:
    """Return a random sample with about equal proportions of every dimension, in the old order."""
    chance = random.Random(f"{seed}/ratings")
    by_dimension: dict[str, list[DraftQuestion]] = {}
    for question in questions:
        by_dimension.setdefault(question.dimension, []).append(question)
    ranked = sorted(
        ((place + 0.5) / len(few), name, question.id)
        for name, few in sorted(by_dimension.items())
        for place, question in enumerate(chance.sample(few, len(few)))
    )
    drawn = {name for _, _, name in ranked[:size]}
    return [question for question in questions if question.id in drawn]


@dataclass(frozen=True, slots=True)
class RatedSample:
    """Store the rated questions of a sample, and how many are not rated or changed since."""

    rated: tuple[RatedQuestion, ...] = ()
    unrated: int = 0
    changed: int = 0


def read_ratings(folder: Path) -> RatedSample:
    """Return the rated questions of a build or of its rating queue; empty if nobody rated.

    A rating counts only if the build still has the question as it was rated.
    """
    queue = folder if (folder / CARD).is_file() else folder / RATINGS
    if not (queue / ANNOTATIONS).is_file():
        return RatedSample()
    found = read_review(queue, None).annotated
    card, items = read_queue(queue)
    if card.workflow != RATING_WORKFLOW:
        raise InputError(
            f"{queue} is a queue of the workflow {card.workflow}, not of ratings",
            hint="give the build folder, or its folder ratings",
        )
    build = queue.parent
    if (build / QUESTIONS).is_file():
        now = {question.id: fingerprint(question) for question in read_questions(build)}
        same = [one for one in found if one.item.hidden.get("version") == now.get(one.item.id)]
    else:
        same = list(found)
    rated = tuple(map(_read, same))
    return RatedSample(rated, len(items) - len(found), len(found) - len(same))


def _read(reviewed: Reviewed) -> RatedQuestion:
    votes = reviewed.aggregated.annotations if reviewed.aggregated else []
    given: list[tuple[str, Mapping[str, JsonValue]]] = [(v.annotator, v.values) for v in votes]
    given = given or [("", reviewed.values)]
    faults = {name for _, values in given for name in RUBRIC if values.get(name) is not True}
    return RatedQuestion(
        reviewed.item.id,
        reviewed.item.group,
        str(reviewed.item.hidden.get("dimension", "")),
        tuple(all(values.get(name) is True for name in RUBRIC) for _, values in given),
        tuple(name for name, _ in given),
        tuple(name for name in RUBRIC if name in faults),
    )


def summarise_ratings(
    folder: Annotated[
        Path | str, Argument("Build folder whose sample of questions was rated.", kind=Path)
    ],
) -> Ratings:
    """Summarise the ratings of a sample: proportion of good questions, interval and agreement.

    Args:
        folder: A build folder with ``ratings/annotations.jsonl``, or that queue.

    Returns:
        One row for all questions and one for each dimension; the points of the rubric that failed.

    Raises:
        InputError: Nobody rated the sample.

    Example:
        >>> # after people have rated the queue
        >>> mm.summarise_ratings("builds/mine").rows[0].good  # doctest: +SKIP
        48
    """
    sample = read_ratings(Path(folder))
    rated = sample.rated
    if not rated and sample.changed:
        raise InputError(
            f"{folder}: all {sample.changed} rated questions changed since",
            hint=f"move the folder {RATINGS} away, and create a queue with 'memantics build rate'",
        )
    if not rated:
        raise InputError(
            f"{folder}: no ratings", hint="create a queue with 'memantics build rate', and rate it"
        )
    names = sorted({one.dimension for one in rated})
    rows = [count_good("all", rated)]
    rows += [count_good(name, [one for one in rated if one.dimension == name]) for name in names]
    faults = {name: sum(name in one.faults for one in rated) for name in RUBRIC}
    raters = len({name for one in rated for name in one.raters})
    return Ratings(
        Path(folder),
        raters,
        tuple(rows),
        {name: count for name, count in faults.items() if count},
        sample.unrated,
        sum(len(one.votes) < 2 for one in rated),
        sample.changed,
    )


def count_good(name: str, rated: Sequence[RatedQuestion]) -> Goodness:
    """Count the good questions of a part; the agreement is that of pairs of raters."""
    hits = [one.good for one in rated]
    low, high = clustered_wilson(hits, [one.meme for one in rated]) or (0.0, 1.0)
    pairs = [a == b for one in rated for i, a in enumerate(one.votes) for b in one.votes[:i]]
    people = sorted({person for one in rated for person in one.raters})
    table: list[list[Label | None]] = [
        [dict(zip(one.raters, one.votes, strict=True)).get(person) for person in people]
        for one in rated
    ]
    alpha = krippendorff_alpha(table) if len(people) > 1 else None
    return Goodness(
        name, sum(hits), len(hits), low, high, sum(pairs) / len(pairs) if pairs else None, alpha
    )


def compare_questions(
    first: Annotated[Path | str, Argument("Rated build folder of one version.", kind=Path)],
    second: Annotated[Path | str, Argument("Rated build folder of another version.", kind=Path)],
) -> Compared:
    """Compare the proportions of good questions in two builds of the same memes.

    The builds may differ in prompt version, models or settings. A planned question that one build
    did not keep counts as not good there, so that a version gains nothing by rejecting more.
    Questions that were kept and not rated in one of the builds are left out of both; rate both
    builds in whole to avoid that.

    Args:
        first: A build whose sample was rated.
        second: Another such build.

    Returns:
        Counts of kept and good questions, and the paired difference second minus first with its
        interval, clustered by meme.

    Raises:
        InputError: A build has no ratings, or the builds share no meme.

    Example:
        >>> # after people have rated both
        >>> mm.compare_questions("v1", "v2").test.difference  # doctest: +SKIP
        0.18
    """
    places = (Path(first), Path(second))
    kept = [{question.id for question in read_questions(place)} for place in places]
    planned = [read_planned(place) for place in places]
    rated = [{one.id: one for one in read_ratings(place).rated} for place in places]
    for place, ratings in zip(places, rated, strict=True):
        if not ratings:
            raise InputError(
                f"{place}: no ratings",
                hint="create a queue with 'memantics build rate', and rate it",
            )
    memes = planned[0] | planned[1]
    # A meme all of whose questions one build rejected counts, too.
    shared = set(planned[0].values()) & set(planned[1].values())
    names = sorted(name for name, meme in memes.items() if meme in shared)
    ids = [
        name
        for name in names
        if all(name in have or name not in had for have, had in zip(rated, kept, strict=True))
    ]
    if not ids:
        raise InputError(
            f"{first} and {second} have no rated question about the same memes",
            hint="build and rate both versions with the same memes",
        )
    hits = [[name in have and have[name].good for name in ids] for have in rated]
    clusters = [memes[name] for name in ids]
    return Compared(
        str(first),
        str(second),
        len(set(clusters)),
        len(ids),
        sum(hits[0]),
        sum(hits[1]),
        sum(name in kept[0] for name in ids),
        sum(name in kept[1] for name in ids),
        compare_hits(hits[0], hits[1], clusters),
        len(names) - len(ids),
    )
