"""Studies of harm in Chinese memes: presets of the detector, obfuscated texts, and targets.

Development folds are those of the protocol or ten contiguous blocks of ids. Neighbouring ids were
crawled together, so a block contains topics that the other blocks lack.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

from memantics.metrics.weighted import Case, MetricSpec
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
OBFUSCATED = 120  # harmful memes per fold; finding homophones of a text is slow
GROUPS = ("gender", "region")  # targets with more than 100 memes; the others are pooled
EXPOSURE = (
    "The detectors were built with all memes in view. The obfuscation replaces up to four"
    " characters with the highest attribution to harm, as an attacker with the detector would."
)


@cache
def _open(preset: str) -> Embedder | None:
    found = open_embedder(find_preset(preset))
    return None if found is None else Remembering(found)


def split_blocks(_data: str, rows: Sequence[Row[Example]]) -> list[list[Row[Example]]]:
    """Split rows into contiguous blocks of ids; a group goes to the block of its first meme."""
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
    """Train on the known rows and predict the others: unchanged, text only, and obfuscated."""
    embedder = _open(preset)
    settings = replace(find_preset(preset), inner=inner)
    detector = train([row.content for row in known], settings, embedder)
    examples = [row.content for row in asked]
    said = detector.predict(examples, embedder)
    found = {"harmful": _list_cases(asked, said)}
    found["types"] = [
        Case(row.id, row.group, str(row.content.type), one.type, None, row.tags)
        for row, one in zip(asked, said, strict=True)
        if row.content.type is not None
    ]
    alone = detector.predict(_strip(examples), embedder)
    found["text only"] = _list_cases(asked, alone)
    for case in found["harmful"]:
        name = case.tags["target"]
        if case.gold == HARMFUL and name != "none":
            part = name if name in GROUPS else "other"
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
            one, text=swap_homophones(clean(one.text), pick_targets(detector, one, embedder), 0)
        )
        for one in plain
    ]
    parts = {
        "not obfuscated": plain,
        "homophones": hidden,
        "not obfuscated, text only": _strip(plain),
        "homophones, text only": _strip(hidden),
    }
    return {
        name: _list_cases(chosen, detector.predict(each, embedder)) for name, each in parts.items()
    }


def _strip(examples: Sequence[Example]) -> list[Example]:
    return [replace(example, text_caption="", image_caption="") for example in examples]


def _list_cases(rows: Sequence[Row[Example]], said: Sequence[Prediction]) -> list[Case]:
    return [
        Case(row.id, row.group, LABELS[row.content.label or 0], one.name, one.probability, row.tags)
        for row, one in zip(rows, said, strict=True)
    ]


def _study(preset: str, *, wanted: bool = False) -> Study[Example]:
    """Build the study of a preset; only one preset has target values."""

    def want(value: float) -> float | None:
        return value if wanted else None

    found = MetricSpec("recall", HARMFUL)
    return Study(
        f"harm, {preset}",
        "toxicn_mm",
        read_harm,
        partial(measure, preset, "random"),
        (
            Claim("harmful", MetricSpec("macro_f1"), want(0.80)),
            Claim("types", MetricSpec("macro_f1"), want(0.63)),
            Claim("harmful", MetricSpec("calibration_error", HARMFUL)),
            Claim("harmful", MetricSpec("false_positive_rate", HARMFUL)),
            Claim("text only", MetricSpec("macro_f1")),
            Claim("text only", MetricSpec("false_positive_rate", HARMFUL)),
            Claim("not obfuscated", found),
            Claim("homophones", found, want(0.62)),
            Claim("not obfuscated, text only", found),
            Claim("homophones, text only", found, want(0.38)),
            *(Claim(f"target {name}", found) for name in (*GROUPS, "other")),
        ),
        EXPOSURE,
    )


def _study_blocks(preset: str, wanted: float) -> Study[Example]:
    return Study(
        f"harm, blocked cross-validation, {preset}",
        "toxicn_mm",
        read_harm,
        partial(measure, preset, "blocks"),
        (
            Claim("harmful", MetricSpec("macro_f1"), wanted),
            Claim("types", MetricSpec("macro_f1")),
        ),
        "Development set only: the locked test set contains memes of every block.",
        split=split_blocks,
    )


STUDIES = (
    _study("fast"),
    _study("full"),
    _study("static", wanted=True),
    _study_blocks("static", 0.76),
)
