"""Rubrics: the dimensions that a judge and people rate, with the sentence of each level.

The built-in rubric rates correctness and coverage from 1 to 5. A rubric of one's own is a TOML
file; a dimension with two levels is binary.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, create_model

from memantics.core.data import load_toml
from memantics.core.errors import InputError, first_fault
from memantics.core.files import read_regular_text
from memantics.core.prompt import Prompt, read_prompts
from memantics.core.reply import describe_reply, read_object

BUILT_IN = "answers"
_PROMPTS = Path(__file__).parents[1] / "judge_prompts"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of a rubric: its question, and a sentence for each level."""

    id: str
    question: str
    levels: Mapping[int, str]

    @property
    def low(self) -> int:
        """The lowest level."""
        return min(self.levels)

    @property
    def high(self) -> int:
        """The highest level."""
        return max(self.levels)

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest level, as numbers for estimates."""
        return float(self.low), float(self.high)

    @property
    def binary(self) -> bool:
        """Whether there are only two levels."""
        return len(self.levels) == 2


@dataclass(frozen=True, slots=True)
class Rubric:
    """The dimensions to rate, the prompt for judges, and the form of their reply."""

    name: str
    dimensions: tuple[Dimension, ...]
    prompt: Prompt
    reply: type[BaseModel]
    schema: Mapping[str, JsonValue]

    @property
    def qualities(self) -> tuple[str, ...]:
        """The ids of the dimensions."""
        return tuple(one.id for one in self.dimensions)

    @property
    def digest(self) -> str:
        """The first 16 hex digits of a hash of all questions and levels."""
        shape = [(one.id, one.question, sorted(one.levels.items())) for one in self.dimensions]
        return hashlib.sha256(repr(shape).encode()).hexdigest()[:16]

    @property
    def prompts(self) -> Mapping[str, str]:
        """The hashes that are stored with each rating: of the prompt and, if own, of the rubric."""
        own = {} if self.name == BUILT_IN else {"rubric": self.digest}
        return {self.prompt.name: self.prompt.hash, **own}

    def parse(self, text: str) -> JsonValue:
        """Parse the reply of a judge."""
        return read_object(text, self.reply).model_dump()

    def fill(self, **values: str) -> str:
        """Fill the prompt for one answer."""
        listed = "\n\n".join(
            "\n".join(
                [
                    f"{one.id}: {one.question}",
                    *(f"{level} {one.levels[level]}" for level in sorted(one.levels, reverse=True)),
                ]
            )
            for one in self.dimensions
        )
        marks = ", ".join(f'"{one.id}": {one.low} to {one.high}' for one in self.dimensions)
        return self.prompt.fill(**values, rubric=listed, marks=marks)


class _DimensionRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    question: str = Field(min_length=1, max_length=500)
    levels: dict[int, str] = Field(min_length=2, max_length=10)


class _RubricFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=80)
    dimension: list[_DimensionRow] = Field(min_length=1, max_length=10)


@cache
def built_in_rubric() -> Rubric:
    """Return the rubric of correctness and coverage."""
    return _read(_PROMPTS / "rubric.toml", "judge")


def open_rubric(path: str | Path | None) -> Rubric:
    """Return the rubric of a TOML file, or the built-in one."""
    return built_in_rubric() if path is None else _read(Path(path), "own")


def _read(path: Path, prompt: Literal["judge", "own"]) -> Rubric:
    hint = (
        "write name, and [[dimension]] with id, question and levels; see docs/how-to/llm-judges.md"
    )
    try:
        found = _RubricFile.model_validate(load_toml(read_regular_text(path)))
    except OSError as error:
        raise InputError(f"rubric {path} cannot be read: {error}", hint=hint) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"rubric {path} is not a TOML file: {error}", hint=hint) from error
    except ValidationError as error:
        raise InputError(f"rubric {path}: {first_fault(error)}", hint=hint) from error
    dimensions = tuple(
        Dimension(row.id, row.question, dict(sorted(row.levels.items()))) for row in found.dimension
    )
    ids = [one.id for one in dimensions]
    if prompt == "own" and found.name == BUILT_IN:
        raise InputError(
            f"rubric {path}: {BUILT_IN!r} is the name of the built-in rubric", hint="choose another"
        )
    if len(set(ids)) < len(ids) or "reason" in ids:
        raise InputError(
            f"rubric {path}: two dimensions share an id, or an id is 'reason', which is reserved",
            hint=hint,
        )
    for one in dimensions:
        if list(one.levels) != list(range(one.low, one.high + 1)):
            raise InputError(
                f"rubric {path}: the levels of {one.id} must be consecutive numbers", hint=hint
            )
    text = read_prompts(_PROMPTS)[prompt]
    absent = frozenset({"rubric", "marks"}) - text.placeholders
    reply = _make_reply(dimensions)
    marks: dict[str, JsonValue] = {
        one.id: {"type": "integer", "enum": list(one.levels)} for one in dimensions
    }
    _, schema = describe_reply(reply, **marks)
    return Rubric(found.name, dimensions, Prompt(text.name, text.text, absent), reply, schema)


def _make_reply(dimensions: tuple[Dimension, ...]) -> type[BaseModel]:
    fields: dict[str, Any] = {"reason": (str, ...)}
    fields |= {one.id: (int, Field(ge=one.low, le=one.high)) for one in dimensions}
    return create_model(
        "JudgeReply",
        __config__=ConfigDict(extra="forbid", frozen=True),
        __doc__="The reply of a judge model.",
        **fields,
    )
