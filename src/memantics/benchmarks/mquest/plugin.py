"""What M-QUEST offers to the registry."""

from __future__ import annotations

from memantics.benchmarks.mquest import audit
from memantics.benchmarks.mquest.labels import LABELS
from memantics.benchmarks.mquest.load import open_release
from memantics.benchmarks.mquest.official import official_prompts
from memantics.benchmarks.mquest.statistics import statistics, survey
from memantics.benchmarks.mquest.task import make
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    must_name=audit.must_name,
    official_prompts=official_prompts,
    audit=AuditHooks(
        findings=audit.findings,
        pictures=audit.pictures,
        makers=audit.makers,
        narrow=audit.narrow,
    ),
)
