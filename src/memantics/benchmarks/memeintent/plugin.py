"""What MemeIntent offers to the registry."""

from __future__ import annotations

from memantics.benchmarks.memeintent import audit
from memantics.benchmarks.memeintent.humans import export_human_evaluation
from memantics.benchmarks.memeintent.labels import LABELS
from memantics.benchmarks.memeintent.load import open_release
from memantics.benchmarks.memeintent.statistics import statistics, survey
from memantics.benchmarks.memeintent.task import make
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    human_ratings=export_human_evaluation,
    audit=AuditHooks(
        audit.findings, audit.pictures, audit.SHOWN, audit.makers, narrow=audit.narrow
    ),
)
