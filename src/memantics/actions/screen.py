"""``screen``: images or texts in, verdicts out, a million at a time, each meme once."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from pydantic import JsonValue

from memantics.actions.detect import Detector
from memantics.core.errors import InputError, MemanticsError
from memantics.core.images import decode
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.queue import QueueCard, QueueItem, Shown, write_queue
from memantics.core.result import Result
from memantics.detector.examples import Example
from memantics.report.pages.screening import summarize, write_summary
from memantics.scale.driver import ScaleProgress, ScaleResult, ScaleSettings, run_shards
from memantics.scale.engines import Engine, PoolEngine
from memantics.scale.fetching import Fetcher
from memantics.scale.records import Process, Ref, Row
from memantics.scale.sources import STDIN, Columns, read_sources
from memantics.vision.captions import choose_captions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Columns", "ScaleProgress", "ScreenSettings", "Screened", "open_engine", "screen"]
ReadText = Callable[[bytes, str], str]
LABELS = ("harmless", "harmful", "review")
_MOST_TEXT = 20_000
_READINGS = 3


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """How memes are judged.

    ``detector`` is a file; without one the tiny detector of the starter pack shows how things work.
    ``threshold`` is the probability from which a meme is ``harmful`` (default: the detector's own);
    ``decide`` chooses it on the detector's held-out predictions (``precision=0.9``). Memes in the
    range ``review`` are for people. ``explain`` adds reasons to flagged memes, ``readings`` what
    Chinese texts may be heard as.
    """

    detector: Path | None = None
    threshold: float | None = None
    decide: str = ""
    review: tuple[float, float] | None = None
    explain: bool = False
    readings: bool = True

    def __post_init__(self) -> None:
        if self.threshold is not None and self.decide:
            raise InputError("a threshold and a rule for one exclude each other", hint="drop one")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise InputError(f"threshold {self.threshold} is no probability", hint="use 0 to 1")
        if self.review is not None and not 0 <= self.review[0] < self.review[1] <= 1:
            raise InputError(
                f"{self.review[0]}..{self.review[1]} is no range", hint="such as 0.3..0.7"
            )


@dataclass(frozen=True, slots=True)
class Screened(Result):
    """Where the verdicts are, and how many of which kind."""

    folder: Path
    rows: int
    statuses: Mapping[str, int]
    labels: Mapping[str, int]
    repeated: int
    done_now: int
    seconds: float
    cpu: float
    detector: str
    threshold: float
    note: str = ""
    review_queue: Path | None = None
    summary: Path | None = None

    def rows_iter(self) -> Iterator[Row]:
        """The verdicts one by one."""
        return read_rows(self.folder)

    def to_pandas(self) -> Any:
        """All verdicts as a data frame."""
        import pyarrow.parquet as pq

        return pq.read_table(self.folder / "parts").to_pandas()


def read_rows(folder: Path) -> Iterator[Row]:
    """The verdicts in a folder, part by part."""
    import pyarrow.parquet as pq

    for path in sorted((folder / "parts").glob("part-*.parquet")):
        yield from pq.read_table(path).to_pylist()


@dataclass(frozen=True)
class ScreenWork:
    """What a worker does to each meme; see :class:`~memantics.scale.records.Work`."""

    settings: ScreenSettings
    threshold: float
    detector: str
    languages: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The verdict row, as DESIGN's contract has it."""
        import pyarrow as pa

        text = pa.string()
        piece = pa.struct([("piece", text), ("share", pa.float64())])
        return pa.schema(
            [
                ("id", text),
                ("sha256", text),
                ("phash", text),
                ("status", text),
                ("reason", text),
                ("text", text),
                ("text_source", text),
                ("language", text),
                ("label", text),
                ("probability", pa.float64()),
                ("type", text),
                ("types", pa.list_(pa.struct([("type", text), ("probability", pa.float64())]))),
                ("because", pa.list_(piece)),
                ("readings", pa.list_(text)),
                ("family", text),
                ("detector", text),
            ]
        )

    def open(self) -> Process:
        """Load the detector once; the OCR and the ear are loaded when they are first needed."""
        path = self.settings.detector
        judge = Detector.load(path) if path else Detector.starter()
        return partial(self._screen, judge, Fetcher(), _open_reader())

    def fail(self, ref: Ref, reason: str) -> Row:
        """A row without a verdict."""
        return self._row(ref, status="failed", reason=reason)

    def _row(self, ref: Ref, **known: Any) -> Row:
        empty: Row = dict.fromkeys(self.schema.names)
        given = {
            "text": (ref.text or "")[:_MOST_TEXT],
            "text_source": _source(ref),
        }
        start = {"id": ref.id, "types": [], "because": [], "readings": [], "reason": ""}
        return empty | start | given | {"detector": self.detector} | known

    def _screen(
        self,
        judge: Detector,
        fetcher: Fetcher,
        read: ReadText,
        refs: Sequence[Ref],
    ) -> list[Row]:
        rows = [self._look(ref, fetcher, read) for ref in refs]
        ready = [row for row in rows if row["status"] == "judged"]
        examples = [Example(str(place), row["text"]) for place, row in enumerate(ready)]
        for row, example, said in zip(ready, examples, judge.predict(examples), strict=True):
            row["probability"] = said.probability
            row["label"] = self._decide(said.probability)
            row["types"] = [
                {"type": name, "probability": chance}
                for name, chance in sorted((said.types or {}).items())
            ]
            row["type"] = said.type if row["label"] != "harmless" else None
            if row["label"] != "harmless" and self.settings.explain:
                row["because"] = _list_reasons(judge, example)
        return rows

    def _decide(self, probability: float) -> str:
        review = self.settings.review
        if review is not None and review[0] <= probability <= review[1]:
            return "review"
        return "harmful" if probability >= self.threshold else "harmless"

    def _look(self, ref: Ref, fetcher: Fetcher, read: ReadText) -> Row:
        """Everything before the verdict: bytes, hash, text, language; or why there is none."""
        row = self._row(ref)
        try:
            data = fetcher.fetch(ref)
            if data is not None:
                row |= _identify(data, ref.id)
                if not (ref.text or "").strip():
                    row |= {"text": read(data, ref.id)[:_MOST_TEXT], "text_source": "ocr"}
        except MemanticsError as error:
            return self._row(ref, status="failed", reason=str(error))
        text = row["text"].strip()
        if not text:
            why = "no text can be read in the image" if data is not None else "the text is empty"
            return row | {"status": "unjudged", "reason": why, "text_source": "none"}
        row["language"] = ref.language or guess_language(text).language
        if row["language"] not in self.languages:
            found = row["language"]
            shown = "no language that can be told" if found == UNKNOWN else found
            known = ", ".join(self.languages)
            return row | {
                "status": "unjudged",
                "reason": f"the text is in {shown}; the detector was trained on {known}",
            }
        if self.settings.readings and row["language"] == "zh":
            row["readings"] = _listen(text)
        return row | {"status": "judged"}


def _identify(data: bytes, name: str) -> Row:
    from memantics.vision.hashes import hash_image

    image = decode(data, name)
    return {"sha256": hashlib.sha256(data).hexdigest(), "phash": f"{hash_image(image):016x}"}


def _source(ref: Ref) -> str:
    return "given" if ref.text else "none"


def _open_reader() -> ReadText:
    from memantics.models.embedded.ocr import open_reader

    reader = open_reader()
    return lambda data, name: "\n".join(
        choose_captions(line.text for line in reader.read(data, name).lines)
    )


def _listen(text: str) -> list[str]:
    """What a Chinese caption may be heard as, where its sound says something else."""
    from memantics.phonetics.reading import MAX_CHARACTERS
    from memantics.phonetics.speech import read_aloud

    if len(text) > MAX_CHARACTERS:
        return []
    heard = read_aloud(text)
    return [reading.text for reading in heard.readings[:_READINGS]] if heard.meant else []


def _list_reasons(judge: Detector, example: Example) -> list[Row]:
    with suppress(InputError):  # networks give no reasons
        found = judge.explain(example).strongest(6)
        return [{"piece": part.text, "share": part.contribution} for part in found]
    return []


def screen(
    sources: str | Path | Sequence[str | Path],
    settings: ScreenSettings | None = None,
    *,
    out: str | Path = "screened",
    columns: Columns | None = None,
    engine: Engine | None = None,
    shard_size: int = 1000,
    retry_failed: bool = False,
    csv: bool = False,
    stdin: IO[bytes] | None = None,
    progress: Callable[[ScaleProgress], None] | None = None,
) -> Screened:
    """Judge every meme of the sources and write the verdicts as Parquet parts.

    Sources are image files, folders, ``.jsonl``/``.csv``/``.parquet`` tables, tar shards, a
    published benchmark, or ``-`` for JSON lines on standard input. Calling it again does only what
    is not finished; ``retry_failed`` also tries failed rows again.
    """
    settings = settings or ScreenSettings()
    listed = [sources] if isinstance(sources, str | Path) else list(sources)
    judge = Detector.load(settings.detector) if settings.detector else Detector.starter()
    threshold = choose_threshold(judge, settings)
    name = f"{judge.name}@{judge.checksum[:12]}"
    work = ScreenWork(settings, threshold, name, judge.languages)
    identity: dict[str, JsonValue] = {
        "detector": name,
        "threshold": threshold,
        "review": list(settings.review or ()),
        "explain": settings.explain,
        "readings": settings.readings,
    }
    folder = Path(out)
    done = run_shards(
        read_sources(listed, columns, stdin or _find_stdin(listed)),
        work,
        ScaleSettings(folder, identity, shard_size, retry_failed),
        engine or PoolEngine(),
        progress or (lambda _: None),
    )
    if csv:
        write_csv(folder)
    return _sum_up(folder, done, judge, settings, threshold)


def _find_stdin(sources: Sequence[str | Path]) -> IO[bytes] | None:
    """Standard input where a source asks for it; tests and notebooks may have none."""
    return getattr(sys.stdin, "buffer", None) if STDIN in map(str, sources) else None


def open_engine(
    name: Literal["pool", "ray"], workers: int = 0, address: str | None = None
) -> Engine:
    """The engine of that name."""
    if name == "ray":
        from memantics.scale.ray import RayEngine

        return RayEngine(workers, address)
    if address is not None:
        raise InputError("an address is that of a Ray cluster", hint="add --engine ray")
    return PoolEngine(workers)


def write_csv(folder: Path) -> Path:
    """The verdicts as one CSV file; spreadsheets run text that begins like a formula."""
    import csv

    path = folder / "verdicts.csv"
    names = ("id", "status", "reason", "label", "probability", "type", "language", "text")
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(names)
        for row in read_rows(folder):
            rows.writerow([_tame(row[name]) for name in names])
    return path


def _tame(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def choose_threshold(judge: Detector, settings: ScreenSettings) -> float:
    """The threshold that was given, or chosen by a rule, or the detector's own."""
    if settings.threshold is not None:
        return settings.threshold
    return judge.find_threshold(settings.decide) if settings.decide else judge.threshold


def _sum_up(
    folder: Path, done: ScaleResult, judge: Detector, settings: ScreenSettings, threshold: float
) -> Screened:
    summary = summarize(read_rows(folder))
    page = folder / "summary.html"
    facts = {"detector": judge.name, "threshold": threshold, "note": judge.note}
    write_summary(summary, facts, page)
    return Screened(
        folder=folder,
        rows=done.rows,
        statuses={name: done.statuses.get(name, 0) for name in ("judged", "unjudged", "failed")},
        labels=summary.labels,
        repeated=done.repeated,
        done_now=done.done_now,
        seconds=done.seconds,
        cpu=done.cpu,
        detector=judge.name,
        threshold=threshold,
        note=judge.note,
        review_queue=write_review(folder, settings) if settings.review else None,
        summary=page,
    )


def write_review(folder: Path, settings: ScreenSettings) -> Path:
    """The memes for people as a queue that the annotation app opens."""
    queue = folder / "review"
    low, high = settings.review or (0.0, 0.0)
    card = QueueCard(
        title=f"Screening: probability {low:g} to {high:g}",
        workflow="label-by-vote",
        language="zh",
        warning="Memes that may be harmful.",
        origin="memantics screen",
    )
    write_queue(queue, card, _list_review(folder))
    return queue


def _list_review(folder: Path) -> Iterator[QueueItem]:
    for number, row in enumerate(row for row in read_rows(folder) if row["label"] == "review"):
        shown = [Shown(label="text", value=row["text"])] if row["text"] else []
        hidden = {"probability": row["probability"], "type": row["type"], "id": row["id"]}
        yield QueueItem(id=f"{number:06d}", group=row["id"][:300], shown=shown, hidden=hidden)
