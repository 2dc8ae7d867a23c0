"""Compare the verdicts of two screenings, and sample the daily verdicts of a service."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import Field

from memantics.core.data import read_jsonl
from memantics.core.errors import DataError, InputError
from memantics.core.parameters import Argument, Flag
from memantics.core.records import Closed
from memantics.core.tables import need_parquet
from memantics.metrics.comparison import REST, compare_counts, holm, pool_rare
from memantics.metrics.rounding import settle
from memantics.moderation.pages import Drift, DriftedAspect, DriftLimits
from memantics.moderation.screening import read_tables
from memantics.moderation.verdict import Verdict

__all__ = ["Drift", "DriftLimits", "drift"]
# Daily samples for ``drift``: scores and labels; texts only on request. Each day (UTC) has a folder
# of JSON Lines, one file per writing process. Verdicts are sampled uniformly, up to ``most`` a day.

COLUMNS = (
    "id", "status", "text", "language", "label", "probability", "type", "template_cluster",
    "unseen_ngram_rate",
)  # fmt: skip
_RATES = ("probability", "unseen_ngram_rate")
_FILES = "sample-*.jsonl"


class SampleChoice(Closed):
    """Sampling settings: folder, proportion of verdicts, and whether texts are stored."""

    folder: Path
    share: float = Field(default=0.05, gt=0, le=1)
    texts: bool = False
    most: int = 20_000


def choose_sample(
    sample: Annotated[
        Path | None, Flag("Folder for daily samples of verdicts, for drift. Default: no samples.")
    ] = None,
    sample_rate: Annotated[
        float, Flag("Proportion of verdicts that the daily samples keep.", min=0.0001, max=1)
    ] = 0.05,
    sample_texts: Annotated[bool, Flag("Also store the texts of sampled verdicts.")] = False,
) -> SampleChoice | None:
    """Make the sampling settings from service flags; None if no samples are kept."""
    if sample is None:
        return None
    return SampleChoice(folder=sample, share=sample_rate, texts=sample_texts)


def _name_today() -> str:
    return datetime.now(UTC).date().isoformat()


class DailySample:
    """Writes a random sample of each day's verdicts; ``today`` returns the name of the folder."""

    def __init__(
        self,
        choice: SampleChoice,
        draw: Callable[[], float] = random.random,
        today: Callable[[], str] = _name_today,
    ) -> None:
        self._choice, self._draw, self._today = choice, draw, today
        self._day, self._kept = "", 0

    def add(self, verdict: Verdict) -> None:
        """Store a verdict with the sampling probability; raise OSError if writing fails."""
        if self._draw() >= self._choice.share:
            return
        day = self._today()
        if day != self._day:
            self._day, self._kept = day, 0
        if self._kept >= self._choice.most:
            return
        row = verdict.to_row()
        kept = {name: row[name] for name in (*COLUMNS, "detector")}
        kept["id"] = f"{day}-{self._kept}"
        if not self._choice.texts:
            kept["text"] = ""
        folder = self._choice.folder / day
        folder.mkdir(parents=True, exist_ok=True)
        # One call writes the whole line, so that readers never see a partial line.
        mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.open(folder / _FILES.replace("*", str(os.getpid())), mode, 0o600)
        try:
            os.write(file, orjson.dumps(kept) + b"\n")
        finally:
            os.close(file)
        self._kept += 1


def has_sample(folder: Path) -> bool:
    """Check whether a folder holds a daily sample."""
    return any(folder.glob(_FILES))


def read_sample(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Iterate over the verdicts of a daily sample."""
    for path in sorted(folder.glob(_FILES)):
        for number, row in read_jsonl(path):
            if not isinstance(row, dict) or not set(COLUMNS) <= row.keys():
                raise DataError(path.name, "is not a verdict record of a daily sample", row=number)
            for name in _RATES:
                if row[name] is not None and not _is_number(row[name]):
                    raise DataError(
                        path.name, f"{name} is not a number", row=number, hint="remove that line"
                    )
            yield row


def _is_number(value: object) -> bool:
    """Return whether a value is a finite number.

    >>> [_is_number(value) for value in (0, 0.5, float("nan"), "", True, None)]
    [True, True, False, False, False, False]
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


_BINS = 10
_MOST_MEMES = 8  # number of memes listed for each shifted distribution
# Properties whose values define groups of memes; on a tie, the most specific group is named.
_GROUPS = {
    "templates": "the template cluster {}",
    "types": "the type {}",
    "languages": "the language {}",
    "verdicts": "memes with the verdict {}",
}
ASPECTS = ("scores", "verdicts", "types", "languages", "unseen_ngram_rate", "templates")


def drift(
    now: Annotated[
        str | Path,
        Argument("Output folder of 'screen', or a day of 'serve --sample'.", metavar="NOW"),
    ],
    *,
    against: Annotated[str | Path, Flag("Earlier folder to compare with.", metavar="THEN")],
    limits: DriftLimits | None = None,
) -> Drift:
    """Compare two folders of verdicts: scores, labels, types, languages, unseen n-grams, templates.

    Args:
        now: Output folder of ``screen``, or a day of ``serve --sample``.
        against: The earlier folder to compare with.
        limits: Significance level and minimum shift; see :class:`DriftLimits`.

    Returns:
        Each distribution in both folders, and whether it shifted.

    Raises:
        InputError: If a folder has no verdicts.

    Example:
        >>> may = mm.screen("memes/", out="screened/may")
        >>> today = mm.screen("memes/", out="screened/today")
        >>> mm.drift("screened/today", against="screened/may").beyond
        ()
    """
    limits = limits or DriftLimits()
    places = Path(now), Path(against)
    counted = [_count(place) for place in places]
    shifts = {name: compare_counts(*(counts[name] for counts in counted)) for name in ASPECTS}
    known = [name for name in ASPECTS if shifts[name].p is not None]
    corrected = dict(zip(known, holm([shifts[name].p or 0.0 for name in known]), strict=True))
    aspects = []
    for name in ASPECTS:
        p, distance = corrected.get(name), settle(shifts[name].distance)
        beyond = p is not None and settle(p) < limits.alpha and distance >= limits.min_shift
        rows = tuple(pool_rare(counted[0][name], counted[1][name]))
        grown = _find_grown(rows) if beyond else ""
        drivers = tuple(_list_drivers(places[0], name, grown)) if grown else ()
        aspects.append(DriftedAspect(name, p, distance, beyond, rows, grown, drivers))
    memes = tuple(counts["verdicts"].total() for counts in counted)
    note = _compare_detectors(*(counts["detectors"] for counts in counted))
    sizes = memes[0], memes[1]
    grown = _name_grown(aspects, sizes)
    return Drift(*places, sizes, tuple(aspects), limits.alpha, limits.min_shift, note, grown)


def _compare_detectors(now: Counter[str], then: Counter[str]) -> str:
    """Describe a change of detectors; empty if both folders have the same ones.

    A detector is identified by its checksum: a copied or renamed file is the same detector.

    >>> _compare_detectors(Counter(["new/a.zip@12"]), Counter(["a.zip@12"]))
    ''
    """
    known = [{name.rpartition("@")[2]: name for name in sorted(names)} for names in (now, then)]
    if not all(known) or known[0].keys() == known[1].keys():
        return ""
    told = [" and ".join(sorted(names.values())) for names in known]
    return (
        f"the detector changed from {told[1]} to {told[0]}: this alone changes scores,"
        " verdicts, types and unseen-n-gram rates"
    )


def _name_grown(aspects: Sequence[DriftedAspect], memes: tuple[int, int]) -> str:
    """Name the group of memes whose proportion grew most, among the groups that shifted.

    The combined category of rare values and the memes without a type of harm are not groups.
    """
    known = {aspect.name: aspect for aspect in aspects if aspect.beyond}
    grown = [
        (settle(now / memes[0] - then / memes[1]), now / memes[0], then / memes[1], group, name)
        for aspect, group in _GROUPS.items()
        if aspect in known
        for name, now, then in known[aspect].counts
        if name not in (REST, "none")
    ]
    if not grown:
        return ""
    gain, now, then, group, name = max(grown, key=lambda one: one[0])
    if gain <= 0:
        return ""
    return (
        f"the group that grew most is {group.format(name)}: from {then:.1%} to {now:.1%}"
        " of all memes"
    )


def _count(folder: Path) -> dict[str, Counter[str]]:
    """Count the categories of all verdicts of a folder, and their detectors."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*ASPECTS, "detectors")}
    for row in _read(folder):
        if judge := row.get("detector"):
            counts["detectors"][judge] += 1
        for name, category in _classify(row).items():
            counts[name][category] += 1
    return counts


def _read(folder: Path) -> Iterator[Mapping[str, Any]]:
    if has_sample(folder):
        yield from read_sample(folder)
        return
    if not (folder / "parts").is_dir():
        hint = "give an output folder of 'screen', or a day of 'serve --sample'"
        raise InputError(f"{folder} has no verdicts", hint=hint)
    need_parquet()
    for table in read_tables(folder, (*COLUMNS, "detector")):
        yield from table.to_pylist()


def _classify(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the value of each compared property of a verdict; unscored memes have no score."""
    found = {"verdicts": str(row["label"] or row["status"])}
    if row["language"]:
        found["languages"] = str(row["language"])
    if row["template_cluster"]:
        found["templates"] = str(row["template_cluster"])
    if _is_number(row["probability"]):
        found["scores"] = _name_bin(row["probability"])
        found["types"] = str(row["type"] or "none")
    if _is_number(row["unseen_ngram_rate"]):
        found["unseen_ngram_rate"] = _name_bin(row["unseen_ngram_rate"])
    return found


def _name_bin(value: float) -> str:
    """Name the bin of width 0.1 that a value between 0 and 1 falls into.

    >>> _name_bin(0.3), _name_bin(0.0), _name_bin(1.0)
    ('0.3 to 0.4', '0.0 to 0.1', '0.9 to 1.0')
    """
    place = min(_BINS - 1, max(0, int(settle(value * _BINS))))
    return f"{place / _BINS:.1f} to {(place + 1) / _BINS:.1f}"


def _find_grown(rows: tuple[tuple[str, int, int], ...]) -> str:
    """Find the category whose proportion grew most."""
    now, then = sum(row[1] for row in rows), sum(row[2] for row in rows)
    return max(rows, key=lambda row: settle(row[1] / now - row[2] / then))[0]


def _list_drivers(folder: Path, aspect: str, category: str) -> Iterator[Mapping[str, Any]]:
    """List the first memes of a category; none for the combined category of rare values."""
    left = 0 if category == REST else _MOST_MEMES
    for row in _read(folder) if left else ():
        if _classify(row).get(aspect) == category:
            yield {name: row[name] for name in ("id", "text", "probability", "type")}
            left -= 1
            if not left:
                return
