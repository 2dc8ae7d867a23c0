"""What a task may ask for besides its data: layouts, readings by sound, neural text scores.

Benchmarks import no models, no ``vision`` and no ``phonetics``: the registry hands these in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn, Protocol

from memantics.core.errors import InputError
from memantics.core.retrieved import Retriever

Direction = Literal["generated_first", "reference_first"]
LayoutTags = Callable[[Path, Path], Mapping[str, str]]


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
class Listener:
    """What captions sound like: ``name`` is the language model behind it."""

    name: str
    hint: Callable[[str], str]


def _absent(*_: object) -> NoReturn:
    raise InputError(
        "this task asks for a service that was not handed in",
        hint="make it through memantics.registry",
    )


@dataclass(frozen=True, slots=True)
class Services:
    """Functions that open a service; each is opened where it is first needed, and then kept.

    ``likeness`` compares what texts mean by the encoder that ships; None where it is not installed.
    ``layout`` (with caption regions or without) tells how the layouts of two images differ, as
    tags of an item. ``check_text_model`` refuses a folder that holds no model. ``retriever``
    searches a knowledge store, a build, a collection or texts.
    """

    layout: Callable[[bool], LayoutTags] = _absent
    listener: Callable[[], Listener] = _absent
    check_text_model: Callable[[Path], None] = _absent
    bert: Callable[[BertSettings], TextScorer] = _absent
    nli: Callable[[NliSettings], TextScorer] = _absent
    retriever: Callable[[Path], Retriever] = _absent
    likeness: Callable[[], TextScorer | None] = lambda: None
