"""What a user chooses about a network and its training; every choice is written into the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from memantics.core.errors import InputError, UnknownName
from memantics.core.parameters import Flag

TrainingTarget = Literal["harmful", "type"]
ProgressLog = Callable[[str], None]  # takes one line about how far a training is
Integration = Literal["attention", "pooled", "sum", "none"]
CaptionUse = Literal["none", "text", "image", "both"]
Pooling = Literal["auto", "mean", "first"]
ValueSource = Literal["captions", "text"]
Weighting = Literal["balanced", "sqrt", "none"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
HoldOut = Literal["blocks", "random"]
Preset = Literal["mke", "clip-mke", "fusion", "clip", "text", "image", "rgcl"]
Fusion = Literal["concat", "align"]

TARGETS: tuple[TrainingTarget, ...] = get_args(TrainingTarget)
INTEGRATIONS: tuple[Integration, ...] = get_args(Integration)
PRESETS: tuple[Preset, ...] = get_args(Preset)
SCRATCH = "scratch"
Name = TypeVar("Name", bound=str)


def read_seeds(text: str) -> tuple[int, ...]:
    """Seeds, separated by commas.

    >>> read_seeds("0,1,2")
    (0, 1, 2)
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--seeds {text} is not possible", hint="such as 0,1,2") from None


Seeds = Annotated[
    tuple[int, ...],
    Flag(
        "Seeds, separated by commas; one detector each.",
        kind=str,
        read=read_seeds,
        default="0,1,2,3,4",
    ),
]
Patience = Annotated[int, Flag("Idle epochs that end a training.", min=1)]
HowPrecise = Annotated[Precision, Flag("auto: half on a GPU.")]
Device = Annotated[str, Flag("auto, cpu, cuda or cuda:1.")]
HowHeldOut = Annotated[HoldOut, Flag("How validation memes are chosen.")]
Share = Annotated[float, Flag("Share of memes held out.")]
TextBackbone = Annotated[
    str | None,
    Flag("Folder of a text encoder, or scratch: small, random, made here.", "--text-backbone"),
]
ImageBackbone = Annotated[Path | None, Flag("Folder of an image encoder.", "--image-backbone")]
ClipBackbone = Annotated[Path | None, Flag("Folder of a CLIP model.", "--clip-backbone")]
FromScratch = Annotated[
    bool, Flag("Take the folders' architectures, not their weights.", "--from-scratch")
]


@dataclass(frozen=True, slots=True)
class Backbones:
    """Where the encoders come from.

    ``text``, ``image`` and ``clip`` are folders as transformers saves them; ``text`` may be the
    word ``scratch``: a small encoder with random weights and a vocabulary of the training part's
    characters. ``from_scratch`` takes a folder's architecture and leaves its weights.
    """

    text: TextBackbone = None
    image: ImageBackbone = None
    clip: ClipBackbone = None
    from_scratch: FromScratch = False


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The network over the encoders.

    ``integration`` says how captions join the inline text: ``attention`` (its tokens attend to
    the captions' tokens: what the paper means), ``pooled`` (the formula as printed, over one
    vector each: captions cancel out), ``sum`` (what the official code does) or ``none``.
    ``image_caption_weight`` is used by ``sum`` only. ``length`` is the most tokens of a text.

    ``captions`` says which captions join. ``pooling`` makes one vector of a text's tokens: their
    ``mean``, the ``first``, or what suits the integration (``auto``: the mean with attention, else
    the encoder's own vector); to compare caption variants, hold it fixed. ``values`` are what
    attention adds up: the captions' tokens, or the inline text's, as the formula is printed.

    ``fusion`` puts the vectors of text and image side by side, or multiplies them (``align``, as
    HateCLIPper does). ``contrast`` is the weight of the retrieval-guided contrastive loss.
    """

    target: TrainingTarget = "harmful"
    integration: Integration = "attention"
    image_caption_weight: float = 0.5
    dropout: float = 0.1
    length: int = 80
    captions: CaptionUse = "both"
    pooling: Pooling = "auto"
    values: ValueSource = "captions"
    fusion: Fusion = "concat"
    contrast: float = 0.0

    @property
    def joined(self) -> tuple[Literal["text", "image"], ...]:
        """The captions that join the inline text, in their order."""
        if self.integration == "none" or self.captions == "none":
            return ()
        return ("text", "image") if self.captions == "both" else (self.captions,)

    @property
    def fields(self) -> int:
        """How many texts of a meme are read: the inline text and the captions that join it."""
        return 1 + len(self.joined)


@dataclass(frozen=True, slots=True)
class Training:
    """How weights are fitted. ``batch`` examples make one step, ``accumulate`` parts of it.

    ``share`` of the examples is held out for validation, by ``hold_out``: whole runs of
    neighbouring ids (``blocks``), or at random. ``patience`` is how many epochs without a better
    validation score end the training. ``save_every`` steps a checkpoint is written, 0: at the end
    of each epoch only.
    """

    seeds: Seeds = (0, 1, 2, 3, 4)
    epochs: Annotated[int, Flag("", min=1)] = 10
    batch: Annotated[int, Flag("Memes in a step, over all GPUs.", min=1)] = 32
    accumulate: Annotated[int, Flag("Parts a step is computed in.", min=1)] = 1
    rate: Annotated[float, Flag("Highest learning rate.")] = 1e-5
    decay: float = 0.01
    warmup: Annotated[float, Flag("Share of steps in which it rises.")] = 0.1
    clip: float = 1.0
    patience: Patience = 3
    weighting: Annotated[Weighting, Flag("How rare classes are weighed.", "--weights")] = "balanced"
    precision: HowPrecise = "auto"
    device: Device = "auto"
    hold_out: HowHeldOut = "blocks"
    share: Share = 0.1
    save_every: Annotated[int, Flag("Steps between checkpoints.", min=0)] = 0
    deterministic: bool = True
    workers: int = 4


_KNOWLEDGE: dict[Preset, Integration] = {"mke": "attention", "clip-mke": "attention"}


def choose_shape(
    preset: str, integration: str | None, target: str = "harmful", length: int = 80
) -> NetworkShape:
    """The network that a preset stands for; ``integration`` replaces the preset's own.

    >>> choose_shape("mke", None).integration, choose_shape("text", None).integration
    ('attention', 'none')
    >>> choose_shape("rgcl", None).fusion, choose_shape("clip", None).contrast
    ('align', 0.0)
    >>> choose_shape("clip-mke", "sum").image_caption_weight
    1.0
    """
    known = _check("preset", preset, PRESETS)
    wanted = _check("integration", integration or _KNOWLEDGE.get(known, "none"), INTEGRATIONS)
    if known == "image" and wanted != "none":
        raise InputError(
            "the preset image reads no text, so captions cannot join it",
            hint="use --preset mke with an image backbone",
        )
    return NetworkShape(
        target=_check("target", target, TARGETS),
        integration=wanted,
        # The official code weighs the image caption by a half beside a text encoder, fully in CLIP.
        image_caption_weight=1.0 if known.startswith("clip") else 0.5,
        length=length,
        fusion="align" if known == "rgcl" else "concat",
        contrast=float(known == "rgcl"),
    )


def check_backbones(preset: str, backbones: Backbones) -> None:
    """Refuse a preset whose encoders are not named, or that has no place for one that is.

    >>> check_backbones("clip-mke", Backbones(text="bert"))
    Traceback (most recent call last):
    memantics.core.errors.InputError: the preset clip-mke needs a CLIP backbone; name its folder
    """
    known = _check("preset", preset, PRESETS)
    needs: dict[str, tuple[str, ...]] = {
        "mke": ("text",),
        "fusion": ("text", "image"),
        "clip-mke": ("clip",),
        "clip": ("clip",),
        "rgcl": ("clip",),
        "text": ("text",),
        "image": ("image",),
    }
    named = {"text": backbones.text, "image": backbones.image, "clip": backbones.clip}
    for kind in needs[known]:
        if not named[kind]:
            word = "CLIP" if kind == "clip" else kind
            raise InputError(f"the preset {known} needs a {word} backbone", hint="name its folder")
    allowed = {*needs[known], "image"} if known == "mke" else set(needs[known])
    for kind, place in named.items():
        if place and kind not in allowed:
            raise InputError(
                f"the preset {known} has no place for a {kind} backbone",
                hint=f"leave it out, or choose another preset: {', '.join(PRESETS)}",
            )


def check_training(training: Training) -> None:
    """Refuse what cannot be trained with."""
    if not training.seeds or len(set(training.seeds)) < len(training.seeds):
        raise InputError("seeds must be given and differ", hint="such as --seeds 0,1,2")
    if min(training.seeds) < 0:
        raise InputError(f"seed {min(training.seeds)} is below 0", hint="such as --seeds 0,1,2")
    whole = {
        "epochs": training.epochs,
        "batch": training.batch,
        "accumulate": training.accumulate,
        "patience": training.patience,
    }
    for name, value in whole.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, not {value}", hint=f"give --{name} 1")
    if not 0 < training.share < 0.9:
        raise InputError(f"share {training.share:g} is not possible", hint="give 0.05 to 0.5")
    if training.rate <= 0 or not 0 <= training.warmup < 1:
        raise InputError(
            "the rate must be above 0 and warm-up in [0, 1)", hint="such as --rate 1e-5"
        )
    if training.batch % training.accumulate:
        raise InputError(
            f"{training.batch} examples do not fall into {training.accumulate} equal parts",
            hint="choose a batch that is a multiple of accumulate",
        )


def _check(kind: str, name: str, known: tuple[Name, ...]) -> Name:
    for one in known:
        if one == name:
            return one
    raise UnknownName(kind, name, known)
