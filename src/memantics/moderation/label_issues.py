"""Likely label errors in training data: texts with both labels, and confident disagreement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from memantics.core.labels import name_group
from memantics.metrics.calibration import find_doubtful
from memantics.moderation.examples import Example, Loaded
from memantics.moderation.fast import Prediction


def count_contradictions(examples: Sequence[Example]) -> tuple[int, int]:
    """Count texts that have both labels, and the memes with such a text.

    A detector of texts cannot tell these memes apart: the image decides, or a label is wrong.

    >>> memes = [Example("a", "Hi!", label=0), Example("b", "hi", label=1)]
    >>> count_contradictions(memes)
    (1, 2)
    """
    labels: dict[str, list[int]] = defaultdict(list)
    for example in examples:
        key = name_group(example.text)
        if key and example.label is not None:
            labels[key].append(example.label)
    both = [found for found in labels.values() if len(set(found)) > 1]
    return len(both), sum(map(len, both))


def describe_label_issues(loaded: Loaded, said: Sequence[Prediction]) -> tuple[str, ...]:
    """Report contradictory and likely wrong labels in one line each, with the command for review.

    Args:
        loaded: The training data.
        said: A held-out prediction per example, in order.
    """
    lines = []
    texts, memes = count_contradictions(loaded.examples)
    if texts:
        lines.append(
            f"{memes:,} memes share a text with a meme of the other label ({texts:,} texts): a"
            " detector of texts cannot tell them apart"
        )
    labels = np.array([int(e.label or 0) for e in loaded.examples], np.int64)
    chances = np.array([(1 - one.probability, one.probability) for one in said])
    wrong = len(find_doubtful(labels, chances)) if len(set(labels.tolist())) > 1 else 0
    if wrong:
        column = loaded.columns.get("label", "label")
        table = f"{loaded.name}/{column}" if loaded.columns else "NAME/LABEL"
        lines.append(
            f"{wrong:,} labels are likely wrong by held-out predictions; review them with"
            f" 'memantics audit {table} --labels'"
        )
    return tuple(lines)
