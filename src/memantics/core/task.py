"""The task interface: items, prompt, parser and metrics as data and pure functions.

Engines and models are independent of the task they run. ``Services`` holds the services that a task
may use: image layouts, homophone readings (similar-sounding words behind a pun) and neural text
scores. Benchmarks do not import the packages behind these services; the registry passes them in.
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
    """Raised by a parser if a reply contains no valid answer; the message gives the reason.

    ``worth`` is the value that is scored if the reply is still invalid after the last attempt.
    """

    def __init__(self, reason: str = "", worth: JsonValue = None) -> None:
        super().__init__(reason)
        self.worth = worth


@dataclass(frozen=True, slots=True)
class InvalidPolicy:
    """The policy for refused and unparsed answers: retry, then count as wrong or drop.

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
        """Parse ``wrong``, ``drop``, ``retry:N`` (N attempts, then wrong) or ``retry:N,drop``."""
        head, _, tail = text.partition(",")
        then = tail or (head if head in ("wrong", "drop") else "wrong")
        count = 1
        if head.startswith("retry:") and head[6:].isdecimal():
            count = int(head[6:])
        elif head not in ("wrong", "drop") or tail:
            count = 0
        if then not in ("wrong", "drop") or not 1 <= count <= 100:
            raise InputError(
                f"{text!r} is not a valid policy for invalid answers",
                hint="use wrong, drop, retry:N or retry:N,drop with N from 1 to 100",
            )
        return cls(count, "drop" if then == "drop" else "wrong")

    def __str__(self) -> str:
        if self.attempts == 1:
            return self.then
        return f"retry:{self.attempts}" + (",drop" if self.then == "drop" else "")


@dataclass(frozen=True, slots=True)
class Need:
    """Answers of another task that this task requires.

    The answers come from the same model on the same data. If ``captioner`` is set and the user
    named a captioning model, they come from that model. ``name`` is the key that :attr:`Task.feed`
    receives.
    """

    name: str
    task: str
    options: Mapping[str, str] = field(default_factory=dict)
    captioner: bool = False


@dataclass(frozen=True, slots=True)
class ItemWalk:
    """Items that are created on demand and can be counted and skipped without creating them.

    ``walk`` yields the items in order. If its argument returns True for an id, it yields only that
    id and does not create the item. ``count`` returns the number of items. ``outline`` yields ids,
    memes and tags for sampling; without ``outline``, all items have equal tags and each has its own
    meme.
    """

    walk: Callable[[Callable[[str], bool]], Iterator[Item | str]]
    count: Callable[[], int]
    outline: Callable[[], Iterator[Item]] | None = None

    def __call__(self) -> Iterator[Item]:
        """Yield every item."""
        return cast("Iterator[Item]", self.walk(lambda _: False))


@dataclass(frozen=True, slots=True)
class Task:
    """One evaluation task.

    ``items`` yields the items each time it is called (an :class:`ItemWalk` for very many items).
    ``ask`` builds the request; its second argument is the parse error of the previous attempt (None
    at first). ``parse`` turns a reply into a value or raises :class:`Unparsed`; it gets the form,
    not the gold answer. ``score`` is a pure function of the outcomes that the policy for invalid
    answers keeps.

    A task with ``needs`` uses answers of other tasks: ``feed`` receives these answers by need and
    by meme before the task runs. ``marks`` gives the value of each outcome for metrics that are
    plain means (None: not scored), for paired comparison. ``complete`` adds data that are slow to
    compute to an item, on a thread. ``perturbation`` names a deliberate change
    (:mod:`.perturbations`). ``people`` gives the scores of the human annotators by row name.
    ``kinds`` lists the tags by which ``--limit`` stratifies; these tags never contain the gold
    answer.
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
    """Settings of BERTScore. ``layer`` None: the layer chosen by its authors, else the last layer.

    ``baseline`` is a table in the format of the package bert-score (``LAYER,P,R,F``). With this
    table, scores are rescaled so that unrelated sentences get about zero.
    """

    path: Path
    layer: int | None = None
    baseline: Path | None = None
    batch: int = 32
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class NliSettings:
    """Settings of a natural language inference (NLI) model.

    ``direction`` determines which text is the premise; SelfCheckGPT puts the generated sentence
    first. ``labels`` are the indices of entailment and contradiction (None: from the model's
    config). ``by_sentence`` averages over the sentences of the generated text.
    """

    path: Path
    direction: Direction = "generated_first"
    labels: tuple[int, int] | None = None
    by_sentence: bool = True
    batch: int = 32
    device: str = "auto"


class TextScorer(Protocol):
    """Scores pairs of a generated text and its reference text; ``note`` names the scoring model."""

    @property
    def note(self) -> str:
        """The name and the settings of the scoring model."""
        ...

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one value per pair."""
        ...


@dataclass(frozen=True, slots=True)
class HomophoneReader:
    """A function that finds homophone readings of captions; ``name`` is its language model."""

    name: str
    hint: Callable[[str], str]


def _absent(*_: object) -> NoReturn:
    raise InputError(
        "this task needs a part of Memantics that was not passed to it",
        hint="create the task through memantics.benchmarks.registry",
    )


@dataclass(frozen=True, slots=True)
class Services:
    """Services for tasks, as functions that open a service at first use and keep it open.

    ``similarity`` compares texts with the built-in encoder (None: not installed). ``layout``
    returns the layout difference of two images as item tags, with or without caption regions.
    ``check_text_model`` rejects a folder that contains no model. ``retriever`` searches a knowledge
    graph, a dataset build, a meme collection or texts.
    """

    layout: Callable[[bool], LayoutTags] = _absent
    homophone_reader: Callable[[], HomophoneReader] = _absent
    check_text_model: Callable[[Path], None] = _absent
    bert: Callable[[BertSettings], TextScorer] = _absent
    nli: Callable[[NliSettings], TextScorer] = _absent
    retriever: Callable[[Path], Retriever] = _absent
    similarity: Callable[[], TextScorer | None] = lambda: None
