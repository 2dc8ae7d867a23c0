"""Read a folder of images and write ``memes.jsonl``; resumable, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.construction.collect.looks import (
    OWN,
    VERSION,
    FileLook,
    ListedFile,
    digest_file,
    fingerprint,
    list_entries,
    look_at,
)
from memantics.construction.collect.rules import Dropped, MemeCandidate, RuleSet
from memantics.core.data import dump_json
from memantics.core.errors import StoreError
from memantics.core.files import (
    drop_torn_tail,
    lock_folder,
    read_whole_lines,
    refuse_unwritable,
    replace_file,
    write_whole,
)
from memantics.core.images import read_bytes
from memantics.core.language import Guess, guess_language
from memantics.core.lines import Ocr, TextChoice
from memantics.core.memes import MEMES
from memantics.core.result import Result
from memantics.understanding.templates import CLUSTER_BITS, DUPLICATE_BITS, Face, Kin, find_kin

LOOKS, REPORT, PAGE = "looks.jsonl", "report.json", "dropped.html"
_LOOK = TypeAdapter(FileLook)


@dataclass(frozen=True, slots=True)
class CollectSettings:
    """How a folder of images is read, and which memes are kept.

    Attributes:
        out: Copy the memes that are kept there. Default: ``memes.jsonl`` goes beside the images.
        rules: Rules that drop images, with their thresholds.
        duplicate_bits: Bits of the perceptual hash within which the same text is a copy.
        cluster_bits: Bits within which images belong to one template cluster.
        workers: Processes that read images.
        text: Which text of an image is its caption: lines with that role (``"caption"``), or
            ``"all"``.
    """

    out: Path | None = None
    rules: RuleSet = field(default_factory=RuleSet)
    duplicate_bits: int = DUPLICATE_BITS
    cluster_bits: int = CLUSTER_BITS
    workers: int = 1
    text: TextChoice = "caption"


@dataclass(frozen=True, slots=True)
class Kept:
    """Store one meme after collection; ``dropped`` is None if it is kept."""

    entry: ListedFile
    look: FileLook
    text: str
    guess: Guess
    kin: Kin
    dropped: Dropped | None


@dataclass(frozen=True, slots=True)
class Collected(Result):
    """Store the result of a collection; ``folder`` contains ``memes.jsonl``."""

    folder: Path
    memes: tuple[Kept, ...]
    fresh: int

    @property
    def counts(self) -> dict[str, int]:
        """Count kept memes and the memes dropped by each rule."""
        reasons = Counter(kept_item.dropped.rule for kept_item in self.memes if kept_item.dropped)
        kept = sum(kept_item.dropped is None for kept_item in self.memes)
        return {"kept": kept, **dict(reasons.most_common())}

    @property
    def template_clusters(self) -> int:
        """Number of template clusters with several kept memes."""
        kept = Counter(
            kept_item.kin.template_cluster
            for kept_item in self.memes
            if kept_item.kin.template_cluster and not kept_item.dropped
        )
        return sum(count > 1 for count in kept.values())


GatherWatch = Callable[[int, int], None]


def gather(
    folder: Path,
    open_reader: Callable[[], Ocr],
    settings: CollectSettings,
    watch: GatherWatch = lambda _done, _total: None,
) -> Collected:
    """Read every image once, apply the rules and write ``memes.jsonl``.

    Results are stored under a hash of the file content. After an interruption, or with new
    thresholds, no image is read again.
    """
    entries = list_entries(folder, settings.out)
    out = settings.out or folder
    with refuse_unwritable(out, "choose another folder with --out"):
        (out / OWN).mkdir(parents=True, exist_ok=True)
        with lock_folder(out / OWN):
            looks, fresh = _look_at_all(entries, out / OWN / LOOKS, (open_reader, settings), watch)
            if out.resolve() == folder.resolve():
                looks = [
                    _refuse_name(*entry_and_look)
                    for entry_and_look in zip(entries, looks, strict=True)
                ]
            memes = tuple(_judge(entries, looks, settings))
            _write(out, folder, memes)
    return Collected(out, memes, fresh)


def _look_at_all(
    entries: Sequence[ListedFile],
    call_log: Path,
    how: tuple[Callable[[], Ocr], CollectSettings],
    watch: GatherWatch,
) -> tuple[list[FileLook], int]:
    open_reader, settings = how
    drop_torn_tail(call_log)
    version = f"{VERSION}/{open_reader().version}"
    known = {look.sha256: look for look in _read_call_log(call_log) if look.version == version}
    looks: dict[int, FileLook] = {}
    first: list[int] = []
    twins: dict[int, int] = {}  # identical bytes under two names are read once
    pending: dict[str, int] = {}
    for place, entry in enumerate(entries):
        digest = digest_file(entry.path)
        if digest in known:
            looks[place] = known[digest]
        elif digest in pending:
            twins[place] = pending[digest]
        else:
            if digest:
                pending[digest] = place
            first.append(place)
    watch(len(looks), len(entries))
    with call_log.open("ab", buffering=0) as file:
        for place, look in _look_in_turn([entries[p].path for p in first], open_reader, settings):
            looks[first[place]] = look
            if look.sha256:
                write_whole(file, orjson.dumps(look, option=orjson.OPT_APPEND_NEWLINE))
            watch(len(looks), len(entries))
    looks |= {place: looks[twin] for place, twin in twins.items()}
    watch(len(looks), len(entries))
    return [looks[place] for place in range(len(entries))], len(first)


def _look_in_turn(
    paths: Sequence[Path], open_reader: Callable[[], Ocr], settings: CollectSettings
) -> Iterator[tuple[int, FileLook]]:
    """Yield reading results with their positions; use several processes if requested."""
    if settings.workers <= 1 or len(paths) < 2:
        reader = open_reader()
        yield from ((place, look_at(path, reader)) for place, path in enumerate(paths))
        return
    with ProcessPoolExecutor(settings.workers, initializer=_begin, initargs=(open_reader,)) as pool:
        # Only a limited number of images is in progress; results are written as they arrive.
        window: list[tuple[int, Future[FileLook]]] = []
        try:
            for place, path in enumerate(paths):
                window.append((place, pool.submit(_look, path)))
                if len(window) >= 4 * settings.workers:
                    number, future = window.pop(0)
                    yield number, future.result()
            for number, future in window:
                yield number, future.result()
        except BrokenProcessPool as error:
            raise StoreError(
                "a process that reads images was killed",
                hint="run the same command with --workers 1; it resumes where it stopped",
            ) from error


_reader: list[Ocr] = []


def _begin(open_reader: Callable[[], Ocr]) -> None:
    _reader[:] = [open_reader()]


def _look(path: Path) -> FileLook:
    return look_at(path, _reader[0])


def _read_call_log(path: Path) -> Iterator[FileLook]:
    for number, line in read_whole_lines(path):
        try:
            yield _LOOK.validate_json(line)
        except ValidationError as error:
            raise StoreError(
                f"{path}: line {number} is damaged",
                hint="remove that line; the image is read again",
            ) from error


def _refuse_name(entry: ListedFile, look: FileLook) -> FileLook:
    """Return why a file name that is not UTF-8 cannot be listed beside the images."""
    if look.error or not entry.escaped:
        return look
    error = "its name is not UTF-8: rename the file, or collect with --out"
    return FileLook(look.sha256, look.version, error=error)


def _judge(
    entries: Sequence[ListedFile], looks: Sequence[FileLook], settings: CollectSettings
) -> Iterator[Kept]:
    texts = [entry.text or look.text for entry, look in zip(entries, looks, strict=True)]
    faces = [
        Face(entry.id, look.sha256, int(look.hash, 16), text, look.width * look.height)
        for entry, look, text in zip(entries, looks, texts, strict=True)
        if look.hash
    ]
    kin = find_kin(faces, settings.duplicate_bits, settings.cluster_bits)
    for entry, look, text in zip(entries, looks, texts, strict=True):
        guess = Guess(entry.language, 1.0, "given") if entry.language else guess_language(text)
        kinship = kin.get(entry.id, Kin())
        dropped = settings.rules.judge(MemeCandidate(look, text, guess, bool(entry.text)))
        if dropped is None and kinship.original:
            alike = f"{kinship.distance} bits apart" if kinship.distance else "the same image"
            dropped = Dropped("duplicate", f"a duplicate of {kinship.original}: {alike}, same text")
        if entry.pinned is not None and not look.error:
            dropped = None if entry.pinned else Dropped("person", "removed by a person")
        yield Kept(entry, look, text, guess, kinship, dropped)


def _write(out: Path, folder: Path, memes: Sequence[Kept]) -> None:
    lines = []
    for kept_item in memes:
        image = kept_item.entry.file
        if out.resolve() != folder.resolve():
            image = f"images/{kept_item.entry.id}{kept_item.entry.path.suffix.lower()}"
            if kept_item.dropped is None:
                _copy(kept_item, out / image)
        lines.append(orjson.dumps(_make_line(kept_item, image), option=orjson.OPT_APPEND_NEWLINE))
    replace_file(out / MEMES, b"".join(lines), "list of memes")
    summary = Collected(out, tuple(memes), 0)
    report: Mapping[str, JsonValue] = {
        "images": len(memes),
        "counts": dict(summary.counts),
        "template_clusters": summary.template_clusters,
    }
    (out / OWN / REPORT).write_text(dump_json(report), encoding="utf-8")


def _copy(kept_item: Kept, place: Path) -> None:
    """Copy an image unless an identical copy exists."""
    if place.is_file() and digest_file(place) == kept_item.look.sha256:
        return
    replace_file(place, read_bytes(kept_item.entry.path), "image")


def _make_line(kept_item: Kept, image: str) -> dict[str, JsonValue]:
    return {
        "id": kept_item.entry.id,
        "image": image,
        "text": kept_item.text,
        "language": kept_item.guess.language,
        **kept_item.entry.extra,
        "kept": kept_item.dropped is None,
        "rule": kept_item.dropped.rule if kept_item.dropped else "",
        "reason": kept_item.dropped.reason if kept_item.dropped else "",
        "template_cluster": kept_item.kin.template_cluster,
        "copy_of": kept_item.kin.original,
        "hash": kept_item.look.hash,
        "width": kept_item.look.width,
        "height": kept_item.look.height,
        "collected": {
            "file": kept_item.entry.file,
            "sha256": kept_item.look.sha256,
            "text": "given" if kept_item.entry.text else "read",
            "language": "given" if kept_item.entry.language else "guessed",
            "told_by": kept_item.guess.method,
            "wrote": fingerprint(kept_item.text),
            "guess": kept_item.guess.language,
            "verdict": kept_item.dropped is None,
            "pinned": kept_item.entry.pinned,
            "certainty": kept_item.look.certainty,
            "covered": kept_item.look.covered,
            "variety": kept_item.look.variety,
        },
    }
