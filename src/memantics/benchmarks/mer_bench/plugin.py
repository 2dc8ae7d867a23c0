"""What MER-Bench offers to the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from memantics.benchmarks.mer_bench import audit
from memantics.benchmarks.mer_bench.humans import export_outputs
from memantics.benchmarks.mer_bench.load import ReappraisalRelease, ReappraisalRow, open_release
from memantics.benchmarks.mer_bench.official import official_prompts
from memantics.benchmarks.mer_bench.statistics import statistics, survey
from memantics.benchmarks.mer_bench.task import make
from memantics.core.labelled import LabelledMeme, LabelSource
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

# What experts can learn from MER-Bench: from the caption alone.
#
# The index also describes each picture, but in words that were written while its emotion was named:
# an expert that learnt from them would read the answer.


def _read(
    label_of: Callable[[ReappraisalRow], str],
) -> Callable[[ReappraisalRelease], Iterator[LabelledMeme]]:
    def read(release: ReappraisalRelease) -> Iterator[LabelledMeme]:
        for row in release.rows:
            yield LabelledMeme(row.id, row.caption, (label_of(row),), image=row.image)

    return read


LABELS: Mapping[str, LabelSource[ReappraisalRelease]] = {
    "emotion": LabelSource(
        "the emotion that a meme carries: angry, sad, tense or bored",
        _read(lambda row: row.source_emotion),
        topic="emotion",
    ),
    "polarity": LabelSource(
        "negative, neutral or positive", _read(lambda row: row.polarity.lower()), topic="polarity"
    ),
}


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
