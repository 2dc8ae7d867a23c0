"""What only MER-Bench's own data can show: how even its memes are, and what its scale allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from memantics.benchmarks.mer_bench.load import TARGETS, ReappraisalRelease, ReappraisalRow
from memantics.core.finding import Finding
from memantics.core.records import Score
from memantics.metrics.interval import wilson
from memantics.metrics.reappraisal import components

RATED = frozenset({"vgq", "vea", "tgq", "tea", "lc", "hgq", "pes", "label"})


def findings(release: ReappraisalRelease) -> tuple[Finding, ...]:
    """Uneven feelings, captions that come twice, layout that is template, and the scale."""
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
    uneven = (least.value or 0) < 0.1
    return Finding(
        key="mer_bench.emotions",
        title="The rarest feeling",
        measured="share of memes with the rarest pair of feelings; rows show every pair",
        figure=Score("share", least.value, n, least.low, least.high),
        expected=1 / len(TARGETS),
        reference="even feelings",
        verdict="worth knowing" if uneven else "sound",
        meaning=f"“{least.label}” makes up {least.value or 0:.1%}: an average over memes hardly "
        "knows it."
        if uneven
        else "Every pair of feelings is well represented.",
        advice="Average over pairs of feelings, or give each its own figure."
        if uneven
        else "Nothing.",
        task="mer_bench/judge",
        rows=parts,
    )


def _judge_captions(rows: Sequence[ReappraisalRow]) -> Finding:
    texts = Counter(" ".join(row.caption.split()).casefold() for row in rows if row.caption)
    repeated = sum(count for count in texts.values() if count > 1)
    written = Counter(row.caption for row in rows if row.caption)
    exact = sum(count for count in written.values() if count > 1)
    part = _share(repeated, texts.total())
    many = (part.value or 0) >= 0.02
    return Finding(
        key="mer_bench.captions",
        title="Captions that come twice",
        measured="share of memes whose source caption another meme has, too; case and white space "
        "do not count",
        figure=part,
        expected=0.0,
        reference="every caption its own",
        verdict="worth knowing" if many else "sound",
        meaning=f"{repeated} memes share their caption with another ({exact} letter by letter): "
        "they are not independent."
        if many
        else "Hardly any caption comes twice.",
        advice="Cluster intervals by caption, or keep one of each." if many else "Nothing.",
        task="mer_bench/judge",
    )


def _judge_layouts(rows: Sequence[ReappraisalRow]) -> Finding:
    several = [row for row in rows if row.layout == "MultiPanel"]
    template = sum(row.visual_type == "Template_StylizedMeme" for row in several)
    part = _share(template, len(several))
    base = sum(row.visual_type == "Template_StylizedMeme" for row in rows) / len(rows)
    tied = part.low is not None and part.low > base + 0.1
    return Finding(
        key="mer_bench.layouts",
        title="Memes of several panels that are templates",
        measured="share of memes with several panels that are templates",
        figure=part,
        expected=base,
        reference="share of templates among all memes",
        verdict="worth knowing" if tied else "sound",
        meaning="An effect of several panels can hardly be told from an effect of templates."
        if tied
        else "Panels and templates can be told apart.",
        advice="Compare layouts within templates." if tied else "Nothing.",
        task="mer_bench/judge",
    )


def _judge_scale() -> Finding:
    """What the formula gives where a judge finds nothing to complain of, and where one thing."""
    perfect = np.ones((1, 8))
    missed = perfect.copy()
    missed[0, 6] = 0
    top, left = (float(components(values)[0, 3]) for values in (perfect, missed))
    return Finding(
        key="mer_bench.scale",
        title="The figure of a missed target",
        measured="RFS of an edit that is perfect but misses the target feeling",
        figure=Score("rfs", left, 0),
        expected=0.0,
        reference="an edit that fails its purpose",
        verdict="worth knowing",
        meaning=f"It still gets {left:.3f}, and a perfect edit no more than {top:.3f}: the scale "
        "ends neither at 0 nor at 1.",
        advice="Read RFS beside the share of targets that were met.",
        task="mer_bench/judge",
    )


def _share(part: int, whole: int, by: str = "", label: str = "") -> Score:
    low, high = wilson(part, whole) or (None, None)
    return Score("share", part / whole if whole else None, whole, low, high, by, label)
