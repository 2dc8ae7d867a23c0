"""What PunMemeCN offers to the registry."""

from __future__ import annotations

from memantics.benchmarks.punmemecn import audit
from memantics.benchmarks.punmemecn.labels import LABELS
from memantics.benchmarks.punmemecn.load import open_release
from memantics.benchmarks.punmemecn.official import official_prompts
from memantics.benchmarks.punmemecn.statistics import statistics, survey
from memantics.benchmarks.punmemecn.task import make
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
        audit.findings, audit.pictures, audit.SHOWN, audit.makers, narrow=audit.narrow
    ),
)
