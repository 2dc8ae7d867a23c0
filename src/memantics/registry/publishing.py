"""Which benchmark's format the results of a workflow are published in."""

from __future__ import annotations

from memantics.core.errors import DataError, UnknownName
from memantics.core.writing import Writer
from memantics.registry.benchmarks import find_benchmarks
from memantics.registry.contract import Benchmark


def find_writer(workflow: str) -> tuple[Benchmark, Writer]:
    """The benchmark whose card names the workflow, and the writer of its format."""
    known = {
        name: benchmark
        for benchmark in find_benchmarks().values()
        for name in (benchmark.card.publish.workflows if benchmark.card.publish else ())
    }
    if workflow not in known:
        raise UnknownName("workflow to publish from:", workflow, sorted(known))
    benchmark = known[workflow]
    writer = getattr(benchmark.load_part("write"), "WRITER", None)
    if not isinstance(writer, Writer):
        raise DataError(
            benchmark.folder / "write.py",
            "holds no WRITER of type Writer",
            hint="see docs/add-a-benchmark.md",
        )
    return benchmark, writer
