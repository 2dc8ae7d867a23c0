"""Inputs of a reproduced paper besides runs: annotations, detectors, values, model traits."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from memantics.benchmarks.factories import proportion_score
from memantics.benchmarks.paper import ScoredDetector
from memantics.core.data import conform, read_json, read_jsonl
from memantics.core.errors import DataError, InputError, first_fault
from memantics.core.files import read_regular, read_regular_text
from memantics.core.queue import ANNOTATIONS, CARD, Review, read_review
from memantics.core.records import Score
from memantics.core.result import to_plain
from memantics.moderation.card import place_card
from memantics.moderation.lora.judging import FACTS as TUNED
from memantics.moderation.study.running import STUDY, read_study, read_verdicts

_SCORES = TypeAdapter(dict[str, tuple[Score, ...]])


def read_annotations(path: Path) -> Review:
    """Read a reviewed annotation queue from its folder or its annotations file."""
    if path.is_dir():
        return read_review(path, None)
    if not path.is_file():
        raise InputError(f"no such file: {path}", hint="give a queue's folder or its annotations")
    for queue in (path.parent, path.parent / "queue"):
        if (queue / CARD).is_file():
            return read_review(queue, path)
    raise InputError(
        f"{path}: the folder of these annotations contains no queue",
        hint=f"move {ANNOTATIONS} into the folder of its queue",
    )


def read_detectors(path: Path) -> list[ScoredDetector]:
    """Read the detectors of a study by variant, a LoRA model, or a single detector."""
    if (path / TUNED).is_file():
        return [_read_tuned(path)]
    if not (path / STUDY).is_file():
        return [_read_detector(path)]
    study = read_study(path)
    said = read_verdicts(path, study)
    names = {"harmful": "detection", "type": "type"}
    facts: dict[str, JsonValue] = {"study": study.data, "tested_on": study.tested_on}
    found = []
    for variant in dict.fromkeys(row.variant for row in study.rows):
        rows = [row for row in study.rows if row.variant == variant]
        contrasts = [
            to_plain(contrast) for contrast in study.contrasts if contrast.second == variant
        ]
        detector_facts = {**facts, "settings": dict(rows[0].settings), "contrasts": contrasts}
        scores = {names[row.task]: row.scores for row in rows}
        found.append(ScoredDetector(variant, path, detector_facts, scores, said.get(variant, {})))
    return found


def _read_detector(path: Path) -> ScoredDetector:
    """Read the metrics of a detector from its model card."""
    card = path if path.name.endswith(".card.json") else place_card(path)[1]
    try:
        facts: Mapping[str, JsonValue] = json.loads(read_regular(card))
        scores = _SCORES.validate_python(facts["metrics"])
    except FileNotFoundError:
        raise InputError(
            f"{path} has no model card",
            hint="train the detector with memantics detector train, which writes the card",
        ) from None
    except ValidationError as error:
        raise DataError(card, first_fault(error), hint="train the detector again") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(card, f"is not a valid detector card: {error}") from error
    return ScoredDetector(str(facts.get("name", path.stem)), path, facts, scores)


class _TunedVerdict(BaseModel):
    """One prediction of a fine-tuned model."""

    part: str
    id: str
    gold: bool
    said: bool | None


def _read_tuned(path: Path) -> ScoredDetector:
    """Read the predictions of a LoRA model on held-out groups and on other data."""
    facts = read_json(path / TUNED)
    if not isinstance(facts, dict) or not isinstance(wording := facts.get("wording"), dict):
        raise DataError(
            path / TUNED,
            "does not contain the prompt that the model was tuned with",
            hint="fine-tune the model again with this version",
        )
    if "task" in wording:
        raise InputError(
            f"{path} generates answers, so it has no verdicts",
            hint=f"run memantics run {wording['task']} --model detector/{path}, and give that run",
        )
    lines = path / "verdicts.jsonl"
    rows = [conform(_TunedVerdict, value, lines, number) for number, value in read_jsonl(lines)]
    scores: dict[str, tuple[Score, ...]] = {}
    for name, part in (("held out", "valid"), ("external", "external")):
        found = []
        for key, gold in (("tpr", True), ("tnr", False)):
            verdicts = [row for row in rows if row.part == part and row.gold is gold]
            found.append(
                proportion_score(
                    key, [row.said is gold for row in verdicts], [row.id for row in verdicts]
                )
            )
        scores[name] = tuple(found)
    asked = {"question": wording.get("question"), "style": wording.get("style")}
    return ScoredDetector(str(facts.get("model", path.name)), path, {**facts, **asked}, scores)


def read_values(paths: Sequence[Path]) -> dict[str, JsonValue]:
    """Read measured values by key, as ``build chat-quality --out`` writes them."""
    found: dict[str, JsonValue] = {}
    for path in paths:
        measured = read_json(path)
        if not isinstance(measured, dict):
            raise DataError(
                path,
                "is not a JSON object of values by key, as build chat-quality --out writes",
            )
        found |= measured
    return found


def read_traits(path: Path) -> dict[str, dict[str, str]]:
    """Read a table of models and their properties; the first column is the model."""
    try:
        rows = list(csv.DictReader(read_regular_text(path, "utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: cannot be read: {error}", hint="give a CSV file in UTF-8 with a header"
        ) from error
    found: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, 2):
        names = [name for name in row if name is not None]
        if None in row or None in row.values() or len(names) < 2:
            raise DataError(
                path,
                "has another number of cells than the header",
                row=number,
                hint="model,trait,…",
            )
        first, *traits = names
        found[row[first].strip()] = {name.strip(): row[name].strip() for name in traits}
    if not found:
        raise DataError(
            path,
            "has no models",
            hint="start with the header model,PROPERTY,… and add one line per model",
        )
    return found
