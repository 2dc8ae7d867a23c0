"""What PunMemeCN offers to the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from memantics.benchmarks.punmemecn import audit
from memantics.benchmarks.punmemecn.load import PunRelease, open_release
from memantics.benchmarks.punmemecn.official import official_prompts
from memantics.benchmarks.punmemecn.records import PunMeme
from memantics.benchmarks.punmemecn.statistics import statistics, survey
from memantics.benchmarks.punmemecn.task import make
from memantics.core.labelled import LabelledMeme, LabelSource
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

# What experts can learn from PunMemeCN; a pun and its two look-alikes are one group.


def _read(label_of: Callable[[PunMeme], str]) -> Callable[[PunRelease], Iterator[LabelledMeme]]:
    def read(release: PunRelease) -> Iterator[LabelledMeme]:
        for meme in release.memes:
            label = (label_of(meme),)
            yield LabelledMeme(meme.id, meme.caption, label, meme.group, image=meme.image)

    return read


LABELS: Mapping[str, LabelSource[PunRelease]] = {
    "sentiment_type": LabelSource(
        "positive, neutral or negative", _read(lambda meme: meme.type), topic="sentiment"
    ),
    "sentiment_target": LabelSource(
        "whom it is about: self, other or both", _read(lambda meme: meme.target), topic="about"
    ),
    "pun": LabelSource(
        "pun or no pun", _read(lambda meme: "pun" if meme.is_pun else "no pun"), topic="pun"
    ),
}


PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    must_name=audit.must_name,
    official_prompts=official_prompts,
    audit=AuditHooks(
        audit.findings, audit.pictures, audit.SHOWN, audit.makers, narrow=audit.narrow
    ),
)
