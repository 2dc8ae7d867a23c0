"""Trained networks on disk: a folder, or one exported file that needs no PyTorch.

A folder has ``detector.json``, weights and encoders. An exported file is a ZIP with
``detector.json`` (metadata of the training, and the checksums of the other files), ``model.onnx``
and, where the network reads texts or images, ``tokenizer.json`` and ``preprocessor_config.json``.
It runs with onnxruntime, without PyTorch or transformers.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import logging
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.data import Skip
from memantics.core.errors import InputError, StoreError, first_fault
from memantics.core.files import open_regular, read_regular
from memantics.metrics.rounding import Ints
from memantics.moderation.examples import Example
from memantics.moderation.neural import encoding
from memantics.moderation.neural import training as checkpoint
from memantics.moderation.neural.encoding import Encoded
from memantics.moderation.neural.machine import Ranks, check_packages, get_torch, resolve_device
from memantics.moderation.neural.network import (
    PREPARATION,
    TOKENIZER,
    Chances,
    MacroScores,
    ask_network,
    build_network,
    kept_encoders,
    open_encoders,
    to_tensors,
)
from memantics.moderation.neural.settings import NetworkShape, Training
from memantics.moderation.neural.training import write_whole

FORMAT = 1
FACTS = "detector.json"
GRAPH = "model.onnx"
_LARGEST = 4 << 30
_FACTS_BYTES = 64 << 20
_BATCH = 64


@dataclass(frozen=True, slots=True)
class SavedFacts:
    """Metadata of a trained detector; ``checksums`` cover all other files."""

    shape: NetworkShape
    training: Training
    seed: int
    fingerprint: str
    classes: tuple[str, ...]
    valid: MacroScores
    test: MacroScores | None = None
    best_epoch: int = 0
    history: tuple[checkpoint.Epoch, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)
    kind: str = "neural"
    format: int = FORMAT


WEIGHTS, SUMMARY = "model.safetensors", "summary.json"
_FACTS = TypeAdapter(SavedFacts)


def write_facts(folder: Path, facts: SavedFacts, network: Any) -> SavedFacts:
    """Write the weights, then the metadata with all checksums. Training ends with this step."""
    checkpoint.write_tensors(folder / WEIGHTS, network.state_dict())
    sums = {
        path.relative_to(folder).as_posix(): checkpoint.digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and covered(path.relative_to(folder))
    }
    whole = _FACTS.validate_python(asdict(facts) | {"checksums": sums})
    write_whole(folder / FACTS, orjson.dumps(asdict(whole), option=orjson.OPT_INDENT_2))
    return whole


def covered(name: Path) -> bool:
    """Check whether a file affects predictions and needs a checksum."""
    return name.parts[0] in ("text", "image", "clip", WEIGHTS)


def read_facts(folder: Path) -> SavedFacts:
    """Read ``detector.json``; raise StoreError if it is damaged or from another version."""
    path = folder / FACTS
    try:
        found = _FACTS.validate_json(read_regular(path, _FACTS_BYTES))
    except OSError as error:
        raise StoreError(
            f"{folder} is not a neural detector: {FACTS} is missing or unreadable",
            hint="give an output folder of 'memantics detector train-neural'",
        ) from error
    except ValidationError as error:
        raise StoreError(
            f"{path} is damaged or from another version: {first_fault(error)}",
            hint="train again",
        ) from error
    if found.format != FORMAT or found.kind != "neural":
        raise StoreError(
            f"{path} has format {found.format} of kind {found.kind!r}, "
            f"this version reads format {FORMAT} of kind 'neural'",
            hint="train again, or install the version that wrote it",
        )
    if found.classes != encoding.classes_of(found.shape.target):
        raise StoreError(
            f"{path} has other classes than this version of Memantics", hint="train again"
        )
    return found


class NeuralDetector:
    """A loaded neural detector."""

    def __init__(
        self, facts: SavedFacts, network: Any, reader: encoding.Reader, device: Any
    ) -> None:
        self.facts, self.network, self.reader, self.device = facts, network, reader, device

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the probabilities."""
        return self.facts.classes

    def encode(self, examples: Sequence[Example]) -> encoding.Encoded:
        """Encode examples as arrays; skip and list those whose image cannot be used."""
        return encoding.encode(examples, self.reader, self.facts.shape)

    def predict(self, encoded: encoding.Encoded) -> Chances:
        """Compute class probabilities, one row per encoded example."""
        return ask_network(self.network, encoded, range(len(encoded)), self.device)


def find_detector(folder: Path) -> Path:
    """Return the folder itself, or the folder of the seed with the best validation score."""
    if (folder / FACTS).is_file():
        return folder
    try:
        chosen = orjson.loads(read_regular(folder / SUMMARY, _FACTS_BYTES))["chosen"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise StoreError(
            f"{folder} has no neural detector",
            hint="give an output folder of 'memantics detector train-neural'",
        ) from error
    if not isinstance(chosen, int):
        raise StoreError(f"{folder / SUMMARY} cannot be read", hint="train again")
    return folder / f"seed-{chosen}"


def load_neural(folder: Path, device: str = "auto") -> NeuralDetector:
    """Load a detector; raise StoreError if a file changed since training."""
    place = find_detector(folder)
    facts = read_facts(place)
    check_files(place, facts)
    encoders = open_encoders(kept_encoders(place), facts.shape.length)
    network = build_network(encoders, facts.shape)
    checkpoint.load_weights(network, place / WEIGHTS)
    where = resolve_device(device, Ranks())
    return NeuralDetector(facts, network.to(where).eval(), encoders.reader, where)


def check_files(place: Path, facts: SavedFacts) -> None:
    """Raise StoreError if files were changed, added or removed."""
    for name, expected in facts.checksums.items():
        if not covered(Path(name)) or ".." in Path(name).parts:
            raise StoreError(
                f"{place / FACTS} has an invalid file name {name!r}", hint="copy the detector again"
            )
        checkpoint.check_digest(place / name, expected)
    if WEIGHTS not in facts.checksums:
        raise StoreError(f"{place / FACTS} has no checksum of the weights", hint="train again")
    for path in place.rglob("*"):
        inner = path.relative_to(place)
        # Links to devices and named pipes count too: an encoder would wait for them.
        odd = not path.is_dir() and inner.as_posix() not in facts.checksums
        if odd and covered(inner):
            raise StoreError(
                f"{path} does not belong to the detector", hint="remove it, or copy it again"
            )


@dataclass(frozen=True, slots=True)
class ExportedFacts:
    """Metadata of an exported file, with its tokenizer settings."""

    facts: SavedFacts
    length: int
    pad: int
    kind: str = "neural-onnx"
    format: int = FORMAT


_EXPORTED = TypeAdapter(ExportedFacts)


class DeployedDetector(NeuralDetector):
    """A detector from an exported file, run by onnxruntime."""

    def predict(self, encoded: encoding.Encoded) -> Chances:
        """Compute class probabilities, one row per encoded example."""
        order = np.arange(len(encoded))
        if encoded.lengths is not None:
            order = order[np.argsort(encoded.lengths.max(-1), kind="stable")]
        found = np.zeros((len(encoded), len(self.classes)))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            found[rows] = self.ask(encoded, rows)
        return found

    def ask(self, encoded: encoding.Encoded, rows: Ints) -> Chances:
        """Compute class probabilities of some rows in one call."""
        part = encoding.cut(encoded, rows)
        inputs = {
            "ids": None if part.ids is None else part.ids.astype(np.int64),
            "mask": part.mask,
            "pixels": part.pixels,
        }
        given = {name: value for name, value in inputs.items() if value is not None}
        logits = np.asarray(self.network.run(None, given)[0], np.float64)
        powers = np.exp(logits - logits.max(-1, keepdims=True))
        chances: Chances = powers / powers.sum(-1, keepdims=True)
        return chances


def open_deployed(path: Path) -> DeployedDetector:
    """Open an exported file."""
    try:
        data = read_regular(path, _LARGEST)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    return open_export(data, str(path))


def open_export(data: bytes, name: str, threads: int = 0) -> DeployedDetector:
    """Open an exported detector from bytes; raise StoreError if it was changed."""
    files = _unpack(data, name)
    try:
        exported = _EXPORTED.validate_json(files.get(FACTS, b""))
    except ValidationError as error:
        raise _damaged(name, f"{FACTS} cannot be read") from error
    if exported.format != FORMAT or exported.kind != "neural-onnx":
        raise StoreError(
            f"{name} has format {exported.format} of kind {exported.kind!r}; this version reads "
            f"format {FORMAT}",
            hint="export it again with this version",
        )
    facts = exported.facts
    if set(facts.checksums) != set(files) - {FACTS} or GRAPH not in files:
        raise _damaged(name, "files were added or removed")
    for inner, expected in facts.checksums.items():
        if hashlib.sha256(files[inner]).hexdigest() != expected:
            raise _damaged(name, f"{inner} was changed")
    if facts.classes != encoding.classes_of(facts.shape.target):
        raise _damaged(name, "its classes differ from those of this version")
    splitter = preparation = None
    if TOKENIZER in files:
        splitter = encoding.read_splitter(files[TOKENIZER], exported.pad, f"{name}: {TOKENIZER}")
    if PREPARATION in files:
        preparation = encoding.read_preparation(files[PREPARATION], f"{name}: {PREPARATION}")
    reader = encoding.Reader(splitter, preparation, exported.length)
    return DeployedDetector(facts, _start(files[GRAPH], name, threads), reader, "cpu")


def _unpack(data: bytes, name: str) -> dict[str, bytes]:
    known = {FACTS, GRAPH, TOKENIZER, PREPARATION}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if {entry.filename for entry in entries} - known:
                raise _damaged(name, "it has unexpected files")
            # Compressed members are rejected, as protection against zip bombs.
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise _damaged(name, "it is compressed")
            return {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise StoreError(
            f"{name} is not an exported detector, or the file is damaged",
            hint="give a file from 'memantics detector export'",
        ) from error


def _start(graph: bytes, name: str, threads: int) -> Any:
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime exceptions have no public base class
        words = " ".join(str(error).split())[:200]
        raise StoreError(f"{name}: the graph cannot be opened: {words}") from error


def _damaged(name: str, why: str) -> StoreError:
    return StoreError(f"{name} was damaged or changed: {why}", hint="export the detector again")


@dataclass(frozen=True, slots=True)
class NeuralPrediction:
    """The prediction for one example: the most probable class, and all probabilities."""

    id: str
    label: str
    chances: dict[str, float]

    @property
    def harmful(self) -> float:
        """Probability that the meme is harmful, of any type."""
        for harmless in ("harmless", "none"):
            if harmless in self.chances:
                return 1 - self.chances[harmless]
        return 0.0


@dataclass(frozen=True, slots=True)
class NeuralPredictions:
    """Predictions in the order of the examples; ``skips`` are those without a usable image."""

    examples: tuple[Example, ...]
    predictions: tuple[NeuralPrediction, ...]
    skips: tuple[Skip, ...]


def is_neural(path: Path) -> bool:
    """Check whether a path is a neural detector: a folder, a folder of seeds, or an export."""
    if path.is_dir():
        return (path / FACTS).is_file() or (path / SUMMARY).is_file()
    try:
        with open_regular(path, _LARGEST) as file, zipfile.ZipFile(file) as archive:
            return GRAPH in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def open_neural(path: Path) -> NeuralDetector:
    """Open a detector: a folder (needs PyTorch) or an exported file."""
    if path.is_file():
        return open_deployed(path)
    if not path.is_dir():
        raise InputError(
            f"no detector at {path}", hint="train one with 'memantics detector train-neural'"
        )
    return load_neural(path)


def predict_neural(detector: NeuralDetector, examples: Sequence[Example]) -> NeuralPredictions:
    """Predict examples; labels are not used."""
    encoded = detector.encode(examples)
    chances = detector.predict(encoded)
    classes = detector.classes
    if not np.isfinite(chances).all():
        raise StoreError("the network returned values that are not numbers", hint="train it again")
    predictions = tuple(
        NeuralPrediction(
            example.id,
            classes[int(row.argmax())],
            {name: float(chance) for name, chance in zip(classes, row, strict=True)},
        )
        for example, row in zip(encoded.examples, chances, strict=True)
    )
    return NeuralPredictions(encoded.examples, predictions, encoded.skips)


# In float32, the exported file and the PyTorch network differ only by the order of sums.
TOLERANCE = 1e-4


def export_onnx(folder: Path, target: Path) -> Path:
    """Export a detector folder as one ONNX file, after comparing the results of both."""
    check_packages("exports of neural detectors", ("torch", "onnx", "onnxscript"))
    place = find_detector(folder)
    detector = load_neural(place, device="cpu")
    files = {GRAPH: _trace(detector)}
    for kind in ("text", "clip"):
        if (place / kind / TOKENIZER).is_file():
            files[TOKENIZER] = read_regular(place / kind / TOKENIZER)
    for kind in ("image", "clip"):
        if (place / kind / PREPARATION).is_file():
            files[PREPARATION] = read_regular(place / kind / PREPARATION)
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    splitter = detector.reader.splitter
    exported = ExportedFacts(
        replace(detector.facts, checksums=sums),
        length=detector.reader.length,
        pad=0 if splitter is None else splitter.pad,
    )
    files[FACTS] = orjson.dumps(asdict(exported), option=orjson.OPT_INDENT_2)
    data = _pack(files)
    _compare(detector, data)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, data)
    except OSError as error:
        raise InputError(
            f"{target} cannot be written: {error.strerror}", hint="choose another --out"
        ) from error
    return target


def draw_sample(detector: NeuralDetector, count: int, seed: int = 0) -> Encoded:
    """Make random input rows, to trace and compare networks."""
    chance, reader = np.random.default_rng(seed), detector.reader
    ids = lengths = pixels = None
    if reader.splitter is not None:
        shape = (count, detector.facts.shape.fields)
        lengths = chance.integers(2, max(3, min(reader.length, 24)), shape).astype(np.int32)
        longest = int(lengths.max())
        # Low token ids exist in every vocabulary.
        ids = chance.integers(0, 5, (*shape, longest)).astype(np.int32)
    if reader.preparation is not None:
        size = (count, reader.preparation.height, reader.preparation.width, 3)
        pixels = chance.integers(0, 256, size).astype(np.uint8)
    return Encoded((), ids, lengths, pixels, ())


def _trace(detector: NeuralDetector) -> bytes:
    torch = get_torch()
    inputs = to_tensors(draw_sample(detector, 3), np.arange(3), torch.device("cpu"))
    memes = torch.export.Dim("memes", min=1, max=65_536)
    tokens = torch.export.Dim("tokens", min=2, max=max(3, detector.reader.length))
    texts = None if inputs[0] is None else {0: memes, 2: tokens}
    axes = (texts, texts, None if inputs[2] is None else {0: memes})
    named = zip(("ids", "mask", "pixels"), inputs, strict=True)
    with _quiet(), tempfile.TemporaryDirectory() as made:
        program: Any = torch.onnx.export(
            detector.network.eval(),
            inputs,
            input_names=[name for name, tensor in named if tensor is not None],
            output_names=["logits"],
            dynamic_shapes=axes,
            dynamo=True,
            verbose=False,
        )
        path = Path(made) / GRAPH
        program.save(str(path), external_data=False)
        return path.read_bytes()


def _compare(detector: NeuralDetector, data: bytes) -> None:
    """Raise InputError if the export gives other results than the network."""
    torch, deployed = get_torch(), open_export(data, "the export")
    for count in (1, 5):
        sample = draw_sample(detector, count, seed=count)
        with torch.inference_mode():
            logits = detector.network(*to_tensors(sample, np.arange(count), torch.device("cpu")))
        expected = torch.softmax(logits.double(), -1).numpy()
        found = deployed.ask(sample, np.arange(count))
        if np.abs(found - expected).max() > TOLERANCE:
            raise InputError(
                "the exported graph gives other results than the network",
                hint="use the folder itself, and report the encoder",
            )


def _pack(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            # A fixed date makes equal detectors equal files.
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), files[name])
    return packed.getvalue()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence messages of the exporter about optional packages."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
