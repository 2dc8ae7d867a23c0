"""Published results of a paper: tables (``published.json``) and data statistics.

``expected/published.json`` contains the rows of the paper's tables. ``expected/statistics.json``
contains statistics that are compared with those recomputed from a copy of the data.
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

from memantics.core.data import Reproduction, Statistic, judge, match_digits
from memantics.core.errors import DataError, first_fault
from memantics.core.files import read_regular
from memantics.core.records import Score

TRUNCATES = "The paper truncates."  # ends the note of a statistic
_KEY = re.compile(r"([a-z][a-z0-9_]*)(?:\[([^=\[\]]+)=([^\[\]]+)\])?")


class PaperSystem(BaseModel):
    """A system of a paper: its other names and how to run it.

    ``model`` is ``KIND/NAME`` for a command. ``names`` are its names in releases and on model hubs.
    ``extra`` are flags that a command needs besides the options of its table. ``traits`` are
    properties stated in the paper.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = ""
    names: tuple[str, ...] = ()
    extra: str = ""
    traits: dict[str, str] = {}


Wording = Literal["official", "ours", "printed", "unstated", "none"]


class PublishedRow(BaseModel):
    """One row of a published table, on the scale of the metrics of Memantics.

    ``options`` and ``split`` are those of the system's run, as far as known (an empty ``split``
    matches any). ``metrics`` are values by name; a value for a category is named
    ``name[breakdown=part]``. ``digits`` are the printed decimals on that scale. ``sizes``,
    ``parts`` and ``classes`` are the paper's statements about the items. ``counted`` is the number
    of items of the computed metric over the same items, if the paper does not state it.
    ``wording`` is the source of the row's prompts: ``official`` (in the authors' release), ``ours``
    (the built-in ones), ``printed`` (in the paper only), ``unstated``, or ``none`` (the system has
    no prompt). ``decoding`` are the stated decoding parameters (None as a value: the server's
    default); it is None if the paper states none. ``protocol`` are further options of the authors'
    experiment. A run is compared only if it matches all of them, and has the default of every other
    option, except of the options in ``free``, whose effect is counted in items.
    ``feasible`` is False if the values cannot all be true (``reason`` explains it), and None if the
    table gives nothing to check.
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
    wording: Wording = "unstated"
    decoding: dict[str, JsonValue] | None = None
    protocol: dict[str, str] = {}
    free: tuple[str, ...] = ()
    feasible: bool | None
    reason: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in (*self.metrics, *self.sizes, *self.counted, *self.parts):
            if _KEY.fullmatch(name) is None:
                raise ValueError(f"metric {name!r} is neither NAME nor NAME[BREAKDOWN=PART]")
        if (self.feasible is False) != bool(self.reason):
            raise ValueError(
                "a row with feasible = false needs a reason, and other rows must not have one"
            )
        return self

    @property
    def scores(self) -> tuple[Score, ...]:
        """Return the published values as reports show them; n is 0 if the paper does not state it.

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
        """Return whether the computed metric covers as many items as the paper's; False if unknown.

        >>> row = PublishedRow(task="qa", system="x", metrics={"accuracy": 0.5}, digits=2,
        ...                    source="Table 2", feasible=None, sizes={"accuracy": 609})
        >>> row.is_over("accuracy", 609), row.is_over("accuracy", 350), row.is_over("f1", 0)
        (True, False, False)
        """
        return self.counted.get(metric, self.sizes.get(metric)) == n

    def fits(self, options: Mapping[str, str], split: str) -> bool:
        """Return whether a run with these options matches the options of this published row."""
        return self.split in ("", split) and all(
            options.get(name) == value for name, value in self.options.items()
        )

    def list_protocol(self) -> dict[str, str]:
        """Return the options that a command needs for the authors' experiment, with the wording."""
        named = {"wording": "official"} if self.wording == "official" else {}
        return {**named, **self.protocol}


_TABLE = TypeAdapter(tuple[PublishedRow, ...])


def read_published(path: Path, hint: str = "reinstall memantics") -> tuple[PublishedRow, ...]:
    """Read the tables of a benchmark's paper; empty if the file does not exist."""
    if not path.is_file():
        return ()
    try:
        return _TABLE.validate_json(read_regular(path))
    except OSError as error:
        raise DataError(path.name, f"cannot be read: {error.strerror}", hint=hint) from error
    except ValidationError as error:
        raise DataError(path, first_fault(error), hint=hint) from error


class Expected(BaseModel):
    """One row of ``expected/statistics.json``: a statistic of the data that the paper reports.

    ``basis`` states the source of the recomputed value: this copy of the data, or other values
    printed in the paper. A value of the second type never counts as a reproduction.
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
    """Read the expected statistics of a benchmark's data."""
    try:
        return _STATISTICS.validate_json(read_regular(path))
    except (OSError, ValidationError) as error:
        raise DataError(path, str(error).splitlines()[0], hint="reinstall memantics") from error


def compare(expected: tuple[Expected, ...], values: Mapping[str, JsonValue]) -> list[Statistic]:
    """Compare expected and recomputed values; each expected value needs a result (None: unknown).

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
            note=_note(row, values.get(row.key)),
        )
        for row in expected
    ]


def _note(row: Expected, value: JsonValue) -> str:
    """Return the note of a statistic, which also says whether the paper truncated its value."""
    cut = match_digits(value, row.paper, row.digits) == "truncated" and row.basis == "copy"
    return " ".join(text for text in (row.note, TRUNCATES if cut else "") if text)


def _verdict(row: Expected, value: JsonValue) -> Reproduction:
    if row.basis == "paper":
        return "computed from the paper"
    if row.paper is None and row.known is None:
        return "not recomputable" if value is None else "no reference"
    return judge(value, row.known if row.paper is None else row.paper, row.digits)
