"""Texts of strangers: what is repaired, cut, counted, and refused."""

from __future__ import annotations

import pytest

from memantics.core.errors import DataError
from memantics.core.text import (
    clean_line,
    cut_chinese,
    cut_off,
    cut_short,
    drop_unseen,
    escape_surrogates,
    escape_unseen,
    fold_line,
    mask_unseen,
    measure_nesting,
    neutralise,
    refuse_nesting,
    repair_surrogates,
    show_probability,
    split_pieces,
)


def test_half_characters() -> None:
    assert repair_surrogates("\ud83d a \ude00") == "\ufffd a \ufffd"
    assert repair_surrogates("\ud83d\ude00") == "😀", "two halves are one character"
    assert repair_surrogates("表\x00😀") == "表\x00😀"
    assert escape_surrogates("a\udcffb\udcfe表") == r"a\udcffb\udcfe表"


def test_controls_are_replaced_and_lines_are_kept() -> None:
    text = "a\tb\nc\rd\x1be\x7ff\u200bg\u2066h\ud800i\ufffaj"
    assert neutralise(text) == "a\tb\nc\ufffdd\ufffde\ufffdf\ufffdg\ufffdh\ufffdi\ufffdj"
    assert escape_unseen(text) == (
        "a\tb\nc\\u000dd\\u001be\\u007ff\\u200bg\\u2066h\\ud800i\\ufffaj"
    )
    for plain in ("", "plain text", "表情包 é", "👨\u200d👩 \ufe0f"):
        assert neutralise(plain) == escape_unseen(plain) == plain


def test_characters_of_some_kinds_are_dropped() -> None:
    text = "a\u202eb\x00c\nd e"
    assert drop_unseen(text) == "abcd e"
    assert drop_unseen(text, keep="\n\x00") == "ab\x00c\nd e"
    assert drop_unseen(text, kinds=("Zs",)) == "a\u202eb\x00c\nde"
    assert mask_unseen(" a\n\tb\x00\u202ec ") == "a b\ufffd\ufffdc"


def test_one_line_for_a_tokenizer() -> None:
    assert fold_line("  a \n b\ud800 c ", 5) == "a b? "
    assert fold_line("abc", 3) == "abc"
    assert fold_line("abc", 2) == "ab"


def test_a_line_of_a_model_is_clean_and_bounded() -> None:
    assert clean_line("a\u202e cat\u200b \ud800\n with\u2028a\x00hat ") == "a cat \ufffd with a hat"
    assert clean_line("e\u0301") == "é"
    assert clean_line("abcdef", 6) == "abcdef"
    assert clean_line("abcdef", 5) == "abcde"
    assert clean_line("abcd efg", 5) == "abcd", "no space at the end"
    # Invisible characters count up to four times the length, what follows is not looked at.
    assert clean_line("\u200b" * 3 + "abcde", 1) == "a"
    assert clean_line("\u200b" * 4 + "abcde", 1) == ""
    assert len(clean_line("x" * 3000)) == 2000


@pytest.mark.parametrize(
    ("chance", "shown"),
    [
        (0.0, "under 1%"),
        (0.00499, "under 1%"),
        (0.005, "1%"),
        (0.0149, "1%"),
        (0.0151, "2%"),
        (0.5, "50%"),
        (0.9949, "99%"),
        (0.995, "over 99%"),
        (1.0, "over 99%"),
    ],
)
def test_a_probability_is_never_certain(chance: float, shown: str) -> None:
    assert show_probability(chance) == shown


@pytest.mark.parametrize(
    ("longest", "cut", "short"),
    [
        (16, "a cat on the mat", "a cat on the mat"),
        (15, "a cat on the m…", "a cat on the…"),
        (13, "a cat on the…", "a cat on the…"),
        (12, "a cat on th…", "a cat on…"),
        (6, "a cat…", "a cat…"),
        (5, "a ca…", "a…"),
        (2, "a…", "a…"),
        (1, "…", ""),
    ],
)
def test_a_long_text_is_cut(longest: int, cut: str, short: str) -> None:
    assert cut_off(" a cat  on\nthe mat", longest) == cut
    assert cut_short(" a cat  on\nthe mat", longest) == short


def test_a_text_without_blanks_is_cut_between_characters() -> None:
    assert cut_short("被嘲笑的打工人", 7) == "被嘲笑的打工人"
    assert cut_short("被嘲笑的打工人", 6) == "被嘲笑的打…"
    assert cut_short("", 0) == ""
    assert cut_off("", 0) == ""


def test_words_and_single_characters() -> None:
    assert split_pieces("It's 2 Cats, 双关! ünd_x") == [
        "it's",
        "2",
        "cats",
        "双",
        "关",
        "ü",
        "nd",
        "x",
    ]
    assert split_pieces("") == []
    assert cut_chinese("我们去公园 ok。") == ["我们", "去", "公园", " ", "ok", "。"]


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("", 0),
        ("{}", 1),
        ("{}{}", 1),
        ("{[(<< >>)]}", 4),
        (")))((", 0),
        ('"[[["', 0),
        ("'[[['", 0),
        ('"\\"[["', 0),
        ("'''[\n['''", 0),
        ('"""["["""', 0),
        ("<http://x/[[>", 0),
        ("# [[[\n[", 1),
        ("\\[", 0),
        ("a < b [", 1),
    ],
)
def test_brackets_are_counted_outside_of_strings(text: str, depth: int) -> None:
    assert measure_nesting(text) == depth


def test_a_file_of_too_many_levels_is_refused() -> None:
    refuse_nesting(b"[" * 100 + b"]" * 100, "a.json")
    refuse_nesting(b"\xff\xfe{}", "a.json")
    with pytest.raises(DataError) as caught:
        refuse_nesting(b"[" * 1001, "a.json")
    assert str(caught.value) == (
        "a.json: has 1,001 nested brackets; the limit is 100; repair the file, or export it again"
    )
    with pytest.raises(DataError, match="has 101 nested brackets"):
        refuse_nesting(b"{" * 101, "a.ttl")
