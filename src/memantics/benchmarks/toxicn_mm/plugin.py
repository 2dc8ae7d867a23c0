"""What ToxiCN MM offers to the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from memantics.benchmarks.toxicn_mm import audit
from memantics.benchmarks.toxicn_mm.load import HarmMeme, HarmRelease, open_release
from memantics.benchmarks.toxicn_mm.statistics import statistics, survey
from memantics.benchmarks.toxicn_mm.task import make, pick_split
from memantics.core.labelled import LabelledMeme, LabelSource
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

# What experts can learn from ToxiCN MM, from texts and both captions.


def _read(
    label_of: Callable[[HarmMeme], str | None], version: str = ""
) -> Callable[[HarmRelease], Iterator[LabelledMeme]]:
    """Memes with a label; those of version 1 where no version is named and it is there."""

    def read(release: HarmRelease) -> Iterator[LabelledMeme]:
        for meme in release.memes(version or release.versions[0]):
            label = label_of(meme)
            if label is not None:
                yield LabelledMeme(
                    meme.id,
                    meme.text,
                    (label,),
                    text_caption=meme.text_caption,
                    image_caption=meme.image_caption,
                    image=meme.image,
                    split=meme.split,
                )

    return read


def _name_type(meme: HarmMeme) -> str | None:
    # One row of version 2.0 is harmful without a type.
    return None if meme.harmful and meme.type == "none" else meme.type


LABELS: Mapping[str, LabelSource[HarmRelease]] = {
    "harm": LabelSource(
        "harmful or harmless",
        _read(lambda meme: "harmful" if meme.harmful else "harmless"),
        topic="harm",
    ),
    "type": LabelSource("the type of harm, or none", _read(_name_type), topic="harm type"),
    "modality": LabelSource(
        "where the harm of a harmful meme lies: text, image, both, or only both together (fusion)",
        _read(lambda meme: meme.modality),
        topic="harm modality",
    ),
    "target": LabelSource(
        "whom a meme attacks, of those with a target (label version 2.0)",
        _read(lambda meme: meme.target, "v2"),
        topic="target",
    ),
}


PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    pick_split=pick_split,
    audit=AuditHooks(
        audit.findings, audit.pictures, audit.SHOWN, narrow=audit.narrow, across=audit.across
    ),
)
