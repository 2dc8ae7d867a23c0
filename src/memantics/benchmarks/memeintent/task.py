"""MemeIntent: what the author does with a meme, what one must know for it, what it shows."""

from __future__ import annotations

import re
from dataclasses import replace

from pydantic import JsonValue

from memantics.benchmarks.memeintent.asking import (
    Fed,
    Scoring,
    check_scoring,
    make_items,
    make_request,
    read_asking,
    read_scoring,
    read_wording,
)
from memantics.benchmarks.memeintent.scoring import mark, score
from memantics.core.task import Task, Unparsed
from memantics.tasks.parse import strip_marks
from memantics.tasks.plugin import TaskSetup

_LONGEST = 20_000


def make(setup: TaskSetup) -> Task:
    """The task ``intent``, ``background`` or ``caption``; without a source it parses and scores."""
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

    def feed(fed: Fed) -> Task:
        return replace(
            task,
            items=lambda: make_items(setup, asking, fed),
            ask=lambda item, complaint: make_request(wording, item, complaint, fed),
        )

    return replace(task, feed=feed) if asking.needs else task


def find_main(scoring: Scoring, plain: str) -> str:
    """The headline: consistency, or BERTScore, where a model for it is given.

    A constant sentence wins on ROUGE-L; it does not on meaning.
    """
    if scoring.nli is not None:
        return "nli_consistency"
    return "bertscore_f1" if scoring.bert is not None else plain


def parse_reply(text: str, *, first_line: bool) -> JsonValue:
    """The text of a reply, without thinking aloud and Markdown; none without a letter is one.

    >>> parse_reply("<think>hm</think> the meme jokes", first_line=False)
    'the meme jokes'
    """
    body = re.sub(r"<think>.*?</think>", " ", text[:_LONGEST], flags=re.DOTALL)
    # A model that was cut off while thinking has not answered.
    body = body.partition("<think>")[0]
    body = "".join(char for char in body if char.isprintable() or char in "\n\t").strip()
    if first_line:
        body = body.partition("\n")[0].strip()
    body = strip_marks(body)
    if not any(char.isalnum() for char in body):
        raise Unparsed("empty reply")
    return body
