"""Check texts in an audit: shortcuts for a text-only learner, near-duplicates across splits.

The text-only learner is naive Bayes over words and character n-grams, in five folds that keep the
items of one meme together. It has no world knowledge, so its score measures artefacts of how the
data were written.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from memantics.benchmarks.factories import proportion_score
from memantics.core.finding import Finding, FindingWords, Gap, rank
from memantics.core.records import Item, Option, Outcome
from memantics.core.text import split_pieces
from memantics.evaluation.audits.options import (
    ChanceLevel,
    ReplyReader,
    fold,
    has_own_texts,
    judge_shortcut,
    list_options,
)
from memantics.evaluation.audits.subject import Exam, choice_field, find_all_text, find_text
from memantics.metrics.grouping import find_near_duplicates, find_twins
from memantics.metrics.naive_bayes import Features, NaiveBayes

THRESHOLD = 0.8
_SHORTEST = 4
_WORDS = FindingWords(__file__)
FOLDS = 5
FEWEST = 40


def find_leaks(exam: Exam) -> tuple[list[Finding], list[Gap]]:
    """Find near-duplicate texts across splits, and across memes within the audited split."""
    found = list(_find_across(exam))
    gaps = []
    if not found and {"train", "test"} <= set(exam.card.splits):
        have = (
            f"the check needs train and test; this copy has: {', '.join(exam.splits) or 'neither'}"
        )
        gaps.append(Gap(exam.name, "train/test leakage", have, "register a copy with both splits"))
    found += _find_within(exam)
    return found, gaps


def _find_across(exam: Exam) -> Iterator[Finding]:
    train, test = (read_texts(exam.splits.get(name, ())) for name in ("train", "test"))
    if not train or not test:
        return
    known = {text for _, text in train}
    places = find_near_duplicates(
        [text for _, text in test], [text for _, text in train], THRESHOLD, split_pieces
    )
    near = [place is not None for place in places]
    exact = [text in known for _, text in test]
    groups = [item.group for item, _ in test]
    same = [
        test[i][0].gold == train[place][0].gold
        for i, place in enumerate(places)
        if place is not None
    ]
    marks = {"identical": exact, "near": near}
    yield _WORDS.find(
        "leak.split",
        proportion_score("proportion", near, groups),
        rank(any(near), broken=any(near) and sum(near) >= 0.1 * len(near)),
        {
            "least": THRESHOLD,
            "near": sum(near),
            "texts": len(near),
            "same": sum(same) / max(1, len(same)),
        },
        task=exam.name,
        rows=tuple(
            proportion_score("proportion", held, groups, "texts", name)
            for name, held in marks.items()
        ),
    )


def _find_within(exam: Exam) -> Iterator[Finding]:
    rows = read_texts(exam.texts)
    if len({item.group for item, _ in rows}) < 2:
        return
    groups = [item.group for item, _ in rows]
    twins = find_twins([text for _, text in rows], groups, THRESHOLD, split_pieces)
    score = proportion_score("proportion", twins, groups)
    many = rank((score.value or 0) >= 0.05)
    yield _WORDS.find("leak.memes", score, many, {"least": THRESHOLD}, task=exam.name)


def read_texts(items: Sequence[Item]) -> list[tuple[Item, str]]:
    """Read each meme's text once; texts too short for comparison are skipped."""
    seen: dict[str, tuple[Item, str]] = {}
    for item in items:
        text = find_text(item)
        if len(set(split_pieces(text))) >= _SHORTEST:
            seen.setdefault(f"{item.group}\0{text}", (item, text))
    return list(seen.values())


def find_text_shortcuts(exam: Exam, chance: ChanceLevel) -> tuple[list[Finding], list[Gap]]:
    """Score a text-only learner on the answer options alone, and on all text."""
    items = exam.texts
    if not items or choice_field(items[0]) is None:
        return [], []
    if reason := _find_obstacle(exam):
        return [], [Gap(exam.name, "text-only learner", reason)]
    if exam.lettered:
        options, whole = (
            "Baseline: learner on the options alone",
            "Baseline: learner on question and options",
        )
        return [
            _score(exam, "shortcut.options_only", options, _options_alone, chance),
            _score(exam, "shortcut.text_only", whole, _with_question, chance),
        ], []
    score = exam.score(_classify(exam))
    title = "Baseline: learner on the meme's text"
    return [judge_shortcut(exam, "shortcut.text_only", title, score, chance, "text")], []


def _find_obstacle(exam: Exam) -> str:
    """Explain why a text-only learner cannot be trained on these items; empty if it can."""
    items = exam.texts
    memes = len({item.group for item in items})
    if memes < FEWEST:
        return f"{memes} memes are too few to train on; at least {FEWEST} are needed"
    if not exam.lettered:
        shown = any(map(find_all_text, items))
        return "" if shown else "its prompts show no text of a meme"
    if not has_own_texts(items):
        return "its options are images"
    if _come_from_a_pool(items):
        # In its test fold, the correct option of a meme occurs in the training data only as a
        # distractor.
        return "correct options are distractors of other items, so no cue can be learnt"
    return ""


def _score(
    exam: Exam,
    key: str,
    title: str,
    describe: Callable[[Item, Option], Features],
    chance: ChanceLevel,
) -> Finding:
    outcomes = choose_options(exam.texts, describe)
    score = exam.score(outcomes)
    return judge_shortcut(exam, key, title, score, chance, "options")


def choose_options(
    items: Sequence[Item], describe: Callable[[Item, Option], Features]
) -> list[Outcome]:
    """Choose the option most similar to the correct options of the other folds."""
    held = [(item, [(o, describe(item, o)) for o in list_options(item)]) for item in items]
    folds = [assign_fold(item.group) for item in items]
    chosen: dict[str, Outcome] = {}
    for fold_number in range(FOLDS):
        learner = NaiveBayes()
        for (item, options), item_fold in zip(held, folds, strict=True):
            if item_fold != fold_number:
                for option, features in options:
                    learner.add(features, option.key == item.gold)
        for (item, options), item_fold in zip(held, folds, strict=True):
            if item_fold == fold_number:
                best = max(options, key=lambda pair: learner.odds(pair[1], True, False))
                chosen[item.id] = Outcome(item, "answered", best[0].key)
    return [chosen[item.id] for item in items]


def _come_from_a_pool(items: Sequence[Item]) -> bool:
    """Whether most correct options are wrong options (distractors) of other items."""
    wrong = {fold(o.text) for item in items for o in list_options(item) if o.key != item.gold}
    right = [fold(o.text) for item in items for o in list_options(item) if o.key == item.gold]
    return 2 * sum(text in wrong for text in right) > len(right)


def _classify(exam: Exam) -> list[Outcome]:
    """Predict the class of every item from its texts; every item offers the same classes."""
    items, reader = exam.texts, ReplyReader(exam.task)
    keys = {
        str(reader.read(items[0], option.key).value): option.key
        for option in list_options(items[0])
    }
    held = [Counter(_pieces(find_all_text(item))) for item in items]
    folds = [assign_fold(item.group) for item in items]
    outcomes: dict[str, Outcome] = {}
    for number in range(FOLDS):
        learner = NaiveBayes()
        for item, features, item_fold in zip(items, held, folds, strict=True):
            if item_fold != number:
                learner.add(features, str(item.gold))
        for item, features, item_fold in zip(items, held, folds, strict=True):
            if item_fold == number:
                name = str(learner.classify(features))
                outcomes[item.id] = reader.read(item, keys.get(name, name))
    return [outcomes[item.id] for item in items]


def assign_fold(group: str) -> int:
    """Return the cross-validation fold of a meme, which is the same in every audit."""
    return hashlib.sha256(group.encode()).digest()[0] % FOLDS


def _pieces(text: str) -> Iterator[str]:
    """Split a text into words or characters, and their bigrams."""
    words = split_pieces(text)
    yield from words
    yield from map(" ".join, pairwise(words))


def _options_alone(item: Item, option: Option) -> Features:
    return Counter([*_pieces(fold(option.text)), f"#length {_rank(item, option)}"])


def _with_question(item: Item, option: Option) -> Features:
    """Features of an option, combined with the start of the question and the shared words."""
    asked = list(_pieces(item.form.question))
    words = set(asked)
    pieces = list(_pieces(fold(option.text)))
    opening = " ".join(asked[:3])
    shared = sum(piece in words for piece in pieces) / max(1, len(pieces))
    features = _options_alone(item, option)
    features.update(f"{opening}|{piece}" for piece in pieces)
    features[f"#shared {round(4 * shared)}"] += 1
    return features


def _rank(item: Item, option: Option) -> int:
    return sum(len(other.text) > len(option.text) for other in list_options(item))
