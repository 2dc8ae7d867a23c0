"""People's ratings of answers: a table, or the annotations of a queue of ``judge plan``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path

import orjson

from memantics.core.errors import DataError, InputError
from memantics.core.files import open_regular
from memantics.core.queue import read_annotations
from memantics.core.tables import read_rows
from memantics.evaluation.judging.rubrics import Rubric


@dataclass(frozen=True, slots=True)
class PersonRating:
    """One person's rating of one answer; ``run`` is empty if the file names no run."""

    item: str
    run: str
    annotator: str
    values: Mapping[str, float]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class People:
    """All ratings of a file. ``unrated`` counts, by run, the planned answers without a rating."""

    rows: tuple[PersonRating, ...] = ()
    unrated: Mapping[str, int] = field(default_factory=dict)

    def of_run(self, run: str) -> People:
        """Return the ratings of a run, and those that name no run."""
        kept = tuple(row for row in self.rows if row.run in ("", run))
        return People(kept, {name: n for name, n in self.unrated.items() if name in ("", run)})

    def by_item(self, quality: str) -> dict[str, list[float]]:
        """Return the ratings of a quality by item; several people per item are a list."""
        found: dict[str, list[float]] = {}
        for row in self.rows:
            if quality in row.values:
                found.setdefault(row.item, []).append(row.values[quality])
        return found

    def by_person(self, quality: str) -> dict[str, dict[str, float]]:
        """Return the ratings of a quality by annotator and item, if annotators are named."""
        found: dict[str, dict[str, float]] = {}
        for row in self.rows:
            if quality in row.values and row.annotator:
                found.setdefault(row.annotator, {})[row.item] = row.values[quality]
        return found

    def means(self, quality: str) -> dict[str, float]:
        """Return the mean rating of each item."""
        by_item = self.by_item(quality)
        return {item: fsum(values) / len(values) for item, values in by_item.items()}

    @property
    def probabilities(self) -> dict[str, float] | None:
        """Return the selection probability of each rated item; None if all are equal."""
        known = {row.item: row.probability for row in self.rows if row.probability is not None}
        if len(set(known.values())) < 2:
            return None
        missing = sorted({row.item for row in self.rows} - known.keys())
        if missing:
            raise InputError(
                f"{len(missing)} rated items have no probability, such as {missing[0]!r}",
                hint="give the ratings of one plan, or ratings without the column probability",
            )
        return known


def read_people(path: Path, rubric: Rubric, runs: Sequence[Path]) -> People:
    """Read ratings, and check that they belong to the given runs.

    A table has the columns ``item`` and one per dimension of the rubric; ``run``, ``annotator`` and
    ``probability`` are optional. The annotations of a queue have all of them.
    """
    names = [folder.resolve().name for folder in runs]
    found = _read_queue(path, rubric) if _is_queue(path) else _read_table(path, rubric)
    unknown = sorted({row.run for row in found.rows} - {"", *names})
    if unknown and not any(row.run in ("", *names) for row in found.rows):
        raise InputError(
            f"{path.name} rates other runs: {', '.join(unknown)[:200]}",
            hint="give the runs that were rated",
        )
    if len(names) > 1 and any(not row.run for row in found.rows):
        raise InputError(
            f"{path.name} does not say which run each rating is about",
            hint="add the column run with the names of the run folders",
        )
    return found


def _is_queue(path: Path) -> bool:
    if path.suffix.lower() != ".jsonl":
        return False
    with open_regular(path) as file:
        first = file.readline(1 << 20)
    try:
        row = orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    return isinstance(row, dict) and {"workflow", "annotations"} <= set(row)


def _read_table(path: Path, rubric: Rubric) -> People:
    return People(tuple(_read_table_rows(path, rubric)))


def _read_table_rows(path: Path, rubric: Rubric) -> Iterator[PersonRating]:
    columns = " and ".join(filter(None, (", ".join(rubric.qualities[:-1]), rubric.qualities[-1])))
    for number, row in read_rows(path):
        if not {"item", *rubric.qualities} <= set(row):
            raise DataError(path.name, f"needs the columns item, {columns}", row=number)
        values: dict[str, float] = {}
        for one in rubric.dimensions:
            cell = row[one.id].strip()
            if cell not in ("", *map(str, one.levels)):
                raise DataError(
                    path.name,
                    f"{one.id} {cell[:20]!r} is not a rating from {one.low} to {one.high}",
                    row=number,
                )
            if cell:
                values[one.id] = float(cell)
        chance = row.get("probability", "").strip()
        probability = _read_probability(chance, path, number) if chance else None
        run, annotator = row.get("run", "").strip(), row.get("annotator", "").strip()
        yield PersonRating(row["item"], run, annotator, values, probability)


def _read_probability(cell: str, path: Path, row: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise DataError(path.name, f"probability {cell[:20]!r} is not above 0 and up to 1", row=row)
    return value


def _read_queue(path: Path, rubric: Rubric) -> People:
    rows: list[PersonRating] = []
    unrated: dict[str, int] = {}
    for number, annotation in enumerate(read_annotations(path), 1):
        hidden = annotation.hidden
        item, run = hidden.get("item"), hidden.get("run")
        if not isinstance(item, str) or not isinstance(run, str):
            raise DataError(
                path,
                "is not an annotation of a queue that 'judge plan' wrote",
                row=number,
                hint="give the exported annotations of that queue",
            )
        chance = hidden.get("probability")
        probability = _read_probability(str(chance), path, number) if chance is not None else None
        before = len(rows)
        for vote in annotation.annotations:
            values = {
                one.id: float(str(vote.values[one.id]))
                for one in rubric.dimensions
                if isinstance(vote.values.get(one.id), int | float)
            }
            if values:
                rows.append(PersonRating(item, run, vote.annotator, values, probability))
        if len(rows) == before:
            unrated[run] = unrated.get(run, 0) + 1
    return People(tuple(rows), unrated)
