"""What a kind of model is, and what a user may say about a model.

A kind is a module with a record ``KIND`` that :mod:`memantics.registry.models` names, or one that
another package names as an entry point of the group ``memantics.models``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from memantics.core.errors import InputError, UnknownName, require_known
from memantics.core.model import Model
from memantics.models.replies import json_or_text

# Words of ``--param`` as settings: the record says what each may be, and refusals say the same.

Params = TypeVar("Params", bound=BaseModel)


def read_params(
    shape: type[Params], given: Mapping[str, object], what: str, flag: str = "--param"
) -> Params:
    """The settings of ``what`` that a user names; unknown names and impossible values are refused.

    >>> from pydantic import Field
    >>> class Settings(BaseModel):
    ...     seed: int = Field(default=0, ge=0, le=9)
    >>> read_params(Settings, {"seed": "7"}, "toys").seed
    7
    >>> read_params(Settings, {"seed": "x"}, "toys", "-p")
    Traceback (most recent call last):
    memantics.core.errors.InputError: -p seed=x is not possible; give a whole number from 0 to 9
    """
    for name in given:
        require_known(f"{flag} of {what}:", name, shape.model_fields)
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name = str(fault["loc"][0])
        field, value = shape.model_fields[name], str(given[name])
        if fault["type"] == "literal_error":
            raise UnknownName(f"value of {flag} {name}:", value, _list_words(field)) from error
        wanted = field.description or _say_bounds(field)
        raise InputError(f"{flag} {name}={value} is not possible", hint=f"give {wanted}") from error


def _list_words(field: FieldInfo) -> list[str]:
    """The words of a ``Literal``, also of one that may be absent."""
    kinds = get_args(field.annotation)
    return [word for kind in kinds for word in get_args(kind) or (kind,) if isinstance(word, str)]


def _say_bounds(field: FieldInfo) -> str:
    kinds = (field.annotation, *get_args(field.annotation))
    number = "a whole number" if int in kinds else "a number"
    bounds = [getattr(rule, end, None) for end in ("ge", "le") for rule in field.metadata]
    low, high = [bound for bound in bounds if bound is not None] or (None, None)
    return f"{number} from {low:,} to {high:,}" if low is not None else number


if TYPE_CHECKING:
    from memantics.models.wire import WireSettings


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a user says about a model besides its name. ``params`` go to the server as they are."""

    base_url: str | None = None
    concurrency: int = 32
    timeout: float = 120.0
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelKind:
    """One kind of model: how it is named and what answers.

    ``open`` is given the whole name, ``KIND/NAME``; its errors are those of ``core.errors``.
    """

    kind: str
    example: str
    what: str
    open: Callable[[str, ModelSettings], Model]


def read_wire_settings(params: Mapping[str, str]) -> WireSettings:
    """``--param`` values: those the wire format knows by name, the rest into the body as JSON."""
    from memantics.models.wire import WireSettings

    known = WireSettings.model_fields.keys() - {"extra"}
    named = {name: value for name, value in params.items() if name in known}
    extra = {name: json_or_text(value) for name, value in params.items() if name not in named}
    return read_params(WireSettings, named | {"extra": extra}, "openai/… models")
