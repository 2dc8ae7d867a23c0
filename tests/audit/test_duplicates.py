from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.core.finding import Finding
from memantics.core.records import Form, Item
from memantics.evaluation.audits.texts import find_leaks
from memantics.metrics.grouping import find_near_duplicates, find_twins
from tests.audit.toys import make_exam, make_items

TEXTS = st.lists(st.text("abcdefg", max_size=7), max_size=12)


def jaccard(one: str, other: str) -> float:
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first | second else 0.0


@given(TEXTS, TEXTS, st.sampled_from([0.5, 0.7, 0.8, 1.0]))
@settings(max_examples=200, deadline=None)
def test_the_index_misses_nothing_and_invents_nothing(
    texts: list[str], others: list[str], threshold: float
) -> None:
    for text, place in zip(texts, find_near_duplicates(texts, others, threshold), strict=True):
        near = [other for other in others if jaccard(text, other) >= threshold - 1e-9]
        assert (place is not None) == bool(near)
        assert place is None or others[place] in near


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_twins_are_in_other_groups(texts: list[str]) -> None:
    groups = [number % 3 for number in range(len(texts))]
    for number, twin in enumerate(find_twins(texts, groups)):
        assert twin == any(
            groups[other] != groups[number] and jaccard(texts[number], texts[other]) >= 0.8 - 1e-9
            for other in range(len(texts))
        )


def item(name: str, text: str, gold: str = "A") -> Item:
    return Item(name, name, gold, Form("?", (), context={"text": text}))


def leaks(train: list[Item], test: list[Item]) -> dict[str, Finding]:
    exam = make_exam(make_items(4))
    object.__setattr__(exam, "splits", {"train": tuple(train), "test": tuple(test)})
    object.__setattr__(exam, "texts", (*train, *test))
    return {own.key: own for own in find_leaks(exam)[0]}


def test_a_test_text_that_train_holds_is_found() -> None:
    train = [item("1", "my cat sleeps on the warm sofa all day"), item("2", "red green blue gold")]
    test = [
        item("3", "all day my cat sleeps on the warm sofa"),
        item("4", "one two three four five"),
    ]
    own = leaks(train, test)["leak.split"]
    assert own.score.value == 0.5
    assert own.verdict == "broken"
    assert "100% of these have the same label" in own.meaning
    assert {row.label: row.value for row in own.rows} == {"identical": 0.0, "near": 0.5}


def test_disjoint_parts_are_sound() -> None:
    train = [item("1", "my cat sleeps on the sofa")]
    found = leaks(train, [item("2", "nine lives and no more jokes")])
    assert found["leak.split"].verdict == "sound"
    assert found["leak.memes"].verdict == "sound"


def test_letters_in_common_do_not_make_english_texts_alike() -> None:
    one = "the quick brown fox jumps over a lazy dog"
    other = "pack my box with five dozen liquor jugs for the queen"
    assert leaks([item("1", one)], [item("2", other)])["leak.split"].score.value == 0.0
