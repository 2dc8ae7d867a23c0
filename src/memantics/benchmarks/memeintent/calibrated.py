"""How near replies come in meaning, on a scale where a constant sentence gets nothing.

ROUGE-L rewards a sentence that fits every meme a little. Here replies and references are compared
by meaning (an entailment model or an encoder in a folder, else the encoder that ships), and what a
reply gets on other memes is taken off: every constant sentence gets exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from memantics.benchmarks.memeintent.asking import Scoring
from memantics.core.records import CALIBRATED
from memantics.core.services import TextScorer
from memantics.metrics.constant import correct_for_constant

Values = list[float | None]
_OTHERS = 16  # memes on which each reply is tried as a constant


class MarksWithMeaning(Mapping[str, Values]):
    """Figures by name; the calibrated one needs an encoder and is computed when it is read."""

    def __init__(self, ready: Mapping[str, Values], meaning: Callable[[], Values]) -> None:
        self._ready, self._meaning = ready, meaning

    def __getitem__(self, key: str) -> Values:
        return self._meaning() if key == CALIBRATED else self._ready[key]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._ready, CALIBRATED))

    def __len__(self) -> int:
        return len(self._ready) + 1


def choose_scorer(scoring: Scoring) -> tuple[TextScorer | None, bool]:
    """Who compares meanings, and whether it is the encoder that ships."""
    if scoring.nli is not None:
        return scoring.services.nli(scoring.nli), False
    if scoring.bert is not None:
        return scoring.services.bert(scoring.bert), False
    return scoring.services.likeness(), True


def calibrate(
    replies: Sequence[str], references: Sequence[Sequence[str]], scorer: TextScorer
) -> Values:
    """Each reply's best likeness to its references, above what it gets on other memes.

    The others are the memes at fixed distances in a ring, so that every meme is as often another
    as it is asked about. Nothing for fewer than two memes with references.
    """
    asked = [place for place, texts in enumerate(references) if texts]
    size = len(asked)
    count = min(_OTHERS, size - 1)
    values: Values = [None for _ in replies]
    if count < 1:
        return values
    steps = [0, *(1 + number * (size - 1) // count for number in range(count))]
    sheets = [
        (replies[place], references[asked[(number + step) % size]])
        for number, place in enumerate(asked)
        for step in steps
    ]
    found = iter(scorer.score_pairs([(text, one) for text, texts in sheets for one in texts]))
    best = [max(next(found) for _ in texts) for _, texts in sheets]
    rows = [best[start : start + len(steps)] for start in range(0, len(best), len(steps))]
    right = correct_for_constant([row[0] for row in rows], [fmean(row[1:]) for row in rows])
    for place, value in zip(asked, right, strict=True):
        values[place] = value
    return values
