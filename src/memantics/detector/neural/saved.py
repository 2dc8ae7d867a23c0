"""A trained detector in its folder: ``detector.json``, weights, and what describes its encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import StoreError, first_fault
from memantics.detector.examples import Example
from memantics.detector.neural.backbone import kept_encoders, open_encoders
from memantics.detector.neural.checkpoint import (
    check_digest,
    digest,
    load_weights,
    write_tensors,
    write_whole,
)
from memantics.detector.neural.encoding import Encoded, Reader, classes_of, encode
from memantics.detector.neural.evaluation import Chances, ask_network
from memantics.detector.neural.facts import FACTS, FORMAT, Facts
from memantics.detector.neural.network import build_network
from memantics.detector.neural.ranks import Ranks, resolve_device

WEIGHTS, SUMMARY = "model.safetensors", "summary.json"
_FACTS = TypeAdapter(Facts)


def write_facts(folder: Path, facts: Facts, network: Any) -> Facts:
    """Write the weights, then the facts with all checksums: the last step of a training."""
    write_tensors(folder / WEIGHTS, network.state_dict())
    sums = {
        path.relative_to(folder).as_posix(): digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and covered(path.relative_to(folder))
    }
    whole = _FACTS.validate_python(asdict(facts) | {"checksums": sums})
    write_whole(folder / FACTS, orjson.dumps(asdict(whole), option=orjson.OPT_INDENT_2))
    return whole


def covered(name: Path) -> bool:
    """Whether a file shapes predictions."""
    return name.parts[0] in ("text", "image", "clip", WEIGHTS)


def read_facts(folder: Path) -> Facts:
    """Read ``detector.json``; another version's file or a damaged one is refused."""
    path = folder / FACTS
    try:
        found = _FACTS.validate_json(path.read_bytes())
    except OSError as error:
        raise StoreError(
            f"{folder} is no neural detector: no readable {FACTS}",
            hint="give a folder that 'memantics detector train-neural' wrote",
        ) from error
    except ValidationError as error:
        raise StoreError(
            f"{path} is damaged or of another version: {first_fault(error)}",
            hint="train again",
        ) from error
    if found.format != FORMAT or found.kind != "neural":
        raise StoreError(
            f"{path} has format {found.format} of kind {found.kind!r}, "
            f"this version reads format {FORMAT} of kind 'neural'",
            hint="train again, or install the version that wrote it",
        )
    if found.classes != classes_of(found.shape.target):
        raise StoreError(f"{path} names other classes than this version", hint="train again")
    return found


class NeuralDetector:
    """A trained detector, ready to be asked."""

    def __init__(self, facts: Facts, network: Any, reader: Reader, device: Any) -> None:
        self.facts, self.network, self.reader, self.device = facts, network, reader, device

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the chances."""
        return self.facts.classes

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Examples as arrays; those whose image cannot be used are left out and listed."""
        return encode(examples, self.reader, self.facts.shape)

    def predict(self, encoded: Encoded) -> Chances:
        """Chances of the classes, a row per encoded example."""
        return ask_network(self.network, encoded, range(len(encoded)), self.device)


def find_detector(folder: Path) -> Path:
    """The folder itself, or that of the seed whose validation score was best."""
    if (folder / FACTS).is_file():
        return folder
    try:
        chosen = orjson.loads((folder / SUMMARY).read_bytes())["chosen"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise StoreError(
            f"{folder} holds no neural detector",
            hint="give a folder that 'memantics detector train-neural' wrote",
        ) from error
    if not isinstance(chosen, int):
        raise StoreError(f"{folder / SUMMARY} is damaged", hint="train again")
    return folder / f"seed-{chosen}"


def load_neural(folder: Path, device: str = "auto") -> NeuralDetector:
    """Open a detector; every file must be the one that training wrote."""
    place = find_detector(folder)
    facts = read_facts(place)
    check_files(place, facts)
    encoders = open_encoders(kept_encoders(place), facts.shape.length)
    network = build_network(encoders, facts.shape)
    load_weights(network, place / WEIGHTS)
    where = resolve_device(device, Ranks())
    return NeuralDetector(facts, network.to(where).eval(), encoders.reader, where)


def check_files(place: Path, facts: Facts) -> None:
    """Refuse files that were changed, added or lost."""
    for name, expected in facts.checksums.items():
        if not covered(Path(name)) or ".." in Path(name).parts:
            raise StoreError(f"{place / FACTS} names {name!r}", hint="fetch the detector again")
        check_digest(place / name, expected)
    if WEIGHTS not in facts.checksums:
        raise StoreError(f"{place / FACTS} does not cover the weights", hint="train again")
    for path in place.rglob("*"):
        inner = path.relative_to(place)
        if path.is_file() and covered(inner) and inner.as_posix() not in facts.checksums:
            raise StoreError(
                f"{path} does not belong to the detector", hint="remove it, or fetch it again"
            )
