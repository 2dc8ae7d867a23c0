"""Harm in Chinese memes: presets of the fast detector, on plain and on obfuscated texts, by target.

The folds of the rest are those of the protocol, or ten contiguous blocks of ids: neighbours were
crawled together, and a block holds topics that the others do not.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

from memantics.metrics.weighted import Case, Figure
from memantics.moderation.examples import LABELS, Example, FoldScheme, natural_key
from memantics.moderation.fast import FastDetector, Prediction, train
from memantics.moderation.features import Embedder, clean
from memantics.moderation.heads import find_preset
from memantics.moderation.held_out import Remembering
from memantics.moderation.judges import open_embedder
from memantics.moderation.robustness import pick_targets, swap_homophones
from research.data import read_harm
from research.protocol import Cases, Claim, Row, Study

HARMLESS, HARMFUL = LABELS
BLOCKS = 10
OBFUSCATED = 120  # harmful memes of each fold: hearing a text for its homophones takes long
GROUPS = ("gender", "region")  # targets with more than a hundred memes; others are taken together
SEEN = (
    "The detectors were built with all of it in view. Up to four characters that speak most for"
    " harm are obfuscated, by the detector's own account, as one who has it would."
)


@cache
def _open(preset: str) -> Embedder | None:
    found = open_embedder(find_preset(preset))
    return None if found is None else Remembering(found)


def split_blocks(_data: str, rows: Sequence[Row[Example]]) -> list[list[Row[Example]]]:
    """Contiguous blocks of ids; a group goes where its first meme is."""
    ordered = sorted(rows, key=lambda row: natural_key(row.id))
    first: dict[str, int] = {}
    for place, row in enumerate(ordered):
        first.setdefault(row.group, place)
    blocks: list[list[Row[Example]]] = [[] for _ in range(BLOCKS)]
    for row in ordered:
        blocks[first[row.group] * BLOCKS // len(ordered)].append(row)
    return blocks


def measure(
    preset: str, inner: FoldScheme, known: Sequence[Row[Example]], asked: Sequence[Row[Example]]
) -> Cases:
    """Train on the first rows and judge the second: as they are, their text alone, obfuscated."""
    embedder = _open(preset)
    settings = replace(find_preset(preset), inner=inner)
    detector = train([row.content for row in known], settings, embedder)
    examples = [row.content for row in asked]
    said = detector.predict(examples, embedder)
    found = {"harmful": _list_cases(asked, said)}
    found["types"] = [
        Case(row.id, row.group, str(row.content.type), own.type, None, row.tags)
        for row, own in zip(asked, said, strict=True)
        if row.content.type is not None
    ]
    alone = detector.predict(_strip(examples), embedder)
    found["text alone"] = _list_cases(asked, alone)
    for case in found["harmful"]:
        name = case.tags["target"]
        if case.gold == HARMFUL and name != "none":
            part = name if name in GROUPS else "another"
            found.setdefault(f"target {part}", []).append(case)
    return found if inner == "blocks" else found | _obfuscation(detector, asked, embedder)


def _obfuscation(
    detector: FastDetector, asked: Sequence[Row[Example]], embedder: Embedder | None
) -> dict[str, list[Case]]:
    harmful = [row for row in asked if row.content.label == 1 and row.content.text.strip()]
    chosen = random.Random(0).sample(harmful, min(OBFUSCATED, len(harmful)))
    plain = [row.content for row in chosen]
    hidden = [
        replace(
            own, text=swap_homophones(clean(own.text), pick_targets(detector, own, embedder), 0)
        )
        for own in plain
    ]
    parts = {
        "not obfuscated": plain,
        "homophones": hidden,
        "not obfuscated, text alone": _strip(plain),
        "homophones, text alone": _strip(hidden),
    }
    return {
        name: _list_cases(chosen, detector.predict(own, embedder)) for name, own in parts.items()
    }


def _strip(examples: Sequence[Example]) -> list[Example]:
    return [replace(own, text_caption="", image_caption="") for own in examples]


def _list_cases(rows: Sequence[Row[Example]], said: Sequence[Prediction]) -> list[Case]:
    return [
        Case(row.id, row.group, LABELS[row.content.label or 0], own.name, own.probability, row.tags)
        for row, own in zip(rows, said, strict=True)
    ]


def _study(preset: str, *, wanted: bool = False) -> Study[Example]:
    """The preset over groups; targets of the project hold for one preset."""

    def want(value: float) -> float | None:
        return value if wanted else None

    found = Figure("recall", HARMFUL)
    return Study(
        f"harm, {preset}",
        "toxicn_mm",
        read_harm,
        partial(measure, preset, "random"),
        (
            Claim("harmful", Figure("macro_f1"), want(0.80)),
            Claim("types", Figure("macro_f1"), want(0.63)),
            Claim("harmful", Figure("calibration_error", HARMFUL)),
            Claim("harmful", Figure("false_alarms", HARMFUL)),
            Claim("text alone", Figure("macro_f1")),
            Claim("text alone", Figure("false_alarms", HARMFUL)),
            Claim("not obfuscated", found),
            Claim("homophones", found, want(0.62)),
            Claim("not obfuscated, text alone", found),
            Claim("homophones, text alone", found, want(0.38)),
            *(Claim(f"target {name}", found) for name in (*GROUPS, "another")),
        ),
        SEEN,
    )


def _study_blocks(preset: str, wanted: float) -> Study[Example]:
    return Study(
        f"harm in blocks of ids, {preset}",
        "toxicn_mm",
        read_harm,
        partial(measure, preset, "blocks"),
        (
            Claim("harmful", Figure("macro_f1"), wanted),
            Claim("types", Figure("macro_f1")),
        ),
        "Inside the rest alone: the sealed part holds memes of every block.",
        split=split_blocks,
    )


STUDIES = (
    _study("fast"),
    _study("full"),
    _study("static", wanted=True),
    _study_blocks("static", 0.76),
)
