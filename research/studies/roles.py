"""Studies of text roles in images: original Chinese memes and rendered English ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memantics.metrics.weighted import MetricSpec
from research.protocol import Cases, Claim, Row, Study
from research.roles import CROWDED, DATASET, KEPT, TAKEN, Picture, measure, read_chinese, read_drawn

_EXPOSURE = "An earlier study used 300 of the images to choose the features."


def _read_both() -> Sequence[Row[Picture]]:
    return [*read_chinese(), *read_drawn()]


def _study(
    name: str, language: str, kept: float, taken: float, read: Callable[[], Sequence[Row[Picture]]]
) -> Study[Picture]:
    """Build a study that trains on both languages and tests on one."""

    def judge(known: Sequence[Row[Picture]], asked: Sequence[Row[Picture]]) -> Cases:
        return measure(known, [row for row in asked if row.tags["language"] == language])

    return Study(
        name,
        DATASET,
        read,
        judge,
        (
            Claim(f"roles, {KEPT}", MetricSpec("accuracy"), kept),
            Claim(f"roles, {TAKEN}", MetricSpec("accuracy"), taken),
            Claim(f"all lines, {KEPT}", MetricSpec("accuracy")),
            Claim(f"all lines, {TAKEN}", MetricSpec("accuracy")),
        ),
        exposure=_EXPOSURE,
    )


STUDIES = (
    _study("roles/zh", "zh", 0.975, 0.92, _read_both),
    _study("roles/zh, crowded", CROWDED, 0.975, 0.92, _read_both),
    _study("roles/en", "en", 0.99, 0.98, _read_both),
)
