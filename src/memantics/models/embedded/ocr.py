"""Reading the text in an image: RapidOCR, lines in reading order, and a table of readings."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import Unavailable
from memantics.core.home import home
from memantics.core.images import decode

if TYPE_CHECKING:
    from rapidocr import RapidOCR

_DETECTOR = "PP-OCRv6_det_small.onnx"
_RECOGNISER = "PP-OCRv6_rec_small.onnx"
_SHORT_SIDE = 544  # finding text: smaller images are enlarged to this
_LONG_SIDE = 1280  # larger ones are reduced: time grows with the area, recall does not
_TINY = 8
MOST_REGIONS = 150  # of text that are read in one image
MOST_LENGTH = 800  # of all of them together, in line heights
_IN_MEMORY = 2048  # readings
_ENGINE_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text and its box (left, top, right, bottom) in pixels."""

    text: str
    box: tuple[int, int, int, int]
    score: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What an image says, in reading order."""

    lines: tuple[Line, ...] = ()

    @property
    def text(self) -> str:
        """All lines, one below the other."""
        return "\n".join(line.text for line in self.lines)


_READING = TypeAdapter(Reading)


class Ocr(Protocol):
    """Anything that reads images. ``version`` changes whenever readings may change."""

    version: str

    def read(self, data: bytes, name: str) -> Reading:
        """Read the bytes of an image file; ``name`` is for errors."""
        ...


class RapidReader:
    """RapidOCR on one thread, with the weights of its own wheel; loaded once a process.

    Orientation is not classified: captions of memes stand upright, and the classifier changed
    no reading (docs/research/embedded-reader.md).
    """

    def __init__(self) -> None:
        self.version = f"rapidocr-{_version('rapidocr')}/{_SHORT_SIDE}-{_LONG_SIDE}-{MOST_REGIONS}"

    def read(self, data: bytes, name: str) -> Reading:
        """Decode within bounds and read."""
        import numpy as np

        image = decode(data, name)
        if min(image.size) < _TINY:
            return Reading()
        pixels = np.asarray(image)[:, :, ::-1]
        with _ENGINE_LOCK:
            found: Any = _load_engine(_weights())(np.ascontiguousarray(pixels))
        if not found.txts:
            return Reading()
        lines = (
            Line(text.strip(), _box(corners), round(float(score), 4))
            for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True)
        )
        return Reading(order_lines(line for line in lines if line.text))


@cache
def _load_engine(folder: Path) -> RapidOCR:
    from rapidocr import RapidOCR

    class BoundedOcr(RapidOCR):
        """Reads the largest regions only: time grows with their number and length."""

        def detect_and_crop(self, img: Any, op_record: dict[str, Any]) -> tuple[list[Any], Any]:
            found: Any
            crops, found = super().detect_and_crop(img, op_record)
            kept = choose_regions([crop.shape[:2] for crop in crops])
            found.boxes = found.boxes[kept]
            found.scores = [found.scores[at] for at in kept]
            return [crops[at] for at in kept], found

    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    # With explicit paths no code that could download weights is reached.
    return BoundedOcr(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.max_side_len": _LONG_SIDE,
            "Det.model_path": str(folder / _DETECTOR),
            "Det.limit_side_len": _SHORT_SIDE,
            "Rec.model_path": str(folder / _RECOGNISER),
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def choose_regions(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Which regions (heights and widths) are read: the largest, while they are few and short.

    >>> choose_regions([(20, 100), (20, 60_000), (40, 400)])
    [0, 2]
    """
    largest = sorted(range(len(sizes)), key=lambda at: -sizes[at][0] * sizes[at][1])
    kept, length = [], 0.0
    for at in largest[:MOST_REGIONS]:
        high, wide = sizes[at]
        if length + wide / max(1, high) <= MOST_LENGTH:
            length += wide / max(1, high)
            kept.append(at)
    return sorted(kept)


def order_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Rows from the top, each from the left; boxes that overlap half their height share a row.

    >>> right, left = Line("b", (60, 2, 90, 22), 1.0), Line("a", (0, 0, 50, 20), 1.0)
    >>> below = Line("c", (0, 40, 50, 60), 1.0)
    >>> "".join(line.text for line in order_lines([below, right, left]))
    'abc'
    """
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda each: (each.box[1] + each.box[3], each.box, each.text)):
        if rows and _same_row(rows[-1][0], line):
            rows[-1].append(line)
        else:
            rows.append([line])
    return tuple(line for row in rows for line in sorted(row, key=lambda each: each.box))


def _same_row(one: Line, other: Line) -> bool:
    shared = min(one.box[3], other.box[3]) - max(one.box[1], other.box[1])
    lower = min(one.box[3] - one.box[1], other.box[3] - other.box[1])
    return shared > lower / 2


def _box(corners: Sequence[Sequence[float]]) -> tuple[int, int, int, int]:
    across = [float(x) for x, _ in corners]
    down = [float(y) for _, y in corners]
    return round(min(across)), round(min(down)), round(max(across)), round(max(down))


def _weights() -> Path:
    spec = find_spec("rapidocr")
    folder = Path(spec.origin).parent / "models" if spec and spec.origin else None
    if folder is None or not all((folder / name).is_file() for name in (_DETECTOR, _RECOGNISER)):
        raise Unavailable(
            "embedded/reader cannot read images: rapidocr or its weights are missing",
            hint="pip install 'rapidocr>=3.10,<4'",
        )
    return folder


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


class RememberingOcr:
    """An OCR that looks in a small table first, keyed by image content and OCR version.

    Threads may share it: one of them reads at a time.

    ``folder`` is where the table lies. A folder that cannot be written costs speed and nothing
    else, so it is no error: readings are then kept in memory only.
    """

    def __init__(self, ocr: Ocr, folder: Path | None) -> None:
        self.version = ocr.version
        self._ocr = ocr
        self._lock = threading.Lock()
        self._recent: OrderedDict[bytes, Reading] = OrderedDict()
        self._db = None if folder is None else _open_table(folder)

    def read(self, data: bytes, name: str) -> Reading:
        """The reading of an image, remembered or fresh."""
        key = hashlib.sha256(self.version.encode() + b"\0" + hashlib.sha256(data).digest()).digest()
        with self._lock:
            found = self._recent.get(key) or self._load(key)
            if found is None:
                found = self._ocr.read(data, name)
                self._save(key, found)
            self._recent[key] = found
            self._recent.move_to_end(key)
            if len(self._recent) > _IN_MEMORY:
                self._recent.popitem(last=False)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the table."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _load(self, key: bytes) -> Reading | None:
        if self._db is None:
            return None
        try:
            row = self._db.execute("SELECT body FROM readings WHERE key = ?", (key,)).fetchone()
            return None if row is None else _READING.validate_json(row[0])
        except (sqlite3.Error, ValidationError):
            return None  # a damaged row is read afresh and written over

    def _save(self, key: bytes, reading: Reading) -> None:
        if self._db is None:
            return
        try:
            self._db.execute(
                "INSERT OR REPLACE INTO readings VALUES (?, ?)", (key, orjson.dumps(reading))
            )
        except sqlite3.Error:
            self.close()  # a full or read-only disk: go on in memory


def _open_table(folder: Path) -> sqlite3.Connection | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The model's one worker thread uses it, and whoever closes the model.
        db = sqlite3.connect(
            folder / "readings.sqlite", isolation_level=None, timeout=5, check_same_thread=False
        )
    except (sqlite3.Error, OSError):
        return None
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute(
            "CREATE TABLE IF NOT EXISTS readings"
            " (key BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID"
        )
    except sqlite3.Error:
        db.close()
        return None
    return db


def open_reader() -> RememberingOcr:
    """The OCR that ships, with the table of readings in the user's folder; every process its own.

    Opening it is cheap: the network is loaded when an image is read that is not in the table.
    """
    return RememberingOcr(RapidReader(), home() / "ocr")
