"""Reading the text in an image: a protocol, RapidOCR behind it, and lines in reading order."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memantics.core.errors import Unavailable
from memantics.core.images import Bounds, decode

if TYPE_CHECKING:
    from rapidocr import RapidOCR

_DETECTOR = "PP-OCRv6_det_small.onnx"
_RECOGNISER = "PP-OCRv6_rec_small.onnx"
_SHORT_SIDE = 544  # finding text: smaller images are enlarged to this
_LONG_SIDE = 1280  # larger ones are reduced: time grows with the area, recall does not
_TINY = 8
_BOUNDS = Bounds()


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


class Ocr(Protocol):
    """Anything that reads images. ``version`` changes whenever readings may change."""

    version: str

    def read(self, data: bytes, name: str) -> Reading:
        """Read the bytes of an image file; ``name`` is for errors."""
        ...


class RapidReader:
    """RapidOCR on one thread, with the weights of its own wheel; loaded at first use.

    Orientation is not classified: captions of memes stand upright, and the classifier changed
    no reading (docs/research/embedded-reader.md).
    """

    def __init__(self) -> None:
        self.version = f"rapidocr-{_version('rapidocr')}/{_SHORT_SIDE}-{_LONG_SIDE}"
        self._engine: RapidOCR | None = None

    def read(self, data: bytes, name: str) -> Reading:
        """Decode within bounds and read."""
        import numpy as np

        image = decode(data, name, _BOUNDS)
        if min(image.size) < _TINY:
            return Reading()
        pixels = np.asarray(image)[:, :, ::-1]
        found: Any = self._load()(np.ascontiguousarray(pixels))
        if not found.txts:
            return Reading()
        lines = (
            Line(text.strip(), _box(corners), round(float(score), 4))
            for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True)
        )
        return Reading(order_lines(line for line in lines if line.text))

    def _load(self) -> RapidOCR:
        if self._engine is None:
            folder = _weights()
            from rapidocr import RapidOCR

            logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
            # With explicit paths no code that could download weights is reached.
            self._engine = RapidOCR(
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
        return self._engine


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
