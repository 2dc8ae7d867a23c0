"""Shared records of an evaluation: items, requests, answers, outcomes and scores.

An :class:`Item` is one question about memes with its gold answer. Its :class:`Form` describes the
question as data, so that models other than language models (baselines, ``embedded/reader``) can
answer it, and raw answers can be parsed again without the data set. A :class:`Request` is sent to
a model, an :class:`Answer` is the result of one attempt, an :class:`Outcome` an item with its last
answer, and a :class:`Score` one metric with its confidence interval. ``Closed`` and ``Lenient``
are the bases of records that are read from files, HTTP requests and model replies. The last
functions format values and confidence intervals as text.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue

Status = Literal["answered", "refused", "unparsed", "failed"]
# The name of a metric that reports show beside the main one; a constant reply scores 0 in it.
CALIBRATED = "meaning_above_constant"
STATUSES: tuple[Status, ...] = get_args(Status)
MessageRole = Literal["system", "user", "assistant"]
FieldKind = Literal["choice", "integer", "boolean", "text"]


@dataclass(frozen=True, slots=True)
class Image:
    """An image on disk; its bytes are read on demand and sent unchanged."""

    path: Path


@dataclass(frozen=True, slots=True)
class LoadedImage(Image):
    """An image whose bytes are in memory, so that the hashed bytes are the sent ones."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Option:
    """One possible value of a field: ``key`` is the reply, ``text`` its meaning."""

    key: str
    text: str
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One value that the model must give in its reply.

    ``name`` is its place in a JSON reply (dots separate levels). ``majority`` is the most frequent
    gold value of the data set and ``positive`` the key of the positive class. Both are used by
    trivial baselines only and never shown to a model.
    """

    name: str
    kind: FieldKind
    options: tuple[Option, ...] = ()
    low: int = 0
    high: int = 0
    majority: str | None = None
    positive: str | None = None


_SHARED: dict[tuple[str, str], tuple[Field, ...]] = {}


def _share(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the same object for equal fields, to save memory."""
    # The cache key is the first text only, because hashing all options of each item is slow.
    first = fields[0] if fields else None
    key = (first.name, first.options[0].text if first.options else "") if first else ("", "")
    known = _SHARED.get(key)
    if known == fields:
        return known
    if len(_SHARED) >= 1024:
        _SHARED.clear()
    _SHARED[key] = fields
    return fields


@dataclass(frozen=True, slots=True)
class Form:
    """A question as data.

    ``context`` contains the named texts of the question (``caption``, ``history``, …). ``reply`` is
    the expected reply format: the key of the only field, plain text, or a JSON object of all
    fields.
    """

    # Equal questions and fields of a run share one object to save memory.
    question: Annotated[str, AfterValidator(sys.intern)]
    fields: Annotated[tuple[Field, ...], AfterValidator(_share)]
    language: str = "en"
    reply: Literal["key", "text", "json"] = "key"
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One question with its gold answer. ``group`` is the meme; intervals are clustered by it."""

    id: str
    group: str
    gold: JsonValue
    form: Form
    images: tuple[Image, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


MessagePart = str | Image


@dataclass(frozen=True, slots=True)
class Message:
    """One turn: texts and images in the order in which they are sent."""

    role: MessageRole
    parts: tuple[MessagePart, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Decoding parameters. ``None`` uses the server's default."""

    temperature: float | None = 0.0
    max_tokens: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model, with the form behind it. The form is not sent."""

    messages: tuple[Message, ...]
    form: Form
    sampling: Sampling = Sampling()
    schema: Mapping[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply. ``refusal`` is set if the model or its provider declined to answer.

    ``adapted`` lists changes to the request that the server required. ``masses`` is the probability
    of each option, by key. ``tokens_thought`` is the number of reasoning tokens.
    """

    text: str
    reasoning: str = ""
    refusal: str = ""
    finish: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    served_by: str = ""
    adapted: str = ""
    tokens_thought: int = 0
    masses: Mapping[str, float] | None = None


NO_REPLY = Reply("")


@dataclass(frozen=True, slots=True)
class Answer:
    """One attempt at one item, as stored in ``answers.jsonl``."""

    item: str
    attempt: int
    status: Status
    reply: Reply
    value: JsonValue = None
    reason: str = ""
    prompt: str = ""
    seconds: float = 0.0
    calls: int = 1
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Odds:
    """The probability that a model assigns to each answer option, and the correct option."""

    stated: Mapping[str, float]
    gold: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """An item with its final answer."""

    item: Item
    status: Status
    value: JsonValue = None
    attempts: int = 1
    odds: Odds | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """One metric: ``value`` with its 95% confidence interval over ``n`` items (None: undefined).

    ``by`` and ``label`` place a score in a breakdown (``by="dimension", label="Scene"``).
    """

    key: str
    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    by: str = ""
    label: str = ""
    note: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval, or None."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class Closed(BaseModel):
    """A frozen record that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Lenient(BaseModel):
    """A frozen record that ignores unknown fields."""

    model_config = ConfigDict(extra="ignore", frozen=True)


_ABSENT = "–"


def format_value(value: float | None) -> str:
    """Format a value with three decimals; a dash if it is undefined.

    >>> format_value(0.6), format_value(-0.0001), format_value(None)
    ('0.600', '0.000', '–')
    """
    return _ABSENT if value is None else f"{value:z.3f}"


_SPELLINGS = {"f1": "F1", "tpr": "TPR", "tnr": "TNR", "auroc": "AUROC", "bleu": "BLEU"}
_JOINED = {"macro F1": "macro-F1", "rouge l": "ROUGE-L", "BLEU 4": "BLEU-4"}


def show_metric(name: str) -> str:
    """Return the key of a metric as the field writes its name.

    >>> show_metric("macro_f1"), show_metric("rouge_l"), show_metric("toxicity_accuracy")
    ('macro-F1', 'ROUGE-L', 'toxicity accuracy')
    """
    shown = " ".join(_SPELLINGS.get(word, word) for word in name.split("_"))
    for words, spelling in _JOINED.items():
        shown = shown.replace(words, spelling)
    return shown


def show_span(score: Score | None) -> str:
    """Format the 95% confidence interval of a score.

    >>> show_span(Score("accuracy", 0.5, 10, 0.2, 0.8)), show_span(Score("r", 0, 9, -0.2, 0.3))
    ('0.200–0.800', '-0.200 to 0.300')
    """
    if score is None or score.low is None or score.high is None:
        return ""
    low, high = format_value(score.low), format_value(score.high)
    return f"{low} to {high}" if low.startswith("-") else f"{low}–{high}"
