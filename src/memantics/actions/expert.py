"""Experts: detectors of labels other than harm, the topics they are used for, where they lie."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from memantics.actions.detect import TrainedDetector
from memantics.actions.detector_data import Item
from memantics.actions.detector_training import TrainOptions, train_judge
from memantics.actions.expert_data import find_labelled
from memantics.core.errors import InputError
from memantics.core.home import home
from memantics.core.lines import TextChoice
from memantics.core.opinion import Opinion
from memantics.core.result import Table
from memantics.detector.examples import Example, Loaded
from memantics.detector.explanation import LabelExplanation, explain_label
from memantics.detector.fast import LabelPrediction
from memantics.detector.in_use import find_in_use, forget_in_use, list_in_use, set_in_use
from memantics.detector.judges import FastJudge, open_expert
from memantics.detector.label_evaluation import LabelEvaluation, evaluate_labels
from memantics.detector.opinions import ask, find_accuracy
from memantics.models.embedders import LOCAL

_WIDTH = 48
ExpertOptions = TrainOptions  # the public name for labels other than harm


class Expert(TrainedDetector[LabelEvaluation]):
    """A detector of labels other than harm."""

    word = "expert"
    machine: FastJudge

    def __init__(self, machine: FastJudge, path: Path | None = None) -> None:
        super().__init__(machine, machine.detector.labels.name, path)

    @property
    def label(self) -> str:
        """What it was trained for, as ``NAME/LABEL``."""
        return self.name

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels that it tells apart."""
        return self.labels.classes

    @property
    def accuracy(self) -> float | None:
        """Its accuracy on memes held out inside training of which it was sure."""
        return find_accuracy(self)

    @classmethod
    def train(cls, data: str | Loaded, options: TrainOptions | None = None) -> Expert:
        """Train an expert for ``NAME/LABEL``: a label of a benchmark, or a column of a table."""
        options = options or TrainOptions()
        judge, loaded, found, card = train_judge(
            data if isinstance(data, Loaded) else load_labelled(data, options), options
        )
        assert isinstance(found, LabelEvaluation)
        made = cls(judge)
        made.learn(loaded, found, card)
        return made

    @classmethod
    def load(
        cls, path: str | Path, embedder: Path | None = None, pictures: Path | None = None
    ) -> Expert:
        """Open an expert: a file, or the ``NAME/LABEL`` of one that was trained here.

        ``embedder`` and ``pictures`` are the folders of the models that it was trained with.
        """
        place = find_expert(path)
        return cls(open_expert(place, embedder, pictures), place)

    def save(self, path: str | Path | None = None) -> Path:
        """Write it as one file, with its card beside it; by default where NAME/LABEL finds it."""
        target = place_expert(self.label) if path is None else Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path = super().save(target)
        return target

    def predict(self, items: Item | Sequence[Item] | Loaded) -> list[LabelPrediction]:
        """Judge texts, image files (read by OCR) or examples; one prediction each, in order."""
        examples = items.examples if isinstance(items, Loaded) else self.prepare(items)
        return self.machine.classify(examples)

    def judge(self, text: str, language: str = "") -> Opinion:
        """What it says of a text, with its measured accuracy; ``unknown`` where it cannot tell."""
        return ask(self, text, language)

    def explain(self, item: Item, label: str = "") -> LabelExplanation:
        """Say which words moved it towards a label, by default the likeliest."""
        (example,) = self.machine.look(self.prepare(item))
        return explain_label(self.machine.detector, example, self.machine.embedder, label)

    def evaluate(
        self, data: str | Loaded, *, split: str = "all", kind: str | None = None
    ) -> LabelEvaluation:
        """Figures on labelled memes, with 95 % intervals over groups."""
        if isinstance(data, str):
            data = find_labelled(data, data=kind, split=split, classes=self.classes)
        return evaluate_labels(data, self.machine.classify(data.examples))

    def prepare(
        self, items: Item | Sequence[Item], taken: TextChoice = "caption"
    ) -> tuple[Example, ...]:
        """Texts and image files as examples; one without a text is refused."""
        examples = super().prepare(items, taken)
        for example in examples:
            if example.empty and not self.reads(example):
                raise InputError(f"meme {example.id} has no text to judge by", hint="give a text")
        return examples


def load_labelled(name: str, options: TrainOptions, classes: Sequence[str] | None = None) -> Loaded:
    """Labelled memes by ``NAME/LABEL``, as the options say."""
    split, known = options.split or "all", tuple(classes) if classes else None
    captions = options.captions
    return find_labelled(name, data=options.data, split=split, classes=known, captions=captions)


def place_expert(label: str) -> Path:
    """Where an expert for ``NAME/LABEL`` lies that was trained here."""
    stem = re.sub(r"[^\w.-]+", "-", label).strip("-.") or "expert"
    return home() / "experts" / f"{stem}.zip"


def find_expert(name: str | Path) -> Path:
    """The file of an expert: a path, or the ``NAME/LABEL`` of one that was trained here."""
    path = Path(name)
    if path.is_file():
        return path
    trained = place_expert(str(name))
    if trained.is_file():
        return trained
    raise InputError(
        f"no expert at {name}", hint=f"memantics expert train {name} makes one, or give a file"
    )


def use_expert(path: str | Path) -> tuple[str, Path]:
    """Use an expert for its topic in analyze, reappraise, screen and embedded/reader."""
    place = find_expert(path).absolute()
    expert = Expert.load(place)
    needed = expert.machine.detector.embedder
    if LOCAL in needed:
        raise InputError(
            f"{place.name} needs the model {needed}, which other commands do not open",
            hint="ask it with expert predict, or train one without a model of your own",
        )
    set_in_use(expert.topic, place)
    return expert.topic, place


def forget_expert(topic: str) -> None:
    """Use no expert for a topic any more."""
    if not forget_in_use(topic):
        known = ", ".join(list_in_use()) or "none is in use"
        raise InputError(f"no expert is in use for {topic!r}", hint=f"in use: {known}")


def find_used_experts(topics: Sequence[str] | None = None) -> dict[str, Expert]:
    """The experts in use, by topic, opened."""
    wanted = list_in_use() if topics is None else topics
    places = {topic: find_in_use(topic) for topic in wanted}
    return {topic: Expert.load(place) for topic, place in places.items() if place is not None}


def tabulate_used() -> Table:
    """Which expert is in use for what, how good it was, and where it lies."""
    rows = []
    for topic, place in list_in_use().items():
        if not place.is_file():
            rows.append((topic, "gone", "–", "–", str(place)))
            continue
        expert = Expert.load(place)
        share = "–" if expert.accuracy is None else f"{100 * expert.accuracy:.1f} %"
        rows.append((topic, expert.label, ", ".join(expert.classes)[:_WIDTH], share, str(place)))
    return Table(("topic", "expert", "labels", ">held-out accuracy", "file"), tuple(rows))


def tabulate_predictions(
    examples: Sequence[Example], said: Sequence[LabelPrediction], most: int = 40
) -> Table:
    """The first predictions beside the texts they are about."""
    rows = []
    for example, prediction in list(zip(examples, said, strict=True))[:most]:
        short = " ".join(example.text.split())
        shown = short if len(short) <= _WIDTH else short[: _WIDTH - 1] + "…"
        rows.append(
            (", ".join(prediction.labels) or "none", f"{prediction.probability:.2f}", shown)
        )
    return Table(("label", ">chance", "text"), tuple(rows))
