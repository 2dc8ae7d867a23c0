"""Train networks that detect harmful memes, and tune local models by LoRA (extra ``detector``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memantics.actions.detector_data import load_external_cases, load_harm_cases, load_pun_cases
from memantics.core.errors import InputError
from memantics.core.result import Result
from memantics.detector.examples import Loaded, keep_typed
from memantics.detector.lora.tuning import Tools, Tuned, Tuning, tune
from memantics.detector.lora.tuning import write_card as write_tuned_card
from memantics.detector.lora.wording import Wording
from memantics.detector.neural.card import write_card
from memantics.detector.neural.seeds import SeedPlan, Trained, train_neural

Say = Callable[[str], None]


def train_network(
    data: Loaded, plan: SeedPlan, out: Path, say: Say = print
) -> tuple[Trained, Loaded]:
    """Train every seed of a plan and write the model card; return what was trained on, too.

    Of several processes that train together only rank 0 writes the card.
    """
    loaded = keep_typed(data) if plan.shape.target == "type" else data
    trained = train_neural(loaded, plan, out, say)
    if trained.first:
        write_card(trained, loaded)
    return trained, loaded


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """What a local model is tuned on: ``data`` by name, ``external`` a folder to judge last."""

    model: Path
    wording: Wording
    tuning: Tuning
    out: Path
    data: str | None = None
    external: Path | None = None


@dataclass(frozen=True, slots=True)
class TunedModel(Result):
    """A tuned model, and how many memes were left out for want of an image."""

    tuned: Tuned
    left_out: int


def tune_model(options: TuneOptions, say: Say = print) -> TunedModel:
    """Tune a local model by LoRA to tell puns or harm, judge held-out groups, write its card."""
    wording = options.wording
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
