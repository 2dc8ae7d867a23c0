"""Published results of a paper: ``expected/published.json`` (tables), ``expected/statistics.json``.

The tables hold the paper's rows. Expected statistics are joined with those recomputed from a copy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from memantics.core.data import Reproduction, Statistic, judge
from memantics.core.errors import DataError, first_fault
from memantics.core.records import Score

_KEY = re.compile(r"([a-z][a-z0-9_]*)(?:\[([^=\[\]]+)=([^\[\]]+)\])?")


class PaperSystem(BaseModel):
    """A system of a paper's: what it is called elsewhere, and how a command asks it.

    ``model`` is ``KIND/NAME`` for a command, ``names`` are those of releases and hubs, ``extra``
    what a command needs beside the options of its table, ``traits`` what the paper says of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = ""
    names: tuple[str, ...] = ()
    extra: str = ""
    traits: dict[str, str] = {}


class PublishedRow(BaseModel):
    """One row of a published table, on the scale of our figures.

    ``options`` and ``split`` are those under which its system was asked, as far as they are known
    and can be set (an empty ``split`` is any). ``figures`` are by name, those of a part as
    ``name[breakdown=part]``. ``digits`` are the printed decimals on that scale. ``sizes``,
    ``parts`` and ``classes`` are what the paper says about the items behind its figures.
    ``counted`` is n of a figure of ours over those very items, where the paper does not state it.
    ``feasible`` is False where the figures cannot be true together (``reason`` says why), and
    None where the table gives nothing to check.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    system: str
    options: dict[str, str] = {}
    split: str = ""
    metrics: Annotated[dict[str, float], Field(min_length=1)]
    digits: int
    source: str
    note: str = ""
    sizes: dict[str, int] = {}
    counted: dict[str, int] = {}
    parts: dict[str, tuple[str, ...]] = {}
    classes: tuple[int, int] | None = None
    feasible: bool | None
    reason: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in (*self.metrics, *self.sizes, *self.counted, *self.parts):
            if _KEY.fullmatch(name) is None:
                raise ValueError(f"figure {name!r} is neither NAME nor NAME[BREAKDOWN=PART]")
        if (self.feasible is False) != bool(self.reason):
            raise ValueError("a row that is not feasible has a reason, and no other row has one")
        return self

    @property
    def scores(self) -> tuple[Score, ...]:
        """The figures as reports show them; 0 items where the paper does not say how many.

        >>> row = PublishedRow(task="type", system="x", metrics={"f1[type=sexual]": 0.5},
        ...                    digits=2, source="Table 5", feasible=None)
        >>> row.scores[0].key, row.scores[0].by, row.scores[0].label
        ('f1', 'type', 'sexual')
        """
        made = []
        for name, value in self.metrics.items():
            parts = _KEY.fullmatch(name)
            if parts is not None:
                key, by, label = parts[1], parts[2] or "", parts[3] or ""
                made.append(Score(key, value, self.sizes.get(name, 0), by=by, label=label))
        return tuple(made)

    def is_over(self, metric: str, n: int) -> bool:
        """Whether a figure of ours counts as many items as the paper's; never where none are known.

        >>> row = PublishedRow(task="qa", system="x", metrics={"accuracy": 0.5}, digits=2,
        ...                    source="Table 2", feasible=None, sizes={"accuracy": 609})
        >>> row.is_over("accuracy", 609), row.is_over("accuracy", 350), row.is_over("f1", 0)
        (True, False, False)
        """
        return self.counted.get(metric, self.sizes.get(metric)) == n

    def fits(self, options: Mapping[str, str], split: str) -> bool:
        """Whether a run with these options was asked as this row says its system was."""
        return self.split in ("", split) and all(
            options.get(name) == value for name, value in self.options.items()
        )


_TABLE = TypeAdapter(tuple[PublishedRow, ...])


def read_published(path: Path, hint: str = "reinstall memantics") -> tuple[PublishedRow, ...]:
    """Read the tables of a benchmark's paper; none where the file does not exist."""
    if not path.is_file():
        return ()
    try:
        return _TABLE.validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(path.name, f"cannot be read: {error.strerror}", hint=hint) from error
    except ValidationError as error:
        raise DataError(path, first_fault(error), hint=hint) from error


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


_STATISTICS = TypeAdapter(tuple[Expected, ...])


def read_expected(path: Path) -> tuple[Expected, ...]:
    """Read the table of a benchmark."""
    try:
        return _STATISTICS.validate_json(path.read_bytes())
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


def _verdict(row: Expected, value: JsonValue) -> Reproduction:
    if row.basis == "paper":
        return "arithmetic of the paper"
    if row.paper is None and row.known is None:
        return "not recomputable" if value is None else "no reference"
    return judge(value, row.known if row.paper is None else row.paper, row.digits)
