"""OCR for images, with a cache of earlier results."""

from __future__ import annotations

import hashlib
import logging
import math
import sqlite3
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import Unavailable, need_offline, require_known
from memantics.core.images import decode
from memantics.core.lines import (
    CharacterAlternative,
    ImageReading,
    Ocr,
    TextChoice,
    TextLine,
    order_lines,
)
from memantics.core.registry import home

# RapidOCR with the weights of its own wheel, in two profiles; docs/research/ocr.md has
# measurements.

OcrProfile = Literal["thorough", "fast"]
CropPixels = NDArray[np.uint8]
_DETECTOR = "PP-OCRv6_det_small.onnx"
_RECOGNISER = "PP-OCRv6_rec_small.onnx"
_SHORT_SIDE = 544  # pixels; smaller images are enlarged to this side length before text detection
_LONG_SIDE = 1280  # pixels; larger images are reduced: time grows with the area, recall does not
_TINY = 8
MOST_REGIONS = 150  # maximum number of text regions that are read in one image
MOST_LENGTH = 800  # maximum total length of these regions, in line heights
_BATCH = 6  # number of lines that are recognised in one batch
LONG_LINE = 30  # line heights; if an image has a longer line, its lines are recognised one by one
# ``fast``: detection uses two thirds of the short side, within these limits in pixels
_FAST_SIDES = (320, 640)
_FAST_WIDTH = 160  # ``fast``: lines are padded to this width in pixels; RapidOCR pads to 320
_SURE = 0.5  # minimum recognition score; results below it are not text
_DENORMAL = 1e-20
_UNSURE = 0.9  # characters with a lower probability get alternatives
_LEAST = 0.02  # minimum probability of an alternative
_MOST_UNSURE, _MOST_ALTERNATIVES = 6, 3  # maximum numbers per line and per character
_ENGINE_LOCK = threading.Lock()


class RapidReader:
    """RapidOCR on one thread; the networks are loaded once per process.

    The profile ``thorough`` uses RapidOCR's own settings. The profile ``fast`` detects text in a
    smaller copy and reads the lines from the full image. If it finds no text, it repeats the
    detection at full size. Orientation is not classified: captions of memes are upright, and the
    classifier changed no result (docs/research/embedded-reader-rules.md).
    """

    def __init__(self, profile: OcrProfile = "thorough") -> None:
        require_known("OCR profile", profile, get_args(OcrProfile))
        self.profile = profile
        sizes = f"{_SHORT_SIDE}-{_LONG_SIDE}-{MOST_REGIONS}"
        self.version = f"rapidocr-{_version('rapidocr')}/{sizes}/{profile}-5"

    def read(self, data: bytes, name: str) -> ImageReading:
        """Decode an image within size limits and read its text."""
        image = decode(data, name)
        if min(image.size) < _TINY:
            return ImageReading()
        pixels = np.ascontiguousarray(np.asarray(image)[:, :, ::-1])
        with _ENGINE_LOCK:
            engine = load_engine(_weights())
            engine.unread = 0
            engine.unsure.clear()
            lines = list(_read_fast(engine, pixels)) if self.profile == "fast" else []
            lines = lines or list(_read_thoroughly(engine, pixels))
            return ImageReading(order_lines(line for line in lines if line.text), engine.unread)


def _read_thoroughly(engine: Any, pixels: CropPixels) -> Iterator[TextLine]:
    found = engine(pixels)
    for text, corners, score in zip(
        found.txts or (), found.boxes if found.txts else (), found.scores or (), strict=True
    ):
        line = TextLine(text.strip(), _box(corners), round(float(score), 4), *measure_tilt(corners))
        yield replace(line, alternatives=engine.unsure.get(text, ()))


def _read_fast(engine: Any, pixels: CropPixels) -> Iterator[TextLine]:
    """Detect text in a small copy and read each line separately at its own width."""
    import cv2
    from rapidocr.utils.process_img import get_rotate_crop_image

    high, wide = pixels.shape[:2]
    finder, recogniser = engine._load_det_model(), engine._load_rec_model()
    size = choose_size(wide, high)
    shrinks = size[0] < wide
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    boxes, _ = finder.postprocess_op(finder.session(_normalise(small)), (high, wide))
    if not len(boxes):
        return
    boxes = finder.sorted_boxes(boxes).astype(np.float32)
    crops = [get_rotate_crop_image(pixels, corners.copy()) for corners in boxes]
    kept = choose_regions([crop.shape[:2] for crop in crops])
    engine.unread = len(crops) - len(kept)
    for place in kept:
        crop = crops[place]
        lines = cv2.resize(crop, (max(1, round(48 * crop.shape[1] / crop.shape[0])), 48))
        row = _normalise(lines)
        if row.shape[3] < _FAST_WIDTH:
            row = np.pad(row, ((0, 0), (0, 0), (0, 0), (0, _FAST_WIDTH - row.shape[3])))
        (found,), _ = recogniser.postprocess_op(recogniser.session(row))
        if found[1] >= _SURE:
            score = round(float(found[1]), 4)
            tilt = measure_tilt(boxes[place])
            line = TextLine(found[0].strip(), _box(boxes[place]), score, *tilt)
            yield replace(line, alternatives=engine.unsure.get(found[0], ()))


def choose_size(wide: int, high: int) -> tuple[int, int]:
    """Return the size of the copy in which the profile ``fast`` detects text, in multiples of 32.

    >>> choose_size(720, 720), choose_size(200, 100), choose_size(4000, 3000), choose_size(1200, 10)
    ((480, 480), (640, 320), (864, 640), (1280, 32))
    """
    low, most = _FAST_SIDES
    scale = min(max(2 * min(wide, high) / 3, low), most) / min(wide, high)
    scale = min(scale, _LONG_SIDE / max(wide, high))
    return max(32, round(wide * scale / 32) * 32), max(32, round(high * scale / 32) * 32)


def _normalise(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Scale pixels to -1..1 in single precision, channels first, as a batch of one."""
    scaled = pixels.astype(np.float32).transpose(2, 0, 1)[None]
    return np.ascontiguousarray(scaled * np.float32(2 / 255) - np.float32(1))


@cache
def load_engine(folder: Path) -> Any:
    """Load RapidOCR on one thread for bounded images; set denormal weights to zero."""
    from onnxruntime import InferenceSession, SessionOptions
    from rapidocr import RapidOCR

    class BoundedOcr(RapidOCR):
        """Reads only the largest text regions: the time grows with their number and length.

        ``unread`` is the number of text regions that were skipped in the last image. ``unsure`` has
        the alternative characters of its lines, by text.
        """

        unread = 0
        unsure: dict[str, tuple[CharacterAlternative, ...]] = {}  # noqa: RUF012 -- one engine

        def detect_and_crop(self, img: Any, op_record: dict[str, Any]) -> tuple[list[Any], Any]:
            found: Any
            crops, found = super().detect_and_crop(img, op_record)
            kept = choose_regions([crop.shape[:2] for crop in crops])
            found.boxes = found.boxes[kept]
            found.scores = [found.scores[at] for at in kept]
            self.unread = len(crops) - len(kept)
            return [crops[at] for at in kept], found

        def recognize_txt(self, img: list[Any]) -> Any:
            # All lines of a batch are padded to the longest, and memory grows with the square of
            # that length.
            longest = max(crop.shape[1] / max(1, crop.shape[0]) for crop in img)
            recogniser: Any = self._load_rec_model()  # type: ignore[no-untyped-call]
            recogniser.rec_batch_num = 1 if longest > LONG_LINE else _BATCH
            return super().recognize_txt(img)

    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    # With explicit paths to the weights, RapidOCR's download code is never called.
    engine = BoundedOcr(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.max_side_len": _LONG_SIDE,
            "Det.model_path": str(folder / _DETECTOR),
            "Det.limit_side_len": _SHORT_SIDE,
            "Rec.model_path": str(folder / _RECOGNISER),
        }
    )
    recogniser: Any = engine._load_rec_model()  # type: ignore[no-untyped-call]
    recogniser.postprocess_op = _keep_alternatives(recogniser.postprocess_op, engine.unsure)
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = True
    # This memory pool keeps a copy per image size and saves no time.
    options.enable_mem_pattern = False
    for part, name in ((engine.cfg.Det, _DETECTOR), (engine.cfg.Rec, _RECOGNISER)):
        part._set_flag("allow_objects", True)
        body = zero_denormals((folder / name).read_bytes())
        part.session = InferenceSession(body, options, providers=["CPUExecutionProvider"])
    return engine


def _keep_alternatives(
    decode_all: Any, unsure: dict[str, tuple[CharacterAlternative, ...]]
) -> Callable[..., Any]:
    """Decode lines as before, and keep the characters that the recogniser was unsure of."""

    def decode_lines(scores: NDArray[np.float32], *given: Any, **named: Any) -> Any:
        found = decode_all(scores, *given, **named)
        for table, (text, _) in zip(scores, found[0], strict=True):
            unsure[text] = list_alternatives(table, decode_all.character)
        return found

    return decode_lines


def list_alternatives(
    scores: NDArray[np.float32], characters: Sequence[str]
) -> tuple[CharacterAlternative, ...]:
    """List likely Chinese characters that a recogniser did not choose, for its least sure ones.

    Args:
        scores: Probability of each character (columns) at each step (rows); column 0 is the blank.
        characters: The characters of the columns.

    Returns:
        At most three alternatives for each of at most six characters, in order.

    Example:
        >>> table = np.array([[0.0, 0.6, 0.4], [0.9, 0.0, 0.1]], np.float32)
        >>> list_alternatives(table, ["", "元", "无"])
        (CharacterAlternative(place=0, text='无', score=0.667),)
    """
    best, sure = scores.argmax(axis=1), scores.max(axis=1)
    chosen = best > 0
    chosen[1:] &= best[1:] != best[:-1]
    steps = np.flatnonzero(chosen)
    text = "".join(characters[best[step]] for step in steps)
    blanks = len(text) - len(text.lstrip())
    places = [
        (float(sure[step]), place - blanks, int(step))
        for place, step in enumerate(steps.tolist())
        if sure[step] < _UNSURE and "\u3400" <= characters[best[step]] <= "\u9fff"
    ]
    found = []
    for chance, place, step in sorted(sorted(places)[:_MOST_UNSURE], key=lambda unsure: unsure[1]):
        row = scores[step]
        likely = np.argsort(-row, kind="stable")[1 : _MOST_ALTERNATIVES + 3].tolist()
        others = [
            CharacterAlternative(place, characters[column], round(float(row[column]) / chance, 3))
            for column in likely
            if row[column] >= _LEAST and "\u3400" <= characters[column] <= "\u9fff"
        ]
        found += others[:_MOST_ALTERNATIVES]
    return tuple(found)


def zero_denormals(model: bytes) -> bytes:
    """Return an ONNX file of equal length with weights below 1e-20 set to zero.

    The text detection model has a quarter of a million such weights. On processors that handle such
    numbers in microcode (x86), they make reading 2.4 times slower; the result is the same.
    """
    edited = bytearray(model)
    for start, end in _find_weights(model):
        values = np.frombuffer(edited, "<f4", (end - start) // 4, start)
        values[np.abs(values) < _DENORMAL] = 0
    return bytes(edited)


# Field numbers in ONNX's protobuf format: graph of a model, initialisers of a graph, type and bytes
# of a tensor.
_GRAPH, _INITIALISER, _TYPE, _RAW, _FLOAT = 7, 5, 2, 9, 1


def _find_weights(model: bytes) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of single-precision weights in an ONNX file."""
    for graph in _list_fields(model, 0, len(model), _GRAPH):
        for tensor in _list_fields(model, *graph, _INITIALISER):
            kinds = list(_list_fields(model, *tensor, _TYPE))
            if kinds and kinds[0][0] == _FLOAT:
                yield from _list_fields(model, *tensor, _RAW)


def _list_fields(body: bytes, place: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Yield the byte range of each protobuf field with the given number."""
    while place < end:
        key, place = _read_number(body, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, place = _read_number(body, place)
            found = (value, value)
        else:
            size, place = _read_number(body, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
            found, place = (place, place + size), place + size
        if number == wanted:
            yield found


def _read_number(body: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def choose_regions(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indices of the text regions to read: the largest ones, within the limits.

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


def _box(corners: Any) -> tuple[int, int, int, int]:
    across = [float(x) for x, _ in corners]
    down = [float(y) for _, y in corners]
    return round(min(across)), round(min(down)), round(max(across)), round(max(down))


def measure_tilt(corners: Any) -> tuple[float, tuple[int, int]]:
    """Return the angle of a text region's upper edge in degrees, and the region's size.

    >>> measure_tilt([(0, 10), (100, 0), (102, 20), (2, 30)])
    (5.7, (100, 20))
    """
    (x, y), (right, top), _, (left, low) = ((float(a), float(b)) for a, b in corners)
    tilt = math.degrees(math.atan2(y - top, right - x))
    span = round(math.hypot(right - x, y - top)), round(math.hypot(left - x, low - y))
    return round(tilt, 1), span


def _weights() -> Path:
    spec = find_spec("rapidocr")
    folder = Path(spec.origin).parent / "models" if spec and spec.origin else None
    if folder is None or not all((folder / name).is_file() for name in (_DETECTOR, _RECOGNISER)):
        raise Unavailable(
            "images cannot be read: the weights of rapidocr are missing",
            hint="pip install --force-reinstall rapidocr",
        )
    return folder


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


_IN_MEMORY = 2048  # maximum number of cached results in memory
_READING = TypeAdapter(ImageReading)


class RememberingOcr:
    """OCR with a cache, keyed by image content and OCR version.

    It is thread-safe: one thread reads at a time. ``folder`` contains the cache; if the folder is
    not writable, results are kept in memory only. ``taken`` selects the lines that count as
    caption: by role, or all lines.
    """

    def __init__(self, ocr: Ocr, folder: Path | None, taken: TextChoice = "caption") -> None:
        self.version = ocr.version if taken == "caption" else f"{ocr.version}/all text"
        self._ocr, self._taken = ocr, taken
        self._lock = threading.Lock()
        self._recent: OrderedDict[bytes, ImageReading] = OrderedDict()
        self._db = None if folder is None else _open_table(folder)
        if self._db is not None:
            # Many callers receive a reader that they cannot close.
            weakref.finalize(self, self._db.close)

    def read(self, data: bytes, name: str) -> ImageReading:
        """Return the text of an image from the cache, or read it."""
        version = self._ocr.version.encode()
        key = hashlib.sha256(version + b"\0" + hashlib.sha256(data).digest()).digest()
        with self._lock:
            found = self._recent.get(key) or self._load(key)
            if found is None:
                found = self._ocr.read(data, name)
                self._save(key, found)
            self._recent[key] = found
            self._recent.move_to_end(key)
            if len(self._recent) > _IN_MEMORY:
                self._recent.popitem(last=False)
        return replace(found, taken=self._taken)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the cache file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _load(self, key: bytes) -> ImageReading | None:
        if self._db is None:
            return None
        try:
            row = self._db.execute("SELECT body FROM readings WHERE key = ?", (key,)).fetchone()
            return None if row is None else _READING.validate_json(row[0])
        except (sqlite3.Error, ValidationError):
            return None  # A damaged row is read again from the image and overwritten.

    def _save(self, key: bytes, reading: ImageReading) -> None:
        if self._db is None:
            return
        try:
            self._db.execute(
                "INSERT OR REPLACE INTO readings VALUES (?, ?)", (key, orjson.dumps(reading))
            )
        except sqlite3.Error:
            self.close()  # The disk is full or read-only: results are kept in memory only.


def _open_table(folder: Path) -> sqlite3.Connection | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The connection is used by the model's worker thread and by the thread that closes the
        # model.
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


def open_reader(profile: OcrProfile = "thorough", text: TextChoice = "caption") -> RememberingOcr:
    """Open the built-in OCR with its cache in the user's Memantics folder.

    Opening is cheap: the network is loaded for the first image that is not cached.

    Raises:
        MissingExtra: The extra ``offline`` is not installed.
    """
    need_offline("rapidocr", "onnxruntime", "cv2")
    return RememberingOcr(RapidReader(profile), home() / "ocr", text)
