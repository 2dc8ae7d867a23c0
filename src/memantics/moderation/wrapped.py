"""Wrapped third-party classifiers: label map, calibration and file format.

A wrapped detector is one JSON file. It has the path of the classifier folder and a digest of its
files; the weights are not copied.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from pydantic import Field, ValidationError

from memantics.core.data import load_toml
from memantics.core.errors import DataError, InputError, StoreError, first_fault
from memantics.core.files import open_regular, read_regular, read_regular_text, replace_file
from memantics.core.images import load
from memantics.core.records import Closed
from memantics.metrics.rounding import Floats, Ints, settle
from memantics.models.embedders import TEXT_PLACEHOLDER, LocalClassifier
from memantics.models.local.settings import digest
from memantics.moderation.calibration import fit_softmax
from memantics.moderation.examples import TYPES, Example
from memantics.moderation.fast import Prediction

Meaning = Literal["harmless", "harmful", "targeted", "offence", "sexual", "dispirited", "ignore"]
_LARGEST = 50_000_000


class LabelMap(Closed):
    """The label map ``labels.toml``: the meaning of each label or prompt of a classifier.

    A meaning is harmless, harmful, a harm type, or ignore. ``languages`` are the languages of the
    classifier; by default those of the calibration rows.
    """

    labels: dict[str, Meaning] = Field(default_factory=dict)
    prompts: dict[str, Meaning] = Field(default_factory=dict)
    languages: tuple[str, ...] = ()
    licence: str = "not stated"

    @property
    def meanings(self) -> dict[str, Meaning]:
        """The meaning of each label, or of each prompt if there are prompts."""
        return self.prompts or self.labels


class WrappedFile(Closed):
    """Contents of a wrapped detector's file; probability = logistic(slope × log-odds + shift)."""

    format: Literal["memantics-wrapped"] = "memantics-wrapped"
    version: Literal[1] = 1
    folder: str
    digest: str
    meanings: LabelMap
    slope: float = Field(default=1.0, allow_inf_nan=False)
    shift: float = Field(default=0.0, allow_inf_nan=False)
    card: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WrappedJudge:
    """A loaded classifier with its label map and calibration."""

    classifier: LocalClassifier
    file: WrappedFile

    @property
    def card(self) -> Mapping[str, Any]:
        """Its model card, with its operating point."""
        return self.file.card

    @property
    def sees_images(self) -> bool:
        """Whether it uses images."""
        return self.classifier.kind != "text"

    @property
    def reads_texts(self) -> bool:
        """Whether it uses the text of a meme."""
        prompts = self.file.meanings.prompts
        return self.classifier.kind == "text" or any(TEXT_PLACEHOLDER in name for name in prompts)

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predict harm, one prediction per example; raise InputError if an image is missing."""
        return self.name_predictions(examples, self.score(examples))

    def score(self, examples: Sequence[Example]) -> Floats:
        """Compute one row of logits per example."""
        missing = [e.id for e in examples if e.image is None] if self.sees_images else []
        if missing:
            raise InputError(
                f"{len(missing)} memes have no image; the first is {missing[0]}",
                hint="leave them out, or use a detector that scores texts",
            )
        rows = [
            self.classifier.score(e.text, load(e.image) if self.sees_images and e.image else None)
            for e in examples
        ]
        return np.array(rows).reshape(len(rows), len(self.classifier.labels))

    def weigh(self, logits: Floats) -> tuple[Floats, dict[str, Floats]]:
        """Compute the log-odds of harm, and each type's proportion of the harmful probability."""
        meant = [self.file.meanings.meanings[name] for name in self.classifier.labels]
        harmful = [place for place, what in enumerate(meant) if what not in ("harmless", "ignore")]
        powers = logits[:, harmful]
        if self.classifier.several:
            # The probability that no harmful label applies is the product of (1 - p) over these
            # labels.
            absent = -np.logaddexp(0, powers).sum(axis=1)
            odds = np.log(-np.expm1(np.minimum(absent, -1e-300))) - absent
            weights = make_probabilities(powers)
        else:
            harmless = [place for place, what in enumerate(meant) if what == "harmless"]
            odds = _sum_up(powers) - _sum_up(logits[:, harmless])
            weights = np.exp(powers - powers.max(axis=1, keepdims=True))
        total = weights.sum(axis=1)
        shares: dict[str, Floats] = {
            kind: weights[:, [place for place, at in enumerate(harmful) if meant[at] == kind]].sum(
                1
            )
            / total
            for kind in TYPES
            if kind in meant
        }
        return odds, shares

    def name_predictions(
        self, examples: Sequence[Example], logits: Floats, chances: Floats | None = None
    ) -> list[Prediction]:
        """Convert logits to predictions; ``chances`` replace the calibrated probabilities."""
        odds, shares = self.weigh(logits)
        if chances is None:
            chances = make_probabilities(self.file.slope * odds + self.file.shift)
        threshold = float(self.card.get("threshold") or 0.5)
        found = []
        for place, (example, chance) in enumerate(zip(examples, chances.tolist(), strict=True)):
            harmful = settle(chance) >= settle(threshold)
            types = {kind: chance * float(share[place]) for kind, share in shares.items()}
            kind = "none" if types else None
            if harmful and types:  # harmful labels without a type may have a higher probability
                best = max(types, key=lambda name: types[name])
                kind = best if types[best] >= chance - sum(types.values()) else None
            types |= {"none": 1 - chance} if types else {}
            found.append(Prediction(example.id, int(harmful), chance, kind, types))
        return found


def _sum_up(logits: Floats) -> Floats:
    found: Floats = np.logaddexp.reduce(logits, axis=1)
    return found


def make_probabilities(odds: Floats) -> Floats:
    """Convert log-odds to probabilities.

    >>> make_probabilities(np.array([0.0, 800.0])).tolist()
    [0.5, 1.0]
    """
    found: Floats = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
    return found


def fit_platt(odds: Floats, labels: Ints) -> tuple[float, float]:
    """Fit slope and shift of Platt scaling, with a small ridge penalty."""
    found = fit_softmax(odds[:, None], labels, 2)
    slope = float((found.weights[0, 1] - found.weights[0, 0]) / found.deviation[0])
    return slope, float(found.intercepts[1] - found.intercepts[0] - slope * found.mean[0])


def read_map(path: Path) -> LabelMap:
    """Read a label map; raise DataError if it is invalid."""
    try:
        return LabelMap.model_validate(load_toml(read_regular_text(path)))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(
            path, f"cannot be read: {error}", hint="write a TOML file with a table [labels]"
        ) from error
    except ValidationError as error:
        raise DataError(
            path, first_fault(error), hint="use harmless, harmful, ignore or a harm type"
        ) from error


def wrap_folder(folder: Path, meanings: LabelMap, source: str) -> WrappedJudge:
    """Open a classifier with its label map; raise InputError if labels are missing in the map."""
    classifier = LocalClassifier(folder, tuple(meanings.prompts))
    known, named = set(classifier.labels), set(meanings.meanings)
    if classifier.kind != "image-text" and meanings.prompts:
        raise InputError(
            f"{source}: {classifier.architecture} has labels, not prompts",
            hint="use [labels] instead of [prompts]",
        )
    if known != named:
        missing, more = sorted(known - named), sorted(named - known)
        what = f"lacks {missing[0]!r}" if missing else f"has an unknown label {more[0]!r}"
        listed = ", ".join(classifier.labels[:20])
        raise InputError(f"{source} {what}", hint=f"the labels are: {listed}"[:300])
    meant = set(meanings.meanings.values())
    if not meant - {"harmless", "ignore"} or ("harmless" not in meant and not classifier.several):
        raise InputError(f"{source} needs harmless and harmful labels", hint="map one to each")
    return WrappedJudge(
        classifier, WrappedFile(folder=str(folder), digest=digest(folder), meanings=meanings)
    )


def save_wrapped(path: Path, file: WrappedFile) -> None:
    """Write the detector file; a classifier folder in the same folder gets a relative path."""
    folder, home = Path(file.folder).resolve(), path.resolve().parent
    named = os.path.relpath(folder, home) if folder.is_relative_to(home) else str(folder)
    body = file.model_copy(update={"folder": named}).model_dump(mode="json")
    replace_file(path, orjson.dumps(body, option=orjson.OPT_INDENT_2, default=str), "detector")


def is_wrapped(path: Path) -> bool:
    """Check whether a path is the file of a wrapped classifier."""
    if not path.is_file():
        return False
    with open_regular(path) as file:
        return file.read(1) == b"{"


def open_wrapped(path: Path) -> WrappedJudge:
    """Open a wrapped classifier; raise an error if its folder changed."""
    if path.stat().st_size > _LARGEST:
        raise StoreError(f"{path} is too large for a wrapped detector")
    try:
        file = WrappedFile.model_validate_json(read_regular(path))
    except ValidationError as error:
        raise StoreError(
            f"{path} is not a wrapped detector, or the file is damaged: {first_fault(error)}",
            hint="create one with 'memantics detector wrap'",
        ) from error
    folder = path.resolve().parent / file.folder
    if not folder.is_dir():
        raise InputError(
            f"{path} needs the folder {folder}, which does not exist", hint="restore it"
        )
    if digest(folder) != file.digest:
        raise StoreError(
            f"the files in {folder} changed since {path} was written",
            hint="restore the files, or run 'detector wrap' again",
        )
    judge = wrap_folder(folder, file.meanings, str(path))
    return WrappedJudge(judge.classifier, file.model_copy(update={"folder": str(folder)}))
