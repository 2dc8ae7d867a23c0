"""M-QUEST: four-way questions about a meme, over ten dimensions of its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from pydantic import JsonValue

from memantics.benchmarks.mquest.load import Question, Release, open_release
from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.prompt import Prompt
from memantics.core.records import Form, Image, Item, Message, Outcome, Request, Sampling, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics.choice import accuracy, accuracy_by, group_hits, macro, macro_interval
from memantics.metrics.interval import clustered_wilson
from memantics.tasks.choices import LETTERS, commonest, hits, letter_field, list_options
from memantics.tasks.parse import parse_letter
from memantics.tasks.plugin import TaskSetup

TOXICITY = "Toxicity"


def make(setup: TaskSetup) -> Task:
    """The task ``qa``."""
    prompt, again = setup.prompts[setup.options["order"]], setup.prompts["again"]
    return setup.make(
        items=lambda: _items(setup),
        ask=lambda item, complaint: _ask(prompt, again, item, complaint),
        parse=lambda text, form: _parse(text, form, setup.options),
        score=score,
        used=(prompt, again),
    )


@cache
def _open(source: Source, split: str) -> tuple[Release, str | None]:
    """The release and its commonest key; read once, since items are walked more than once."""
    release = open_release(source)
    keys = (q.answer for q in release.questions(split))
    return release, commonest(LETTERS[key] for key in keys if key is not None)


def _items(setup: TaskSetup) -> Iterator[Item]:
    release, majority = _open(setup.need_source(), setup.split)
    present = setup.options["images"] == "present"
    for question in release.questions(setup.split):
        if question.answer is None or (question.image is None and present):
            continue
        yield _item(question, LETTERS[question.answer], majority)


def _item(question: Question, gold: str, majority: str | None) -> Item:
    if question.image is None:
        raise DataError(
            f"meme {question.meme}",
            "its image is not in this copy of the release",
            hint="add the images (data add --images DIR), or --set images=present",
        )
    return Item(
        id=question.id,
        group=question.meme,
        gold=gold,
        form=Form(question.question, (letter_field(question.options, majority),)),
        images=(Image(question.image),),
        tags={
            "dimension": question.dimension,
            "kind": "T" if question.dimension == TOXICITY else "R",
        },
    )


def _ask(prompt: Prompt, again: Prompt, item: Item, complaint: str | None) -> Request:
    options = item.form.fields[0].options
    text = prompt.fill(question=item.form.question, options=list_options(options))
    if complaint is not None:
        letters = ", ".join(option.key for option in options)
        text += "\n\n" + again.fill(complaint=complaint, letters=letters)
    return Request(
        messages=(Message("user", (*item.images, text)),),
        form=item.form,
        sampling=Sampling(temperature=0.0),
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
        _share("accuracy", right, memes),
        *(
            _share(key, *_only(right, memes, kinds, kind))
            for key, kind in (("toxicity_accuracy", "T"), ("reasoning_accuracy", "R"))
        ),
        _share(
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
        *(
            _share("accuracy", *_only(right, memes, dimensions, name), by="dimension", label=name)
            for name in sorted(set(dimensions))
        ),
    )


def _only(
    right: Sequence[bool], memes: Sequence[str], kinds: Sequence[str], kind: str
) -> tuple[list[bool], list[str]]:
    kept = [i for i, own in enumerate(kinds) if own == kind]
    return [right[i] for i in kept], [memes[i] for i in kept]


def _share(
    key: str,
    right: Sequence[bool],
    memes: Sequence[str],
    *,
    by: str = "",
    label: str = "",
    note: str = "",
) -> Score:
    low, high = clustered_wilson(right, memes) or (None, None)
    return Score(key, accuracy(right), len(right), low, high, by, label, note)
