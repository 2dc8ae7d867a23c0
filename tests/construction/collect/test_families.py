"""Copies are told from siblings of one template."""

from __future__ import annotations

import random

import pytest

from memantics.understanding.templates import Face, find_kin, say_same


def face(name: str, text: str, bits: int = 0, weight: int = 1, sha: str = "") -> Face:
    return Face(name, sha or name, bits, text, weight)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("One does not simply\nwalk into work", "ONE DOES NOT SIMPLY WALK INTO WORK!"),
        ("when the printer works at the first try", "when the prlnter works at the first try"),
        ("最近有点健忘", "最近有点健忘。"),
        ("", ""),
    ],
)
def test_readings_of_one_caption_are_the_same(one: str, other: str) -> None:
    assert say_same(one, other)
    assert say_same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("my face when it is monday morning again", "my face when it is friday morning again"),
        ("最近有点健忘", "最近有点键忘"),
        ("my dog ate the whole report", "my cat ate the whole report"),
        ("something", ""),
        ("a long caption about nothing at all", "a long caption about nothing at all and more"),
    ],
)
def test_one_other_word_makes_another_meme(one: str, other: str) -> None:
    assert not say_same(one, other)
    assert not say_same(other, one)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("when the prlnter works at first", True),  # one misread word
        ("wben the prlnter works at first", True),  # two
        ("wben the prlnter works at flrst", False),  # three, apart from each other
        ("when the printerxx works at first", True),  # two letters more
        ("when the printerxxx works at first", False),  # three
        ("when the prxxxxr works at first", False),  # three letters of seven are those of the word
    ],
)
def test_how_much_of_a_long_caption_may_be_misread(other: str, same: bool) -> None:
    whole = "when the printer works at first"
    assert say_same(whole, other) is same
    assert say_same(other, whole) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("abcde fghij klmno pqrst", "abcde fghij klmno pqrsx", True),  # 20 letters
        ("abcde fghij klmno pqrs", "abcde fghij klmno pqrx", False),  # 19
        ("一二三四五六七八九十" * 2, "一二三四五六七八九十" + "一二三四五六七八九木", True),
        ("一二三四五六七八九十" * 2, "一二三四五六七八九木" * 2, False),  # two characters
        ("一二三四五六七八九十" * 2, "一二三四五六七八九十" + "一二三四五六七八九", False),
    ],
)
def test_short_captions_differ_by_a_letter(one: str, other: str, same: bool) -> None:
    assert say_same(one, other) is same
    assert say_same(other, one) is same


def test_a_copy_looks_the_same_and_says_the_same() -> None:
    kin = find_kin(
        [
            face("small", "hello there", 0b1, weight=10),
            face("large", "Hello there!", 0b0, weight=99),
            face("sibling", "bye for now", 0b11, weight=50),
            face("far", "hello there", 0xFFFF_0000, weight=5),
        ]
    )
    assert kin["small"].original == "large"
    assert kin["small"].distance == 1
    assert kin["large"].original == kin["sibling"].original == kin["far"].original == ""
    assert (
        kin["small"].template_cluster
        == kin["large"].template_cluster
        == kin["sibling"].template_cluster
        == "small"
    )
    assert kin["far"].template_cluster == ""


def test_the_same_words_on_another_picture_are_no_copy() -> None:
    kin = find_kin([face("a", "same words", 0), face("b", "same words", 0b1111_1111)])
    assert kin["b"].original == ""
    assert kin["b"].template_cluster == "a"


def test_the_same_bytes_are_a_copy_even_where_nothing_was_read_alike() -> None:
    kin = find_kin([face("a", "one", 7, sha="x"), face("b", "two", 7, sha="x")])
    assert kin["b"].original == "a"


def test_many_images_with_one_hash_are_no_problem() -> None:
    rng = random.Random(1)
    faces = [face(str(n), f"caption number {n} of many", 0) for n in range(150)]
    faces += [face(f"r{n}", "x", rng.getrandbits(64)) for n in range(2000)]
    kin = find_kin(faces)
    assert sum(own.template_cluster == "0" for own in kin.values()) >= 150
    assert not any(own.original for name, own in kin.items() if not name.startswith("r"))
