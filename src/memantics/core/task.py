"""The task contract: items, prompt, parser and metrics as data and pure functions.

Engines and models never know which task they run. ``Services`` holds what a task may need besides
its data: layouts, homophone readings and neural text scores. Benchmarks import none of the
packages behind these; the registry passes them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, Protocol, cast

from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.records import Form, Item, Outcome, Request, Score
from memantics.core.retrieval import Retriever

Direction = Literal["generated_first", "reference_first"]
LayoutTags = Callable[[Path, Path], Mapping[str, str]]


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
    be very many). ``ask`` makes the request; its second argument is the complaint about the former
    attempt (``None`` at the first). ``parse`` turns a reply into a value or raises
    :class:`Unparsed`; it sees the form, not the gold. ``score`` is pure; it gets what the policy
    for invalid answers left. A task with ``needs`` is asked only after ``feed`` has given it those
    answers, by need and by meme. ``marks``, where a task has it, gives each outcome's own value of
    every figure that is a plain mean of such values (None: not scored), so that two runs can be
    compared item by item. ``complete`` adds what takes long to find, to items that are really asked
    and on a thread. ``perturbation`` says what was changed on purpose (:mod:`.perturbations`).
    ``people`` gives the figures of those who labelled the data, on the items asked, by the name of
    their row. ``kinds`` names the tags over which ``--limit`` spreads, never one that holds the
    gold answer.
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
    perturbation: str = ""
    people: Callable[[Sequence[Outcome]], Mapping[str, tuple[Score, ...]]] | None = None
    kinds: tuple[str, ...] = ("kind",)


@dataclass(frozen=True, slots=True)
class BertSettings:
    """Which model and how. ``layer`` None: the authors' for its kind and depth, else the last.

    ``baseline`` is a table in the format of the package bert-score (``LAYER,P,R,F``); with it
    scores are rescaled so that unrelated sentences get about zero.
    """

    path: Path
    layer: int | None = None
    baseline: Path | None = None
    batch: int = 32
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class NliSettings:
    """Which model and how.

    ``direction`` says which text is the premise; SelfCheckGPT puts the generated sentence first.
    ``labels`` are the places of entailment and contradiction; None reads the model's names.
    ``by_sentence`` averages over the sentences of the generated text.
    """

    path: Path
    direction: Direction = "generated_first"
    labels: tuple[int, int] | None = None
    by_sentence: bool = True
    batch: int = 32
    device: str = "auto"


class TextScorer(Protocol):
    """Scores pairs of a generated text and its reference; ``note`` says with which model."""

    @property
    def note(self) -> str:
        """The model and its settings."""
        ...

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One value for each pair."""
        ...


@dataclass(frozen=True, slots=True)
class HomophoneReader:
    """What captions sound like: ``name`` is the language model behind it."""

    name: str
    hint: Callable[[str], str]


def _absent(*_: object) -> NoReturn:
    raise InputError(
        "this task asks for a service that was not handed in",
        hint="make it through memantics.benchmarks.registry",
    )


@dataclass(frozen=True, slots=True)
class Services:
    """Functions that open a service; each is opened where it is first needed, and then kept.

    ``similarity`` compares what texts mean by the encoder that ships; None where it is not
    installed. ``layout`` (with caption regions or without) tells how the layouts of two images
    differ, as tags of an item. ``check_text_model`` refuses a folder that holds no model.
    ``retriever`` searches a knowledge store, a build, a collection or texts.
    """

    layout: Callable[[bool], LayoutTags] = _absent
    homophone_reader: Callable[[], HomophoneReader] = _absent
    check_text_model: Callable[[Path], None] = _absent
    bert: Callable[[BertSettings], TextScorer] = _absent
    nli: Callable[[NliSettings], TextScorer] = _absent
    retriever: Callable[[Path], Retriever] = _absent
    similarity: Callable[[], TextScorer | None] = lambda: None
