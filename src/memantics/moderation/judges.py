"""Detectors of every kind behind one face: examples in, predictions out."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from memantics.core.errors import ImageError, InputError
from memantics.core.images import read_bytes
from memantics.models.embedded.encoder import StaticEncoder
from memantics.models.embedded.ocr import open_reader
from memantics.models.embedders import LOCAL, LocalImageEncoder, open_text_encoder
from memantics.moderation import operating_points
from memantics.moderation.card import SAMPLE_NOTE
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
    """A fast detector with the embedder it needs."""

    detector: FastDetector
    embedder: Embedder | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    reads_texts: ClassVar[bool] = True

    @property
    def reads_images(self) -> bool:
        """Whether it has learnt from what images say."""
        return any(block.field == "ocr" for block in self.detector.settings.blocks)

    @property
    def sees_images(self) -> bool:
        """Whether a picture without a text tells it anything."""
        return self.reads_images or any(
            block.source in ("image", "picture") for block in self.detector.settings.dense
        )

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction per example, in order."""
        return self.detector.predict(self.look(examples), self.embedder)

    def classify(self, examples: Sequence[Example]) -> list[LabelPrediction]:
        """The labels of each example, in order, where they are others than harm."""
        return self.detector.classify(self.look(examples), self.embedder)

    def look(self, examples: Sequence[Example]) -> tuple[Example, ...]:
        """Examples with their images read, where the detector has learnt from such texts."""
        return read_images(examples)[0] if self.reads_images else tuple(examples)


@dataclass(frozen=True, slots=True)
class NeuralJudge:
    """A network, or what was exported from one."""

    detector: saved.NeuralDetector

    @property
    def sees_images(self) -> bool:
        """Whether it looks at pictures."""
        return self.detector.reader.preparation is not None

    @property
    def reads_texts(self) -> bool:
        """Whether the text of a meme tells it anything."""
        return self.detector.reader.splitter is not None

    @property
    def card(self) -> Mapping[str, Any]:
        """What is known of its data and training."""
        facts = asdict(self.detector.facts)
        data = self.detector.facts.data
        known = [name for name in data.get("languages", "").split(",") if name]
        return facts | {"checksum": data.get("checksum", ""), "languages": known}

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction per example, in order; a missing image is an error here."""
        if not examples:
            return []
        asked = saved.predict_neural(self.detector, examples)
        if asked.skips:
            first = asked.skips[0]
            raise InputError(
                f"{len(asked.skips)} memes cannot be judged: {first.row}: {first.reason}",
                hint="leave them out, or use a detector of texts",
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


class OpenDetector:
    """A detector that stays loaded, with all that verdicts need to know of it.

    ``name`` is its file, its preset, or what labels it tells. ``card`` is its model card, ``path``
    its file or folder. ``unseen_ngram_rate`` tells texts unlike its training texts; None where its
    file does not know.
    """

    def __init__(self, judge: DetectorJudge, name: str, path: Path | None = None) -> None:
        self.machine, self.name, self.card, self.path = judge, name, judge.card, path
        self.unseen_ngram_rate = find_unseen_rate(self.fast, self.card)
        self.match_list = MatchList.beside(path) if path is not None else None

    @property
    def fast(self) -> FastDetector | None:
        """What scores memes here; None of a network."""
        return self.machine.detector if isinstance(self.machine, FastJudge) else None

    @property
    def labels(self) -> LabelSet:
        """The labels that it tells apart."""
        return self.fast.labels if self.fast is not None else HARM

    @property
    def topic(self) -> str:
        """What its labels are about, such as ``emotion``."""
        return str(self.card.get("topic") or self.labels.name.rpartition("/")[2])

    @property
    def sample(self) -> bool:
        """Whether it was trained on the sample data, whose verdicts mean nothing."""
        return bool(self.card.get("sample", False))

    @property
    def note(self) -> str:
        """What belongs beside each of its verdicts; empty where nothing does."""
        note = SAMPLE_NOTE if self.sample else ""
        return note.replace("a detector", "a classifier") if self.labels.name else note

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of its training texts; Chinese where a detector of harm names none."""
        unnamed = () if self.labels.name else ("zh",)
        return tuple(map(str, self.card.get("languages") or unnamed))

    @property
    def checksum(self) -> str:
        """Digest of its file; of its card where it is a folder or was not saved."""
        if self.path is not None and self.path.is_file():
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        return hashlib.sha256(repr(sorted(self.card.items())).encode()).hexdigest()

    @cached_property
    def version(self) -> str:
        """Its name and checksum, as verdicts cite it."""
        return f"{self.name}@{self.checksum[:12]}"

    def has_seen(self, data: Loaded) -> bool:
        """Whether it was trained on these very files."""
        return bool(data.checksum) and self.card.get("checksum", "") == data.checksum

    @property
    def words(self) -> Container[str]:
        """Words that it learnt, where it learnt words."""
        known = self.unseen_ngram_rate
        return known.known if known is not None and known.kind == "phrases" else ()

    @property
    def threshold(self) -> float:
        """The probability from which it calls a meme harmful."""
        known = self.card.get("threshold") if self.fast is None else self.fast.decision.threshold
        return 0.5 if known is None else float(known)

    @property
    def point(self) -> operating_points.OperatingPoint:
        """How it decides where nobody says otherwise: as ``detector set`` stored, or as trained."""
        return self.stored_point or operating_points.OperatingPoint(self.threshold)

    @cached_property
    def stored_point(self) -> operating_points.OperatingPoint | None:
        """The operating point that people chose for it, where they did."""
        return operating_points.read_point(self.card.get("point"), self.name)

    def choose_point(
        self,
        threshold: float | None = None,
        rule: str = "",
        review_range: tuple[float, float] | None = None,
    ) -> operating_points.OperatingPoint:
        """The threshold that is given, or chosen by a rule on held-out memes; else its own point.

        The stored range for people belongs to the stored threshold: another has none unless said.
        """
        if threshold is not None and rule:
            raise InputError("a threshold and a rule for one exclude each other", hint="drop one")
        if threshold is None and not rule:
            return replace(self.point, review_range=review_range or self.point.review_range)
        chosen = self.find_threshold(rule) if threshold is None else threshold
        return operating_points.OperatingPoint(chosen, review_range, rule, self.point.homophones)

    def describe_point(self, point: operating_points.OperatingPoint) -> list[str]:
        """What a point keeps on memes that were held out in training."""
        return operating_points.describe_point(self.card.get("operating_points") or [], point)

    def find_threshold(self, rule: str) -> float:
        """The lowest threshold that kept ``precision=P``, or the highest that kept ``recall=R``.

        Both are read off predictions for training memes that were held out, so that no test data
        are looked at.
        """
        return operating_points.choose_operating_point(
            self.card.get("operating_points") or [], rule
        )

    @property
    def needs_image(self) -> bool:
        """Whether it judges no meme without its picture."""
        return self.fast is None and self.machine.sees_images

    @property
    def wants_pictures(self) -> bool:
        """Whether a picture tells it, or its memory, more than hashes do."""
        lists = self.match_list is not None and self.match_list.has_pdq
        return self.machine.sees_images or lists

    def reads(self, example: Example) -> bool:
        """Whether an example holds anything that it looks at."""
        if self.needs_image:
            return example.image is not None
        return not example.empty or self.fast is None or self.machine.sees_images

    def ask(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predictions; one without a chance for what it cannot look at."""
        seen = [example for example in examples if not self.needs_image or example.image]
        said = dict(zip(map(id, seen), self.machine.predict(seen), strict=True))
        return [said.get(id(e)) or Prediction(e.id, 0, 0.0, None, {}) for e in examples]

    def say(self, examples: Sequence[Example]) -> list[Prediction]:
        """What it says of examples in any language, at its operating point."""
        said = self.machine.predict(examples)
        point = self.stored_point
        if point is None:
            return said
        return [replace(one, label=int(point.is_harmful(one.probability))) for one in said]

    def find_reasons(self, example: Example) -> Explanation | None:
        """What moved its decision; None from language models, which are too slow to ask again."""
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
    """Open a detector of any kind.

    ``encoder`` and ``pictures`` are the folders of the encoders of texts and pictures that a fast
    one was trained with, ``base`` that of the model which a LoRA adapter was tuned on, where it
    has moved since.
    """
    if is_wrapped(path):
        return open_wrapped(path)
    if saved.is_neural(path):
        return NeuralJudge(saved.open_neural(path))
    if (path / TUNED).is_file():
        return open_lora(path, base)
    return open_fast(path, encoder, pictures)


def open_fast(path: Path, encoder: Path | None = None, pictures: Path | None = None) -> FastJudge:
    """Open a fast detector; a network is refused with what to do."""
    if is_wrapped(path) or saved.is_neural(path) or (path / TUNED).is_file():
        raise InputError(
            f"{path} is a network, and this works on fast detectors only",
            hint="give a file that 'memantics detector train' wrote",
        )
    detector, card = load_with_card(path)
    # Of two detectors that are compared only one may need the folder.
    folder = encoder if detector.embedder.startswith(LOCAL) else None
    pictures = pictures if sees(detector.settings) else None
    return FastJudge(detector, open_embedders(detector.settings, folder, pictures), card)


def open_classifier(
    path: Path, encoder: Path | None = None, pictures: Path | None = None
) -> FastJudge:
    """Open a detector of labels other than harm."""
    detector, card = load_classifier(path)
    return FastJudge(detector, open_embedders(detector.settings, encoder, pictures), card)


def open_embedder(settings: FastSettings, folder: Path | None = None) -> Embedder | None:
    """The encoder of a folder, or the one that ships, where the settings ask for meanings.

    A folder that they have no use for is refused.
    """
    if not embeds(settings):
        if folder is not None:
            raise InputError(
                f"the preset {settings.preset} has no blocks of meaning, so --embedder has no use",
                hint="use --preset full or words-full",
            )
        return None
    if settings.preset == STATIC and folder is None:
        return StaticEncoder()
    return open_text_encoder(folder)


def open_embedders(
    settings: FastSettings, texts: Path | None = None, pictures: Path | None = None
) -> Embedder | None:
    """The encoder of texts that settings ask for and, with ``pictures``, a vision model."""
    found = open_embedder(settings, texts)
    return found if pictures is None else SeeingEmbedder(found, LocalImageEncoder(pictures))


def read_images(examples: Sequence[Example]) -> tuple[tuple[Example, ...], int]:
    """Examples with what OCR reads in their images, and how many images it could not read.

    The feature ``ocr`` is every line as it was read, whatever its role: detectors learnt from that.
    Which part of it is the caption tells ``Subject.read``.
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
