"""Summary of MER-Bench's data, recomputed statistics of its paper, and audit findings.

The audit findings cover unbalanced emotions, duplicate captions, repeated layouts and the rating
scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from memantics.benchmarks.mer_bench import load
from memantics.benchmarks.mer_bench.load import TARGETS, ReappraisalRelease, ReappraisalRow
from memantics.core.data import Found, checksum, note_gaps, note_part
from memantics.core.finding import Finding, FindingWords, rank
from memantics.core.records import Score
from memantics.metrics.interval import wilson
from memantics.metrics.reappraisal import components

COMPLETE = 3117
_WORDS = FindingWords(__file__)
RATED = frozenset({"vgq", "vea", "tgq", "tea", "lc", "hgq", "pes", "label"})


def survey(release: load.ReappraisalRelease) -> Found:
    """Summarise a copy of the data: counts, repairs, and the effect of missing files."""
    found = sum(row.image is not None for row in release.rows)
    silent = sum(not row.caption for row in release.rows)
    editors = release.editors()
    return Found(
        records=len(release.rows),
        counts={
            "memes": len(release.rows),
            "memes without text": silent,
            "models with edited images": len(editors),
        },
        files=(release.index.relative_to(release.source.root).as_posix(),),
        checksum=checksum([release.index], release.source.root),
        images_found=found,
        images_expected=len(release.rows),
        repairs={name: count for name, count in release.repairs.items() if count},
        notes=tuple(_notes(release, found, editors)),
    )


def _notes(release: load.ReappraisalRelease, found: int, editors: tuple[str, ...]) -> list[str]:
    total = len(release.rows)
    get = (
        "The images are a separate data set (LeoReverse/17nie on the Hugging Face "
        "hub): unpack it into data/Original."
    )
    notes = [
        *note_part(release.source, total, COMPLETE),
        *note_gaps(found, total, release.images, get),
    ]
    if not editors and release.source.kind == "release":
        notes.append(
            "This copy contains no edited images: add a folder per model to "
            "data/EditedResults before judging."
        )
    return notes


def statistics(release: load.ReappraisalRelease) -> dict[str, JsonValue]:
    """Return every statistic of the paper by key; None if this copy does not contain it."""
    rows = release.rows
    pairs = Counter(f"{row.source_emotion}_{row.target_emotion}" for row in rows)
    kinds = Counter(row.visual_type for row in rows)
    crossed = Counter((row.visual_type, row.layout) for row in rows)
    layouts = Counter(row.layout for row in rows)
    polarities = Counter(row.polarity for row in rows)
    return {
        "memes": len(rows),
        **{f"visual_type.{kind}": kinds[kind] for kind in load.VISUAL_TYPES},
        **{f"layout.{layout}": layouts[layout] for layout in load.LAYOUTS},
        **{f"polarity.{polarity}": polarities[polarity] for polarity in load.POLARITIES},
        **{f"emotion.{a}_{b}": pairs[f"{a}_{b}"] for a, b in load.TARGETS.items()},
        "emotion.bored_percent": round(100 * pairs["bored_excited"] / len(rows), 1),
        **{
            f"visual_layout.{kind}.{layout}": crossed[kind, layout]
            for kind in load.VISUAL_TYPES
            for layout in load.LAYOUTS
        },
        **_oddities(rows),
        "kept": _kept(release),
    }


def _oddities(rows: tuple[load.ReappraisalRow, ...]) -> dict[str, JsonValue]:
    texts = Counter(row.caption for row in rows)
    numbers: dict[str, JsonValue] = {
        "text.empty": sum(not row.caption for row in rows),
        "text.repeated": sum(count > 1 for count in texts.values()),
        "text.surplus": len(rows) - len(texts),
        "description.cues": sum(
            "Visual cues" in row.description and "Text cues" in row.description for row in rows
        ),
        "pos_txt.most_backslashes": max(row.written.count("\\") for row in rows),
        "pos_txt.curly": sum(row.written.startswith("“") for row in rows),
    }
    for key, values in (
        ("pos_txt", [row.written for row in rows]),
        ("spec", [row.planned for row in rows]),
    ):
        wrapped = [value for value in values if value.startswith('"')]
        numbers[f"{key}.wrapped"] = len(wrapped)
        numbers[f"{key}.decodable"] = sum(load.decode_once(value) is not None for value in wrapped)
    return numbers


def _kept(release: load.ReappraisalRelease) -> int | None:
    """Return memes with an image of the source and of every editor; needs the image folders."""
    editors = release.editors()
    if not editors:
        return None
    return sum(
        row.image is not None
        and all(release.find_edited(editor, row) is not None for editor in editors)
        for row in release.rows
    )


def findings(release: ReappraisalRelease) -> tuple[Finding, ...]:
    """Yield audit findings on unbalanced emotions, duplicate captions, layouts and the scale."""
    return (
        _judge_emotions(release.rows),
        _judge_captions(release.rows),
        _judge_layouts(release.rows),
        _judge_scale(),
    )


def _judge_emotions(rows: Sequence[ReappraisalRow]) -> Finding:
    counts = Counter(row.source_emotion for row in rows)
    n = len(rows)
    parts = tuple(
        _share(counts[name], n, "feeling", f"{name} to {target}")
        for name, target in TARGETS.items()
    )
    least = min(parts, key=lambda part: part.value or 0)
    score = Score("proportion", least.value, n, least.low, least.high)
    values, fair = {"label": least.label, "value": least.value or 0}, 1 / len(TARGETS)
    verdict = rank((least.value or 0) < 0.1)
    return _WORDS.find("mer_bench.emotions", score, verdict, values, expected=fair, rows=parts)


def _judge_captions(rows: Sequence[ReappraisalRow]) -> Finding:
    texts = Counter(" ".join(row.caption.split()).casefold() for row in rows if row.caption)
    repeated = sum(count for count in texts.values() if count > 1)
    written = Counter(row.caption for row in rows if row.caption)
    exact = sum(count for count in written.values() if count > 1)
    part = _share(repeated, texts.total())
    many, values = rank((part.value or 0) >= 0.02), {"repeated": repeated, "exact": exact}
    return _WORDS.find("mer_bench.captions", part, many, values)


def _judge_layouts(rows: Sequence[ReappraisalRow]) -> Finding:
    several = [row for row in rows if row.layout == "MultiPanel"]
    template = sum(row.visual_type == "Template_StylizedMeme" for row in several)
    part = _share(template, len(several))
    base = sum(row.visual_type == "Template_StylizedMeme" for row in rows) / len(rows)
    tied = part.low is not None and part.low > base + 0.1
    return _WORDS.find("mer_bench.layouts", part, rank(tied), expected=base)


def _judge_scale() -> Finding:
    """Return the score of a perfect judgement, and of one with a single deduction."""
    perfect = np.ones((1, 8))
    missed = perfect.copy()
    missed[0, 6] = 0
    top, left = (float(components(judgement)[0, 3]) for judgement in (perfect, missed))
    score = Score("rfs", left, 0)
    values = {"left": left, "top": top}
    return _WORDS.find("mer_bench.scale", score, "worth knowing", values)


def _share(part: int, whole: int, by: str = "", label: str = "") -> Score:
    low, high = wilson(part, whole) or (None, None)
    return Score("proportion", part / whole if whole else None, whole, low, high, by, label)
