"""The records of ToxiCN MM, with names for its class ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Version = Literal["v1", "v2"]
Split = Literal["train", "test"]
VERSIONS: tuple[Version, ...] = get_args(Version)
SPLITS: tuple[Split, ...] = get_args(Split)

# The paper's tables list general offence before sexual innuendo; the class ids do not.
TYPE_IDS = ("none", "targeted", "sexual", "offence", "dispirited")
TYPES = ("none", "targeted", "offence", "sexual", "dispirited")
MODALITIES = ("fusion", "text", "image", "both")
# By class id, from 1; 0 means that no target was annotated.
TARGETS = (
    "gender",
    "race",
    "mbti",
    "region",
    "age",
    "body",
    "health",
    "lgbtq",
    "occupation",
    "community",
    "individual",
    "poverty",
    "relationship",
    "parent",
    "other",
)


@dataclass(frozen=True, slots=True)
class Meme:
    """One meme under one label version; ``id`` is its file name without extension.

    ``text`` is printed on the meme; the two captions were written by a language model.
    ``modality`` says where the harm lies (None: harmless): in text and image only when taken
    together, in the text, in the image, or in both by themselves. ``target`` is known in version
    2.0 only.
    """

    id: str
    text: str
    text_caption: str
    image_caption: str
    harmful: bool
    type: str
    modality: str | None
    target: str | None
    split: Split
    image: Path | None


def name_modality(*, harmful: bool, text: bool, image: bool) -> str | None:
    """The modality from its two flags; both off is ambiguous without the label.

    >>> name_modality(harmful=True, text=False, image=False)
    'fusion'
    >>> name_modality(harmful=False, text=False, image=False) is None
    True
    """
    if not harmful:
        return None
    return {(False, False): "fusion", (True, False): "text", (False, True): "image"}.get(
        (text, image), "both"
    )
