"""A trained detector as one file that is asked without PyTorch: a ZIP with an ONNX graph.

Inside: ``detector.json`` (the facts, and the checksums of the others), ``model.onnx``, and where
the network reads texts or images ``tokenizer.json`` and ``preprocessor_config.json``.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from memantics.core.errors import InputError
from memantics.detector.neural import saved
from memantics.detector.neural.backbone import PREPARATION, TOKENIZER
from memantics.detector.neural.checkpoint import write_whole
from memantics.detector.neural.encoding import Encoded
from memantics.detector.neural.machine import check_packages, get_torch
from memantics.detector.neural.network import to_tensors

# Where both run in float32 they differ by the order of sums alone.
TOLERANCE = 1e-4


def export_onnx(folder: Path, target: Path) -> Path:
    """Write a detector's folder as one file, and compare both before it is given its name."""
    check_packages("exports of neural detectors", ("torch", "onnx", "onnxscript"))
    place = saved.find_detector(folder)
    detector = saved.load_neural(place, device="cpu")
    files = {saved.GRAPH: _trace(detector)}
    for kind in ("text", "clip"):
        if (place / kind / TOKENIZER).is_file():
            files[TOKENIZER] = (place / kind / TOKENIZER).read_bytes()
    for kind in ("image", "clip"):
        if (place / kind / PREPARATION).is_file():
            files[PREPARATION] = (place / kind / PREPARATION).read_bytes()
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    splitter = detector.reader.splitter
    sealed = saved.Sealed(
        replace(detector.facts, checksums=sums),
        length=detector.reader.length,
        pad=0 if splitter is None else splitter.pad,
    )
    files[saved.FACTS] = orjson.dumps(asdict(sealed), option=orjson.OPT_INDENT_2)
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


def draw_sample(detector: saved.NeuralDetector, count: int, seed: int = 0) -> Encoded:
    """Random rows as the detector reads them: to trace and to compare, not to judge."""
    chance, reader = np.random.default_rng(seed), detector.reader
    ids = lengths = pixels = None
    if reader.splitter is not None:
        shape = (count, detector.facts.shape.fields)
        lengths = chance.integers(2, max(3, min(reader.length, 24)), shape).astype(np.int32)
        longest = int(lengths.max())
        # Low ids exist in every vocabulary.
        ids = chance.integers(0, 5, (*shape, longest)).astype(np.int32)
    if reader.preparation is not None:
        size = (count, reader.preparation.height, reader.preparation.width, 3)
        pixels = chance.integers(0, 256, size).astype(np.uint8)
    return Encoded((), ids, lengths, pixels, ())


def _trace(detector: saved.NeuralDetector) -> bytes:
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
        path = Path(made) / saved.GRAPH
        program.save(str(path), external_data=False)
        return path.read_bytes()


def _compare(detector: saved.NeuralDetector, data: bytes) -> None:
    """Refuse a file that does not say what the network says."""
    torch, deployed = get_torch(), saved.open_sealed(data, "the export")
    for count in (1, 5):
        sample = draw_sample(detector, count, seed=count)
        with torch.inference_mode():
            logits = detector.network(*to_tensors(sample, np.arange(count), torch.device("cpu")))
        expected = torch.softmax(logits.double(), -1).numpy()
        found = deployed.ask(sample, np.arange(count))
        if np.abs(found - expected).max() > TOLERANCE:
            raise InputError(
                "the exported graph does not agree with the network",
                hint="use the folder itself, and report which encoder it has",
            )


def _pack(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            # A fixed date: the same detector gives the same file.
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), files[name])
    return packed.getvalue()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells of every package that it could use but does not need."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
