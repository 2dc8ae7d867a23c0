"""Studies of negative or not: word lists, a classifier, and both together, as in ``reappraise``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memantics.metrics.weighted import Case, MetricSpec
from research.negative import DATASETS, Feeling, fit, predict, read_feelings
from research.protocol import Cases, Claim, Row, Study

YES, NO = "negative", "not negative"
WAYS = ("lists", "classifier", "lists or classifier")


def measure(known: Sequence[Row[Feeling]], asked: Sequence[Row[Feeling]]) -> Cases:
    """Fit the classifier on the known rows, and decide the others in three ways."""
    head = fit(known)
    cases: dict[str, list[Case]] = {way: [] for way in WAYS}
    for row in asked:
        chance = predict(head, row.content.text)
        classified, listed = chance >= head.threshold, row.content.listed
        for way, said in zip(WAYS, (listed, classified, listed or classified), strict=True):
            label = YES if said else NO
            gold = YES if row.content.negative else NO
            cases[way].append(Case(row.id, row.group, gold, label, chance, row.tags))
    return cases


STUDIES = tuple(
    Study(
        f"negative or not/{language}",
        data,
        partial(read_feelings, language),
        measure,
        (
            *(
                Claim(way, MetricSpec(metric, YES))
                for way in WAYS
                for metric in ("recall", "precision", "false_positive_rate")
            ),
            Claim("classifier", MetricSpec("auroc", YES)),
        ),
        exposure="The word lists were written with the development set in view.",
    )
    for language, data in DATASETS.items()
)
