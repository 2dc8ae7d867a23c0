"""Detectors of harm and of any other labels: train, open, ask, explain, measure and compare."""

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
    """Figures of a detector with all that is shown beside them."""

    title: str
    data: Loaded
    predictions: tuple[Prediction, ...]
    metrics: DetectorEvaluation | LabelEvaluation
    robustness: Robustness | None = None
    notes: tuple[str, ...] = ()

    def save(self, page: Path | str) -> Path:
        """Write a page with the reliability curve and the mistakes (of harm)."""
        if not isinstance(self.metrics, DetectorEvaluation):
            raise InputError("a page is made of figures of harm alone", hint="use --json")
        found = (self.predictions, self.metrics, self.robustness)
        write_evaluation(Path(page), self.title, self.data, *found)
        return Path(page)


class TrainedDetector(OpenDetector, Generic[MetricsT]):
    """A detector of harm or of other labels that stays loaded.

    ``trained_on`` and ``held_out`` are the data and the figures of a training in this process.
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
        """Keep what a training in this process was made of."""
        self.trained_on, self.held_out, self._written_card = loaded, found, card

    def save(self, path: str | Path) -> Path:
        """Write the detector as one file, after a training with its model card beside it."""
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
                f"{self.name} cannot be written as one file", hint="copy what it was opened from"
            )
        return target

    def show_card(self) -> str:
        """Its model card as Markdown: data, figures, errors by target, limits (fast detectors)."""
        card = format_card(read_stored(self.card, self.name))
        if self.stored_point is None:
            return card
        lines = "".join(f"- {line}\n" for line in self.describe_point(self.stored_point))
        return f"{card}\n## Operating point, as set\n\n{lines}"

    def prepare(
        self, items: ExampleLike | Sequence[ExampleLike], taken: TextChoice = "caption"
    ) -> tuple[Example, ...]:
        """Texts and image files as examples; a file without a text that can be read is refused."""
        given = [items] if isinstance(items, str | Path | Example) else items
        examples = make_examples(given, taken)
        for item, example in zip(given, examples, strict=True):
            unread = example.image is not None and example.empty and item is not example
            if unread and isinstance(self.machine, FastJudge):
                raise InputError(
                    f"no text can be read in {example.image}",
                    hint="leave it out, or use a detector of images",
                )
        return examples

    def list_notes(self, data: Loaded) -> tuple[str, ...]:
        """What belongs beside its figures on these data."""
        seen = f"this {self.word} was trained on these files"
        return (f"{seen}; only memes it has not seen tell how good it is",) * self.has_seen(data)


class Detector(TrainedDetector[DetectorEvaluation]):
    """A detector of harm: fast, a network (folder or exported file), or LoRA."""

    @classmethod
    def train(
        cls,
        data: ExampleSource = "toxicn_mm",
        preset: str = "",
        options: TrainOptions | None = None,
    ) -> Detector:
        """Train a fast detector on labelled memes.

        ``data`` is ``toxicn_mm`` (the registered release), ``sample``, a file or folder, or
        examples. Without a registered release the sample data is taken: see ``sample``. The
        ``preset`` of ``options`` is taken where none is named.
        """
        options = options or TrainOptions()
        options = replace(options, preset=preset or options.preset)
        if options.preset in NETWORKS:
            raise InputError(
                f"the preset {options.preset} is a network",
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
        """Open a detector: a file, the folder of a network, or the folder of a tuned model.

        ``embedder`` and ``pictures`` are the folders of the encoders it was trained with, ``base``
        the model's folder that an adapter was tuned on, where it has moved since.
        """
        return cls(open_judge(Path(path), embedder, base, pictures), Path(path).name, Path(path))

    @classmethod
    def load_sample(cls) -> Detector:
        """The tiny detector on the sample data that ships with it: to try, not to act on."""
        return cls(open_fast(DETECTOR_FILE), "sample")

    def predict(
        self, items: ExampleLike | Sequence[ExampleLike] | Loaded, language: str = ""
    ) -> list[Prediction]:
        """Judge texts, image files (read by OCR) or examples; one prediction each, in order.

        Each says of itself where it is no verdict (``not_scored``), and where the text is unlike
        the training texts (``out_of_domain``). ``language`` is that of the texts, where it is
        known.
        """
        examples = items.examples if isinstance(items, Loaded) else self.prepare(items)
        said = self.ask(examples)
        return mark_predictions(self, examples, said, read_language(language))

    def verdicts(
        self, items: ExampleLike | Sequence[ExampleLike], language: str = ""
    ) -> list[Verdict]:
        """Verdicts on texts, image files (read by OCR) or examples, as ``screen`` writes them."""
        examples = self.prepare(items)
        spoken = read_language(language)
        subjects = [see_example(e, spoken, given=e.image is None) for e in examples]
        return judge(self, subjects)

    def explain(self, item: ExampleLike) -> Explanation:
        """Say which characters, words, captions or parts of the picture moved a decision.

        A network is asked again with each hidden (not a tuned language model: too slow).
        """
        (example,) = self.prepare(item)
        if isinstance(self.machine, LoraJudge):
            raise InputError(f"{self.name} is a language model", hint="read the reply it writes")
        if not self.reads(example) or (example.empty and example.image is None):
            what = "picture" if self.needs_image else "text"
            raise InputError(f"meme {example.id} has no {what} to judge by", hint=f"give a {what}")
        found = self.find_reasons(example)
        assert found is not None
        (said,) = mark_predictions(self, [example], [found.prediction])
        return replace(found, prediction=said)

    def save_explanation(self, page: Path | str, example: Example, found: Explanation) -> Path:
        """Write a page of what moved a decision."""
        write_explanation(Path(page), example, found, sample=self.sample)
        return Path(page)

    def evaluate(
        self, data: ExampleSource = "toxicn_mm", split: str = "test"
    ) -> DetectorEvaluation:
        """Figures on labelled memes, with 95 % intervals, at its operating point."""
        loaded = find_examples(data, split)
        need_labels(loaded.examples, loaded.name)
        return evaluate(loaded.examples, self.say(loaded.examples), self.point.threshold)

    def measure(
        self, data: Loaded, obfuscation: bool = False, seen: Loaded | None = None
    ) -> Measured:
        """Figures with predictions and notes; ``obfuscation`` adds evasion and near-duplicates.

        ``seen`` is the training data, in which near-duplicates are looked for.
        """
        need_labels(data.examples, data.name)
        said = self.say(data.examples)
        found = evaluate(data.examples, said, self.point.threshold)
        report = self._test(data, said, seen) if obfuscation else None
        title = f"{self.name} on {data.name}"
        return Measured(title, data, tuple(said), found, report, self.list_notes(data))

    def _test(self, data: Loaded, said: Sequence[Prediction], seen: Loaded | None) -> Robustness:
        evasions: tuple[Evasion, ...] = ()
        notes: list[str] = []
        if isinstance(self.machine, FastJudge):
            examples = self.machine.look(data.examples)
            evasions = measure_evasion(self.machine.detector, examples, self.machine.embedder)
        else:
            notes.append("obfuscations are tried on fast detectors only")
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
        """Both detectors on the same labelled memes, pair by pair."""
        loaded = find_examples(data, split)
        need_labels(loaded.examples, loaded.name)
        one, two = (each.say(loaded.examples) for each in (self, other))
        return compare(loaded.examples, one, two)


# Verdicts on texts and images by a detector that stays loaded.


class Moderator:
    """A detector and an OCR that stay loaded. Readings of images are kept in memory only.

    ``language`` is what all texts are said to be in, where their letters allow that; ``others`` are
    further detectors, which judge what they know of a text beside the first; ``text`` is which text
    of an image is its caption, where no ``ocr`` is given that knows.
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
        for one in self.detectors:  # what cannot judge is refused here
            one.predict([Example("start", "开始")])

    def read(self, images: Sequence[bytes]) -> list[Subject | MemanticsError]:
        """Read images; one that cannot be read is an error in its place."""
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
        return known.read(found)

    def judge(self, items: Sequence[str | Subject]) -> list[Verdict]:
        """One verdict for each text, or for what is printed on an image."""
        subjects = [
            Subject(Example("", item), self._language) if isinstance(item, str) else item
            for item in items
        ]
        return judge_by_all(self.detectors, subjects)

    def refuse(self, error: MemanticsError) -> Verdict:
        """The verdict on an image that could not be read."""
        return fail(self.name, str(error), self.detector.note)
