"""The task: which of four statements says what the meme means?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from pydantic import JsonValue

from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.prompt import Prompt
from memantics.core.records import Form, Image, Item, Message, Outcome, Request, Score
from memantics.core.task import Task
from memantics.metrics.choice import accuracy
from memantics.metrics.interval import clustered_wilson
from memantics.tasks.choices import LETTERS, commonest, hits, letter_field, list_options
from memantics.tasks.parse import parse_letter
from memantics.tasks.plugin import TaskSetup

from .load import Meme, Release, open_release

QUESTION = "Which statement says what this meme means?"


def make(setup: TaskSetup) -> Task:
    """The task ``choose``. Without a source it can parse and score, not ask."""
    return setup.make(
        items=lambda: make_items(setup),
        ask=lambda item, complaint: make_request(setup.prompts, item, complaint),
        parse=parse,
        score=score,
        used=setup.prompts.values(),
    )


@cache
def _open(source: Source) -> Release:
    """Read once: items are walked more than once."""
    return open_release(source)


def make_items(setup: TaskSetup) -> Iterator[Item]:
    """One item for each meme."""
    memes, chosen = _open(setup.need_source()).memes, setup.options
    orders = {meme.id: arrange(meme, chosen["seed"]) for meme in memes}
    keys = {meme.id: LETTERS[orders[meme.id].index(meme.meaning)] for meme in memes}
    majority = commonest(keys.values())
    for meme in memes:
        if meme.image is None:
            raise DataError(f"meme {meme.id}", f"its image {meme.file} is not in this copy")
        yield Item(
            id=meme.id,
            group=meme.id,
            gold=keys[meme.id],
            form=Form(
                QUESTION,
                (letter_field(orders[meme.id], majority),),
                context={"text": meme.text} if chosen["text"] == "told" else {},
            ),
            images=(Image(meme.image),),
        )


def arrange(meme: Meme, seed: str) -> list[str]:
    """The four statements in an order that depends on the meme and the seed, on nothing else."""
    statements = sorted([meme.meaning, *meme.others])
    random.Random(f"{seed}:{meme.id}").shuffle(statements)
    return statements


def make_request(prompts: Mapping[str, Prompt], item: Item, complaint: str | None) -> Request:
    """What is sent: the image, then the text."""
    parts = [prompts["choose"].fill(options=list_options(item.form.fields[0].options))]
    if item.form.context:
        parts.insert(0, prompts["told"].fill(text=item.form.context["text"]))
    if complaint is not None:
        parts.append(prompts["again"].fill(complaint=complaint))
    return Request((Message("user", (*item.images, "\n\n".join(parts))),), item.form)


def parse(text: str, form: Form) -> JsonValue:
    """The letter of a reply, or ``Unparsed``."""
    return parse_letter(text, {option.key: option.text for option in form.fields[0].options})


def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Accuracy over all, and by the place of the right statement."""
    rows = [_share(outcomes)]
    for letter in LETTERS[:4]:
        part = [outcome for outcome in outcomes if outcome.item.gold == letter]
        rows.append(_share(part, by="position", label=letter))
    return tuple(rows)


def _share(outcomes: Sequence[Outcome], by: str = "", label: str = "") -> Score:
    right = hits(outcomes)
    low, high = clustered_wilson(right, [o.item.group for o in outcomes]) or (None, None)
    return Score("accuracy", accuracy(right), len(right), low, high, by, label)
