"""What MemeIntent offers to the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memantics.benchmarks.memeintent import audit
from memantics.benchmarks.memeintent.humans import export_human_evaluation
from memantics.benchmarks.memeintent.load import PREFIX, IntentRelease, open_release
from memantics.benchmarks.memeintent.statistics import statistics, survey
from memantics.benchmarks.memeintent.task import make
from memantics.core.labelled import LabelledMeme, LabelSource
from memantics.tasks.plugin import AuditHooks, BenchmarkPlugin

# What experts can learn from MemeIntent: what the author does with a meme, in one verb.


def find_verb(intent: str) -> str:
    """The first word after "the meme"; empty for a set in another script.

    >>> find_verb("the meme accuses someone of lying"), find_verb("讽刺某人")
    ('accuses', '')
    """
    return intent.removeprefix(PREFIX).split()[0] if intent.startswith(PREFIX) else ""


def _read_verbs(release: IntentRelease) -> Iterator[LabelledMeme]:
    for meme in release.rows:
        verb = find_verb(meme.intents[0])
        if verb:
            yield LabelledMeme(meme.id, meme.text, (verb,), image=meme.image, split=meme.split)


LABELS: Mapping[str, LabelSource[IntentRelease]] = {
    "intent_verb": LabelSource(
        "what the author does: accuses, praises, mocks, … (of the preferred intent)",
        _read_verbs,
        topic="intent",
    ),
}


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
