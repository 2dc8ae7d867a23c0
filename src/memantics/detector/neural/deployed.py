"""An exported detector, asked with onnxruntime: neither PyTorch nor transformers is needed."""

from __future__ import annotations

import hashlib
import importlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import StoreError
from memantics.detector.examples import Example
from memantics.detector.neural.encoding import Encoded, Places, Reader, classes_of, cut, encode
from memantics.detector.neural.evaluation import Chances
from memantics.detector.neural.facts import FACTS, FORMAT, Facts
from memantics.detector.neural.pictures import read_preparation
from memantics.detector.neural.tokens import read_splitter

GRAPH, TOKENIZER, PREPARATION = "model.onnx", "tokenizer.json", "preprocessor_config.json"
_LARGEST = 4 << 30
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Sealed:
    """The facts inside an exported file, and how texts are cut and filled."""

    facts: Facts
    length: int
    pad: int
    kind: str = "neural-onnx"
    format: int = FORMAT


_SEALED = TypeAdapter(Sealed)


class DeployedDetector:
    """A detector from one file, ready to be asked."""

    def __init__(self, sealed: Sealed, reader: Reader, session: Any) -> None:
        self.facts, self.reader, self._session = sealed.facts, reader, session

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the chances."""
        return self.facts.classes

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Examples as arrays; those whose image cannot be used are left out and listed."""
        return encode(examples, self.reader, self.facts.shape)

    def predict(self, encoded: Encoded) -> Chances:
        """Chances of the classes, a row per encoded example."""
        order = np.arange(len(encoded))
        if encoded.lengths is not None:
            order = order[np.argsort(encoded.lengths.max(-1), kind="stable")]
        found = np.zeros((len(encoded), len(self.classes)))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            found[rows] = self.ask(encoded, rows)
        return found

    def ask(self, encoded: Encoded, rows: Places) -> Chances:
        """Chances of some rows in one call."""
        part = cut(encoded, rows)
        inputs = {
            "ids": None if part.ids is None else part.ids.astype(np.int64),
            "mask": part.mask,
            "pixels": part.pixels,
        }
        given = {name: value for name, value in inputs.items() if value is not None}
        logits = np.asarray(self._session.run(None, given)[0], np.float64)
        powers = np.exp(logits - logits.max(-1, keepdims=True))
        chances: Chances = powers / powers.sum(-1, keepdims=True)
        return chances


def open_deployed(path: Path, threads: int = 0) -> DeployedDetector:
    """Open an exported file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise StoreError(f"{path} is too large for a detector")
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    return open_sealed(data, str(path), threads)


def open_sealed(data: bytes, name: str, threads: int = 0) -> DeployedDetector:
    """Open an exported detector from its bytes; anything that was changed is refused."""
    files = _unpack(data, name)
    try:
        sealed = _SEALED.validate_json(files.get(FACTS, b""))
    except ValidationError as error:
        raise _damaged(name, f"no readable {FACTS}") from error
    if sealed.format != FORMAT or sealed.kind != "neural-onnx":
        raise StoreError(
            f"{name} has format {sealed.format} of kind {sealed.kind!r}; this version reads "
            f"format {FORMAT}",
            hint="export it again with this version",
        )
    facts = sealed.facts
    if set(facts.checksums) != set(files) - {FACTS} or GRAPH not in files:
        raise _damaged(name, "files were added or lost")
    for inner, expected in facts.checksums.items():
        if hashlib.sha256(files[inner]).hexdigest() != expected:
            raise _damaged(name, f"{inner} was changed")
    if facts.classes != classes_of(facts.shape.target):
        raise _damaged(name, "it names other classes than this version")
    splitter = preparation = None
    if TOKENIZER in files:
        splitter = read_splitter(files[TOKENIZER], sealed.pad, f"{name}: {TOKENIZER}")
    if PREPARATION in files:
        preparation = read_preparation(files[PREPARATION], f"{name}: {PREPARATION}")
    reader = Reader(splitter, preparation, sealed.length)
    return DeployedDetector(sealed, reader, _start(files[GRAPH], name, threads))


def _unpack(data: bytes, name: str) -> dict[str, bytes]:
    known = {FACTS, GRAPH, TOKENIZER, PREPARATION}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if {entry.filename for entry in entries} - known:
                raise _damaged(name, "it holds files that no detector has")
            # Stored as they are: a small file cannot swell into a large one.
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise _damaged(name, "it is compressed")
            return {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise StoreError(
            f"{name} is no exported detector, or it is damaged",
            hint="give a file that 'memantics detector export' wrote",
        ) from error


def _start(graph: bytes, name: str, threads: int) -> Any:
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own exceptions have no common base that is public
        words = " ".join(str(error).split())[:200]
        raise StoreError(f"{name}: the graph cannot be opened: {words}") from error


def _damaged(name: str, why: str) -> StoreError:
    return StoreError(f"{name} was damaged or changed: {why}", hint="export the detector again")
