"""Audit checks that change the input: no image or text, other option orders, repeated judging.

From runs without the image and runs without the text, the audit computes the proportion of items
that need both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memantics.benchmarks.factories import hits, proportion_score
from memantics.core.finding import Finding, FindingVerdict, FindingWords, rank
from memantics.core.records import Item, Outcome, Score
from memantics.evaluation.audits.options import ChanceLevel, list_options
from memantics.evaluation.audits.subject import Exam, keep_both, mean, place
from memantics.metrics.rounding import settle

WORDS_ALONE, PICTURE_ALONE = "image=blank", "caption=removed"
NAMES: Mapping[str, str] = {
    WORDS_ALONE: "text only",
    PICTURE_ALONE: "image only",
    "image=swapped": "another meme's image",
    "meme=removed": "neither image nor text",
    "caption=reworded": "caption reworded",
    "caption=shuffled": "caption shuffled",
    "options=permuted": "options permuted",
}
HEART: Mapping[str, str] = {
    "contamination=caption": "second halves of captions",
    "contamination=template": "template names",
    "contamination=id": "ids of the data set",
    "contamination=canary": "the canary string",
}
_LITTLE = 0.1
_SOME, _MUCH = (
    0.02,
    0.1,
)  # proportions of reproduced memes above which the verdict is "worth knowing" and "broken"
_WORDS = FindingWords(__file__)


def judge_needs(
    task: str,
    model: str,
    plain: Sequence[Outcome],
    perturbed: Mapping[str, Sequence[Outcome]],
) -> Finding | None:
    """Measure the proportion of items that are solved only if both image and text are given.

    The result is None if one of the two perturbed runs is missing. All runs are compared on the
    items that they share.
    """
    if not {WORDS_ALONE, PICTURE_ALONE} <= perturbed.keys():
        return None
    runs = {"": plain, **perturbed}
    tables = {
        name: dict(zip((o.item.id for o in run), hits(run), strict=True))
        for name, run in runs.items()
    }
    groups = {outcome.item.id: outcome.item.group for outcome in plain}
    ids = [name for name in groups if all(name in table for table in tables.values())]
    if not ids:
        return None
    memes = [groups[name] for name in ids]
    both = [tables[""][n] and not (tables[WORDS_ALONE][n] or tables[PICTURE_ALONE][n]) for n in ids]
    score = proportion_score("proportion", both, memes)
    rows = [
        proportion_score("accuracy", [tables[""][n] for n in ids], memes, "shown", "image and text")
    ]
    for perturbation, label in NAMES.items():
        if perturbation in tables:
            held = [tables[perturbation][n] for n in ids]
            rows.append(proportion_score("accuracy", held, memes, "shown", label))
            lost = [float(tables[""][n]) - float(tables[perturbation][n]) for n in ids]
            rows.append(mean(lost, memes, "shown", f"{label}, score drop", "difference"))
    value, top = score.value or 0.0, rows[0].value or 0.0
    little = settle(value) < settle(_LITTLE * top)
    verdict, values = rank(bool(little) or top == 0), {"top": top, "value": value}
    return _WORDS.find(
        "needs.both", score, verdict, values, task=task, model=model, rows=tuple(rows)
    )


def judge_contamination(
    task: str, model: str, recalled: Mapping[str, Score], removed: Sequence[Outcome] = ()
) -> Finding | None:
    """Measure how much of the data a model reproduces from memory; None if it was not tested.

    ``removed`` adds the accuracy with question and options alone, which contamination also
    increases.
    """
    known = {
        perturbation: score for perturbation, score in recalled.items() if score.value is not None
    }
    if not known:
        return None
    most = max(known.values(), key=lambda score: score.value or 0.0)
    rows = [
        place(score, "contamination", HEART.get(perturbation, perturbation))
        for perturbation, score in known.items()
    ]
    if removed:
        memes = [outcome.item.group for outcome in removed]
        rows.append(
            proportion_score(
                "accuracy", hits(removed), memes, "contamination", "question and options alone"
            )
        )
    canary = known.get("contamination=canary")
    told = canary is not None and canary.value == 1
    low = settle(most.value or 0.0 if most.low is None else most.low)
    score = Score("proportion", most.value, most.n, most.low, most.high)
    verdict = rank(bool(low >= _SOME), broken=told or bool(low >= _MUCH))
    said = f" It reproduces {HEART['contamination=canary']}." if told else ""
    values = {"said": said, "value": most.value}
    return _WORDS.find(
        "contamination", score, verdict, values, task=task, model=model, rows=tuple(rows)
    )


def judge_blind(
    exam: Exam,
    model: str,
    blind: Sequence[Outcome],
    seen: Sequence[Outcome],
    chance: ChanceLevel,
) -> Finding:
    """Compare the run without images with the chance level and with the run with images."""
    score = exam.score(blind)
    full = exam.score(seen) if seen else None
    kept = _keep_share(score, full, chance)
    of = (
        "its score above the chance level"
        if full
        else "the gap between the chance level and a perfect score"
    )
    said = f" Without images it keeps {kept:.0%} of {of}." if kept is not None else ""
    return _WORDS.find(
        "blind",
        place(score),
        _weigh(score, chance, kept),
        {"main": exam.main_words, "share": said},
        expected=chance.value,
        reference=chance.words,
        task=exam.name,
        model=model,
        rows=tuple(_list_rows(exam, blind, seen, full)),
    )


def _list_rows(
    exam: Exam, blind: Sequence[Outcome], seen: Sequence[Outcome], full: Score | None
) -> list[Score]:
    rows = []
    texts = exam.items[0].form.reply == "text"
    if not texts:
        groups = [outcome.item.group for outcome in blind]
        solves = [solved(outcome) for outcome in blind]
        rows.append(
            proportion_score("proportion", solves, groups, "items", "correct without images")
        )
    if full is not None:
        rows.append(place(full, "run", "with images"))
    first, second = keep_both(blind, seen)
    before, after = _mark(exam, first), _mark(exam, second)
    gains = [b - a for a, b in zip(before, after, strict=True)]
    if gains:
        groups = [outcome.item.group for outcome in first]
        label = "gain with images" if texts else "correct only with images"
        rows.append(mean(gains, groups, "items", label, "difference"))
    return rows


def _mark(exam: Exam, outcomes: Sequence[Outcome]) -> list[float]:
    """Score each outcome: 1 or 0 for correct or wrong, or the task's metric for a text."""
    if exam.items[0].form.reply != "text":
        return [float(solved(outcome)) for outcome in outcomes]
    marks = exam.task.marks(outcomes) if exam.task.marks and outcomes else {}
    return [mark or 0.0 for mark in marks.get(exam.task.main, ())]


def solved(outcome: Outcome) -> bool:
    """Whether the answer of an outcome equals the gold answer."""
    return outcome.status == "answered" and outcome.value == outcome.item.gold


def _keep_share(score: Score, full: Score | None, chance: ChanceLevel) -> float | None:
    """Return how much of a model's score above the chance level remains without images."""
    base = chance.value or 0.0
    if score.value is None:
        return None
    top = full.value if full is not None and full.value is not None else 1.0
    return (score.value - base) / (top - base) if top - base > 0.02 else None


def _weigh(score: Score, chance: ChanceLevel, kept: float | None) -> FindingVerdict:
    low = score.low if score.low is not None else score.value
    above = low is not None and low > (chance.value or 0.0)
    return rank(above, broken=above and kept is not None and kept >= 0.5)


def rotate(item: Item, step: int) -> Item:
    """Rotate an item's options by some positions; the letters stay and the gold letter moves.

    >>> from memantics.core.records import Field, Form, Option
    >>> field = Field("answer", "choice", (Option("A", "cat"), Option("B", "dog")))
    >>> turned = rotate(Item("1", "1", "A", Form("?", (field,))), 1)
    >>> [option.text for option in turned.form.fields[0].options], turned.gold
    (['dog', 'cat'], 'B')
    """
    (field,) = item.form.fields
    size = len(field.options)
    moved = tuple(
        replace(field.options[(place + step) % size], key=field.options[place].key)
        for place in range(size)
    )
    keys = [option.key for option in field.options]
    gold = keys[(keys.index(str(item.gold)) - step) % size]
    form = replace(item.form, fields=(replace(field, options=moved),))
    return replace(item, form=form, gold=gold)


def can_rotate(items: Sequence[Item]) -> bool:
    """Whether all options are texts; image options would have to move in the prompt too."""
    return not any(option.image for item in items for option in list_options(item))


def judge_orders(exam: Exam, model: str, orders: Sequence[Sequence[Outcome]]) -> list[Finding]:
    """Evaluate a model's answers over all orders of the options."""
    by_item = [
        {outcome.item.id: outcome for outcome in order if outcome.status != "failed"}
        for order in orders
    ]
    ids = [name for name in by_item[0] if all(name in order for order in by_item)]
    rounds = [[order[name] for order in by_item] for name in ids]
    if not rounds:
        return []
    return [_judge_stability(exam, model, rounds), _judge_places(exam, model, rounds)]


def _judge_stability(exam: Exam, model: str, rounds: Sequence[Sequence[Outcome]]) -> Finding:
    groups = [outcomes[0].item.group for outcomes in rounds]
    same = [len({_said(outcome) for outcome in outcomes}) == 1 for outcomes in rounds]
    all_right = [all(solved(outcome) for outcome in outcomes) for outcomes in rounds]
    rows = [
        proportion_score(
            "accuracy", [solved(said[step]) for said in rounds], groups, "order", label
        )
        for step, label in enumerate(f"rotated by {n}" for n in range(len(rounds[0])))
    ]
    rows.append(proportion_score("accuracy", all_right, groups, "order", "correct in every order"))
    score = proportion_score("proportion", same, groups)
    value = score.value or 0.0
    values = {"value": value, "always": rows[-1].value or 0}
    verdict, told = rank(value < 0.9, broken=value < 0.7), tuple(rows)
    return _WORDS.find(
        "permutation", score, verdict, values, task=exam.name, model=model, rows=told
    )


def _judge_places(exam: Exam, model: str, rounds: Sequence[Sequence[Outcome]]) -> Finding:
    """Test for position bias: options visit each position once, so choices should be even."""
    said = [
        (str(outcome.value), outcome.item.group)
        for outcomes in rounds
        for outcome in outcomes
        if outcome.status == "answered"
    ]
    keys = [option.key for option in list_options(rounds[0][0].item)]
    groups = [group for _, group in said]
    rows = tuple(
        proportion_score(
            "proportion", [chosen == key for chosen, _ in said], groups, "position", key
        )
        for key in keys
    )
    top = max(rows, key=lambda row: row.value or 0.0)
    fair = 1 / len(keys)
    excess = (top.low or 0.0) - fair
    count = Counter(chosen for chosen, _ in said)[top.label]
    return _WORDS.find(
        "position.model",
        place(top),
        rank(excess > 0, broken=excess >= 0.1),
        {"top": top.label, "count": count, "answers": len(said)},
        expected=fair,
        task=exam.name,
        model=model,
        rows=rows,
    )


def _said(outcome: Outcome) -> str:
    """Return the text of the chosen option; an invalid answer equals no other answer."""
    if outcome.status != "answered":
        return f"\0{id(outcome)}"
    texts = {option.key: option.text for option in list_options(outcome.item)}
    return texts.get(str(outcome.value), f"\0{outcome.value}")


# Consistency of a judge model: it rates the same edit again, in another presentation, and with the
# images swapped.

_LEAST = 0.05


@dataclass(frozen=True, slots=True)
class Similarity:
    """Comparison of two judgements of an edit: equal labels, close ratings, mean distance."""

    same: bool
    close: bool
    distance: float


def compare_judgements(one: Outcome, other: Outcome, rated: frozenset[str]) -> Similarity:
    """Compare two judgements over the rating fields, or over all fields if none are named."""
    (labels, first), (others, second) = _read(one, rated), _read(other, rated)
    numbers = [abs(rating - second[name]) for name, rating in first.items() if name in second]
    same = bool(labels or numbers) and labels == others
    return Similarity(
        same=same,
        close=same and all(number <= 1 for number in numbers),
        distance=sum(numbers) / len(numbers) if numbers else 0.0,
    )


def _read(outcome: Outcome, rated: frozenset[str]) -> tuple[Mapping[str, str], Mapping[str, float]]:
    """Return the labels and numbers of a judgement; booleans count as labels."""
    answer = outcome.value if outcome.status == "answered" else None
    if not isinstance(answer, dict):
        return {"invalid": outcome.status}, {}
    kept = {name: given for name, given in answer.items() if not rated or name in rated}
    return (
        {name: str(given) for name, given in kept.items() if isinstance(given, bool | str)},
        {
            name: float(given)
            for name, given in kept.items()
            if isinstance(given, int | float) and not isinstance(given, bool)
        },
    )


def swap_images(item: Item) -> Item:
    """Exchange the two images of an item."""
    return replace(item, images=item.images[::-1])


def judge_consistency(
    exam: Exam,
    model: str,
    way: str,
    pair: tuple[Sequence[Outcome], Sequence[Outcome]],
    rated: frozenset[str],
) -> Finding:
    """Compare a judge's ratings of the same edits in two presentations."""
    first, second = keep_both(*pair)
    found = [compare_judgements(a, b, rated) for a, b in zip(first, second, strict=True)]
    groups = [outcome.item.group for outcome in first]
    score = proportion_score("proportion", [similarity.close for similarity in found], groups)
    value = score.value or 0.0
    verdict = rank(value < 0.9, broken=value < 0.7)
    # A judge that sees no images should not repeat the judgement it made with images.
    if way == "unseen":
        verdict = rank(value >= 0.3, broken=value >= 0.6)
    same = [similarity.same for similarity in found]
    distances = [similarity.distance for similarity in found]
    rows = (
        proportion_score("proportion", same, groups, "fields", "equal labels"),
        mean(distances, groups, "fields", "mean distance of ratings", "distance"),
        *_mains(exam, first, second),
    )
    values = {"value": value}
    return _WORDS.find(
        f"judge.{way}", score, verdict, values, task=exam.name, model=model, rows=rows
    )


def judge_swap(
    exam: Exam, model: str, pair: tuple[Sequence[Outcome], Sequence[Outcome]]
) -> Finding:
    """Test whether a judge rates an edit as failed when source and edit are exchanged."""
    first, second = keep_both(*pair)
    before, after = (exam.score(outcomes) for outcomes in (first, second))
    whole = before.value or 0.0
    # A score near zero cannot decrease any further.
    kept = (after.value or 0.0) / whole if whole >= _LEAST else None
    return _WORDS.find(
        "judge.swapped" if kept is not None else "judge.swapped.unscored",
        place(after),
        rank(kept is None or kept >= 0.2, broken=kept is not None and kept >= 0.5),
        {"main": exam.main_words, "kept": kept, "before": before.value or 0},
        key="judge.swapped",
        task=exam.name,
        model=model,
        rows=_mains(exam, first, second),
    )


def _mains(exam: Exam, first: list[Outcome], second: list[Outcome]) -> tuple[Score, ...]:
    names = ("first presentation", "second presentation")
    return tuple(
        place(exam.score(outcomes), "metric", name)
        for name, outcomes in zip(names, (first, second), strict=True)
    )
