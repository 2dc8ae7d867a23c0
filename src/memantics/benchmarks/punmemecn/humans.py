"""The annotators on the very items a model was asked.

The annotators' votes made the gold label, so comparing them with it flatters them. Leaving one
out mends that: each vote is compared with what the other two agree on, and the model's answer
with the same. Where the two differ there is nothing to compare with, so these figures leave the
most disputed memes out: set them beside each other, not beside the figures on all items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memantics.core.records import Outcome, Score
from memantics.tasks.factories import share

KEYS = ("accuracy", "target_accuracy", "type_accuracy")
NOTES = {
    "published": "annotators against the final label, each meme once; n counts votes",
    "same_items": "annotators against the final label, on the items asked; n counts votes",
    "leave_one_out": "each annotator against what the other two agree on; n counts such votes",
    "model_leave_one_out": "the model against what two annotators agree on; n counts such pairs",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """Something said about a meme, and what it is compared with; both as "target-type"."""

    meme: str
    said: str
    wanted: str


def part(label: str, key: str) -> str:
    """The part of a full label that a figure is about.

    >>> [part("self-negative", key) for key in KEYS]
    ['self-negative', 'self', 'negative']
    """
    target, _, type_ = label.partition("-")
    return {"accuracy": label, "target_accuracy": target, "type_accuracy": type_}[key]


def score_humans(outcomes: Sequence[Outcome]) -> Iterator[Score]:
    """The annotators' figures, and the model's own against leave-one-out labels."""
    once = {outcome.item.group: outcome for outcome in outcomes}
    for key in KEYS:
        rows = {
            "published": _against_final(list(once.values())),
            "same_items": _against_final(outcomes),
            "leave_one_out": _against_others(outcomes, key, model=False),
            "model_leave_one_out": _against_others(outcomes, key, model=True),
        }
        for label, judgements in rows.items():
            yield _row(key, label, list(judgements))


def _against_final(outcomes: Sequence[Outcome]) -> Iterator[Judgement]:
    for outcome in outcomes:
        final = outcome.item.tags["sentiment"]
        for vote in read_votes(outcome):
            yield Judgement(outcome.item.group, vote, final)


def _against_others(outcomes: Sequence[Outcome], key: str, *, model: bool) -> Iterator[Judgement]:
    for outcome in outcomes:
        votes = read_votes(outcome)
        for place, vote in enumerate(votes):
            others = {part(own, key) for i, own in enumerate(votes) if i != place}
            if len(others) == 1 and len(votes) > 1:
                # Any of the other votes will do: on this part they agree.
                wanted = votes[place - 1]
                said = join_value(outcome) if model else vote
                yield Judgement(outcome.item.group, said, wanted)


def _row(key: str, label: str, judgements: list[Judgement]) -> Score:
    right = [part(j.said, key) == part(j.wanted, key) for j in judgements]
    return share(key, right, [j.meme for j in judgements], "humans", label, NOTES[label])


def read_votes(outcome: Outcome) -> list[str]:
    """The annotators' labels, as the item carries them."""
    return outcome.item.tags["votes"].split()


def join_value(outcome: Outcome) -> str:
    """What the model said, as one label; invalid answers match nothing."""
    if outcome.status != "answered" or not isinstance(outcome.value, dict):
        return "-"
    return f"{outcome.value['target']}-{outcome.value['type']}"
