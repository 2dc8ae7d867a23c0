"""Replies at the edges of what the parsers accept: lengths, order, brackets, denials, thoughts."""

from __future__ import annotations

import pytest

from memantics.benchmarks.parsing import clean, find_object, parse_label, parse_letter
from memantics.core.task import Unparsed

OPTIONS = {"A": "a cat on a mat", "B": "a dog", "C": "two fish"}
NAMES = {"pun": ("双关", "pun"), "none": ("非双关", "not a pun", "non-pun"), "joke": ("joke",)}
TURNED = {"pun": "none", "none": "pun"}


def label(text: str, names: dict[str, tuple[str, ...]] = NAMES) -> str | None:
    try:
        return parse_label(text, names, TURNED)
    except Unparsed:
        return None


def letter(text: str) -> str | None:
    try:
        return parse_letter(text, OPTIONS)
    except Unparsed:
        return None


def test_thoughts_are_dropped_over_several_lines_and_between_words() -> None:
    assert clean("before <think>one\ntwo</think> after").split() == ["before", "after"]
    assert clean("a<think>x</think>b<think>y</think>c").split() == ["a", "b", "c"]
    assert parse_letter("Answer: A <think>or\nAnswer: B</think>", OPTIONS) == "A"
    # Only the tag in lower case is a model's mark for thinking.
    assert clean("<THINK>one</THINK>") == "<THINK>one</THINK>"


def test_a_short_reply_may_name_its_label_anywhere_and_a_long_one_only_at_its_beginning() -> None:
    for length, found in ((59, "joke"), (60, "joke"), (61, None)):
        filler = "x" * (length - len(" then a joke"))
        text = f"{filler} then a joke"
        assert len(text) == length
        assert label(text) == found
    assert label("It is a joke" + " x" * 40) == "joke"
    assert label("joke" + " x" * 40) == "joke"


def test_one_or_the_other_is_no_answer_but_the_same_one_twice_is() -> None:
    assert label("a pun or a pun") == "pun"
    assert label("joke or pun") is None
    assert label("joke / pun") is None
    # Two labels, and neither is an alternative to the other: the first one opens the reply.
    assert label("joke, though a reader may first take it for a pun") == "joke"
    assert label("pun and pun, then joke") == "pun"


def test_the_longer_alias_wins_whatever_its_place_in_the_alphabet() -> None:
    names = {"short": ("ab", "双"), "long": ("ab cd", "双关")}
    assert parse_label("ab cd", names) == "long"
    assert parse_label("双关", names) == "long"
    assert parse_label("ab", names) == "short"


def test_a_latin_alias_is_a_word_of_its_own_and_a_chinese_one_need_not_be() -> None:
    assert label("punctual") is None
    assert label("spun") is None
    assert label("x双关x") == "pun"
    assert label("2双关3") == "pun"


def test_the_text_behind_the_last_marker_counts() -> None:
    assert label("Answer: joke. On reflection, answer: pun") == "pun"
    assert label("It is a joke, a joke, a joke!\nAnswer: 「pun」") == "pun"
    assert label("Answer: ：pun") == "pun"


def test_why_there_is_no_label_is_said() -> None:
    with pytest.raises(Unparsed, match="denies the label"):
        parse_label("maybe a pun", NAMES)
    with pytest.raises(Unparsed, match="denies the label"):
        parse_label("maybe a pun, perhaps a joke", NAMES)
    with pytest.raises(Unparsed, match="no known label"):
        parse_label("I cannot say", NAMES)
    with pytest.raises(Unparsed, match="empty reply"):
        parse_label(" ", NAMES)


def test_words_that_hold_a_negation_and_deny_nothing() -> None:
    assert label("不仅双关") == "pun"
    assert label("毫无疑问双关") == "pun"
    assert label("not only pun") == "pun"


def test_what_is_only_asked_does_not_count() -> None:
    assert label("是不是双关") is None
    assert label("双关吗？ joke") == "joke"
    # The label itself begins with the denial that is half of the question.
    names = {"pun": ("双关",), "none": ("不是双关", "没有双关")}
    for asked in ("是不是双关", "它是不是双关", "有没有双关", "它有没有双关"):
        assert label(asked, names) is None
    assert label("不是双关", names) == "none"
    assert label("它不是双关", names) == "none"


@pytest.mark.parametrize("held", ["B", " b ", "(B)", "B.", "(b)."])
def test_the_letter_in_an_object_may_be_bracketed(held: str) -> None:
    assert letter(f'{{"answer": "{held}"}}') == "B"
    assert letter(f'```json\n{{"answer": "{held}"}}\n```') == "B"


def test_an_object_counts_only_where_it_is_the_reply() -> None:
    assert letter('Answer: A. Not in this form: {"answer": "B"}') == "A"
    assert letter('{"answer": "X"}') is None
    assert letter('{"answer": 2}') is None


def test_the_last_marked_letter_counts_unless_the_first_is_asked_for() -> None:
    text = "Answer: A. Or rather, answer: B. No: Answer: C"
    assert parse_letter(text, OPTIONS) == "C"
    assert parse_letter(text, OPTIONS, "first") == "A"
    assert parse_letter(text, OPTIONS, "last") == "C"
    # Two kinds of markers: the order is that of the letters in the reply.
    assert letter("I choose       A. Answer: B") == "B"
    assert letter("Answer: B. So I choose          A") == "A"


def test_a_denied_letter_does_not_count() -> None:
    assert letter("Answer: B. I would not choose A") == "B"
    assert letter("Not option A. Option B") == "B"
    assert letter("not option A, option B is it, I say") == "B"
    assert letter("I would not choose A") is None
    # What is denied after the letter does not deny the letter.
    assert letter("I choose A, not a dog") == "A"
    assert letter("It is option A and not a dog") == "A"


def test_the_only_letter_that_is_called_an_option() -> None:
    assert letter("I think that option B fits") == "B"
    assert letter("我觉得B选项") == "B"
    assert letter("I think that option X fits") is None
    assert letter("Between option A and option B I am torn") is None


def test_the_whole_text_of_an_option_is_its_letter() -> None:
    assert letter("  A   Cat on a\nmat!") == "A"
    assert letter("“two fish”。") == "C"
    assert letter("two fish?") == "C"
    assert letter("Xa dogX") is None


def test_a_letter_that_is_no_option_is_no_answer() -> None:
    assert letter("X") is None
    assert letter("Answer: X") is None


def test_the_fiftieth_brace_is_read_and_the_one_after_it_is_not() -> None:
    assert find_object("{ " * 49 + '{"a": 1}') == {"a": 1}
    assert find_object("{ " * 50 + '{"a": 1}') == {}
    assert find_object('{broken} [1] {"a": 1}') == {"a": 1}
