"""What MER-Bench offers to the registry."""

from __future__ import annotations

from memantics.benchmarks.mer_bench import audit
from memantics.benchmarks.mer_bench.humans import export_outputs
from memantics.benchmarks.mer_bench.labels import LABELS
from memantics.benchmarks.mer_bench.load import open_release
from memantics.benchmarks.mer_bench.official import official_prompts
from memantics.benchmarks.mer_bench.statistics import statistics, survey
from memantics.benchmarks.mer_bench.task import make
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    official_prompts=official_prompts,
    human_ratings=export_outputs,
    audit=AuditHooks(findings=audit.findings, rated=audit.RATED),
)
