"""A sample of each day's verdicts, which ``drift`` reads: scores and kinds, texts only if asked.

A folder for each day (UTC) holds JSON lines, one file for each process that writes. A verdict is
kept by chance, whatever it is; beyond ``most`` a day nothing more is kept.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import Field

from memantics.core.closed import Closed
from memantics.core.data import read_jsonl
from memantics.core.errors import DataError
from memantics.core.parameters import Flag
from memantics.detector.verdict import Verdict

COLUMNS = (
    "id", "status", "text", "language", "label", "probability", "type", "family", "novelty",
)  # fmt: skip
_FILES = "sample-*.jsonl"


class SampleChoice(Closed):
    """Where samples go, the share of verdicts that is kept, and whether their texts are."""

    folder: Path
    share: float = Field(default=0.05, gt=0, le=1)
    texts: bool = False
    most: int = 20_000


def choose_sample(
    sample: Annotated[
        Path | None, Flag("Folder for a sample of each day's verdicts, which drift reads.")
    ] = None,
    sample_share: Annotated[float, Flag("Share of verdicts in it.", min=0.0001, max=1)] = 0.05,
    sample_texts: Annotated[bool, Flag("Keep the texts of that sample, too.")] = False,
) -> SampleChoice | None:
    """What the flags of a service say; None where no sample is kept."""
    if sample is None:
        return None
    return SampleChoice(folder=sample, share=sample_share, texts=sample_texts)


def _name_today() -> str:
    return datetime.now(UTC).date().isoformat()


class DailySample:
    """Keeps some verdicts of each day; ``today`` names the folder."""

    def __init__(
        self,
        choice: SampleChoice,
        draw: Callable[[], float] = random.random,
        today: Callable[[], str] = _name_today,
    ) -> None:
        self._choice, self._draw, self._today = choice, draw, today
        self._day, self._kept = "", 0

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict, or not; OSError where it cannot be written."""
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
        # One call writes the whole line: a reader finds no half of one.
        mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.open(folder / _FILES.replace("*", str(os.getpid())), mode, 0o600)
        try:
            os.write(file, orjson.dumps(kept) + b"\n")
        finally:
            os.close(file)
        self._kept += 1


def has_sample(folder: Path) -> bool:
    """Whether a folder holds the sample of a day."""
    return any(folder.glob(_FILES))


def read_sample(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The verdicts of a day, file by file."""
    for path in sorted(folder.glob(_FILES)):
        for number, row in read_jsonl(path):
            if not isinstance(row, dict) or not set(COLUMNS) <= row.keys():
                raise DataError(path.name, "is no verdict of a daily sample", row=number)
            yield row
