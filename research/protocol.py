"""The protocol of experiments: a locked test set per data set, and a log of all evaluations.

The hash of a group's name decides whether its memes are in the locked test set, so the split never
changes. ``cross_validate`` measures a study on the development set, ``evaluate_on_test_set`` on the
locked test set. Studies read the locked test set only through ``evaluate_on_test_set``.
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
from memantics.metrics.weighted import Case, Measure, MetricSpec, measure

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
LOG = ROOT / "docs" / "research" / "test_set_evaluations.jsonl"
TEST_PROPORTION = 0.2
FOLDS = 5
T = TypeVar("T")
Part = Literal["development", "test", "reported"]
Cases = Mapping[str, Sequence[Case]]


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """One meme of a data set; metrics are broken down and re-weighted by its ``tags``."""

    id: str
    group: str
    content: T
    tags: Mapping[str, str] = field(default_factory=dict)


def hash_group(data: str, group: str) -> float:
    """Hash a group of a data set to a number from 0 to below 1.

    >>> 0 <= hash_group("mer_bench", "hello") < 1
    True
    """
    digest = hashlib.sha256(f"{data}\n{group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def is_in_test_set(data: str, group: str) -> bool:
    """Tell whether a group belongs to the locked test set of its data set."""
    return hash_group(data, group) < TEST_PROPORTION


def take_development_set(data: str, rows: Sequence[Row[T]]) -> list[Row[T]]:
    """Select the rows outside the locked test set, for model selection and error analysis."""
    return [row for row in rows if not is_in_test_set(data, row.group)]


def split_folds(data: str, rows: Sequence[Row[T]], count: int = FOLDS) -> list[list[Row[T]]]:
    """Split development rows into group-disjoint folds by the hash of the group."""
    folds: list[list[Row[T]]] = [[] for _ in range(count)]
    for row in rows:
        position = (hash_group(data, row.group) - TEST_PROPORTION) / (1 - TEST_PROPORTION)
        folds[min(count - 1, int(position * count))].append(row)
    return folds


@dataclass(frozen=True, slots=True)
class Claim:
    """A metric that a study reports: the name of its cases, the metric and its target value."""

    cases: str
    metric: MetricSpec
    target: float | None = None

    @property
    def name(self) -> str:
        """Name of the metric in the log and in the table."""
        return f"{self.cases}: {self.metric.name}"

    @property
    def lower_is_better(self) -> bool:
        """Whether the target is an upper bound."""
        return self.metric.metric in ("false_positive_rate", "calibration_error")


@dataclass(frozen=True, slots=True)
class Study(Generic[T]):
    """One experiment.

    ``read`` returns all rows of the data set ``data``. ``measure`` trains and selects on its first
    rows and predicts its second rows. ``exposure`` states which test rows the authors saw before
    the set was locked. ``compositions`` maps a name to a tag and the proportions of its values, to
    which metrics are re-weighted. ``split`` cuts the development set into folds.
    """

    name: str
    data: str
    read: Callable[[], Sequence[Row[T]]]
    measure: Callable[[Sequence[Row[T]], Sequence[Row[T]]], Cases]
    claims: tuple[Claim, ...]
    exposure: str = ""
    compositions: Mapping[str, tuple[str, Mapping[str, float]]] = field(default_factory=dict)
    split: Callable[[str, Sequence[Row[T]]], list[list[Row[T]]]] = split_folds


def cross_validate(study: Study[Any]) -> dict[str, Any]:
    """Measure a study on the development set; each fold is predicted by the other folds."""
    folds = study.split(study.data, take_development_set(study.data, study.read()))
    found: dict[str, list[Case]] = {}
    for fold in folds:
        others = [row for other in folds if other is not fold for row in other]
        for name, cases in study.measure(others, fold).items():
            found.setdefault(name, []).extend(cases)
    return _record(study, "development", found, [row for fold in folds for row in fold])


def evaluate_on_test_set(study: Study[Any]) -> dict[str, Any]:
    """Measure a study on the locked test set, trained on the development set."""
    rows = study.read()
    test = [row for row in rows if is_in_test_set(study.data, row.group)]
    development = take_development_set(study.data, rows)
    return _record(study, "test", study.measure(development, test), test)


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
        "metrics": {claim.name: _dump(found, claim) for claim in study.claims},
        "composition": {
            tag: {name: round(value, 4) for name, value in compose(cases, tag).items()}
            for cases in list(found.values())[:1]
            for tag in sorted({tag for case in cases for tag in case.tags})
        },
        "reweighted": {
            name: {claim.name: _reweigh(found[claim.cases], claim, *to) for claim in study.claims}
            for name, to in study.compositions.items()
        },
    }


def _dump(found: Cases, claim: Claim) -> dict[str, float | int | None]:
    got: Measure = measure(found[claim.cases], claim.metric)
    rounded = [
        None if value is None else round(value, 4) for value in (got.value, got.low, got.high)
    ]
    return {**dict(zip(("value", "low", "high"), rounded, strict=True)), "n": got.cases}


def _reweigh(
    cases: Sequence[Case], claim: Claim, tag: str, proportions: Mapping[str, float]
) -> float | None:
    weights = reweigh(cases, tag, proportions)
    if weights is None:
        return None
    value = measure(cases, claim.metric, weights, resamples=0).value
    return None if value is None else round(value, 4)


def compose(cases: Sequence[Case], tag: str) -> dict[str, float]:
    """Compute the proportion of cases with each value of a tag, most frequent first.

    >>> compose([Case("1", "1", "a", "a", tags={"kind": "x"}), Case("2", "2", "a", "a")], "kind")
    {'x': 0.5, '': 0.5}
    """
    counts = Counter(case.tags.get(tag, "") for case in cases)
    return {name: count / len(cases) for name, count in counts.most_common()}


def reweigh(cases: Sequence[Case], tag: str, proportions: Mapping[str, float]) -> Floats | None:
    """Compute case weights that give the values of a tag the wanted proportions.

    Cases with other values get weight 0. The result is None if a wanted value has no case.

    >>> cases = [Case(str(n), str(n), "a", "a", tags={"kind": "x" if n else "y"}) for n in range(4)]
    >>> reweigh(cases, "kind", {"x": 0.5, "y": 0.5}).round(3).tolist()
    [2.0, 0.667, 0.667, 0.667]
    >>> reweigh(cases, "kind", {"z": 1.0}) is None
    True
    """
    found = compose(cases, tag)
    if any(wanted > 0 and name not in found for name, wanted in proportions.items()):
        return None
    total = sum(proportions.values())
    return np.array(
        [
            proportions.get(key, 0.0) / total / found[key]
            for key in (case.tags.get(tag, "") for case in cases)
        ]
    )


def find_commit(*, clean: bool = False) -> str:
    """Return the commit that is checked out; with ``clean``, fail on uncommitted changes."""
    # Every evaluation appends to the log, so a changed log is allowed.
    changed = _git("status", "--porcelain", "--untracked-files=no")
    if clean and [line for line in changed.splitlines() if not line.endswith(LOG.name)]:
        raise InputError(
            "the working tree has uncommitted changes",
            hint="commit them first: a test-set evaluation records the commit that it measured",
        )
    return _git("rev-parse", "--short=12", "HEAD")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write_log(record: Mapping[str, Any], log: Path = LOG) -> None:
    """Append one record to the log."""
    with log.open("ab") as file:
        file.write(orjson.dumps(record) + b"\n")


def read_log(log: Path = LOG) -> list[dict[str, Any]]:
    """Read all records of the log, oldest first."""
    return [orjson.loads(line) for line in log.read_bytes().splitlines()] if log.is_file() else []
