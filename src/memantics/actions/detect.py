"""Detectors of harmful memes: train, open, ask, explain, measure and compare them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memantics.actions.detector_data import (
    Data,
    Item,
    describe_use,
    find_examples,
    make_examples,
)
from memantics.core.errors import InputError
from memantics.core.language import read_language
from memantics.core.result import Result, html_table, to_plain
from memantics.detector.card import (
    SAMPLE_LIMIT,
    ModelCard,
    format_card,
    make_card,
    read_stored,
    write_card,
)
from memantics.detector.disguises import augment
from memantics.detector.evaluation import (
    DetectorComparison,
    Evaluation,
    compare,
    evaluate,
)
from memantics.detector.examples import Example, Loaded, need_labels
from memantics.detector.explanation import Explanation
from memantics.detector.fast import FastSettings, Prediction, TypeHead, fit
from memantics.detector.features import Dense, FeatureBlock
from memantics.detector.folds import Split
from memantics.detector.heads import choose_preset, need_training
from memantics.detector.judges import (
    FastJudge,
    Judge,
    NeuralJudge,
    OpenDetector,
    open_embedder,
    open_fast,
    open_judge,
    read_images,
)
from memantics.detector.neural.export import export_onnx
from memantics.detector.neural.settings import PRESETS as NETWORKS
from memantics.detector.robustness import (
    Evasion,
    Robustness,
    measure_evasion,
    measure_leakage,
)
from memantics.detector.storage import save
from memantics.detector.verdict import Subject, Verdict, judge, mark_predictions
from memantics.report.pages.detector import write_evaluation, write_explanation
from memantics.starter import DETECTOR_FILE

__all__ = [
    "SAMPLE_LIMIT",
    "SEEN",
    "Detector",
    "Evaluation",
    "Example",
    "Explanation",
    "Loaded",
    "Measured",
    "Prediction",
    "Robustness",
    "TrainOptions",
]

SEEN = "this detector was trained on these files; only memes it has not seen tell how good it is"
_HELD_OUT = (
    "On memes that were held out inside training; the threshold was chosen on the same"
    " predictions, so an outer test is a little lower (see detector eval --folds)."
)


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Choices of a training beside its preset.

    ``split`` and ``labels`` name a part of the release. ``inner`` says how examples are held out
    to calibrate and choose, ``types`` whether types stand beside the decision or after it. ``ocr``
    reads the images, ``image_statistics`` adds light, colour and edges, ``disguised`` is the share
    of examples that is added in disguise, ``embedder`` the folder of a text encoder.
    """

    split: str = "train"
    labels: str = "v1"
    inner: Split = "random"
    types: TypeHead = "flat"
    ocr: bool = False
    image_statistics: bool = False
    disguised: float = 0.0
    embedder: Path | None = None


@dataclass(frozen=True, slots=True)
class Measured(Result):
    """Figures of a detector with all that is shown beside them."""

    title: str
    data: Loaded
    predictions: tuple[Prediction, ...]
    figures: Evaluation
    robustness: Robustness | None = None
    notes: tuple[str, ...] = ()

    def save(self, page: Path | str) -> Path:
        """Write a page with the reliability curve and the mistakes."""
        found = (self.predictions, self.figures, self.robustness)
        write_evaluation(Path(page), self.title, self.data, *found)
        return Path(page)


class Detector(OpenDetector):
    """A detector that stays loaded: fast, a network (folder or exported file), or LoRA.

    ``trained_on`` and ``held_out`` are the data and the figures of a training in this process.
    """

    def __init__(self, judge: Judge, name: str, path: Path | None = None) -> None:
        super().__init__(judge, name, path)
        self.trained_on: Loaded | None = None
        self.held_out: Evaluation | None = None
        self._written_card: ModelCard | None = None

    def __repr__(self) -> str:
        return f"Detector({self.name!r}{', sample=True' if self.sample else ''})"

    def _repr_html_(self) -> str:
        shown = ("data", "examples", "harmful", "licence", "selection", "figures_note", "counts")
        facts = {name: to_plain(self.card[name]) for name in shown if name in self.card}
        return html_table({"detector": self.name, "note": self.note, **facts})

    @classmethod
    def train(
        cls, data: Data = "toxicn_mm", preset: str = "fast", options: TrainOptions | None = None
    ) -> Detector:
        """Train a fast detector on labelled memes.

        ``data`` is ``toxicn_mm`` (the registered release), ``starter``, a file or folder, or
        examples. Without a registered release the starter pack is taken: see ``sample``.
        """
        need_training()
        options = options or TrainOptions()
        if preset in NETWORKS:
            raise InputError(
                f"the preset {preset} is a network",
                hint=f"use memantics detector train-neural --preset {preset}",
            )
        loaded = find_examples(data, options.split, options.labels)
        need_labels(loaded.examples, loaded.name)
        texts = [example.text for example in loaded.examples]
        settings = _add_blocks(choose_preset(preset, texts), options)
        encoder = open_embedder(settings, options.embedder)
        if options.ocr:
            examples, missed = read_images(loaded.examples)
            more = (f"{missed} images could not be read",) if missed else ()
            loaded = replace(loaded, examples=examples, notes=(*loaded.notes, *more))
        grown = augment(loaded.examples, options.disguised)
        trained = fit(grown.examples, settings, encoder, grown.origins)
        # Disguised copies of a meme are no further memes: figures are on those that are real.
        found = evaluate(loaded.examples, trained.held_out[: len(loaded.examples)])
        card = make_card(trained.detector, loaded, found, _HELD_OUT, sample=loaded.sample)
        stored = {"sample": loaded.sample, **card.dump(), **describe_use(loaded, trained.held_out)}
        made = cls(FastJudge(trained.detector, encoder, stored), f"preset {settings.preset}")
        made.trained_on, made.held_out, made._written_card = loaded, found, card
        return made

    @classmethod
    def load(
        cls, path: str | Path, embedder: Path | None = None, base: Path | None = None
    ) -> Detector:
        """Open a detector: a file, the folder of a network, or the folder of a tuned model.

        ``embedder`` is the folder of the text encoder it was trained with, ``base`` the model's
        folder that an adapter was tuned on, where it has moved since.
        """
        return cls(open_judge(Path(path), embedder, base), Path(path).name, Path(path))

    @classmethod
    def starter(cls) -> Detector:
        """The tiny detector on the starter pack that ships with it: to try, not to act on."""
        return cls(open_fast(DETECTOR_FILE), "starter sample")

    def save(self, path: str | Path) -> Path:
        """Write the detector as one file, after a training with its model card beside it."""
        target = Path(path)
        if isinstance(self.judge, FastJudge):
            save(self.judge.detector, target, self.judge.card)
            if self._written_card is not None:
                write_card(self._written_card, target)
        elif isinstance(self.judge, NeuralJudge) and self.path is not None and self.path.is_dir():
            export_onnx(self.path, target)
        else:
            raise InputError(
                f"{self.name} cannot be written as one file", hint="copy what it was opened from"
            )
        return target

    def show_card(self) -> str:
        """Its model card as Markdown: data, figures, errors by target, limits (fast detectors)."""
        return format_card(read_stored(self.card, self.name))

    def predict(
        self, items: Item | Sequence[Item] | Loaded, language: str = ""
    ) -> list[Prediction]:
        """Judge texts, image files (read by OCR) or examples; one prediction each, in order.

        Each says of itself where it is no verdict (``unjudged``), and where the text is unlike the
        training texts (``out_of_domain``). ``language`` is that of the texts, where it is known.
        """
        examples = items.examples if isinstance(items, Loaded) else self.prepare(items)
        said = self.judge.predict(examples)
        return mark_predictions(self, examples, said, read_language(language))

    def verdicts(self, items: Item | Sequence[Item], language: str = "") -> list[Verdict]:
        """Verdicts on texts, image files (read by OCR) or examples, as ``screen`` writes them."""
        examples = self.prepare(items)
        subjects = [
            Subject(example, read_language(language), image=read, given=not read)
            for example in examples
            for read in (example.image is not None,)
        ]
        return judge(self, subjects)

    def explain(self, item: Item) -> Explanation:
        """Say which characters, words and captions moved a decision (fast detectors only)."""
        if not isinstance(self.judge, FastJudge):
            raise InputError(
                f"{self.name} is a network, and this works on fast detectors only",
                hint="give a file that 'memantics detector train' wrote",
            )
        (example,) = self.prepare(item)
        found = None if example.empty and example.image is None else self.find_reasons(example)
        if found is None:
            raise InputError(f"meme {example.id} has no text to judge by", hint="give a text")
        (said,) = mark_predictions(self, [example], [found.prediction])
        return replace(found, prediction=said)

    def save_explanation(self, page: Path | str, example: Example, found: Explanation) -> Path:
        """Write a page of what moved a decision."""
        write_explanation(Path(page), example, found, sample=self.sample)
        return Path(page)

    def prepare(self, items: Item | Sequence[Item]) -> tuple[Example, ...]:
        """Texts and image files as examples; a file without a text that can be read is refused."""
        given = [items] if isinstance(items, str | Path | Example) else items
        examples = make_examples(given)
        for item, example in zip(given, examples, strict=True):
            unread = example.image is not None and example.empty and item is not example
            if unread and isinstance(self.judge, FastJudge):
                raise InputError(
                    f"no text can be read in {example.image}",
                    hint="leave it out, or use a detector of images",
                )
        return examples

    def evaluate(self, data: Data = "toxicn_mm", split: str = "test") -> Evaluation:
        """Figures on labelled memes, with 95 % intervals."""
        return self.measure(find_examples(data, split)).figures

    def measure(self, data: Loaded, disguise: bool = False, seen: Loaded | None = None) -> Measured:
        """Figures with predictions and notes; ``disguise`` adds evasion and near-duplicates.

        ``seen`` is the training data, in which near-duplicates are looked for.
        """
        need_labels(data.examples, data.name)
        said = self.judge.predict(data.examples)
        found = evaluate(data.examples, said)
        report = self._test(data, said, seen) if disguise else None
        notes = (SEEN,) if self.has_seen(data) else ()
        title = f"{self.name} on {data.name}"
        return Measured(title, data, tuple(said), found, report, notes)

    def count_blank(self, examples: Sequence[Example]) -> int:
        """How many examples hold nothing that this detector looks at."""
        return sum(not self.reads(example) for example in examples)

    def _test(self, data: Loaded, said: Sequence[Prediction], seen: Loaded | None) -> Robustness:
        evasions: tuple[Evasion, ...] = ()
        notes: list[str] = []
        if isinstance(self.judge, FastJudge):
            examples = self.judge.look(data.examples)
            evasions = measure_evasion(self.judge.detector, examples, self.judge.embedder)
        else:
            notes.append("disguises are tried on fast detectors only")
        leakage = None
        if seen is None:
            notes.append("near-duplicates are counted with --trained-on DATA, or without a file")
        else:
            texts = [example.text for example in seen.examples]
            leakage = measure_leakage(data.examples, said, seen=texts)
        return Robustness(evasions, leakage, tuple(notes))

    def compare(
        self, other: Detector, data: Data = "toxicn_mm", split: str = "test"
    ) -> DetectorComparison:
        """Both detectors on the same labelled memes, pair by pair."""
        loaded = find_examples(data, split)
        need_labels(loaded.examples, loaded.name)
        one, two = (each.judge.predict(loaded.examples) for each in (self, other))
        return compare(loaded.examples, one, two)


def _add_blocks(settings: FastSettings, options: TrainOptions) -> FastSettings:
    blocks, dense = settings.blocks, settings.dense
    if options.ocr:
        blocks = (*blocks, FeatureBlock("ocr", "chars", 0.7))
    if options.image_statistics:
        dense = (*dense, Dense("image", 0.3))
    return replace(
        settings, blocks=blocks, dense=dense, inner=options.inner, type_head=options.types
    )
