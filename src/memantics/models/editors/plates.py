"""Pictures on their way to an editor and back."""

from __future__ import annotations

_STEP = 8  # pipelines work on multiples of this


def choose_size(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """The size at which a pipeline works: bounded, near to the shape, in steps of 8.

    >>> choose_size((1000, 500), 768)
    (768, 384)
    >>> choose_size((30, 31), 768)
    (32, 32)
    """
    scale = min(1.0, longest / max(size))
    width, height = (max(_STEP, round(side * scale / _STEP) * _STEP) for side in size)
    return width, height
