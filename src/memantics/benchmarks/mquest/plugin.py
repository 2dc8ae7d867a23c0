"""What M-QUEST offers to the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from memantics.benchmarks.mquest import audit
from memantics.benchmarks.mquest.load import MquestRelease, open_release
from memantics.benchmarks.mquest.statistics import statistics, survey
from memantics.benchmarks.mquest.task import make, official_prompts
from memantics.core.labelled import LabelledMeme, LabelSource
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

# What experts can learn from M-QUEST's knowledge bases, from what is printed on the memes.

NONE = "none"
# The prompts of the release spell it so, and the knowledge bases follow.
_SPELLINGS = {"mysogynous": "misogynous"}


def _read_toxicity(release: MquestRelease) -> Iterator[LabelledMeme]:
    """The kind that the knowledge base gives, as it stands there; ``none`` without one."""
    for meme, listed in groupby(release.individuals("raw"), key=lambda individual: individual.meme):
        members = list(listed)
        text = " ".join(o.description for o in members if o.dimension == "TextualMaterial")
        named = [
            individual.label.strip().casefold()
            for individual in members
            if individual.dimension == "Toxicity"
        ]
        kind = _SPELLINGS.get(named[0], named[0]) if named else NONE
        yield LabelledMeme(meme, text, (kind,))


LABELS: Mapping[str, LabelSource[MquestRelease]] = {
    "toxicity": LabelSource(
        "the kind of toxicity that the knowledge base names, or none",
        _read_toxicity,
        topic="toxicity",
    ),
}


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
