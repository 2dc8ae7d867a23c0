"""One interface for all kinds of detectors: examples in, predictions out."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from memantics.core.errors import ImageError, InputError
from memantics.core.files import read_regular
from memantics.core.images import read_bytes
from memantics.core.result import Result
from memantics.models.embedded.encoder import StaticEncoder
from memantics.models.embedded.ocr import open_reader
from memantics.models.embedders import LOCAL, LocalImageEncoder, open_text_encoder
from memantics.moderation import operating_points, rules
from memantics.moderation.card import SAMPLE_NOTE
from memantics.moderation.columns import ExampleColumns
from memantics.moderation.examples import HARM, Example, LabelSet, Loaded
from memantics.moderation.explanation import Explanation, explain, explain_by_occlusion
from memantics.moderation.fast import FastDetector, LabelPrediction, Prediction
from memantics.moderation.features import Embedder
from memantics.moderation.heads import STATIC, FastSettings, SeeingEmbedder, embeds, sees
from memantics.moderation.lora.judging import FACTS as TUNED
from memantics.moderation.lora.judging import LoraJudge, open_lora
from memantics.moderation.match_index import MatchList
from memantics.moderation.neural import saved
from memantics.moderation.storage import load_classifier, load_with_card
from memantics.moderation.unseen_ngrams import find_unseen_rate
from memantics.moderation.wrapped import WrappedJudge, is_wrapped, open_wrapped


@dataclass(frozen=True, slots=True)
class FastJudge:
    """A fast detector with the encoder it needs."""

    detector: FastDetector
    embedder: Embedder | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    reads_texts: ClassVar[bool] = True

    @property
    def reads_images(self) -> bool:
        """Whether it was trained on OCR texts of images."""
        return any(block.field == "ocr" for block in self.detector.settings.blocks)

    @property
    def sees_images(self) -> bool:
        """Whether it can score an image without text."""
        return self.reads_images or any(
            block.source in ("image", "picture") for block in self.detector.settings.dense
        )

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predict harm, one prediction per example, in order."""
        return self.detector.predict(self.look(examples), self.embedder)

    def classify(self, examples: Sequence[Example]) -> list[LabelPrediction]:
        """Predict the labels of each example, in order, for labels other than harm."""
        return self.detector.classify(self.look(examples), self.embedder)

    def look(self, examples: Sequence[Example]) -> tuple[Example, ...]:
        """Add OCR texts to the examples, if the detector was trained on OCR texts."""
        return read_images(examples)[0] if self.reads_images else tuple(examples)


@dataclass(frozen=True, slots=True)
class NeuralJudge:
    """A neural network, or a file exported from one."""

    detector: saved.NeuralDetector

    @property
    def sees_images(self) -> bool:
        """Whether it uses images."""
        return self.detector.reader.preparation is not None

    @property
    def reads_texts(self) -> bool:
        """Whether it uses the text of a meme."""
        return self.detector.reader.splitter is not None

    @property
    def card(self) -> Mapping[str, Any]:
        """Metadata of its data and training."""
        facts = asdict(self.detector.facts)
        data = self.detector.facts.data
        known = [name for name in data.get("languages", "").split(",") if name]
        return facts | {"checksum": data.get("checksum", ""), "languages": known}

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predict harm, one prediction per example; raise InputError if an image is missing."""
        if not examples:
            return []
        asked = saved.predict_neural(self.detector, examples)
        if asked.skips:
            first = asked.skips[0]
            raise InputError(
                f"{len(asked.skips)} memes cannot be scored; first {first.row}: {first.reason}",
                hint="leave them out, or use a detector that scores texts",
            )
        types = set(self.detector.classes) != {"harmless", "harmful"}
        return [
            Prediction(
                id=said.id,
                label=int(said.label not in ("harmless", "none")),
                probability=said.harmful,
                type=said.label if types else None,
                types=said.chances if types else {},
            )
            for said in asked.predictions
        ]


DetectorJudge = FastJudge | NeuralJudge | LoraJudge | WrappedJudge


@dataclass(frozen=True, slots=True)
class DetectorSummary(Result):
    """A detector with its operating point, as a service shows it.

    ``review_band`` is the range of probabilities that need human review; None without one. ``date``
    is the day on which the operating point was set; empty for that of the training. ``expected``
    are the proportions of held-out training memes per outcome; None if the file has none.
    """

    name: str
    version: str
    sample: bool
    languages: tuple[str, ...]
    threshold: float
    review_band: tuple[float, float] | None
    rule: str
    volume: str
    date: str
    expected: rules.ExpectedCounts | None


class OpenDetector:
    """A loaded detector with model card, operating point and match list (hashes of known memes).

    ``name`` is its file name, preset or label. ``card`` is its model card, ``path`` its file or
    folder. ``unseen_ngram_rate`` measures how much a text differs from the training texts; None if
    the file does not store it.
    """

    def __init__(self, judge: DetectorJudge, name: str, path: Path | None = None) -> None:
        self.machine, self.name, self.card, self.path = judge, name, judge.card, path
        self.unseen_ngram_rate = find_unseen_rate(self.fast, self.card)
        self.match_list = MatchList.beside(path) if path is not None else None

    @property
    def fast(self) -> FastDetector | None:
        """The fast detector; None for a neural network."""
        return self.machine.detector if isinstance(self.machine, FastJudge) else None

    @property
    def labels(self) -> LabelSet:
        """The labels that it predicts."""
        return self.fast.labels if self.fast is not None else HARM

    @property
    def topic(self) -> str:
        """The topic of its labels, such as ``emotion``."""
        return str(self.card.get("topic") or self.labels.name.rpartition("/")[2])

    @property
    def sample(self) -> bool:
        """Whether it was trained on the sample data, and is only for demonstration."""
        return bool(self.card.get("sample", False))

    @property
    def note(self) -> str:
        """A caveat shown with each of its verdicts; may be empty."""
        note = SAMPLE_NOTE if self.sample else ""
        return note.replace("a detector", "a classifier") if self.labels.name else note

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of its training texts; Chinese if a harm detector stores none."""
        unnamed = () if self.labels.name else ("zh",)
        return tuple(map(str, self.card.get("languages") or unnamed))

    @property
    def checksum(self) -> str:
        """Digest of its file, or of its card if it is a folder or was not saved."""
        if self.path is not None and self.path.is_file():
            return hashlib.sha256(read_regular(self.path)).hexdigest()
        return hashlib.sha256(repr(sorted(self.card.items())).encode()).hexdigest()

    @cached_property
    def version(self) -> str:
        """Its name and checksum, as shown in verdicts."""
        return f"{self.name}@{self.checksum[:12]}"

    def has_seen(self, data: Loaded) -> bool:
        """Check by checksum whether it was trained on these files."""
        return bool(data.checksum) and self.card.get("checksum", "") == data.checksum

    @property
    def words(self) -> Container[str]:
        """Words of its vocabulary; empty if it has no word features."""
        known = self.unseen_ngram_rate
        return known.known if known is not None and known.kind == "phrases" else ()

    @property
    def threshold(self) -> float:
        """The probability threshold for harmful."""
        known = self.card.get("threshold") if self.fast is None else self.fast.decision.threshold
        return 0.5 if known is None else float(known)

    @property
    def point(self) -> operating_points.OperatingPoint:
        """The default operating point: stored by ``detector set``, else from training."""
        return self.stored_point or operating_points.OperatingPoint(self.threshold)

    @cached_property
    def stored_point(self) -> operating_points.OperatingPoint | None:
        """The operating point stored by ``detector set``; None if there is none."""
        return operating_points.read_point(self.card.get("point"), self.name)

    @property
    def columns(self) -> Mapping[str, str]:
        """Columns of the table that it was trained on, by property; empty without a table."""
        stored = self.card.get("columns")
        known = stored if isinstance(stored, Mapping) else {}
        return {str(role): str(name) for role, name in known.items()}

    def read_columns(self, given: ExampleColumns | None = None) -> ExampleColumns:
        """Return the given columns; the table that it was trained on names the others."""
        return (given or ExampleColumns()).remember(self.columns)

    @cached_property
    def held_out_scores(self) -> rules.HeldOutScores | None:
        """Held-out memes of the training by probability and label; None if the file has none."""
        return rules.read_scores(self.card.get("held_out_scores"), self.name)

    def choose_point(
        self,
        threshold: float | None = None,
        rule: str = "",
        review_range: tuple[float, float] | None = None,
        volume: str = "",
    ) -> operating_points.OperatingPoint:
        """Choose an operating point: a threshold, a rule on held-out memes, or the stored point.

        The stored review range belongs to the stored threshold. With another threshold there is no
        review range unless ``review_range`` is given.
        """
        if threshold is not None and rule:
            raise InputError(
                "--threshold and --operating-point cannot be combined", hint="give one of them"
            )
        if threshold is None and not rule:
            return replace(self.point, review_range=review_range or self.point.review_range)
        if threshold is not None:
            return operating_points.OperatingPoint(
                threshold, review_range, homophones=self.point.homophones
            )
        found = self.find_point(rule, volume)
        if review_range is not None and found.review_range is not None:
            raise InputError(
                f"{rule} chooses the review range itself", hint="leave out --review-range"
            )
        return replace(found, review_range=found.review_range or review_range)

    def summarise(self) -> DetectorSummary:
        """Summarise the detector and its operating point."""
        point, scores = self.point, self.held_out_scores
        return DetectorSummary(
            self.name,
            self.version,
            self.sample,
            self.languages,
            point.threshold,
            point.review_band,
            point.rule,
            point.volume,
            str(self.card.get("point_date", "")),
            rules.expect(scores, point) if scores is not None and scores.total else None,
        )

    def describe_point(self, point: operating_points.OperatingPoint) -> list[str]:
        """Describe precision, recall and expected counts on held-out training memes."""
        return rules.describe_point(self.held_out_scores, point)

    def find_point(self, rule: str, volume: str = "") -> operating_points.OperatingPoint:
        """Find the operating point of a rule such as ``precision=0.9`` on held-out memes.

        The rule is applied to held-out training memes, not to test data. Raises InputError if no
        threshold reaches the target.
        """
        found = rules.choose_point(self.held_out_scores, rule, volume, self.threshold)
        return replace(found, homophones=self.point.homophones)

    @property
    def needs_image(self) -> bool:
        """Whether it needs an image to score a meme."""
        return self.fast is None and self.machine.sees_images

    @property
    def wants_pictures(self) -> bool:
        """Whether the detector or its match list needs image data, not only stored hashes."""
        lists = self.match_list is not None and self.match_list.has_pdq
        return self.machine.sees_images or lists

    def reads(self, example: Example) -> bool:
        """Check whether an example has any input that the detector uses."""
        if self.needs_image:
            return example.image is not None
        return not example.empty or self.fast is None or self.machine.sees_images

    def ask(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predict examples; an example without usable input gets no probability."""
        seen = [example for example in examples if not self.needs_image or example.image]
        said = dict(zip(map(id, seen), self.machine.predict(seen), strict=True))
        return [said.get(id(e)) or Prediction(e.id, 0, 0.0, None, {}) for e in examples]

    def say(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predict examples in any language, with the default threshold and review range."""
        said = self.machine.predict(examples)
        point = self.stored_point
        if point is None:
            return said
        return [replace(one, label=int(point.is_harmful(one.probability))) for one in said]

    def find_reasons(self, example: Example) -> Explanation | None:
        """Compute attributions; None for language models, for which occlusion is too slow."""
        machine, threshold = self.machine, self.point.threshold
        if isinstance(machine, LoraJudge):
            return None
        if isinstance(machine, FastJudge):
            (seen,) = machine.look([example])
            return explain(machine.detector, seen, machine.embedder, threshold)
        looks = {"texts": machine.reads_texts, "pictures": machine.sees_images}
        return explain_by_occlusion(machine.predict, example, threshold, **looks)


def open_judge(
    path: Path,
    encoder: Path | None = None,
    base: Path | None = None,
    pictures: Path | None = None,
) -> DetectorJudge:
    """Open a detector of any kind; raise InputError if the file is not a detector.

    ``encoder`` and ``pictures`` are the folders of the text and image encoders that a fast detector
    was trained with. ``base`` is the folder of the base model of a LoRA adapter, if it was moved.
    """
    if is_wrapped(path):
        return open_wrapped(path)
    if saved.is_neural(path):
        return NeuralJudge(saved.open_neural(path))
    if (path / TUNED).is_file():
        return open_lora(path, base)
    return open_fast(path, encoder, pictures)


def open_fast(path: Path, encoder: Path | None = None, pictures: Path | None = None) -> FastJudge:
    """Open a fast detector; raise InputError for a neural network."""
    if is_wrapped(path) or saved.is_neural(path) or (path / TUNED).is_file():
        raise InputError(
            f"{path} is a neural network; this command needs a fast detector",
            hint="give a file from 'memantics detector train'",
        )
    detector, card = load_with_card(path)
    # When two detectors are compared, the encoder folder may be for only one of them.
    folder = encoder if detector.embedder.startswith(LOCAL) else None
    pictures = pictures if sees(detector.settings) else None
    return FastJudge(detector, open_embedders(detector.settings, folder, pictures), card)


def open_classifier(
    path: Path, encoder: Path | None = None, pictures: Path | None = None
) -> FastJudge:
    """Open a classifier for labels other than harm."""
    detector, card = load_classifier(path)
    return FastJudge(detector, open_embedders(detector.settings, encoder, pictures), card)


def open_embedder(settings: FastSettings, folder: Path | None = None) -> Embedder | None:
    """Open the text encoder of a folder, or the bundled one, if the settings use embeddings.

    Raises InputError if a folder is given but the settings use no embeddings.
    """
    if not embeds(settings):
        if folder is not None:
            raise InputError(
                f"the preset {settings.preset} uses no embeddings, so --embedder has no effect",
                hint="use --preset full or words-full",
            )
        return None
    if settings.preset == STATIC and folder is None:
        return StaticEncoder()
    return open_text_encoder(folder)


def open_embedders(
    settings: FastSettings, texts: Path | None = None, pictures: Path | None = None
) -> Embedder | None:
    """Open the text encoder of the settings and, with ``pictures``, an image encoder."""
    found = open_embedder(settings, texts)
    return found if pictures is None else SeeingEmbedder(found, LocalImageEncoder(pictures))


def read_images(examples: Sequence[Example]) -> tuple[tuple[Example, ...], int]:
    """Add OCR texts to examples; also return the number of images that cannot be read.

    The feature ``ocr`` contains all text lines of an image, as in training. The method
    ``Subject.read`` selects the lines of the caption.
    """
    reader = open_reader()
    found, missed = [], 0
    try:
        for example in examples:
            text = ""
            if example.image is not None:
                try:
                    text = reader.read(read_bytes(example.image), example.image.name).text
                except ImageError:
                    missed += 1
            found.append(replace(example, ocr=text))
    finally:
        reader.close()
    return tuple(found), missed
