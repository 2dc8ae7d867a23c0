"""Named settings of the fast detector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from memantics.core.errors import UnknownName
from memantics.detector.features import Block, Dense
from memantics.detector.folds import Split
from memantics.detector.kernel import Kernel

TypeHead = Literal["flat", "hierarchical"]
Solver = Literal["kernel", "svm"]
_SQUARE = Kernel(2)


@dataclass(frozen=True, slots=True)
class FastSettings:
    """How a fast detector is trained.

    ``ridges`` are tried in turn and the one is kept whose predictions for held-out examples have
    the best macro-F1; with the solver ``svm`` they are costs. ``inner`` says how examples are
    held out for that, for calibration and for thresholds.
    """

    preset: str
    blocks: tuple[Block, ...]
    dense: tuple[Dense, ...] = ()
    kernel: Kernel = _SQUARE
    ridges: tuple[float, ...] = (0.25,)
    solver: Solver = "kernel"
    inner: Split = "random"
    inner_folds: int = 10
    type_head: TypeHead = "flat"
    seed: int = 0


_CHARS = (
    Block("text", "chars", 1.0),
    Block("text_caption", "chars", 0.7),
    Block("image_caption", "chars", 0.5),
)
_SOUNDS = (Block("text", "fuzzy", 0.5), Block("text", "words", 0.5))
_MEANINGS = (Dense("text", 0.8), Dense("text_caption", 0.55), Dense("image_caption", 0.4))
PRESETS: Mapping[str, FastSettings] = MappingProxyType(
    {
        settings.preset: settings
        for settings in (
            FastSettings("fast", _CHARS + _SOUNDS),
            FastSettings("linear", _CHARS, solver="svm", ridges=(0.1,), inner_folds=5),
            FastSettings("ridge", _CHARS, kernel=Kernel(1), ridges=(0.5, 1.0)),
            FastSettings("readings", (*_CHARS, *_SOUNDS, Block("text", "readings", 0.5))),
            FastSettings("full", _CHARS, dense=_MEANINGS, ridges=(0.5,)),
        )
    }
)


def find_preset(name: str) -> FastSettings:
    """Settings by name.

    >>> find_preset("fast").kernel.degree
    2
    """
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]
