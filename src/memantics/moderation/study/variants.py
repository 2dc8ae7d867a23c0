"""The variants of a study by name, ``FAMILY[+CAPTIONS][@WAY]``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, cast

from memantics.core.errors import InputError, UnknownName
from memantics.core.parameters import Flag
from memantics.moderation.heads import PRESETS as FAST
from memantics.moderation.neural import settings
from memantics.moderation.neural.settings import CaptionUse, Training

_NAME = re.compile(r"([a-z]+)(?:\+(text|image|both))?(?:@(printed|pooled|sum))?")
# Encoders of the ToxiCN MM paper by model family, and the preset that uses them.
FAMILIES: Mapping[str, tuple[settings.Preset, tuple[str, ...]]] = MappingProxyType(
    {
        "roberta": ("text", ("text",)),
        "resnet": ("image", ("resnet",)),
        "vit": ("image", ("image",)),
        "fusion": ("mke", ("text", "image")),
        "clip": ("clip-mke", ("clip",)),
    }
)
# The trained models of Table 5 in the ToxiCN MM paper, in its order.
PAPER: tuple[str, ...] = (
    *("roberta", "resnet", "vit"),
    *("fusion", "fusion+text", "fusion+image", "fusion+both"),
    *("clip", "clip+text", "clip+image", "clip+both"),
)
CHECKS: tuple[str, ...] = tuple(
    f"{family}+both@{way}" for family in ("fusion", "clip") for way in ("printed", "pooled", "sum")
)


@dataclass(frozen=True, slots=True)
class StudyEncoders:
    """Folders of encoders in transformers format; ``text`` may be ``scratch``."""

    text: settings.TextBackbone = None
    image: settings.ImageBackbone = None
    resnet: Annotated[Path | None, Flag("Folder of a ResNet.", "--resnet-backbone")] = None
    clip: settings.ClipBackbone = None
    from_scratch: settings.FromScratch = False

    @property
    def named(self) -> frozenset[str]:
        """The kinds of encoders that are given."""
        found = {
            "text": self.text, "image": self.image, "resnet": self.resnet, "clip": self.clip
        }  # fmt: skip
        return frozenset(kind for kind, place in found.items() if place)


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a study; ``family`` is a kind of encoder or a preset of the fast detectors."""

    name: str
    family: str
    captions: CaptionUse = "none"
    way: str = ""

    @property
    def fast(self) -> bool:
        """Whether it is a fast detector, without network and seeds."""
        return self.family not in FAMILIES

    @property
    def needs(self) -> tuple[str, ...]:
        """The kinds of encoders that it needs."""
        return () if self.fast else FAMILIES[self.family][1]

    @property
    def sees(self) -> bool:
        """Whether it uses images."""
        return any(kind != "text" for kind in self.needs)

    @property
    def base(self) -> str:
        """The variant with the same encoders but without captions, for comparison."""
        return self.family

    @property
    def slug(self) -> str:
        """The variant's name in a form that is valid for a folder."""
        return re.sub(r"[^a-z]+", "-", self.name)


def read_variant(name: str) -> Variant:
    """Parse the name of a variant; raise InputError if it is not valid.

    >>> read_variant("fusion+both@sum")
    Variant(name='fusion+both@sum', family='fusion', captions='both', way='sum')
    >>> read_variant("ridge").fast
    True
    """
    parts = _NAME.fullmatch(name)
    if parts is None or not (parts[1] in FAMILIES or parts[1] in FAST):
        raise UnknownName("variant", name, (*PAPER, *CHECKS, *FAST))
    family, captions, way = parts.groups()
    joins = family in ("fusion", "clip", "roberta")
    if (captions and not joins) or (way and not captions):
        raise InputError(
            f"{name!r} is not a valid variant",
            hint="only roberta, fusion and clip use captions: fusion+both, fusion+both@sum",
        )
    return Variant(name, str(family), cast("CaptionUse", captions or "none"), way or "")


def choose_variants(names: Sequence[str], encoding: StudyEncoders) -> tuple[Variant, ...]:
    """Return the given variants.

    By default, these are the models of the ToxiCN MM paper for the given encoders, and the fast
    detector.

    The name ``paper`` stands for the models of the paper, ``checks`` for other ways to combine
    captions.
    """
    groups: dict[str, Sequence[str]] = {"paper": PAPER, "checks": CHECKS}
    if not names:
        found = [read_variant(name) for name in PAPER]
        kept = [variant for variant in found if set(variant.needs) <= encoding.named]
        return (*kept, read_variant("fast"))
    chosen = dict.fromkeys(member for name in names for member in groups.get(name, (name,)))
    found = [read_variant(name) for name in chosen]
    for variant in found:
        for kind in variant.needs:
            if kind not in encoding.named:
                raise InputError(
                    f"variant {variant.name} needs an encoder of the kind {kind}",
                    hint=f"give its folder with --{kind}-backbone",
                )
    return tuple(found)


def make_shape(
    variant: Variant, target: settings.TrainingTarget, pooling: settings.Pooling, length: int
) -> settings.NetworkShape:
    """Make the network of a variant; all networks of a study have the same pooling.

    >>> make_shape(read_variant("fusion"), "type", "mean", 80).joined
    ()
    >>> make_shape(read_variant("clip+both@printed"), "type", "mean", 80).values
    'text'
    """
    preset = FAMILIES[variant.family][0]
    way = {"pooled": "pooled", "sum": "sum"}.get(variant.way, "attention")
    shape = settings.choose_shape(
        preset, way if variant.captions != "none" else "none", target, length
    )
    return replace(
        shape,
        captions=variant.captions,
        pooling=pooling,
        values="text" if variant.way == "printed" else "captions",
    )


def make_backbones(variant: Variant, encoding: StudyEncoders) -> settings.Backbones:
    """Return the encoder folders of a variant."""
    image = encoding.resnet if variant.family == "resnet" else encoding.image
    needs = set(variant.needs)
    return settings.Backbones(
        text=encoding.text if "text" in needs else None,
        image=image if needs & {"image", "resnet"} else None,
        clip=encoding.clip if "clip" in needs else None,
        from_scratch=encoding.from_scratch,
    )


def make_training(
    variant: Variant, training: Training, epochs: int | None, rate: float | None
) -> Training:
    """Return training settings; epochs and rate default to those of the ToxiCN MM paper.

    >>> make_training(read_variant("resnet"), Training(), None, None).rate
    5e-05
    >>> make_training(read_variant("clip"), Training(), None, None).epochs
    10
    """
    pictures = variant.family in ("resnet", "vit")
    return replace(
        training,
        epochs=epochs or (20 if pictures else 10),
        rate=rate or (5e-5 if pictures else 1e-5),
    )
