"""What a trained detector is and where it comes from: ``detector.json``."""

from __future__ import annotations

from dataclasses import dataclass, field

from memantics.detector.neural.checkpoint import Epoch
from memantics.detector.neural.evaluation import Figures
from memantics.detector.neural.settings import Shape, Training

FORMAT = 1
FACTS = "detector.json"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a detector is and where it comes from; ``checksums`` cover every other file."""

    shape: Shape
    training: Training
    seed: int
    fingerprint: str
    classes: tuple[str, ...]
    valid: Figures
    test: Figures | None = None
    best_epoch: int = 0
    history: tuple[Epoch, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)
    kind: str = "neural"
    format: int = FORMAT
