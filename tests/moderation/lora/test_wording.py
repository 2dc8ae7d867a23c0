"""What is asked in the three styles, and how replies are read."""

from __future__ import annotations

from typing import get_args

import pytest

from memantics.core.errors import InputError
from memantics.moderation.lora.judging import (
    LANGUAGES,
    QUESTIONS,
    LoraVerdict,
    QuestionStyle,
    TuningCase,
    Wording,
    rate,
    split_groups,
)

CASE = TuningCase("1", "g", True, caption="蒸多鱼", reason="两种 读法。\n如此。")
ALL = [Wording(q, s, n) for q in QUESTIONS for s in get_args(QuestionStyle) for n in LANGUAGES]


@pytest.mark.parametrize("wording", ALL, ids=lambda w: f"{w.question}-{w.style}-{w.language}")
def test_every_style_asks_and_is_answered(wording: Wording) -> None:
    question, answer = wording.ask(CASE), wording.answer(CASE)
    assert (CASE.caption in question) == (wording.style != "image"), "the caption, where it is due"
    assert "$" not in question
    assert wording.read(answer) is True
    assert wording.read(wording.answer(TuningCase("2", "g", False))) is False
    assert answer.count("\n") == (wording.style == "reasons"), "the reason is one line"
    for word in wording.words:
        assert word in question, "the words that count are named"


@pytest.mark.parametrize(
    ("style", "reply", "verdict"),
    [
        ("caption", "是", True),
        ("caption", "“否”。", False),
        ("caption", "不知道是不是", None),
        ("caption", "", None),
        ("reasons", "谐音。\n判断:是", True),
        ("reasons", "谐音。\n判断： 否", False),
        ("reasons", "是", None),
        ("reasons", "判断：是\n判断：否", None),
        ("reasons", "判断：是\n判断：是", True),
    ],
)
def test_replies_are_read_or_not(style: str, reply: str, verdict: bool | None) -> None:
    assert Wording("pun", style).read(reply) is verdict  # type: ignore[arg-type]


def test_words_inside_other_words_are_no_verdict() -> None:
    assert Wording("pun", "caption", "en").read("Nothing") is None
    assert Wording("pun", "caption", "en").read("yes, it does") is True
    assert Wording("harm", "reasons", "en").read("Verdict: nobody knows") is None


def test_words_of_which_one_ends_the_other() -> None:
    wording = Wording("pun", "caption", text="$caption？", said=("非双关", "双关"))
    assert wording.ask(TuningCase("1", "g", True, "蒸鱼")) == "蒸鱼？"
    assert [wording.answer(TuningCase("1", "g", label)) for label in (False, True)] == [
        "非双关",
        "双关",
    ]
    assert [wording.read(text) for text in ("“非双关”。", "双关", "是", "也许双关")] == [
        *(False, True, None, None)
    ]
    english = Wording("pun", "image", "en", text="?", said=("non-pun", "pun"))
    assert [english.read(text) for text in ("Non-pun.", "Pun!", "punny")] == [False, True, None]
    # What is not given changes no fingerprint of earlier tunings.
    assert Wording().describe() == {"question": "pun", "style": "caption", "language": "zh"}


def test_groups_stay_together_in_the_paper_s_proportion() -> None:
    cases = [TuningCase(f"{n}{p}", f"g{n}", p == "a") for n in range(653) for p in "abc"]
    split = split_groups(cases, seed=3)
    train, valid = ({case.group for case in part} for part in (split.train, split.valid))
    assert (len(train), len(valid)) == (500, 153)
    assert not train & valid
    assert split_groups(cases, seed=3) == split
    assert split_groups(cases, seed=4) != split
    few = split_groups(cases[: 3 * 131])
    assert len({case.group for case in few.train}) == 100


def test_splits_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="are too few"):
        split_groups([TuningCase("1", "g", True)])
    with pytest.raises(InputError, match="only one class"):
        split_groups([TuningCase(str(n), str(n), True) for n in range(20)])


def test_a_reply_without_a_verdict_is_a_miss() -> None:
    found = rate(
        [
            LoraVerdict("a", True, True),
            LoraVerdict("b", True, None),
            LoraVerdict("c", False, False),
            LoraVerdict("d", False, None),
            LoraVerdict("e", False, True),
        ]
    )
    assert (found.tpr, found.tnr, found.unparsed) == (1 / 2, 1 / 3, 2)
    alone = rate([LoraVerdict("x", False, False)])
    assert (alone.tpr, alone.tnr, alone.f1) == (None, 1.0, None)
