"""What experts can learn from PunMemeCN; a pun and its two look-alikes are one group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from memantics.benchmarks.punmemecn.load import PunRelease
from memantics.benchmarks.punmemecn.records import PunMeme
from memantics.core.labelled import LabelledMeme, LabelSource


def _read(label_of: Callable[[PunMeme], str]) -> Callable[[PunRelease], Iterator[LabelledMeme]]:
    def read(release: PunRelease) -> Iterator[LabelledMeme]:
        for own in release.memes:
            label = (label_of(own),)
            yield LabelledMeme(own.id, own.caption, label, own.group, image=own.image)

    return read


LABELS: Mapping[str, LabelSource[PunRelease]] = {
    "sentiment_type": LabelSource(
        "positive, neutral or negative", _read(lambda own: own.type), topic="sentiment"
    ),
    "sentiment_target": LabelSource(
        "whom it is about: self, other or both", _read(lambda own: own.target), topic="about"
    ),
    "pun": LabelSource(
        "pun or no pun", _read(lambda own: "pun" if own.is_pun else "no pun"), topic="pun"
    ),
}
