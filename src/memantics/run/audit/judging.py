"""Is a judge of one mind? The same edit again, presented otherwise, and with images swapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memantics.core.finding import Finding, FindingVerdict, FindingWords
from memantics.core.records import Item, Outcome, Score
from memantics.run.audit.asking import keep_both
from memantics.run.audit.rows import mean, place, share
from memantics.run.audit.subject import Exam

_LEAST = 0.05
_WORDS = FindingWords(__file__)


@dataclass(frozen=True, slots=True)
class Likeness:
    """Two judgements of one edit: same labels, all ratings within a point, mean distance."""

    same: bool
    close: bool
    distance: float


def compare_judgements(one: Outcome, other: Outcome, rated: frozenset[str]) -> Likeness:
    """How alike two judgements are, over the rated fields (all fields where none are named)."""
    (labels, first), (others, second) = _read(one, rated), _read(other, rated)
    numbers = [abs(value - second[name]) for name, value in first.items() if name in second]
    same = bool(labels or numbers) and labels == others
    return Likeness(
        same=same,
        close=same and all(number <= 1 for number in numbers),
        distance=sum(numbers) / len(numbers) if numbers else 0.0,
    )


def _read(outcome: Outcome, rated: frozenset[str]) -> tuple[Mapping[str, str], Mapping[str, float]]:
    """The labels and the numbers of a judgement; truth values count as labels."""
    value = outcome.value if outcome.status == "answered" else None
    if not isinstance(value, dict):
        return {"invalid": outcome.status}, {}
    kept = {name: groups for name, groups in value.items() if not rated or name in rated}
    return (
        {name: str(groups) for name, groups in kept.items() if isinstance(groups, bool | str)},
        {
            name: float(groups)
            for name, groups in kept.items()
            if isinstance(groups, int | float) and not isinstance(groups, bool)
        },
    )


def swap_images(item: Item) -> Item:
    """The item with its two images exchanged."""
    return replace(item, images=item.images[::-1])


def judge_consistency(
    exam: Exam,
    model: str,
    way: str,
    pair: tuple[Sequence[Outcome], Sequence[Outcome]],
    rated: frozenset[str],
) -> Finding:
    """Hold two presentations of the same edits against each other."""
    first, second = keep_both(*pair)
    found = [compare_judgements(a, b, rated) for a, b in zip(first, second, strict=True)]
    groups = [outcome.item.group for outcome in first]
    figure = share([likeness.close for likeness in found], groups)
    value = figure.value or 0.0
    # Agreement is what a judge should show, but not where it could not see anything.
    unseen = way == "unseen"
    ranks: tuple[FindingVerdict, ...] = ("sound", "worth knowing", "broken")
    place = 0 if value >= 0.9 else 1 if value >= 0.7 else 2
    if unseen:
        place = 0 if value < 0.3 else 1 if value < 0.6 else 2
    verdict = ranks[place]
    distances = [likeness.distance for likeness in found]
    return replace(
        _WORDS.find(f"judge.{way}", figure, verdict, value=value),
        task=exam.name,
        model=model,
        rows=(
            share([likeness.same for likeness in found], groups, "fields", "labels the same"),
            mean(distances, groups, "fields", "mean distance of ratings", "distance"),
            *_mains(exam, first, second),
        ),
    )


def judge_swap(
    exam: Exam, model: str, pair: tuple[Sequence[Outcome], Sequence[Outcome]]
) -> Finding:
    """With source and edit exchanged a judge that looks must call the edit a failure."""
    first, second = keep_both(*pair)
    before, after = (exam.score(outcomes) for outcomes in (first, second))
    whole = before.value or 0.0
    # Nothing can be lost where nothing was given.
    kept = (after.value or 0.0) / whole if whole >= _LEAST else None
    verdict: FindingVerdict = "sound"
    if kept is None:
        verdict = "worth knowing"
    elif kept >= 0.2:
        verdict = "broken" if kept >= 0.5 else "worth knowing"
    found = _WORDS.find(
        "judge.swapped" if kept is not None else "judge.swapped.unscored",
        Score(exam.task.main, after.value, after.n, after.low, after.high),
        verdict,
        main=exam.task.main.replace("_", " "),
        kept=kept,
        before=before.value or 0,
    )
    rows = _mains(exam, first, second)
    return replace(found, key="judge.swapped", task=exam.name, model=model, rows=rows)


def _mains(exam: Exam, first: list[Outcome], second: list[Outcome]) -> tuple[Score, ...]:
    names = ("first presentation", "second presentation")
    return tuple(
        place(exam.score(outcomes), "figure", name)
        for name, outcomes in zip(names, (first, second), strict=True)
    )
