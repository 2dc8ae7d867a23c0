"""What ToxiCN MM offers to the registry."""

from __future__ import annotations

from memantics.benchmarks.toxicn_mm import audit
from memantics.benchmarks.toxicn_mm.labels import LABELS
from memantics.benchmarks.toxicn_mm.load import open_release
from memantics.benchmarks.toxicn_mm.statistics import statistics, survey
from memantics.benchmarks.toxicn_mm.task import make, pick_split
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    pick_split=pick_split,
    audit=AuditHooks(
        audit.findings, audit.pictures, audit.SHOWN, narrow=audit.narrow, across=audit.across
    ),
)
