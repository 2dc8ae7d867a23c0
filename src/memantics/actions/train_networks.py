"""Train networks that detect harmful memes, and tune local models by LoRA (extra ``detector``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from memantics.actions.detector_data import load_external_cases, load_harm_cases, load_pun_cases
from memantics.benchmarks.punmemecn import detection
from memantics.benchmarks.punmemecn.official import official_prompts, strip_lines
from memantics.core.data import Skip
from memantics.core.errors import DataError, InputError
from memantics.core.result import Result, Table, to_plain
from memantics.detector.examples import Loaded, keep_typed
from memantics.detector.lora.tuning import Tools, Tuned, Tuning, tune
from memantics.detector.lora.tuning import write_card as write_tuned_card
from memantics.detector.lora.wording import Language, Question, Style, Wording
from memantics.detector.neural.card import CARD, write_card
from memantics.detector.neural.seeds import SeedPlan, Trained, summarise, tabulate, train_neural
from memantics.detector.neural.settings import (
    Backbones,
    HoldOut,
    Precision,
    Target,
    Training,
    Weighting,
    check_backbones,
    choose_shape,
)
from memantics.registry import find_benchmark, find_source

__all__ = [
    "Backbones",
    "HoldOut",
    "Language",
    "Precision",
    "Question",
    "Style",
    "Target",
    "TrainedNetwork",
    "Training",
    "TuneOptions",
    "Tuning",
    "Weighting",
    "Wording",
    "train_network",
    "tune_model",
]
Say = Callable[[str], None]


def read_seeds(text: str) -> tuple[int, ...]:
    """Seeds, separated by commas.

    >>> read_seeds("0,1,2")
    (0, 1, 2)
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--seeds {text} is not possible", hint="such as 0,1,2") from None


def plan_network(
    preset: str,
    backbones: Backbones,
    training: Training,
    integration: str | None = None,
    target: Target = "harmful",
    length: int = 80,
) -> SeedPlan:
    """What is trained; an encoder that the preset needs and nobody named is refused."""
    check_backbones(preset, backbones)
    return SeedPlan(backbones, choose_shape(preset, integration, target, length), training)


@dataclass(frozen=True, slots=True)
class TrainedNetwork(Result):
    """A network for each seed, and what they were trained on."""

    trained: Trained
    data: Loaded

    @property
    def card(self) -> Path:
        """The model card."""
        return self.trained.folder / CARD

    @property
    def skips(self) -> tuple[Skip, ...]:
        """Memes that were left out."""
        return (*self.data.skips, *self.trained.skips)

    def table(self) -> Table:
        """Mean and spread of each figure over the seeds, in per cent."""
        return tabulate(self.trained.seeds)

    def to_dict(self) -> dict[str, JsonValue]:
        """The folder, the seed that validation chose, and the figures."""
        found = to_plain(summarise(self.trained.seeds))
        chosen = self.trained.chosen
        return {"detector": str(self.trained.folder), "chosen": chosen, "figures": found}


def train_network(data: Loaded, plan: SeedPlan, out: Path, say: Say = print) -> TrainedNetwork:
    """Train every seed of a plan and write the model card.

    Of several processes that train together only rank 0 writes the card.
    """
    loaded = keep_typed(data) if plan.shape.target == "type" else data
    trained = train_neural(loaded, plan, out, say)
    if trained.first:
        write_card(trained, loaded)
    return TrainedNetwork(trained, loaded)


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """What a local model is tuned on: ``data`` by name, ``external`` a folder to judge last.

    ``official`` asks in the words of PunMemeCN's authors, read from a registered clone.
    """

    model: Path
    wording: Wording
    tuning: Tuning
    out: Path
    data: str | None = None
    external: Path | None = None
    official: bool = False


@dataclass(frozen=True, slots=True)
class TunedModel(Result):
    """A tuned model, and how many memes were left out for want of an image."""

    tuned: Tuned
    left_out: int


def tune_model(options: TuneOptions, say: Say = print) -> TunedModel:
    """Tune a local model by LoRA to tell puns or harm, judge held-out groups, write its card."""
    wording = read_official(options.wording) if options.official else options.wording
    load = load_pun_cases if wording.question == "pun" else load_harm_cases
    cases, origin = load(options.data)
    usable = tuple(case for case in cases if case.image is not None)
    if not usable:
        raise InputError("no meme of the data has an image", hint="add the images to the data")
    outside = () if options.external is None else load_external_cases(options.external)
    tools = Tools(outside, say)
    tuned = tune(options.model, usable, wording, options.tuning, options.out, tools)
    write_tuned_card(tuned, options.model, (wording, options.tuning), origin)
    return TunedModel(tuned, len(cases) - len(usable))


def read_official(wording: Wording) -> Wording:
    """The wording in the authors' words; they have none for harm, nor for reasons alone."""
    numbers: dict[Style, str] = {"image": "1", "caption": "2"}
    if wording.question != "pun" or wording.style not in numbers:
        raise InputError(
            f"the authors of PunMemeCN have no words for {wording.question}, {wording.style}",
            hint="use --question pun with --style image or caption, or leave --wording out",
        )
    source = find_source(find_benchmark("punmemecn"), "release")
    chosen = {"language": wording.language, "prompt": numbers[wording.style]}
    name = f"official_detection.{wording.language}"
    prompt = official_prompts(source, chosen).get(name)
    if prompt is None:
        raise DataError(source.root, "the authors' script holds no such prompt")
    words = detection.WORDS[wording.language]
    said = (words[detection.NON_PUN], words[detection.PUN])
    return replace(wording, text=strip_lines(prompt.text), said=said)
