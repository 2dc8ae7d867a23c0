"""What only MER-Bench's own data can show: how even its memes are, and what its scale allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from memantics.benchmarks.mer_bench.load import TARGETS, ReappraisalRelease, ReappraisalRow
from memantics.core.finding import Finding, FindingWords, rank
from memantics.core.records import Score
from memantics.metrics.interval import wilson
from memantics.metrics.reappraisal import components

_WORDS = FindingWords(__file__)
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
    figure = Score("share", least.value, n, least.low, least.high)
    values, fair = {"label": least.label, "value": least.value or 0}, 1 / len(TARGETS)
    verdict = rank((least.value or 0) < 0.1)
    return _WORDS.find("mer_bench.emotions", figure, verdict, values, expected=fair, rows=parts)


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
    """What the formula gives where a judge finds nothing to complain of, and where one thing."""
    perfect = np.ones((1, 8))
    missed = perfect.copy()
    missed[0, 6] = 0
    top, left = (float(components(values)[0, 3]) for values in (perfect, missed))
    figure = Score("rfs", left, 0)
    values = {"left": left, "top": top}
    return _WORDS.find("mer_bench.scale", figure, "worth knowing", values)


def _share(part: int, whole: int, by: str = "", label: str = "") -> Score:
    low, high = wilson(part, whole) or (None, None)
    return Score("share", part / whole if whole else None, whole, low, high, by, label)
