"""Which questions people judge, in two rounds: toxicity first, then a draw among accepted memes.

As in the M-QUEST paper: the first round is about toxicity with the questions linked to it; the
second draws a number of questions for each other dimension among the memes whose toxicity question
people accepted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from memantics.build.questions.records import DraftQuestion
from memantics.core.errors import InputError
from memantics.core.review import Review
from memantics.knowledge.ontology.vocabulary import Dimension


def draw_first(questions: Sequence[DraftQuestion], dimension: Dimension) -> list[DraftQuestion]:
    """The questions of one dimension, and those that are paired with one of them."""
    firsts = {
        question.id
        for question in questions
        if question.dimension == dimension and not question.pair
    }
    drawn = [question for question in questions if question.id in firsts or question.pair in firsts]
    if not drawn:
        raise InputError(
            f"no question is about {dimension}",
            hint="memantics build questions writes one where knowledge has such an individual",
        )
    return drawn


def draw_extension(
    questions: Sequence[DraftQuestion], judged: Review, per_dimension: int, seed: int
) -> list[DraftQuestion]:
    """At most so many questions for each dimension among the memes that were kept.

    What people judged before, and the dimensions of their first round, are left out.
    """
    kept = {reviewed.item.group for reviewed in judged.judged if reviewed.kept}
    if not kept:
        raise InputError(
            f"{judged.folder}: people kept no question, so there is no meme to draw from",
            hint="look at their reasons in verdicts.jsonl",
        )
    seen = {
        name
        for reviewed in judged.items
        for name in _list_ids(reviewed.item.hidden.get("questions"))
    }
    before = {reviewed.item.hidden.get("dimension") for reviewed in judged.items}
    left: dict[str, list[DraftQuestion]] = {}
    for question in questions:
        if question.meme in kept and question.id not in seen and question.dimension not in before:
            left.setdefault(question.dimension, []).append(question)
    drawn: set[str] = set()
    for dimension, own_questions in sorted(left.items()):
        # One generator a dimension: another dimension more or fewer changes no other draw.
        chance = random.Random(f"{seed}/{dimension}")
        count = min(per_dimension, len(own_questions))
        drawn |= {question.id for question in chance.sample(own_questions, count)}
    return [replace(question, pair="") for question in questions if question.id in drawn]


def _list_ids(value: object) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []
