"""Sets from writers that give the key away: in the end neither length nor wording tells it."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import BernoulliNB

from memantics.construction.questions.chain import BuiltQuestions
from memantics.construction.questions.critic import alike
from memantics.construction.questions.records import DraftQuestion
from memantics.construction.questions.report import Roles, report_questions
from memantics.core.records import Request
from tests.construction.questions.scripts import (
    WRONG,
    Entry,
    build,
    complaint_of,
    invent,
    one_step,
    read_focus,
    sample_subjects,
    say,
    trim,
    write_honestly,
)

pytestmark = pytest.mark.slow

TOLERANCE = 0.05


def always_longest(request: Request) -> Entry:
    """Never repairs it, whatever it is told."""
    entry = write_honestly(request)
    size = len(str(entry["correct"]))
    return entry | {role: str(entry[role])[: max(4, size - 2)].strip() for role in WRONG}


def own_vocabulary(request: Request) -> Entry:
    """Wrong options in words that right ones never have."""
    entry = write_honestly(request)
    size = len(str(entry["correct"])) - 4
    return entry | {role: invent(request, role, size + 3 * n) for n, role in enumerate(WRONG)}


def everything_at_once(request: Request) -> Entry:
    """A telling word in every key, which is the longest; silly distractors; then the rest.

    Class names, dangling citations, an own "none" and a leaked answer are repaired when told.
    """
    entry = write_honestly(request)
    correct = trim(f"clearly {entry['correct']}")
    entry["correct"] = correct
    size = len(correct) - 3
    entry |= {role: invent(request, role, size) for role in WRONG}
    entry["implausible"] = "banana"
    if not complaint_of(request):
        dimension = read_focus(request)[0].split("/")[0]
        flaws: list[Entry] = [
            {"question": f"What does {dimension} imply in this meme?"},
            {"cites": ["Scene/nothing_like_that"]},
            {"spare": "None of the others"},
            {"question": f"Is it {entry['correct']}, or what?"},
            {"spare": entry["plausible"]},
            {"implausible": "all of the above"},
            {},
        ]
        entry |= flaws[zlib.crc32(read_focus(request)[0].encode()) % len(flaws)]
    return entry


def short_and_tidy(request: Request) -> Entry:
    """The key is the shortest, begins with a capital and ends with a full stop; the rest never."""
    entry = write_honestly(request)
    correct = str(entry["correct"])
    long = {
        role: trim(f"{str(entry[role]).lower()} {invent(request, role, len(correct) // 2 + 6)}")
        for role in WRONG
    }
    return entry | long | {"correct": f"{correct[:1].upper()}{correct[1:]}."}


WRITERS = [always_longest, own_vocabulary, everything_at_once, short_and_tidy]


@pytest.fixture(scope="module", params=WRITERS, ids=lambda writer: str(writer.__name__))
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> BuiltQuestions:
    writer: Callable[[Request], Entry] = request.param
    folder = tmp_path_factory.mktemp("levelled")
    return build(folder, lambda asked: say(writer(asked)), one_step(attempts=2))


def test_enough_is_left_and_every_question_is_whole(built: BuiltQuestions) -> None:
    assert len(built.questions) >= 200
    subjects = sample_subjects()
    for own in built.questions:
        assert len(own.options) == 4
        texts = [choice.text for choice in own.options]
        assert len({text.casefold() for text in texts}) == 4
        assert [choice.role for choice in own.options].count("none") == 1
        assert (own.options[own.answer].role == "correct") != own.none_is_key
        known = subjects[own.meme].knowledge.by_key
        assert own.cites
        assert own.focus in own.cites
        assert all(cite in known for cite in own.cites)


def test_length_does_not_tell_the_key(built: BuiltQuestions) -> None:
    longest = single = keyed = 0
    for own in built.questions:
        if own.none_is_key:
            continue
        sizes = [len(c.text) for c in own.options if c.role != "none"]
        keyed += 1
        single += sizes.count(max(sizes)) == 1
        longest += len(own.options[own.answer].text) == max(sizes) and sizes.count(max(sizes)) == 1
    # Where two options are longest no key is strictly so, and none can be expected to be.
    assert abs(longest / keyed - single / keyed / 3) <= TOLERANCE
    assert abs(longest / keyed - 1 / 3) <= TOLERANCE


def test_neither_does_being_short_or_neat(built: BuiltQuestions) -> None:
    keyed = [own for own in built.questions if not own.none_is_key]
    shortest = 0
    for own in keyed:
        sizes = [len(c.text) for c in own.options if c.role != "none"]
        size = len(own.options[own.answer].text)
        shortest += size == min(sizes) and sizes.count(size) == 1
    assert shortest / len(keyed) <= 1 / 3 + TOLERANCE
    shown = [c.text for own in built.questions for c in own.options if c.role != "none"]
    assert not [text for text in shown if text.endswith(".") or text[0].islower()]


def pick(questions: tuple[DraftQuestion, ...], choose: Callable[[DraftQuestion], int]) -> float:
    return sum(choose(own) == own.answer for own in questions) / len(questions)


def test_no_trivial_answer_beats_chance(built: BuiltQuestions) -> None:
    questions = built.questions
    none = pick(questions, lambda q: [c.role for c in q.options].index("none"))
    longest = pick(questions, lambda q: max(range(4), key=lambda n: len(q.options[n].text)))
    assert abs(none - 0.25) <= TOLERANCE
    assert longest - 0.25 <= TOLERANCE
    for place in range(4):
        assert abs(pick(questions, lambda _, p=place: p) - 0.25) <= TOLERANCE  # type: ignore[misc]


def solve_with_bayes(questions: tuple[DraftQuestion, ...]) -> float:
    """Another learner, other features, other folds than those that the set was levelled with."""
    texts = [c.text if c.role != "none" else "nnn" for q in questions for c in q.options]
    beside = [
        " ".join(f"beside{w}" for c in q.options for w in re.findall(r"\w+", c.text))
        if c.role == "none"
        else ""
        for q in questions
        for c in q.options
    ]
    rows = [f"{own} {other}" for own, other in zip(texts, beside, strict=True)]
    matrix = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", binary=True).fit_transform(
        rows
    )
    is_key = np.array([n == q.answer for q in questions for n in range(4)])
    groups = np.array([q.meme for q in questions for _ in range(4)])
    scores = np.zeros(len(rows))
    for train, test in GroupKFold(7).split(matrix, is_key, groups):
        learner = BernoulliNB().fit(matrix[train], is_key[train])
        scores[test] = learner.predict_log_proba(matrix[test])[:, 1]
    found = scores.reshape(-1, 4).argmax(axis=1)
    return float((found == np.array([q.answer for q in questions])).mean())


def test_an_independent_blind_solver_stays_at_chance(built: BuiltQuestions) -> None:
    assert solve_with_bayes(built.questions) <= 0.25 + TOLERANCE


def test_the_report_says_so(built: BuiltQuestions) -> None:
    report = report_questions(built, one_step(), Roles("fake/writer"))
    annotations = {leak.name: leak.judge(TOLERANCE) for leak in report.leaks}
    # "None of the others" may well be the longest of four short options, and then it misleads.
    assert annotations.pop("longest of the four") in ("within tolerance", "below chance")
    assert annotations == {
        "longest of the three": "within tolerance",
        "shortest of the three": "within tolerance",
        "statistical solver": "within tolerance",
    }
    assert report.questions + report.rejected == report.slots
    assert abs(report.none_proportion - 0.25) <= 0.03


def test_pairs_survive(built: BuiltQuestions) -> None:
    there = {own.id: own for own in built.questions}
    pairs = [own for own in built.questions if own.pair]
    assert len(pairs) >= 10
    for own in pairs:
        toxic = there[own.pair]
        assert (toxic.dimension, toxic.meme) == ("Toxicity", own.meme)
        links = sample_subjects()[own.meme].knowledge.by_key[toxic.focus].relations
        assert own.focus in [link.target for link in links if link.relation == "hasToxicElement"]


def test_no_option_recurs(built: BuiltQuestions) -> None:
    counts = Counter(
        c.text for q in built.questions for c in q.options if c.role not in ("none", "correct")
    )
    assert counts.most_common(1)[0][1] <= 12


def test_a_borrowed_option_is_wrong_here_and_says_whose_it_is(built: BuiltQuestions) -> None:
    subjects = sample_subjects()
    borrowed = [(q, c) for q in built.questions for c in q.options if c.role == "borrowed"]
    assert borrowed
    for own, choice in borrowed:
        assert choice.origin.split("/")[0] != own.meme
        same = subjects[own.meme].knowledge.of(own.dimension)
        assert not any(alike(choice.text, individual.label) for individual in same)


def test_without_the_critic_the_leaks_are_there(tmp_path: Path) -> None:
    """The tests above would say nothing if the drafts did not leak in the first place."""
    built = build(
        tmp_path,
        lambda asked: say(everything_at_once(asked)),
        one_step(critic="off", attempts=2),
    )
    report = report_questions(built, one_step(), Roles("fake/writer"))
    annotations = {leak.name: leak.judge(TOLERANCE) for leak in report.leaks}
    assert annotations.pop("shortest of the three") == "below chance"
    assert set(annotations.values()) == {"leaks"}
    assert solve_with_bayes(built.questions) > 0.8


def test_the_same_drafts_give_the_same_set(tmp_path: Path) -> None:
    def writer(asked: Request) -> str:
        return say(always_longest(asked))

    some = dict(list(sample_subjects().items())[:15])
    first = build(tmp_path / "a", writer, one_step(attempts=1), subjects=some)
    second = build(tmp_path / "b", writer, one_step(attempts=1), subjects=some)
    third = build(tmp_path / "c", writer, one_step(attempts=1, seed=1), subjects=some)

    def show(own: BuiltQuestions) -> list[tuple[str, tuple[str, ...], int]]:
        return [(q.id, tuple(c.text for c in q.options), q.answer) for q in own.questions]

    assert show(first) == show(second)
    assert show(first) != show(third)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_share_of_none_is_as_asked(tmp_path: Path, share: float) -> None:
    settings = one_step(none_proportion=share, critic="off", dimensions=("Scene",))
    built = build(tmp_path, lambda asked: say(write_honestly(asked)), settings)
    found = sum(own.none_is_key for own in built.questions) / len(built.questions)
    assert abs(found - share) < 0.02
