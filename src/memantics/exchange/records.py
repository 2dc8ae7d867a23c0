"""An answer that another tool wrote down, with all that says which item it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from memantics.core.records import Reply

AnswerFormat = Literal["inspect", "lmms-eval", "vlmevalkit", "openai-batch", "table"]
ANSWER_FORMATS: tuple[AnswerFormat, ...] = get_args(AnswerFormat)
Role = Literal["id", "image", "question", "answer", "gold", "gold_text"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One row of a file of answers.

    ``place`` is the item's number, from 0, in the order in which the task has them; ``epoch`` says
    which time it was, from 1, that the tool asked everything. ``failure`` says why there is no
    answer: the tool's call failed. ``gold`` and ``gold_text`` are what the file takes for right;
    where they differ from ours, the row is about another question.
    """

    row: int
    reply: Reply
    id: str = ""
    place: int | None = None
    image: str = ""
    question: str = ""
    gold: str = ""
    gold_text: str = ""
    failure: str = ""
    epoch: int = 1


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that no answer was taken from, and why."""

    row: int
    reason: str
    id: str = ""
    image: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How a file is read: its format (None: found out), which column is what, renamed values."""

    format: AnswerFormat | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
