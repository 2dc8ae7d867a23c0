"""A detector as one file: a zip of plain arrays and JSON, checked before anything is believed.

``model.json`` says which format, which settings and the SHA-256 of every other part. Arrays are
``.npy`` without objects; nothing is ever unpickled.
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
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memantics import __version__
from memantics.core.errors import InputError, first_fault
from memantics.core.journal import replace_file
from memantics.detector.calibration import Softmax
from memantics.detector.examples import Example
from memantics.detector.fast import Decision, FastDetector, FastSettings
from memantics.detector.features import GRID, Extractor, Vocabulary
from memantics.detector.kernel import KernelScorer, LinearScorer, Rows, Scorer, add_margin

FORMAT = "memantics-fast-detector"
VERSION = 1
_MANIFEST, _PIECES, _CARD = "model.json", "pieces.json", "card.json"
_MOST_BYTES = 2_000_000_000
# What the zip module raises on broken, encrypted or exotic archives.
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
# What parts raise that were made to pass the checksums but are no detector.
_MISFITS = (
    ArithmeticError, EOFError, LookupError, MemoryError, RecursionError, TypeError, ValueError,
)  # fmt: skip
Array = NDArray[Any]
_SETTINGS = TypeAdapter(FastSettings)


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    format: str
    version: int
    made_by: str
    settings: dict[str, Any]
    heads: tuple[str, ...]
    threshold: float = Field(ge=0, le=1)
    hierarchical: bool
    scale: float = Field(gt=0)
    ridge: float = Field(ge=0)
    examples: int = Field(ge=1)
    embedder: str
    parts: dict[str, str]


def save(detector: FastDetector, path: Path, card: Mapping[str, object] | None = None) -> None:
    """Write a detector in one step; ``card`` is the model card that travels with it."""
    parts = {f"{name}.npy": _dump(array) for name, array in _list_arrays(detector).items()}
    pieces = [list(vocabulary.pieces) for vocabulary in detector.extractor.vocabularies]
    parts[_PIECES] = orjson.dumps(pieces)
    parts[_CARD] = orjson.dumps(card or {}, default=str)
    manifest = _Manifest(
        format=FORMAT,
        version=VERSION,
        made_by=__version__,
        settings=asdict(detector.settings),
        heads=detector.heads,
        threshold=detector.decision.threshold,
        hierarchical=detector.decision.hierarchical,
        scale=detector.extractor.scale,
        ridge=detector.ridge,
        examples=detector.examples,
        embedder=detector.embedder,
        parts={name: hashlib.sha256(body).hexdigest() for name, body in parts.items()},
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        _write(archive, _MANIFEST, orjson.dumps(manifest.model_dump()))
        for name, body in parts.items():
            _write(archive, name, body)
    replace_file(path, packed.getvalue(), "detector")


def load(path: Path) -> FastDetector:
    """Read a detector; a file that is damaged, tampered with or of another kind is refused."""
    return load_with_card(path)[0]


def load_with_card(path: Path) -> tuple[FastDetector, dict[str, Any]]:
    """Read a detector, and the model card that travels with it."""
    manifest, parts = _read(path)
    try:
        detector = _rebuild(manifest, parts)
        _check_numbers(detector)
        _try_out(detector)
        card: dict[str, Any] = orjson.loads(parts[_CARD])
    except _MISFITS as error:
        raise _refuse(path, f"its parts do not fit together: {error}") from error
    if not isinstance(card, dict):
        raise _refuse(path, "its card is no card")
    return detector, card


def _check_numbers(detector: FastDetector) -> None:
    """Refuse numbers and shapes under which every meme would be judged alike, or by nothing."""
    scorer, types = detector.scorer, len(detector.types)
    for name, array in _list_arrays(detector).items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds what is no number")
    if not _all_finite(asdict(detector.settings)):
        raise ValueError("the settings hold what is no number")
    if isinstance(scorer, KernelScorer) and scorer.duals.shape != (
        detector.examples,
        len(detector.heads),
    ):
        raise ValueError("duals has another shape than the training data")
    if isinstance(scorer, LinearScorer) and scorer.intercepts.shape != (len(detector.heads),):
        raise ValueError("intercepts has another shape than the heads")
    for vocabulary in detector.extractor.vocabularies:
        if vocabulary.rarity.shape != (len(vocabulary.pieces),) or (vocabulary.rarity <= 0).any():
            raise ValueError(f"the rarities of {vocabulary.block.name} do not fit its pieces")
    columns = len(detector.heads) + bool(types)
    decision = detector.decision
    for name, softmax, classes in (("harm", decision.harm, 2), ("kinds", decision.kinds, types)):
        if softmax is None:
            continue
        shapes = [array.shape for array in asdict(softmax).values()]
        if shapes != [(columns,), (columns,), (columns, classes), (classes,)]:
            raise ValueError(f"{name} has other shapes than the heads")
        if (softmax.deviation <= 0).any():
            raise ValueError(f"{name} divides by zero")
    if (decision.kinds is None) != (not types) or decision.biases.shape != (types,):
        raise ValueError("types and biases differ in number")


def _all_finite(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_all_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_all_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _try_out(detector: FastDetector) -> None:
    """Judge an empty meme: arrays of other shapes than the rest must fail here, not later."""
    from scipy.sparse import csr_matrix

    scorer, width = detector.scorer, 0
    if isinstance(scorer, KernelScorer):
        width = scorer.known.dense.shape[1]
    elif isinstance(scorer, LinearScorer):
        width = scorer.dense.shape[0]
    blank = Rows(
        csr_matrix((1, detector.extractor.width), dtype=np.float32),
        np.zeros((1, width), np.float32),
    )
    scores = add_margin(detector.heads, scorer.score(blank))
    if scores.shape[1] != len(detector.decision.harm.mean):
        raise ValueError("scores and decision differ in number")
    (said,) = detector.name_predictions([Example("", "")], scores)
    if not math.isfinite(said.probability):
        raise ValueError("the chance of an empty meme is no number")


def _write(archive: zipfile.ZipFile, name: str, body: bytes) -> None:
    # A fixed date: the same detector is the same file.
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), body, zipfile.ZIP_DEFLATED)


def _refuse(path: Path, problem: str) -> InputError:
    return InputError(f"detector {path}: {problem}", hint="train it again")


def _read(path: Path) -> tuple[_Manifest, dict[str, bytes]]:
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                raise _refuse(path, "it is too large to be one of ours")
            bodies = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except FileNotFoundError as error:
        raise InputError(
            f"no detector at {path}", hint="memantics detector train makes one"
        ) from error
    except (*_DAMAGES, OSError) as error:
        raise _refuse(path, f"no detector file, or a damaged one ({error})") from error
    try:
        manifest = _Manifest.model_validate_json(bodies.pop(_MANIFEST))
    except KeyError as error:
        raise _refuse(path, "a zip file, but no detector") from error
    except ValidationError as error:
        raise _refuse(path, _name_version(error)) from error
    if (manifest.format, manifest.version) != (FORMAT, VERSION):
        found = f"{manifest.format} version {manifest.version}"
        raise _refuse(path, f"is {found}, and this program reads {FORMAT} version {VERSION}")
    if set(bodies) != set(manifest.parts):
        raise _refuse(path, "parts are missing or were added")
    for name, body in bodies.items():
        if hashlib.sha256(body).hexdigest() != manifest.parts[name]:
            raise _refuse(path, f"part {name} was changed after training")
    return manifest, bodies


def _name_version(error: ValidationError) -> str:
    return f"of another version of this program ({first_fault(error)})"


def _dump(array: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _list_arrays(detector: FastDetector) -> dict[str, Array]:
    decision, scorer = detector.decision, detector.scorer
    arrays: dict[str, Array] = {"biases": decision.biases}
    for name, softmax in (("harm", decision.harm), ("kinds", decision.kinds)):
        if softmax is not None:
            arrays |= {f"{name}_{key}": value for key, value in asdict(softmax).items()}
    for place, vocabulary in enumerate(detector.extractor.vocabularies):
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
            "known_values": known.sparse.data,
            "known_columns": known.sparse.indices,
            "known_ends": known.sparse.indptr,
            "known_dense": _shrink(known.dense, detector.extractor),
            "duals": scorer.duals,
        }
    return arrays


def _shrink(dense: Array, extractor: Extractor) -> Array:
    """A byte for each rounded number, where that gives back every digit; else as it is."""
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


def _rebuild(manifest: _Manifest, parts: Mapping[str, bytes]) -> FastDetector:
    def array(name: str) -> Array:
        found: Array = np.load(io.BytesIO(parts[f"{name}.npy"]), allow_pickle=False)
        if found.dtype.kind not in "fiu":
            raise ValueError(f"{name} holds {found.dtype}, not real numbers")
        return found

    settings = _SETTINGS.validate_python(manifest.settings)
    pieces = orjson.loads(parts[_PIECES])
    vocabularies = tuple(
        Vocabulary(block, tuple(own), array(f"rarity_{place}"))
        for place, (block, own) in enumerate(zip(settings.blocks, pieces, strict=True))
    )
    indices = tuple(vocabulary.index() for vocabulary in vocabularies)
    extractor = Extractor(vocabularies, indices, settings.dense, manifest.scale)

    def softmax(name: str) -> Softmax:
        keys = ("mean", "deviation", "weights", "intercepts")
        return Softmax(*(array(f"{name}_{key}") for key in keys))

    kinds = softmax("kinds") if "kinds_mean.npy" in parts else None
    decision = Decision(
        softmax("harm"), manifest.threshold, kinds, array("biases"), manifest.hierarchical
    )
    return FastDetector(
        settings=settings,
        extractor=extractor,
        heads=manifest.heads,
        scorer=_rebuild_scorer(array, parts, extractor, settings),
        decision=decision,
        ridge=manifest.ridge,
        examples=manifest.examples,
        embedder=manifest.embedder,
    )


def _rebuild_scorer(
    array: Callable[[str], Array],
    parts: Mapping[str, bytes],
    extractor: Extractor,
    settings: FastSettings,
) -> Scorer:
    from scipy.sparse import csr_matrix

    if "duals.npy" not in parts:
        return LinearScorer(
            array("linear_sparse"), array("linear_dense"), array("linear_intercepts")
        )
    duals, columns, ends = array("duals"), array("known_columns"), array("known_ends")
    if not columns.dtype.kind == ends.dtype.kind == "i":
        raise ValueError("places of known values are no integers")
    matrix = csr_matrix((array("known_values"), columns, ends), shape=(len(duals), extractor.width))
    matrix.check_format(full_check=True)
    dense = array("known_dense")
    if dense.dtype == np.int8:
        dense = _grow(dense, _spread_factors(extractor, dense.shape[1]))
    return KernelScorer(Rows(matrix, dense), settings.kernel, duals)
