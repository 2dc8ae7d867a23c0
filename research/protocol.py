"""A sealed part of every data set, studies that may look at it, and the log of every look.

A group of memes is sealed by the hash of its name, so that the part is the same for everybody and
for ever. ``rehearse`` measures inside the rest, ``look`` on the sealed part; both write a line to
the log. Code of a study never reads the sealed part but through ``look``.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import orjson

from memantics.core.errors import InputError
from memantics.metrics.rounding import Floats
from memantics.metrics.weighted import Case, Figure, Measure, measure

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
LOG = ROOT / "docs" / "research" / "looks.jsonl"
SEALED = 0.2
FOLDS = 5
T = TypeVar("T")
Part = Literal["rest", "sealed", "reported"]
Cases = Mapping[str, Sequence[Case]]


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """One meme of a data set. ``tags`` are what figures are broken down and re-weighted by."""

    id: str
    group: str
    content: T
    tags: Mapping[str, str] = field(default_factory=dict)


def place_of(data: str, group: str) -> float:
    """Where between 0 and 1 the hash of a group lies.

    >>> 0 <= place_of("mer_bench", "hello") < 1
    True
    """
    digest = hashlib.sha256(f"{data}\n{group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def is_sealed(data: str, group: str) -> bool:
    """Whether a group belongs to the sealed part of its data set."""
    return place_of(data, group) < SEALED


def take_rest(data: str, rows: Sequence[Row[T]]) -> list[Row[T]]:
    """The rows that anybody may read: all selection and all error analysis happens here."""
    return [row for row in rows if not is_sealed(data, row.group)]


def split_folds(data: str, rows: Sequence[Row[T]], count: int = FOLDS) -> list[list[Row[T]]]:
    """Folds of the rest by the hash of the group, so that they too are the same for everybody."""
    folds: list[list[Row[T]]] = [[] for _ in range(count)]
    for row in rows:
        share = (place_of(data, row.group) - SEALED) / (1 - SEALED)
        folds[min(count - 1, int(share * count))].append(row)
    return folds


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure that a study makes: of which cases, which figure, and what is wanted of it."""

    cases: str
    figure: Figure
    wanted: float | None = None

    @property
    def name(self) -> str:
        """How the log and the table call it."""
        return f"{self.cases}: {self.figure.name}"

    @property
    def lower_is_better(self) -> bool:
        """Whether the wanted value is an upper bound."""
        return self.figure.metric in ("false_alarms", "calibration_error")


@dataclass(frozen=True, slots=True)
class Study(Generic[T]):
    """One experiment.

    ``read`` gives all rows of the data set ``data``. ``measure`` may learn from the first rows and
    judges the second; whatever it selects, it selects inside the first. ``seen`` says what of the
    sealed part was in view before it was sealed. ``compositions`` are other mixtures to re-weight
    to: a name, the tag, and the shares of its values. ``split`` cuts the rest into folds.
    """

    name: str
    data: str
    read: Callable[[], Sequence[Row[T]]]
    measure: Callable[[Sequence[Row[T]], Sequence[Row[T]]], Cases]
    claims: tuple[Claim, ...]
    seen: str = ""
    compositions: Mapping[str, tuple[str, Mapping[str, float]]] = field(default_factory=dict)
    split: Callable[[str, Sequence[Row[T]]], list[list[Row[T]]]] = split_folds


def rehearse(study: Study[Any]) -> dict[str, Any]:
    """The claims of a study on the rest, every fold judged by what learnt from the others."""
    parts = study.split(study.data, take_rest(study.data, study.read()))
    found: dict[str, list[Case]] = {}
    for own in parts:
        others = [row for part in parts if part is not own for row in part]
        for name, cases in study.measure(others, own).items():
            found.setdefault(name, []).extend(cases)
    return _record(study, "rest", found, [row for part in parts for row in part])


def look(study: Study[Any]) -> dict[str, Any]:
    """The claims of a study on the sealed part, judged by what learnt from the rest."""
    rows = study.read()
    sealed = [row for row in rows if is_sealed(study.data, row.group)]
    return _record(study, "sealed", study.measure(take_rest(study.data, rows), sealed), sealed)


def _record(
    study: Study[Any], part: Part, found: Cases, rows: Sequence[Row[Any]]
) -> dict[str, Any]:
    names = hashlib.sha256("\n".join(sorted(row.id for row in rows)).encode()).hexdigest()[:12]
    return {
        "study": study.name,
        "data": study.data,
        "part": part,
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": find_commit(),
        "rows": len(rows),
        "groups": len({row.group for row in rows}),
        "ids": names,
        "figures": {claim.name: _dump(found, claim) for claim in study.claims},
        "composition": {
            tag: {name: round(share, 4) for name, share in compose(cases, tag).items()}
            for cases in list(found.values())[:1]
            for tag in sorted({tag for case in cases for tag in case.tags})
        },
        "reweighted": {
            name: {claim.name: _reweigh(found[claim.cases], claim, *to) for claim in study.claims}
            for name, to in study.compositions.items()
        },
    }


def _dump(found: Cases, claim: Claim) -> dict[str, float | int | None]:
    got: Measure = measure(found[claim.cases], claim.figure)
    rounded = [None if own is None else round(own, 4) for own in (got.value, got.low, got.high)]
    return {**dict(zip(("value", "low", "high"), rounded, strict=True)), "n": got.cases}


def _reweigh(
    cases: Sequence[Case], claim: Claim, tag: str, shares: Mapping[str, float]
) -> float | None:
    weights = reweigh(cases, tag, shares)
    if weights is None:
        return None
    value = measure(cases, claim.figure, weights, draws=0).value
    return None if value is None else round(value, 4)


def compose(cases: Sequence[Case], tag: str) -> dict[str, float]:
    """What share of the cases has each value of a tag, the commonest first.

    >>> compose([Case("1", "1", "a", "a", tags={"kind": "x"}), Case("2", "2", "a", "a")], "kind")
    {'x': 0.5, '': 0.5}
    """
    counts = Counter(case.tags.get(tag, "") for case in cases)
    return {name: count / len(cases) for name, count in counts.most_common()}


def reweigh(cases: Sequence[Case], tag: str, shares: Mapping[str, float]) -> Floats | None:
    """Weights under which values of a tag have the given shares; others weigh nothing.

    None where a value with a share has no case: a figure for it cannot be told from these.

    >>> cases = [Case(str(n), str(n), "a", "a", tags={"kind": "x" if n else "y"}) for n in range(4)]
    >>> reweigh(cases, "kind", {"x": 0.5, "y": 0.5}).round(3).tolist()
    [2.0, 0.667, 0.667, 0.667]
    >>> reweigh(cases, "kind", {"z": 1.0}) is None
    True
    """
    found = compose(cases, tag)
    if any(share > 0 and name not in found for name, share in shares.items()):
        return None
    total = sum(shares.values())
    return np.array(
        [
            shares.get(key, 0.0) / total / found[key]
            for key in (case.tags.get(tag, "") for case in cases)
        ]
    )


def find_commit(*, clean: bool = False) -> str:
    """The commit that is checked out; with ``clean``, uncommitted changes are refused."""
    changed = _git("status", "--porcelain", "--untracked-files=no")  # the log grows with each look
    if clean and [line for line in changed.splitlines() if not line.endswith(LOG.name)]:
        raise InputError(
            "there are uncommitted changes", hint="commit first: a look must say what was measured"
        )
    return _git("rev-parse", "--short=12", "HEAD")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write_log(record: Mapping[str, Any], log: Path = LOG) -> None:
    """Append one line to the log."""
    with log.open("ab") as file:
        file.write(orjson.dumps(record) + b"\n")


def read_log(log: Path = LOG) -> list[dict[str, Any]]:
    """All lines of the log, the oldest first."""
    return [orjson.loads(line) for line in log.read_bytes().splitlines()] if log.is_file() else []
