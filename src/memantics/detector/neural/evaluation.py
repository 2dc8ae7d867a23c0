"""What a network says of examples, and how often it is right. Dropout is off while it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memantics.detector.neural.encoding import Encoded, Places, cut
from memantics.detector.neural.packages import get_torch
from memantics.metrics.classification import count_classes, f1, macro_figures

Chances = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Figures:
    """Macro precision, recall and F1 (means over the classes) and the F1 of each class."""

    precision: float
    recall: float
    f1: float
    by_class: dict[str, float]
    examples: int


def measure(gold: Places, predicted: Places, classes: Sequence[str]) -> Figures:
    """Figures from gold and predicted places, in this order.

    >>> measure(np.array([0, 1, 1, 1]), np.array([0, 0, 0, 1]), ["no", "yes"]).precision
    0.6666666666666666
    """
    counts = count_classes(
        [classes[place] for place in gold], [classes[place] for place in predicted], classes
    )
    macro = macro_figures(counts)
    return Figures(
        macro.precision or 0.0,
        macro.recall or 0.0,
        macro.f1 or 0.0,
        {name: f1(own) or 0.0 for name, own in counts.items()},
        len(gold),
    )


def ask_network(
    network: Any, encoded: Encoded, rows: Sequence[int], device: Any, batch: int = 128
) -> Chances:
    """Chances of the classes for some rows, in float32 and without dropout.

    Rows are asked in the order of their length, so that short texts are not padded to long ones.
    """
    torch = get_torch()
    order = np.array(rows, np.int64)
    if encoded.lengths is not None:
        longest = encoded.lengths[order].max(-1)
        order = order[np.argsort(longest, kind="stable")]
    was_training = network.training
    network.eval()
    found: list[Any] = []
    with torch.inference_mode():
        for start in range(0, len(order), batch):
            logits = network(*to_tensors(encoded, order[start : start + batch], device))
            found.append(torch.softmax(logits.double(), -1))
        chances: Chances = torch.cat(found).cpu().numpy()
    network.train(was_training)
    back = {row: place for place, row in enumerate(order.tolist())}
    return chances[[back[row] for row in rows]]


def to_tensors(encoded: Encoded, rows: Places, device: Any) -> tuple[Any, Any, Any]:
    """A batch on a device: ids, mask, pixels."""
    torch = get_torch()
    part = cut(encoded, rows)
    arrays = (
        None if part.ids is None else part.ids.astype(np.int64),
        part.mask,
        part.pixels,
    )
    return tuple(
        None if array is None else torch.from_numpy(np.ascontiguousarray(array)).to(device)
        for array in arrays
    )  # type: ignore[return-value]
