"""Settings of networks and their training; all are stored in the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from memantics.core.errors import InputError, UnknownName
from memantics.core.parameters import Flag

TrainingTarget = Literal["harmful", "type"]
ProgressLog = Callable[[str], None]  # receives one line of progress
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
    """Parse seeds separated by commas; raise InputError for an invalid list.

    >>> read_seeds("0,1,2")
    (0, 1, 2)
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{text!r} is not a valid list of seeds", hint="use numbers such as 0,1,2"
        ) from None


Seeds = Annotated[
    tuple[int, ...],
    Flag(
        "Seeds, separated by commas; one detector each.",
        kind=str,
        read=read_seeds,
        default="0,1,2,3,4",
    ),
]
Patience = Annotated[int, Flag("Epochs without improvement before early stopping.", min=1)]
HowPrecise = Annotated[Precision, Flag("Number format; auto uses half precision on a GPU.")]
Device = Annotated[str, Flag("Device: auto, cpu, cuda or cuda:1.")]
HowHeldOut = Annotated[HoldOut, Flag("How the validation set is chosen: blocks of ids, or random.")]
Share = Annotated[float, Flag("Proportion of memes in the validation set.")]
TextBackbone = Annotated[
    str | None,
    Flag(
        "Folder of a text encoder, or scratch for a small one with random weights.",
        "--text-backbone",
    ),
]
ImageBackbone = Annotated[Path | None, Flag("Folder of an image encoder.", "--image-backbone")]
ClipBackbone = Annotated[Path | None, Flag("Folder of a CLIP model.", "--clip-backbone")]
FromScratch = Annotated[
    bool, Flag("Use the encoders' architectures with random weights.", "--from-scratch")
]


@dataclass(frozen=True, slots=True)
class Backbones:
    """Folders of the encoders.

    ``text``, ``image`` and ``clip`` are folders in transformers format. ``text`` may be
    ``scratch``: a small encoder with random weights and the characters of the training set as
    vocabulary. ``from_scratch`` uses the architectures of the folders with random weights.
    """

    text: TextBackbone = None
    image: ImageBackbone = None
    clip: ClipBackbone = None
    from_scratch: FromScratch = False


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The architecture of the network above the encoders.

    ``integration`` is how captions are combined with the printed text: ``attention`` (tokens of the
    text attend to tokens of the captions, as the paper describes), ``pooled`` (the formula as
    printed, in which captions have no effect), ``sum`` (as in the official code) or ``none``.
    ``image_caption_weight`` is used only by ``sum``. ``length`` is the maximum number of tokens.

    ``captions`` selects the captions. ``pooling`` is how token vectors become one vector: ``mean``,
    ``first``, or ``auto`` (the mean with attention, else the encoder's own vector). Set ``pooling``
    to a fixed value to compare caption variants. ``values`` are the attention values: tokens of the
    captions, or of the text as in the printed formula.

    ``fusion`` concatenates the vectors of text and image, or multiplies them (``align``, as in
    HateCLIPper). ``contrast`` is the weight of the retrieval-guided contrastive loss.
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
        """The captions that are combined with the printed text, in order."""
        if self.integration == "none" or self.captions == "none":
            return ()
        return ("text", "image") if self.captions == "both" else (self.captions,)

    @property
    def fields(self) -> int:
        """Number of texts per meme: the printed text and the captions in use."""
        return 1 + len(self.joined)


@dataclass(frozen=True, slots=True)
class Training:
    """Training settings.

    A step has ``batch`` examples, computed in ``accumulate`` parts. ``share`` is the proportion of
    examples in the validation set, chosen by ``hold_out``: runs of neighbouring ids (``blocks``) or
    ``random``. Training stops after ``patience`` epochs without improvement. A checkpoint is
    written every ``save_every`` steps; with 0 only after each epoch.
    """

    seeds: Seeds = (0, 1, 2, 3, 4)
    epochs: Annotated[int, Flag("Maximum number of epochs.", min=1)] = 10
    batch: Annotated[int, Flag("Memes per step, over all GPUs.", min=1)] = 32
    accumulate: Annotated[int, Flag("Gradient accumulation: parts per step.", min=1)] = 1
    rate: Annotated[float, Flag("Maximum learning rate.")] = 1e-5
    decay: float = 0.01
    warmup: Annotated[float, Flag("Proportion of steps with a rising learning rate.")] = 0.1
    clip: float = 1.0
    patience: Patience = 3
    weighting: Annotated[Weighting, Flag("Class weights in the loss.", "--weights")] = "balanced"
    precision: HowPrecise = "auto"
    device: Device = "auto"
    hold_out: HowHeldOut = "blocks"
    share: Share = 0.1
    save_every: Annotated[
        int, Flag("Steps between checkpoints; 0 writes one per epoch.", min=0)
    ] = 0
    deterministic: bool = True
    workers: int = 4


_KNOWLEDGE: dict[Preset, Integration] = {"mke": "attention", "clip-mke": "attention"}


def choose_shape(
    preset: str, integration: str | None, target: str = "harmful", length: int = 80
) -> NetworkShape:
    """Make the network of a preset; ``integration`` replaces the preset's default.

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
            "the preset image uses no text, so it cannot use captions",
            hint="use --preset mke with an image backbone",
        )
    return NetworkShape(
        target=_check("target", target, TARGETS),
        integration=wanted,
        # As in the official code: half weight with a text encoder, full weight with CLIP.
        image_caption_weight=1.0 if known.startswith("clip") else 0.5,
        length=length,
        fusion="align" if known == "rgcl" else "concat",
        contrast=float(known == "rgcl"),
    )


def check_backbones(preset: str, backbones: Backbones) -> None:
    """Raise InputError if the encoders do not match the preset.

    >>> check_backbones("clip-mke", Backbones(text="bert"))
    Traceback (most recent call last):
    memantics.core.errors.InputError: the preset clip-mke needs a CLIP backbone; give its folder
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
            raise InputError(f"the preset {known} needs a {word} backbone", hint="give its folder")
    allowed = {*needs[known], "image"} if known == "mke" else set(needs[known])
    for kind, place in named.items():
        if place and kind not in allowed:
            raise InputError(
                f"the preset {known} does not use a {kind} backbone",
                hint=f"leave it out, or choose another preset: {', '.join(PRESETS)}",
            )


def check_training(training: Training) -> None:
    """Raise InputError for invalid training settings."""
    if not training.seeds or len(set(training.seeds)) < len(training.seeds):
        raise InputError("seeds must be unique and not empty", hint="for example --seeds 0,1,2")
    if min(training.seeds) < 0:
        raise InputError(
            f"the seed {min(training.seeds)} is negative", hint="for example --seeds 0,1,2"
        )
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
        raise InputError(
            f"{training.share:g} is not a valid --share", hint="use a value from 0.05 to 0.5"
        )
    if training.rate <= 0 or not 0 <= training.warmup < 1:
        raise InputError(
            "--rate must be above 0 and --warmup in [0, 1)", hint="for example --rate 1e-5"
        )
    if training.batch % training.accumulate:
        raise InputError(
            f"--batch {training.batch} is not a multiple of --accumulate {training.accumulate}",
            hint="choose a --batch that is a multiple of --accumulate",
        )


def _check(kind: str, name: str, known: tuple[Name, ...]) -> Name:
    for one in known:
        if one == name:
            return one
    raise UnknownName(kind, name, known)
