"""A paper's figures beside those of this copy: ``expected/statistics.json`` joined with values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from memantics.core.data import Statistic, Verdict, judge
from memantics.core.errors import DataError


class Expected(BaseModel):
    """One row of ``expected/statistics.json``.

    ``basis`` says what the value is computed from: this copy of the release, or other figures that
    the paper prints. The second kind is never a reproduction.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    title: str
    paper: JsonValue
    known: JsonValue
    digits: int | None
    definition: str
    note: str = ""
    basis: Literal["copy", "paper"] = "copy"


_TABLE = TypeAdapter(tuple[Expected, ...])


def read_expected(path: Path) -> tuple[Expected, ...]:
    """Read the table of a benchmark."""
    try:
        return _TABLE.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise DataError(path, str(error).splitlines()[0], hint="reinstall memantics") from error


def compare(expected: tuple[Expected, ...], values: Mapping[str, JsonValue]) -> list[Statistic]:
    """Join both; every value must be expected and every expectation answered (None: cannot be).

    >>> row = Expected(key="memes", title="Memes", paper=3, known=3, digits=None, definition="")
    >>> compare((row,), {"memes": 3})[0].verdict
    'reproduced'
    """
    keys = {row.key for row in expected}
    if stray := values.keys() - keys:
        raise DataError("statistics", f"recomputed but not declared: {', '.join(sorted(stray))}")
    return [
        Statistic(
            key=row.key,
            title=row.title,
            paper=row.paper,
            known=row.known,
            value=values.get(row.key),
            verdict=_verdict(row, values.get(row.key)),
            definition=row.definition,
            note=row.note,
        )
        for row in expected
    ]


def _verdict(row: Expected, value: JsonValue) -> Verdict:
    if row.basis == "paper":
        return "arithmetic of the paper"
    if row.paper is None and row.known is None:
        return "not recomputable" if value is None else "no reference"
    return judge(value, row.known if row.paper is None else row.paper, row.digits)
