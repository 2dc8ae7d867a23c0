"""Detectors of harm: train, load, predict, explain, evaluate and compare."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from memantics.core.errors import InputError, MemanticsError
from memantics.core.images import decode
from memantics.core.language import read_language
from memantics.core.lines import TextChoice
from memantics.core.result import Result, html_table, to_plain
from memantics.core.samples import DETECTOR_FILE
from memantics.core.stamping import describe_marks
from memantics.models.embedded.ocr import RapidReader, RememberingOcr
from memantics.moderation.card import SAMPLE_LIMIT, ModelCard, format_card, read_stored, write_card
from memantics.moderation.data import (
    ExampleLike,
    ExampleSource,
    find_examples,
    make_examples,
    put_captions,
)
from memantics.moderation.evaluation import (
    DetectorComparison,
    DetectorEvaluation,
    compare,
    evaluate,
)
from memantics.moderation.examples import Example, Loaded, need_labels
from memantics.moderation.explanation import Explanation, LabelExplanation
from memantics.moderation.fast import Prediction
from memantics.moderation.judges import (
    DetectorJudge,
    FastJudge,
    NeuralJudge,
    OpenDetector,
    open_fast,
    open_judge,
)
from memantics.moderation.labels import LabelEvaluation
from memantics.moderation.lora.judging import LoraJudge
from memantics.moderation.neural.saved import export_onnx
from memantics.moderation.neural.settings import PRESETS as NETWORKS
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.pages import draw_thresholds, write_evaluation, write_explanation
from memantics.moderation.robustness import Evasion, Robustness, measure_evasion, measure_leakage
from memantics.moderation.storage import save
from memantics.moderation.subjects import MOST_TEXT, Subject, see_example
from memantics.moderation.training import TrainOptions, train_judge
from memantics.moderation.unseen_ngrams import OUTSIDE_NOTE
from memantics.moderation.verdict import (
    HARMFUL,
    Verdict,
    fail,
    judge,
    judge_by_all,
    mark_predictions,
)
from memantics.web.phrases import PageLanguage

__all__ = [
    "HARMFUL",
    "MOST_TEXT",
    "OUTSIDE_NOTE",
    "SAMPLE_LIMIT",
    "Detector",
    "DetectorEvaluation",
    "Explanation",
    "LabelEvaluation",
    "LabelExplanation",
    "Measured",
    "Moderator",
    "RememberingOcr",
    "Subject",
    "TrainOptions",
    "Verdict",
]
MetricsT = TypeVar("MetricsT", DetectorEvaluation, LabelEvaluation)


@dataclass(frozen=True, slots=True)
class Measured(Result):
    """Metrics of a detector with the data, notes and predictions behind them."""

    title: str
    data: Loaded
    predictions: tuple[Prediction, ...]
    metrics: DetectorEvaluation | LabelEvaluation
    robustness: Robustness | None = None
    notes: tuple[str, ...] = ()
    point: OperatingPoint | None = None

    def save(self, page: Path | str, language: PageLanguage = "en") -> Path:
        """Write a page with the reliability curve and the errors (only for harm)."""
        if not isinstance(self.metrics, DetectorEvaluation):
            raise InputError("only harm detectors have an evaluation page", hint="use --json")
        found = (self.predictions, self.metrics, self.robustness)
        title, data = self.title, self.data
        write_evaluation(Path(page), title, data, *found, point=self.point, language=language)
        return Path(page)


class TrainedDetector(OpenDetector, Generic[MetricsT]):
    """A loaded detector or classifier.

    ``trained_on`` and ``held_out`` are data and metrics, if it was trained in this process.
    """

    word = "detector"

    def __init__(self, judge: DetectorJudge, name: str, path: Path | None = None) -> None:
        super().__init__(judge, name, path)
        self.trained_on: Loaded | None = None
        self.held_out: MetricsT | None = None
        self._written_card: ModelCard | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}{', sample=True' if self.sample else ''})"

    def _repr_html_(self) -> str:
        shown = ("data", "examples", "harmful", "labels", "licence", "selection", "metrics_note")
        facts = {name: to_plain(self.card[name]) for name in shown if self.card.get(name)}
        return html_table({self.word: self.name, "note": self.note, **facts})

    def record_training(self, loaded: Loaded, found: MetricsT, card: ModelCard) -> None:
        """Store the data, metrics and card of a training run in this process."""
        self.trained_on, self.held_out, self._written_card = loaded, found, card

    def save(self, path: str | Path) -> Path:
        """Write the detector as one file; after training, also write its model card."""
        target = Path(path)
        if isinstance(self.machine, FastJudge):
            save(self.machine.detector, target, self.machine.card)
            if self._written_card is not None:
                picture = draw_thresholds(self._written_card.thresholds)
                write_card(self._written_card, target, picture)
        elif isinstance(self.machine, NeuralJudge) and self.path is not None and self.path.is_dir():
            export_onnx(self.path, target)
        else:
            raise InputError(
                f"{self.name} cannot be written as one file",
                hint="copy the folder that it was loaded from",
            )
        return target

    def show_card(self) -> str:
        """Return its model card as Markdown (fast detectors only)."""
        card = format_card(read_stored(self.card, self.name))
        if self.stored_point is None:
            return card
        lines = "".join(f"- {line}\n" for line in self.describe_point(self.stored_point))
        return f"{card}\n## Operating point, as set\n\n{lines}"

    def prepare(
        self, items: ExampleLike | Sequence[ExampleLike], taken: TextChoice = "caption"
    ) -> tuple[Example, ...]:
        """Convert texts and image files to examples; raise InputError if OCR finds no text."""
        given = [items] if isinstance(items, str | Path | Example) else items
        examples = make_examples(given, taken)
        for item, example in zip(given, examples, strict=True):
            unread = example.image is not None and example.empty and item is not example
            if unread and isinstance(self.machine, FastJudge):
                raise InputError(
                    f"no text was found in the image {example.image}",
                    hint="leave it out, or use a detector that scores images",
                )
        return examples

    def list_notes(self, data: Loaded) -> tuple[str, ...]:
        """List caveats about metrics on these data."""
        seen = f"this {self.word} was trained on these files"
        return (f"{seen}: the metrics are too high; evaluate on other memes",) * self.has_seen(data)


class Detector(TrainedDetector[DetectorEvaluation]):
    """A detector of harmful memes: fast (n-grams), a neural network, or a LoRA-tuned model."""

    @classmethod
    def train(
        cls,
        data: ExampleSource = "toxicn_mm",
        preset: str = "",
        options: TrainOptions | None = None,
    ) -> Detector:
        """Train a fast detector on labelled memes.

        Args:
            data: ``toxicn_mm`` (the registered release), ``sample``, a file, a folder, or examples.
                If no release is registered, the sample data are used, and ``sample`` is True.
            preset: Name of a preset. Default: the preset of ``options``.
            options: Training settings.

        Raises:
            InputError: If the preset is a neural network; see ``detector train-neural``.
        """
        options = options or TrainOptions()
        options = replace(options, preset=preset or options.preset)
        if options.preset in NETWORKS:
            raise InputError(
                f"the preset {options.preset} is a neural network",
                hint=f"use memantics detector train-neural --preset {options.preset}",
            )
        loaded = find_examples(data, options.split or "train", options.labels)
        if options.captions is not None:
            loaded = put_captions(loaded, options.captions)
        need_labels(loaded.examples, loaded.name)
        judge, loaded, found, card = train_judge(loaded, options)
        assert isinstance(found, DetectorEvaluation)
        made = cls(judge, f"preset {judge.detector.settings.preset}")
        made.record_training(loaded, found, card)
        return made

    @classmethod
    def load(
        cls,
        path: str | Path,
        embedder: Path | None = None,
        base: Path | None = None,
        pictures: Path | None = None,
    ) -> Detector:
        """Load a detector from a file, or from the folder of a network or LoRA adapter.

        Args:
            path: The file or folder.
            embedder: Folder of the text encoder it was trained with.
            base: Folder of the base model of a LoRA adapter, if it was moved.
            pictures: Folder of the image encoder it was trained with.
        """
        return cls(open_judge(Path(path), embedder, base, pictures), Path(path).name, Path(path))

    @classmethod
    def load_sample(cls) -> Detector:
        """Load the detector trained on the sample data, for demonstration only."""
        return cls(open_fast(DETECTOR_FILE), "sample")

    def predict(
        self, items: ExampleLike | Sequence[ExampleLike] | Loaded, language: str = ""
    ) -> list[Prediction]:
        """Score texts, image files (read by OCR) or examples; one prediction per item, in order.

        ``not_scored`` gives the reason if an item has no verdict. ``out_of_domain`` is True if the
        text differs too much from the training texts. ``language`` is the language of the texts,
        if known.
        """
        examples = items.examples if isinstance(items, Loaded) else self.prepare(items)
        said = self.ask(examples)
        return mark_predictions(self, examples, said, read_language(language))

    def verdicts(
        self, items: ExampleLike | Sequence[ExampleLike], language: str = ""
    ) -> list[Verdict]:
        """Score texts, image files (read by OCR) or examples; return verdicts like ``screen``."""
        examples = self.prepare(items)
        spoken = read_language(language)
        subjects = [see_example(e, spoken, given=e.image is None) for e in examples]
        return judge(self, subjects)

    def explain(self, item: ExampleLike) -> Explanation:
        """Compute attributions of characters, words, captions or image regions for one meme.

        A neural network is explained by occlusion: it scores the meme again with each part hidden.
        Raises InputError for a LoRA-tuned language model, for which this would be too slow.
        """
        (example,) = self.prepare(item)
        if isinstance(self.machine, LoraJudge):
            raise InputError(
                f"{self.name} is a language model, which has no attributions",
                hint="tune it with --style reasons, and read the reasons in its reply",
            )
        if not self.reads(example) or (example.empty and example.image is None):
            what = "picture" if self.needs_image else "text"
            raise InputError(f"meme {example.id} has no {what} to score", hint=f"give a {what}")
        found = self.find_reasons(example)
        assert found is not None
        (said,) = mark_predictions(self, [example], [found.prediction])
        return replace(found, prediction=said)

    def save_explanation(
        self,
        page: Path | str,
        example: Example,
        found: Explanation,
        language: PageLanguage = "en",
    ) -> Path:
        """Write a page with the attributions of one meme."""
        write_explanation(Path(page), example, found, sample=self.sample, language=language)
        return Path(page)

    def evaluate(
        self, data: ExampleSource = "toxicn_mm", split: str = "test"
    ) -> DetectorEvaluation:
        """Evaluate on labelled memes at its operating point, with 95 % confidence intervals."""
        loaded = find_examples(data, split)
        need_labels(loaded.examples, loaded.name)
        return evaluate(loaded.examples, self.say(loaded.examples), self.point.threshold)

    def measure(
        self, data: Loaded, obfuscation: bool = False, seen: Loaded | None = None
    ) -> Measured:
        """Evaluate with predictions and notes; ``obfuscation`` adds the robustness tests.

        ``seen`` are the training data, which are searched for near-duplicates of the test memes.
        """
        need_labels(data.examples, data.name)
        said = self.say(data.examples)
        found = evaluate(data.examples, said, self.point.threshold)
        report = self._test(data, said, seen) if obfuscation else None
        title = f"{self.name} on {data.name}"
        notes = self.list_notes(data)
        return Measured(title, data, tuple(said), found, report, notes, self.point)

    def _test(self, data: Loaded, said: Sequence[Prediction], seen: Loaded | None) -> Robustness:
        evasions: tuple[Evasion, ...] = ()
        notes: list[str] = []
        if isinstance(self.machine, FastJudge):
            examples = self.machine.look(data.examples)
            evasions = measure_evasion(self.machine.detector, examples, self.machine.embedder)
        else:
            notes.append("obfuscation tests run only for fast detectors")
        leakage = None
        if seen is None:
            notes.append("near-duplicates are counted with --trained-on DATA, or without a file")
        else:
            texts = [example.text for example in seen.examples]
            leakage = measure_leakage(data.examples, said, seen=texts)
        return Robustness(evasions, leakage, tuple(notes))

    def compare(
        self, other: Detector, data: ExampleSource = "toxicn_mm", split: str = "test"
    ) -> DetectorComparison:
        """Compare two detectors on the same labelled memes by a paired test."""
        loaded = find_examples(data, split)
        need_labels(loaded.examples, loaded.name)
        one, two = (each.say(loaded.examples) for each in (self, other))
        return compare(loaded.examples, one, two)


# Verdicts by loaded detectors, for services.


class Moderator:
    """Detectors and an OCR engine that stay loaded; OCR results are kept in memory only.

    Args:
        detector: The detector that scores.
        language: Language of all texts, used if their script allows it.
        others: More detectors; each scores texts in its languages, and the most severe verdict
            counts.
        text: Which text of an image counts as its caption, if ``ocr`` is not given.
    """

    def __init__(
        self,
        detector: Detector,
        ocr: RememberingOcr | None = None,
        language: str = "",
        others: Sequence[Detector] = (),
        text: TextChoice = "caption",
    ) -> None:
        self.detector, self._language = detector, language
        self.detectors = (detector, *others)
        self.ocr = ocr or RememberingOcr(RapidReader(), None, text)
        self.name = detector.version
        for one in self.detectors:  # raises InputError for a detector that cannot score
            one.predict([Example("start", "开始")])

    def read(self, images: Sequence[bytes]) -> list[Subject | MemanticsError]:
        """Read images by OCR; an unreadable image gives an error at its position."""
        return [self._read(data) for data in images]

    def _read(self, data: bytes) -> Subject | MemanticsError:
        from memantics.understanding.vision.hashes import hash_image
        from memantics.understanding.vision.roles import read_image_text

        try:
            image = decode(data, "upload")
            found = read_image_text(self.ocr, data, "upload", image=image)
        except MemanticsError as error:
            return error
        digest = hashlib.sha256(data).hexdigest()
        look = f"{hash_image(image):016x}"
        known = Subject(Example("", ""), self._language, sha256=digest, phash=look, data=data)
        known = replace(known, credentials=describe_marks(data))
        return known.read(found)

    def judge(self, items: Sequence[str | Subject]) -> list[Verdict]:
        """Return one verdict per text or image reading, in order."""
        subjects = [
            Subject(Example("", item), self._language) if isinstance(item, str) else item
            for item in items
        ]
        return judge_by_all(self.detectors, subjects)

    def refuse(self, error: MemanticsError) -> Verdict:
        """Return the verdict for an image that cannot be read."""
        return fail(self.name, str(error), self.detector.note)
