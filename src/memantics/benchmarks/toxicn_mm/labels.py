"""What experts can learn from ToxiCN MM, from texts and both captions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from memantics.benchmarks.toxicn_mm.load import HarmRelease
from memantics.benchmarks.toxicn_mm.rows import HarmMeme
from memantics.core.labelled import LabelledMeme, LabelSource


def _read(
    label_of: Callable[[HarmMeme], str | None], version: str = ""
) -> Callable[[HarmRelease], Iterator[LabelledMeme]]:
    """Memes with a label; those of version 1 where no version is named and it is there."""

    def read(release: HarmRelease) -> Iterator[LabelledMeme]:
        for own in release.memes(version or release.versions[0]):
            label = label_of(own)
            if label is not None:
                yield LabelledMeme(
                    own.id,
                    own.text,
                    (label,),
                    text_caption=own.text_caption,
                    image_caption=own.image_caption,
                    image=own.image,
                    split=own.split,
                )

    return read


def _name_type(own: HarmMeme) -> str | None:
    # One row of version 2.0 is harmful without a type.
    return None if own.harmful and own.type == "none" else own.type


LABELS: Mapping[str, LabelSource[HarmRelease]] = {
    "harm": LabelSource(
        "harmful or harmless",
        _read(lambda own: "harmful" if own.harmful else "harmless"),
        topic="harm",
    ),
    "type": LabelSource("the type of harm, or none", _read(_name_type), topic="harm type"),
    "modality": LabelSource(
        "where the harm of a harmful meme lies: text, image, both, or only both together (fusion)",
        _read(lambda own: own.modality),
        topic="harm modality",
    ),
    "target": LabelSource(
        "whom a meme attacks, of those with a target (label version 2.0)",
        _read(lambda own: own.target, "v2"),
        topic="target",
    ),
}
