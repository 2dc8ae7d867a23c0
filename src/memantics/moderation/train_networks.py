"""Train networks that detect harmful memes, and tune local models by LoRA (extra ``detector``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from memantics.benchmarks.punmemecn import detection
from memantics.benchmarks.punmemecn.examples import DETECTION
from memantics.benchmarks.punmemecn.official import official_prompts, strip_lines
from memantics.benchmarks.punmemecn.wording import one_line
from memantics.benchmarks.registry import find_benchmark, find_source
from memantics.core.data import Skip
from memantics.core.errors import DataError, InputError
from memantics.core.language import guess_language
from memantics.core.parameters import Flag, MadeBy
from memantics.core.result import Result, Table, to_plain
from memantics.moderation.data import (
    load_examples,
    load_external_cases,
    load_harm_cases,
    load_pun_cases,
)
from memantics.moderation.examples import Loaded, keep_typed, list_languages
from memantics.moderation.identity import NEEDS_IMAGE
from memantics.moderation.lora.judging import (
    PromptLanguage,
    Question,
    QuestionStyle,
    TuningCase,
    Wording,
)
from memantics.moderation.lora.tuning import Tuned, TunedWriter, Tuning, TuningTools, tune
from memantics.moderation.lora.tuning import write_card as write_tuned_card
from memantics.moderation.neural import seeds, settings
from memantics.moderation.neural.seeds import CARD, write_card
from memantics.moderation.neural.settings import ProgressLog

__all__ = [
    "PromptLanguage",
    "QuestionStyle",
    "TrainedNetwork",
    "TuneOptions",
    "TunedModel",
    "Tuning",
    "train_network",
    "tune_model",
]
INTENT = "intent"


def plan_network(
    preset: Annotated[
        settings.Preset,
        Flag(
            "Architecture: mke and clip-mke also use captions; rgcl is HateCLIPper with"
            " retrieval-guided contrastive learning; the others are baselines.",
            default="mke",
        ),
    ],
    backbones: settings.Backbones,
    training: settings.Training,
    integration: Annotated[
        settings.Integration | None,
        Flag("How captions are combined with the text. Default: by preset."),
    ] = None,
    target: Annotated[
        settings.TrainingTarget, Flag("Target: harmful (two classes) or type (five classes).")
    ] = "harmful",
    length: Annotated[int, Flag("Maximum number of tokens per text.", min=8)] = 80,
) -> seeds.SeedPlan:
    """Plan a training; raise InputError if an encoder that the preset needs is missing."""
    settings.check_backbones(preset, backbones)
    if preset == "rgcl" and training.save_every:
        raise InputError(
            "--save-every does not work with the preset rgcl, which resumes only after an epoch",
            hint="leave --save-every out",
        )
    return seeds.SeedPlan(
        backbones, settings.choose_shape(preset, integration, target, length), training
    )


@dataclass(frozen=True, slots=True)
class TrainedNetwork(Result):
    """One trained network per seed, and the training data."""

    trained: seeds.TrainedSeeds
    data: Loaded

    @property
    def card(self) -> Path:
        """Path of the model card."""
        return self.trained.folder / CARD

    @property
    def skips(self) -> tuple[Skip, ...]:
        """Memes that were skipped."""
        return (*self.data.skips, *self.trained.skips)

    def table(self) -> Table:
        """Show mean and standard deviation over seeds, in per cent."""
        return seeds.tabulate(self.trained.seeds)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the folder, the seed with the best validation score, and the metrics."""
        found = to_plain(seeds.summarise(self.trained.seeds))
        chosen = self.trained.chosen
        return {"detector": str(self.trained.folder), "chosen": chosen, "metrics": found}


def train_network(
    data: Annotated[Loaded, MadeBy(load_examples)],
    plan: Annotated[seeds.SeedPlan, MadeBy(plan_network)],
    out: Annotated[Path, Flag("Folder to write.", default=Path("detector"))],
    say: ProgressLog = print,
) -> TrainedNetwork:
    """Train every seed of a plan and write the model card.

    In distributed training only rank 0 writes the card.
    """
    loaded = keep_typed(data) if plan.shape.target == "type" else data
    trained = seeds.train_neural(loaded, plan, out, say)
    if trained.first:
        write_card(trained, loaded)
    return TrainedNetwork(trained, loaded)


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """Settings for tuning a local model: ``data`` by name, ``external`` an extra test folder.

    ``language`` is the language of the prompts; by default that of most captions. ``official`` uses
    the prompts of PunMemeCN's authors, read from a registered clone.
    """

    model: Path
    tuning: Tuning
    out: Path
    question: Question = "pun"
    style: QuestionStyle = "caption"
    language: PromptLanguage | None = None
    data: str | None = None
    external: Path | None = None
    official: bool = False


@dataclass(frozen=True, slots=True)
class TunedModel(Result):
    """A tuned model; ``skipped`` is the number of memes skipped without an image."""

    tuned: Tuned | TunedWriter
    skipped: int = 0


def tune_model(options: TuneOptions, say: ProgressLog = print) -> TunedModel:
    """Tune a local model by LoRA to detect puns or harm, evaluate it, and write its card."""
    load = load_pun_cases if options.question == "pun" else load_harm_cases
    cases, origin = load(options.data)
    captions = [case.caption for case in cases if case.caption.strip()]
    origin = replace(origin, languages=tuple(list_languages(captions)))
    language = options.language or find_language(captions)
    wording = Wording(options.question, options.style, language)
    wording = read_official(wording, cases) if options.official else wording
    examples = {case.group for case in cases if case.image in wording.shown}
    cases = tuple(case for case in cases if case.group not in examples)
    usable = tuple(case for case in cases if case.image is not None)
    if not usable:
        raise InputError("no meme of the data has an image", hint="add the images to the data")
    outside = () if options.external is None else load_external_cases(options.external)
    tools = TuningTools(outside, say, origin)
    tuning, model = options.tuning, options.model
    tuned = tune(model, usable, wording, tuning, options.out, tools)
    given = ", custom prompts" if wording.text else ""
    facts = {
        "Task": f"whether a meme {'has a pun' if wording.question == 'pun' else 'is harmful'};"
        f" style {wording.style}, prompts in {wording.language}{given}",
        "Memes": f"{tuned.trained_on:,} for training,"
        f" {tuned.after.memes:,} of other groups for evaluation",
        "Training": describe_tuning(tuning),
    }
    if wording.question == "harm":
        facts["Identity terms"] = NEEDS_IMAGE
    invalid = "A reply without a verdict counts as an error; no answer is guessed."
    write_tuned_card(options.out, model, facts, tuned.table(), origin, invalid)
    return TunedModel(tuned, len(cases) - len(usable))


def describe_tuning(tuning: Tuning) -> str:
    return (
        f"rank {tuning.rank}, rate {tuning.rate:g}, batch {tuning.batch},"
        f" {tuning.epochs} epochs, seed {tuning.seed}"
    )


def find_language(captions: Sequence[str]) -> PromptLanguage:
    """Choose the prompt language: Chinese if at least half of the captions are Chinese."""
    chinese = sum(guess_language(text).language == "zh" for text in captions)
    return "zh" if 2 * chinese >= len(captions) else "en"


def read_official(wording: Wording, cases: Sequence[TuningCase] = ()) -> Wording:
    """Return the prompts of PunMemeCN's authors; they have no prompt for harm.

    The authors' prompt with reasons shows three example memes, which must be in the training data.
    """
    numbers: dict[QuestionStyle, str] = {"image": "1", "caption": "2", "reasons": "6"}
    if wording.question != "pun":
        raise InputError(
            f"PunMemeCN has no official prompt for --question {wording.question}",
            hint="use --question pun, or leave --wording out",
        )
    source = find_source(find_benchmark("punmemecn"), "release")
    chosen = {"language": wording.language, "prompt": numbers[wording.style]}
    name = f"official_detection.{wording.language}"
    prompt = official_prompts(source, chosen).get(name)
    if prompt is None:
        raise DataError(source.root, "the authors' script does not contain the prompt")
    words = detection.WORDS[wording.language]
    said = (words[detection.NON_PUN], words[detection.PUN])
    made = replace(wording, text=strip_lines(prompt.text), said=said)
    return _show_examples(made, cases) if wording.style == "reasons" else made


def _show_examples(wording: Wording, cases: Sequence[TuningCase]) -> Wording:
    """Insert the authors' example memes and answer formats into the prompt."""
    names = DETECTION["authors"]
    known = {case.id: case for case in cases}
    examples = [known[name] for name in names if name in known and known[name].image]
    # One line of reasons, followed by a line that ends in the verdict.
    head = r"([^：:\n]{1,40}[：:] ?)"
    marks = re.search(rf"(?m)^{head}.+\n{head}{wording.words[1]}$", wording.text)
    if len(examples) < len(names) or marks is None:
        raise DataError(
            "punmemecn",
            f"the authors' examples ({names[0]} and its hard negatives) or images are missing",
            hint="use --style image or caption, or leave --wording out",
        )
    captions = [one_line(case.caption).replace("$", "$$") for case in examples]
    text = re.sub(
        r"\$caption([1-3])\b", lambda placeholder: captions[int(placeholder[1]) - 1], wording.text
    )
    shown = tuple(case.image for case in examples if case.image is not None)
    return replace(wording, text=text, marks=(marks[1], marks[2]), shown=shown)
