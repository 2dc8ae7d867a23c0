"""Lettered options: how they are laid out, and how right and wrong are read off outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from memantics.core.records import Field, Option, Outcome

LETTERS = "ABCDEFGHIJ"


def letter_field(options: Sequence[str], majority: str | None = None) -> Field:
    """A choice field whose options are lettered from A.

    >>> [(o.key, o.text) for o in letter_field(["a cat", "a dog"]).options]
    [('A', 'a cat'), ('B', 'a dog')]
    """
    return Field(
        name="answer",
        kind="choice",
        options=tuple(Option(LETTERS[i], text) for i, text in enumerate(options)),
        majority=majority,
    )


def list_options(options: Iterable[Option]) -> str:
    """One option a line, as models are shown them.

    >>> print(list_options(letter_field(["a cat", "a dog"]).options))
    A. a cat
    B. a dog
    """
    return "\n".join(f"{option.key}. {option.text}" for option in options)


def commonest(values: Iterable[str]) -> str | None:
    """The commonest value; the first in sorted order among equals.

    >>> commonest(["b", "a", "b", "a"])
    'a'
    """
    counted = Counter(values)
    return min(counted, key=lambda value: (-counted[value], value)) if counted else None


def hits(outcomes: Sequence[Outcome]) -> list[bool]:
    """Whether each outcome's value is its gold value; an invalid answer never is."""
    return [o.status == "answered" and o.value == o.item.gold for o in outcomes]
