"""A task is data and pure functions; engines and models never know which one they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.records import Form, Item, Outcome, Request, Score


class Unparsed(Exception):
    """Raised by a parser: the text holds no valid answer; the message says why.

    ``worth`` is what the text comes to where it has to count all the same, after the last attempt.
    """

    def __init__(self, reason: str = "", worth: JsonValue = None) -> None:
        super().__init__(reason)
        self.worth = worth


@dataclass(frozen=True, slots=True)
class InvalidPolicy:
    """What happens to refused and unparsed answers: ask again, then count wrong or drop.

    >>> InvalidPolicy.read("retry:5")
    InvalidPolicy(attempts=5, then='wrong')
    >>> InvalidPolicy.read("drop")
    InvalidPolicy(attempts=1, then='drop')
    >>> str(InvalidPolicy.read("retry:3,drop"))
    'retry:3,drop'
    """

    attempts: int = 1
    then: Literal["wrong", "drop"] = "wrong"

    @classmethod
    def read(cls, text: str) -> InvalidPolicy:
        """Read ``wrong``, ``drop``, ``retry:N`` (N attempts, then wrong) or ``retry:N,drop``."""
        head, _, tail = text.partition(",")
        then = tail or (head if head in ("wrong", "drop") else "wrong")
        count = 1
        if head.startswith("retry:") and head[6:].isdecimal():
            count = int(head[6:])
        elif head not in ("wrong", "drop") or tail:
            count = 0
        if then not in ("wrong", "drop") or not 1 <= count <= 100:
            raise InputError(
                f"policy for invalid answers {text!r} is not known",
                hint="use wrong, drop, retry:N or retry:N,drop with N from 1 to 100",
            )
        return cls(count, "drop" if then == "drop" else "wrong")

    def __str__(self) -> str:
        if self.attempts == 1:
            return self.then
        return f"retry:{self.attempts}" + (",drop" if self.then == "drop" else "")


@dataclass(frozen=True, slots=True)
class Need:
    """Answers of another task that must be there first.

    They come from the same model on the same data, or from the captioner where ``captioner`` is
    set and the user named one. ``name`` is the key under which :attr:`Task.feed` gets them.
    """

    name: str
    task: str
    options: Mapping[str, str] = field(default_factory=dict)
    captioner: bool = False


@dataclass(frozen=True, slots=True)
class ItemWalk:
    """Items that need not be made to be counted, nor to be passed once they have ended.

    ``walk`` yields the items in their order, but only the id of one for which its argument holds.
    ``count`` says how many there are; it raises what making them would raise. ``outline`` yields
    them with ids, memes and tags, to choose among; where there is none, all are of one kind and
    each is about a meme of its own.
    """

    walk: Callable[[Callable[[str], bool]], Iterator[Item | str]]
    count: Callable[[], int]
    outline: Callable[[], Iterator[Item]] | None = None

    def __call__(self) -> Iterator[Item]:
        """Every item."""
        return cast("Iterator[Item]", self.walk(lambda _: False))


@dataclass(frozen=True, slots=True)
class Task:
    """One evaluation.

    ``items`` yields the items afresh each time it is called (an :class:`ItemWalk` where there may
    be very many). ``ask`` makes the request; its
    second argument is the complaint about the former attempt (``None`` at the first). ``parse``
    turns a reply into a value or raises :class:`Unparsed`; it sees the form, not the gold.
    ``score`` is pure; it gets what the policy for invalid answers left. A task with ``needs`` is
    asked only after ``feed`` has given it those answers, by need and by meme. ``marks``, where a
    task has it, gives each outcome's own value of every figure that is a plain mean of such
    values (None: not scored), so that two runs can be compared item by item. ``complete`` adds
    what takes long to find, to items that are really asked and on a thread. ``probe`` says what was
    changed on purpose (:mod:`memantics.run.probes`). ``people`` gives the figures of those who
    labelled the data, on the items asked, by the name of their row. ``kinds`` names the tags over
    which ``--limit`` spreads, never one that holds the gold answer.
    """

    name: str
    items: Callable[[], Iterator[Item]]
    ask: Callable[[Item, str | None], Request]
    parse: Callable[[str, Form], JsonValue]
    score: Callable[[Sequence[Outcome]], tuple[Score, ...]]
    main: str
    invalid: InvalidPolicy = InvalidPolicy()
    options: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    feed: Callable[[Mapping[str, Mapping[str, str]]], Task] | None = None
    marks: Callable[[Sequence[Outcome]], Mapping[str, Sequence[float | None]]] | None = None
    complete: Callable[[Item], Item] | None = None
    probe: str = ""
    people: Callable[[Sequence[Outcome]], Mapping[str, tuple[Score, ...]]] | None = None
    kinds: tuple[str, ...] = ("kind",)
