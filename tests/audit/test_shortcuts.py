from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from memantics.core.finding import Finding
from memantics.core.text import split_pieces
from memantics.evaluation.audits.options import find_chance_level, find_shortcuts
from memantics.evaluation.audits.subject import Exam
from memantics.evaluation.audits.texts import (
    FOLDS,
    assign_fold,
    choose_options,
    find_text_shortcuts,
)
from memantics.metrics.naive_bayes import NaiveBayes
from tests.audit.toys import Flaws, make_exam, make_items, trivial


def run(exam: Exam) -> dict[str, Finding]:
    async def both() -> list[Finding]:
        chance = await find_chance_level(exam, trivial().coins)
        found = await find_shortcuts(exam, chance, trivial().strategies)
        return found + find_text_shortcuts(exam, chance)[0]

    return {own.key: own for own in asyncio.run(both())}


def test_nothing_helps_where_nothing_leaks() -> None:
    found = run(make_exam(make_items(400)))
    assert {own.verdict for own in found.values()} == {"sound"}
    assert {own.expected for own in found.values()} == {0.25}


def test_the_longest_option_scores_where_keys_are_long() -> None:
    own = run(make_exam(make_items(400, Flaws(long_keys=0.5))))["shortcut.longest"]
    assert own.verdict == "broken"
    assert (own.score.low or 0) > 0.4


def test_chance_leaves_the_dead_option_out() -> None:
    found = run(make_exam(make_items(300, Flaws(dead=True))))
    never = found["shortcut.skip_never_correct"]
    assert never.score.value == pytest.approx(1 / 3)
    assert never.expected == pytest.approx(0.25)
    assert found["shortcut.longest"].expected == pytest.approx(1 / 3)
    assert found["shortcut.longest"].verdict == "sound"


def test_published_metrics_below_a_shortcut_are_counted() -> None:
    exam = make_exam(make_items(400, Flaws(long_keys=0.5)), published=(0.3, 0.4, 0.95))
    assert "2 of 3 published scores" in run(exam)["shortcut.longest"].meaning


def test_a_word_that_tells_the_key_is_learnt_from_other_memes() -> None:
    found = run(make_exam(make_items(200, Flaws(tell="perhaps"))))
    assert found["shortcut.options_only"].score.value == 1.0
    assert found["shortcut.options_only"].verdict == "broken"


def test_too_few_memes_teach_nothing() -> None:
    exam = make_exam(make_items(40))
    findings, gaps = find_text_shortcuts(exam, asyncio.run(find_chance_level(exam, ())))
    assert not findings
    assert "too few" in gaps[0].reason


def test_a_meme_is_never_learnt_from_itself() -> None:
    """Each item's own secret word is in its other question, too: folds must keep both out."""
    seen: list[set[str]] = [set() for _ in range(FOLDS)]
    for item in make_items(200):
        seen[assign_fold(item.group)].add(item.group)
    assert all(seen)
    assert sum(map(len, seen)) == len(set.union(*seen))


def test_the_learner_agrees_with_scikit_learn() -> None:
    texts = [" ".join(o.text for o in item.form.fields[0].options) for item in make_items(80)]
    labels = [str(number % 3) for number in range(len(texts))]
    learner = NaiveBayes()
    for text, label in zip(texts, labels, strict=True):
        learner.add(_count(text), label)
    counts = CountVectorizer(tokenizer=split_pieces, token_pattern=None, lowercase=False)
    table = counts.fit_transform(texts)
    theirs = MultinomialNB(alpha=0.5).fit(table, labels).predict(table)
    ours = [str(learner.classify(_count(text))) for text in texts]
    assert np.array_equal(ours, theirs)


def _count(text: str) -> Counter[str]:
    return Counter(split_pieces(text))


def test_options_are_chosen_for_every_item_once() -> None:
    items = make_items(60)
    outcomes = choose_options(items, lambda _, option: _count(option.text))
    assert [own.item.id for own in outcomes] == [item.id for item in items]
