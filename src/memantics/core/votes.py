"""Votes of annotators on one meme, their distribution, and the label that most of them give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Vote:
    """The label of one annotator, or several labels, with known attributes of the annotator."""

    values: tuple[str, ...]
    annotator: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """Convert to plain data."""
        return {
            "values": list(self.values),
            "annotator": self.annotator,
            "attributes": dict(self.attributes),
        }


def read_votes(value: JsonValue) -> tuple[Vote, ...]:
    """Read votes from plain data.

    >>> read_votes([{"values": ["yes"], "annotator": "a", "attributes": {"age": "18-22"}}])
    (Vote(values=('yes',), annotator='a', attributes={'age': '18-22'}),)
    """
    rows = value if isinstance(value, list) else []
    return tuple(
        Vote(
            tuple(map(str, _list(row.get("values")))),
            str(row.get("annotator", "")),
            {str(k): str(v) for k, v in _map(row.get("attributes")).items()},
        )
        for row in rows
        if isinstance(row, dict)
    )


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _map(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def distribute(votes: Sequence[Vote], classes: Iterable[str]) -> dict[str, float]:
    """Return the proportion of annotators who gave each class.

    With one label per annotator the proportions sum to 1; with several they need not.

    >>> distribute([Vote(("yes",)), Vote(("no",)), Vote(("yes",)), Vote(("yes",))], ["yes", "no"])
    {'yes': 0.75, 'no': 0.25}
    """
    counts = Counter(value for vote in votes for value in dict.fromkeys(vote.values))
    return {name: counts[name] / len(votes) if votes else 0.0 for name in classes}


def find_majority(votes: Sequence[Vote], several: bool, at_least: int = 0) -> tuple[str, ...]:
    """Return the labels of most annotators; empty if several labels have the most votes.

    With ``several``, every label of more than half of the annotators is returned. ``at_least`` is
    a required number of votes, instead of half of them.

    >>> find_majority([Vote(("a",)), Vote(("b",)), Vote(("a",))], several=False)
    ('a',)
    >>> find_majority([Vote(("a",)), Vote(("b",))], several=False)
    ()
    >>> find_majority([Vote(("a", "b")), Vote(("b",)), Vote(("c",))], several=True)
    ('b',)
    """
    counts = Counter(value for vote in votes for value in dict.fromkeys(vote.values))
    if several:
        return tuple(
            sorted(
                name
                for name, count in counts.items()
                if (count >= at_least if at_least else 2 * count > len(votes))
            )
        )
    best = max(counts.values(), default=0)
    names = [name for name, count in counts.items() if count == best]
    return (names[0],) if len(names) == 1 and best >= at_least else ()
