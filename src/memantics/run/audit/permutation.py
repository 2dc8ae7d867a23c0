"""Options in every order: does the answer follow the option, or the place?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from memantics.core.finding import Finding, FindingVerdict
from memantics.core.records import Item, Outcome, Score
from memantics.run.audit.blind import solved
from memantics.run.audit.options import list_options
from memantics.run.audit.rows import share
from memantics.run.audit.subject import Exam


def rotate(item: Item, step: int) -> Item:
    """The item with its options moved on by some places; keys stay, the gold key moves along.

    >>> from memantics.core.records import Field, Form, Option
    >>> field = Field("answer", "choice", (Option("A", "cat"), Option("B", "dog")))
    >>> turned = rotate(Item("1", "1", "A", Form("?", (field,))), 1)
    >>> [option.text for option in turned.form.fields[0].options], turned.gold
    (['dog', 'cat'], 'B')
    """
    (own,) = item.form.fields
    size = len(own.options)
    moved = tuple(
        replace(own.options[(place + step) % size], key=own.options[place].key)
        for place in range(size)
    )
    keys = [option.key for option in own.options]
    gold = keys[(keys.index(str(item.gold)) - step) % size]
    form = replace(item.form, fields=(replace(own, options=moved),))
    return replace(item, form=form, gold=gold)


def can_rotate(items: Sequence[Item]) -> bool:
    """Whether options are texts only: images would have to move along in the prompt."""
    return not any(option.image for item in items for option in list_options(item))


def judge_orders(exam: Exam, model: str, orders: Sequence[Sequence[Outcome]]) -> list[Finding]:
    """What the answers in every order come to: one presentation after the other."""
    by_item = [{own.item.id: own for own in order if own.status != "failed"} for order in orders]
    ids = [name for name in by_item[0] if all(name in order for order in by_item)]
    rounds = [[order[name] for order in by_item] for name in ids]
    if not rounds:
        return []
    return [_judge_stability(exam, model, rounds), _judge_places(exam, model, rounds)]


def _judge_stability(exam: Exam, model: str, rounds: Sequence[Sequence[Outcome]]) -> Finding:
    groups = [own[0].item.group for own in rounds]
    same = [len({_said(outcome) for outcome in own}) == 1 for own in rounds]
    all_right = [all(solved(outcome) for outcome in own) for own in rounds]
    rows = [
        share(
            [solved(own[step]) for own in rounds], groups, "order", f"moved by {step}", "accuracy"
        )
        for step in range(len(rounds[0]))
    ]
    rows.append(share(all_right, groups, "order", "right in every order", "accuracy"))
    figure = share(same, groups)
    value = figure.value or 0.0
    verdict: FindingVerdict = (
        "sound" if value >= 0.9 else "worth knowing" if value >= 0.7 else "broken"
    )
    return Finding(
        key="permutation",
        title="The same answer in every order",
        measured="share of items where the model picks the same option however the options are "
        "ordered (an invalid answer is never the same)",
        figure=figure,
        expected=1.0,
        reference="the order does not matter",
        verdict=verdict,
        meaning=f"The answer survives every order in {value:.0%} of the items; it is right in "
        f"every order in {rows[-1].value or 0:.0%}.",
        advice="Nothing."
        if verdict == "sound"
        else "Give the accuracy over all orders, not that of one order.",
        task=exam.name,
        model=model,
        rows=tuple(rows),
    )


def _judge_places(exam: Exam, model: str, rounds: Sequence[Sequence[Outcome]]) -> Finding:
    """Every option stands at every place once, so an unbiased model names each place alike."""
    said = [
        (str(outcome.value), outcome.item.group)
        for own in rounds
        for outcome in own
        if outcome.status == "answered"
    ]
    keys = [option.key for option in list_options(rounds[0][0].item)]
    groups = [group for _, group in said]
    rows = tuple(share([own == key for own, _ in said], groups, "position", key) for key in keys)
    top = max(rows, key=lambda row: row.value or 0.0)
    fair = 1 / len(keys)
    excess = (top.low or 0.0) - fair
    verdict: FindingVerdict = (
        "sound" if excess <= 0 else "worth knowing" if excess < 0.1 else "broken"
    )
    counts = Counter(own for own, _ in said)
    return Finding(
        key="position.model",
        title="The model's favourite place",
        measured="share of its answers at the place it names most, over all orders",
        figure=Score("share", top.value, top.n, top.low, top.high),
        expected=fair,
        reference="every place alike",
        verdict=verdict,
        meaning="The model has no favourite place."
        if verdict == "sound"
        else f"The model names {top.label} {counts[top.label]:,} times in {len(said):,}, "
        "whatever stands there.",
        advice="Nothing." if verdict == "sound" else "Average over orders before comparing models.",
        task=exam.name,
        model=model,
        rows=rows,
    )


def _said(outcome: Outcome) -> str:
    """The text of the chosen option; an invalid answer is like no other."""
    if outcome.status != "answered":
        return f"\0{id(outcome)}"
    texts = {option.key: option.text for option in list_options(outcome.item)}
    return texts.get(str(outcome.value), f"\0{outcome.value}")
