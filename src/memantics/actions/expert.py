"""Experts for any label: train, open, ask, explain, measure and use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memantics.actions.detector_data import Item, describe_texts, make_examples
from memantics.actions.expert_data import LabelledData, find_labelled
from memantics.core.data import DataKind
from memantics.core.errors import InputError
from memantics.core.home import home
from memantics.core.opinion import Opinion
from memantics.core.result import Table, html_table, to_plain
from memantics.detector.card import ModelCard, make_expert_card, write_card
from memantics.detector.examples import Example
from memantics.detector.expert import ExpertPrediction, FastExpert, fit_expert
from memantics.detector.expert_evaluation import (
    ExpertEvaluation,
    cross_validate_expert,
    evaluate_expert,
)
from memantics.detector.explanation import ExpertExplanation, explain_label
from memantics.detector.features import Dense, Embedder
from memantics.detector.heads import AUTO, FastSettings, choose_preset
from memantics.detector.in_use import find_in_use, forget_in_use, list_in_use, set_in_use
from memantics.detector.judges import open_embedders
from memantics.detector.opinions import OpenExpert, measure_sure
from memantics.detector.pictures import SeeingEmbedder
from memantics.detector.storage import load_expert, save
from memantics.models.embedders import LOCAL

__all__ = [
    "AUTO",
    "Expert",
    "ExpertEvaluation",
    "ExpertExplanation",
    "ExpertOptions",
    "ExpertPrediction",
    "Opinion",
    "find_expert",
    "find_used_experts",
    "forget_expert",
    "tabulate_predictions",
    "tabulate_used",
    "use_expert",
]
SEEN = "this expert was trained on these files; only memes it has not seen tell how good it is"
_HELD_OUT = (
    "On memes whose group was held out inside training; thresholds were chosen on the same"
    " predictions, so an outer test is a little lower (see expert eval --folds)."
)
_WIDTH = 48
_PICTURE = 1.0  # how much a picture weighs beside the words of the text


@dataclass(frozen=True, slots=True)
class ExpertOptions:
    """Choices of a training beside its data.

    ``preset`` ``auto`` takes ``fast`` for Chinese texts and ``words`` for others; those that end in
    ``full`` also compare meanings. ``split`` is a part of a release, ``data`` starter or release,
    ``embedder`` the folder of a text encoder. ``pictures`` is the folder of a vision model (CLIP,
    SigLIP, …) through which pictures are seen, ``captions`` a file with captions by any model.
    """

    preset: str = AUTO
    split: str = "all"
    data: DataKind | None = None
    embedder: Path | None = None
    pictures: Path | None = None
    captions: Path | None = None


class Expert(OpenExpert):
    """An expert that stays loaded. ``card`` is its model card, ``held_out`` its figures.

    ``trained_on`` and ``held_out`` are those of a training in this process.
    """

    def __init__(
        self,
        expert: FastExpert,
        card: Mapping[str, Any],
        embedder: Embedder | None = None,
        path: Path | None = None,
    ) -> None:
        super().__init__(expert, card, embedder, path)
        self.trained_on: LabelledData | None = None
        self.held_out: ExpertEvaluation | None = None
        self._written_card: ModelCard | None = None

    def __repr__(self) -> str:
        return f"Expert({self.label!r}{', sample=True' if self.sample else ''})"

    def _repr_html_(self) -> str:
        shown = ("data", "examples", "labels", "licence", "selection", "figures_note")
        facts = {name: to_plain(self.card[name]) for name in shown if name in self.card}
        return html_table({"expert": self.label, "note": self.note, **facts})

    @classmethod
    def train(cls, data: str | LabelledData, options: ExpertOptions | None = None) -> Expert:
        """Train an expert for ``NAME/LABEL``: a label of a benchmark, or a column of a table."""
        options = options or ExpertOptions()
        loaded = (
            find_labelled(data, data=options.data, split=options.split, captions=options.captions)
            if isinstance(data, str)
            else data
        )
        settings, embedder = _choose(options, loaded)
        trained = fit_expert(loaded.data, settings, embedder)
        found = evaluate_expert(loaded.data, trained.held_out)
        card = make_expert_card(trained.expert, loaded.loaded, loaded.counts, found, _HELD_OUT)
        stored = {
            **card.dump(),
            **describe_texts([example.text for example in loaded.data.examples]),
            "sample": loaded.sample,
            "topic": loaded.topic,
            **measure_sure(loaded.data.gold, trained.held_out),
        }
        made = cls(trained.expert, stored, embedder)
        made.trained_on, made.held_out, made._written_card = loaded, found, card
        return made

    @classmethod
    def load(
        cls, path: str | Path, embedder: Path | None = None, pictures: Path | None = None
    ) -> Expert:
        """Open an expert: a file, or the ``NAME/LABEL`` of one that was trained here.

        ``embedder`` and ``pictures`` are the folders of the models that it was trained with.
        """
        place = find_expert(path)
        expert, card = load_expert(place)
        return cls(expert, card, open_embedders(expert.settings, embedder, pictures), place)

    def save(self, path: str | Path | None = None) -> Path:
        """Write it as one file, with its card beside it; by default where NAME/LABEL finds it."""
        target = place_expert(self.label) if path is None else Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        save(self.expert, target, self.card)
        if self._written_card is not None:
            write_card(self._written_card, target)
        self.path = target
        return target

    def predict(self, items: Item | Sequence[Item]) -> list[ExpertPrediction]:
        """Judge texts, image files (read by OCR) or examples; one prediction each, in order."""
        return self.expert.predict(self._prepare(items), self.embedder)

    def judge(self, text: str, language: str = "") -> Opinion:
        """What it says of a text, with its measured accuracy; ``unknown`` where it cannot tell."""
        return self.ask(text, language)

    def explain(self, item: Item, label: str = "") -> ExpertExplanation:
        """Say which words moved it towards a label, by default the likeliest."""
        (example,) = self._prepare(item)
        return explain_label(self.expert, example, self.embedder, label)

    def evaluate(
        self, data: str | LabelledData, *, split: str = "all", kind: DataKind | None = None
    ) -> ExpertEvaluation:
        """Figures on labelled memes, with 95 % intervals over groups."""
        if isinstance(data, str):
            data = find_labelled(data, data=kind, split=split, classes=self.classes)
        return evaluate_expert(data.data, self.expert.predict(data.data.examples, self.embedder))

    def _prepare(self, items: Item | Sequence[Item]) -> tuple[Example, ...]:
        given = [items] if isinstance(items, str | Path | Example) else items
        examples = make_examples(given)
        for example in examples:
            if example.empty:
                raise InputError(f"meme {example.id} has no text to judge by", hint="give a text")
        return examples


def _choose(options: ExpertOptions, data: LabelledData) -> tuple[FastSettings, Embedder | None]:
    """Settings and encoders; with a vision model, pictures become a block of their own."""
    settings = choose_preset(options.preset, [example.text for example in data.data.examples])
    embedder = open_embedders(settings, options.embedder, options.pictures)
    if isinstance(embedder, SeeingEmbedder):
        if not any(example.image is not None for example in data.data.examples):
            raise InputError(
                f"{data.name}: no meme has its picture", hint="add the images to the release"
            )
        seen = Dense("picture", _PICTURE, embedder.width)
        settings = replace(settings, dense=(*settings.dense, seen))
    return settings, embedder


def cross_validate(
    data: LabelledData,
    options: ExpertOptions,
    folds: int = 5,
    on_fold: Callable[[int, int], None] = lambda _done, _all: None,
) -> ExpertEvaluation:
    """Figures of a preset on groups that were held out, everything learnt inside the folds."""
    settings, embedder = _choose(options, data)
    said = cross_validate_expert(data.data, settings, embedder, folds, on_fold)
    return evaluate_expert(data.data, said)


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
    topic = expert.topic
    if LOCAL in expert.expert.embedder:
        raise InputError(
            f"{place.name} needs the model {expert.expert.embedder},"
            " which other commands do not open",
            hint="ask it with expert predict, or train one without a model of your own",
        )
    set_in_use(topic, place)
    return topic, place


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
    examples: Sequence[str], said: Sequence[ExpertPrediction], most: int = 40
) -> Table:
    """The first predictions beside the texts they are about."""
    rows = []
    for text, prediction in list(zip(examples, said, strict=True))[:most]:
        short = " ".join(text.split())
        shown = short if len(short) <= _WIDTH else short[: _WIDTH - 1] + "…"
        rows.append(
            (", ".join(prediction.labels) or "none", f"{prediction.probability:.2f}", shown)
        )
    return Table(("label", ">chance", "text"), tuple(rows))
