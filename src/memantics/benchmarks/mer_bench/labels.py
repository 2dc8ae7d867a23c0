"""What experts can learn from MER-Bench: from the caption alone.

The index also describes each picture, but in words that were written while its emotion was named:
an expert that learnt from them would read the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from memantics.benchmarks.mer_bench.load import ReappraisalRelease, ReappraisalRow
from memantics.core.labelled import LabelledMeme, LabelSource


def _read(
    label_of: Callable[[ReappraisalRow], str],
) -> Callable[[ReappraisalRelease], Iterator[LabelledMeme]]:
    def read(release: ReappraisalRelease) -> Iterator[LabelledMeme]:
        for row in release.rows:
            yield LabelledMeme(row.id, row.caption, (label_of(row),), image=row.image)

    return read


LABELS: Mapping[str, LabelSource[ReappraisalRelease]] = {
    "emotion": LabelSource(
        "the emotion that a meme carries: angry, sad, tense or bored",
        _read(lambda row: row.source_emotion),
        topic="emotion",
    ),
    "polarity": LabelSource(
        "negative, neutral or positive", _read(lambda row: row.polarity.lower()), topic="polarity"
    ),
}
