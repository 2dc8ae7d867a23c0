"""The MemeIntent plugin: tasks ``intent``, ``background`` and ``caption``, and its label source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import JsonValue

from memantics.benchmarks.memeintent import statistics as audit
from memantics.benchmarks.memeintent.asking import (
    FedAnswers,
    Scoring,
    check_scoring,
    make_items,
    make_request,
    read_asking,
    read_scoring,
    read_wording,
)
from memantics.benchmarks.memeintent.humans import export_human_evaluation
from memantics.benchmarks.memeintent.load import PREFIX, IntentRelease, open_release
from memantics.benchmarks.memeintent.scoring import mark, score
from memantics.benchmarks.memeintent.statistics import statistics, survey
from memantics.benchmarks.parsing import strip_marks
from memantics.benchmarks.plugin import AuditHooks, BenchmarkPlugin, TaskSetup
from memantics.core.labels import LabelledMeme, LabelSource
from memantics.core.task import Task, Unparsed

_LONGEST = 20_000


def make(setup: TaskSetup) -> Task:
    """Build the task ``intent``, ``background`` or ``caption``."""
    name, chosen = setup.card.name, setup.options
    asking, scoring = read_asking(setup), read_scoring(chosen, setup.services)
    if setup.source is not None:
        check_scoring(scoring)
    wording = read_wording(asking, setup.prompts)
    first_line = chosen.get("reply") == "first_line"
    task = replace(
        setup.make(
            items=lambda: make_items(setup, asking, {}),
            ask=lambda item, complaint: make_request(wording, item, complaint, None),
            parse=lambda text, _form: parse_reply(text, first_line=first_line),
            score=lambda outcomes: score(name, outcomes, scoring),
            used=wording.hashes,
        ),
        main=find_main(scoring, setup.card.main),
        needs=asking.needs,
        marks=lambda outcomes: mark(name, outcomes, scoring),
    )

    def feed(fed: FedAnswers) -> Task:
        return replace(
            task,
            items=lambda: make_items(setup, asking, fed),
            ask=lambda item, complaint: make_request(wording, item, complaint, fed),
        )

    return replace(task, feed=feed) if asking.needs else task


def find_main(scoring: Scoring, plain: str) -> str:
    """Return the main metric: consistency or BERTScore if its model is given, else ROUGE-L.

    A constant text has the highest ROUGE-L, but it does not have the highest semantic similarity.
    """
    if scoring.nli is not None:
        return "nli_consistency"
    return "bertscore_f1" if scoring.bert is not None else plain


def parse_reply(text: str, *, first_line: bool) -> JsonValue:
    """Return the text of a reply without reasoning and Markdown; raise if it contains no letter.

    >>> parse_reply("<think>hm</think> the meme jokes", first_line=False)
    'the meme jokes'
    """
    body = re.sub(r"<think>.*?</think>", " ", text[:_LONGEST], flags=re.DOTALL)
    # A reply that was cut off during reasoning is not an answer.
    body = body.partition("<think>")[0]
    body = "".join(char for char in body if char.isprintable() or char in "\n\t").strip()
    if first_line:
        body = body.partition("\n")[0].strip()
    body = strip_marks(body)
    if not any(char.isalnum() for char in body):
        raise Unparsed("empty reply")
    return body


# Label for classifiers: the action of the author, as one verb.


def find_verb(intent: str) -> str:
    """Return the verb of an intent: the first word after "the meme"; empty in another script.

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
        "action of the author: accuses, praises, mocks, … (of the preferred intent)",
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
