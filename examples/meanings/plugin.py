"""What the benchmark offers."""

from __future__ import annotations

from memantics.tasks.plugin import BenchmarkPlugin

from .load import open_release
from .statistics import statistics
from .survey import survey
from .task import make

PLUGIN = BenchmarkPlugin(
    open_release=open_release, survey=survey, statistics=statistics, make_task=make
)
