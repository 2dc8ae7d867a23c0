"""M-QUEST: four-way questions about a meme, over ten dimensions of its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from pydantic import JsonValue

from memantics.benchmarks.mquest.load import MquestRelease, open_release
from memantics.core.data import Source, open_once
from memantics.core.records import Form, Item, Outcome, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics.choice import accuracy_by, group_hits, macro, macro_interval
from memantics.tasks.choices import LETTERS, commonest, hits, letter_field
from memantics.tasks.factories import Prompts, choice_task, share, share_by_tag, share_right
from memantics.tasks.parse import parse_letter
from memantics.tasks.plugin import TaskSetup

TOXICITY = "Toxicity"


def make(setup: TaskSetup) -> Task:
    """The task ``qa``."""
    prompts = Prompts(setup.prompts[setup.options["order"]], setup.prompts["again"])

    def parse(text: str, form: Form) -> JsonValue:
        return _parse(text, form, setup.options)

    return choice_task(setup, lambda: _items(setup), prompts=prompts, parse=parse, score=score)


@cache
def _open(source: Source, split: str) -> tuple[MquestRelease, str | None]:
    """The release and its commonest key; read once, since items are walked more than once."""
    release = open_once(open_release, source)
    keys = (q.answer for q in release.questions(split))
    return release, commonest(LETTERS[key] for key in keys if key is not None)


def _items(setup: TaskSetup) -> Iterator[Item]:
    release, majority = _open(setup.need_source(), setup.split)
    for question in release.questions(setup.split):
        if question.answer is None:
            continue
        picture = setup.picture(question.image, question.meme)
        if picture is not None:
            yield Item(
                id=question.id,
                group=question.meme,
                gold=LETTERS[question.answer],
                form=Form(question.question, (letter_field(question.options, majority),)),
                images=(picture,),
                tags={
                    "dimension": question.dimension,
                    "kind": "T" if question.dimension == TOXICITY else "R",
                },
            )


def _parse(text: str, form: Form, options: Mapping[str, str]) -> JsonValue:
    known = {option.key: option.text for option in form.fields[0].options}
    if options["parser"] == "paper":
        return parse_as_published(text)
    return parse_letter(text, known, "first" if options["order"] == "answer_first" else "last")


@cache
def _published_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(pattern)
        for pattern in (
            r"\b([A-Z])\.",
            r"[Oo]ption\s+([A-Z])\b",
            r"\(([A-Z])\)",
            r"[Aa]nswer:\s*([A-Z])\b",
            r"\b([A-Z])\s*$",
        )
    )


def parse_as_published(text: str) -> str:
    """The official scripts' rule: five patterns in turn, the last match of the first that hits.

    Any capital counts, so "U.S." is an answer; kept to compare with published figures.

    >>> parse_as_published("The U.S. flag. So B. it is")
    'B'
    """
    for pattern in _published_patterns():
        found = pattern.findall(text)
        if found:
            return str(found[-1])
    raise Unparsed("none of the five published patterns matches")


def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Accuracy over all, T, R, groups with both, macro over dimensions, and each dimension."""
    right = hits(outcomes)
    memes = [o.item.group for o in outcomes]
    kinds = [o.item.tags["kind"] for o in outcomes]
    dimensions = [o.item.tags["dimension"] for o in outcomes]
    groups = group_hits(right, memes, kinds, frozenset("TR"))
    low, high = macro_interval(right, dimensions, memes) or (None, None)
    return (
        share("accuracy", right, memes),
        *(
            share_right(key, [o for o in outcomes if o.item.tags["kind"] == kind])
            for key, kind in (("toxicity_accuracy", "T"), ("reasoning_accuracy", "R"))
        ),
        share(
            "group_accuracy",
            list(groups.values()),
            [str(group) for group in groups],
            note="memes with a toxicity and a reasoning question, all of them right",
        ),
        Score(
            "macro_accuracy",
            macro(accuracy_by(right, dimensions)),
            len(set(dimensions)),
            low,
            high,
            note="unweighted mean over dimensions; n counts dimensions",
        ),
        *share_by_tag(outcomes, "dimension", sorted(set(dimensions))),
    )
