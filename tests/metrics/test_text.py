"""BLEU, ROUGE-L, tokenizers and the best constant against independent libraries."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.metrics.text import (
    _UNSPACED,
    Smoothing,
    best,
    bleu_4,
    count_common,
    find_best_constant,
    load_porter,
    measure_overlap,
    rouge_l,
    split_sentences,
    strip_prefix,
    tokenize,
)

translate = pytest.importorskip("nltk.translate.bleu_score", reason="nltk is not installed")
nltk_tokenize = pytest.importorskip("nltk.tokenize", reason="nltk is not installed")
sacrebleu = pytest.importorskip("sacrebleu", reason="sacrebleu is not installed")
nist = pytest.importorskip("sacrebleu.tokenizers.tokenizer_13a", reason="sacrebleu is missing")
rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge_score is missing")

WORDS = ("the", "meme", "mocks", "late", "updates", "a", "cat", "running", "that", "people")
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14)
texts = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs", "S")), max_size=60)
NLTK = {
    "epsilon": "method1",
    "chen-cherry-2": "method2",
    "chen-cherry-3": "method3",
    "chen-cherry-4": "method4",
    "chen-cherry-5": "method5",
}


@pytest.mark.parametrize("smoothing", NLTK)
@given(own=words, other=words)
@settings(max_examples=80, deadline=None)
def test_chen_cherry_equals_nltk(smoothing: Smoothing, own: list[str], other: list[str]) -> None:
    if smoothing == "chen-cherry-4" and len(own) == 1:
        return  # NLTK leaves out the empty orders here, so that any known word scores 1.
    method = getattr(translate.SmoothingFunction(), NLTK[smoothing])
    expected = translate.sentence_bleu([other], own, smoothing_function=method)
    assert bleu_4(own, other, smoothing) == pytest.approx(expected, abs=1e-12)


@given(own=words, other=words)
@settings(max_examples=80, deadline=None)
def test_unsmoothed_equals_nltk(own: list[str], other: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = translate.sentence_bleu([other], own)
    assert bleu_4(own, other) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("smoothing", ["none", "floor", "add-k", "exp"])
@given(own=words, other=words)
@settings(max_examples=80, deadline=None)
def test_smoothing_equals_sacrebleu(smoothing: Smoothing, own: list[str], other: list[str]) -> None:
    scorer = sacrebleu.metrics.BLEU(
        tokenize="none",
        smooth_method=smoothing,
        smooth_value={"floor": 0.1, "add-k": 1}.get(smoothing),
        effective_order=False,
    )
    expected = scorer.sentence_score(" ".join(own), [" ".join(other)]).score / 100
    if not set(own) & set(other):
        expected = 0.0
    assert bleu_4(own, other, smoothing) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("smoothing", get_args(Smoothing))
def test_empty_texts_score_zero(smoothing: Smoothing) -> None:
    assert bleu_4([], ["a"], smoothing) == bleu_4(["a"], [], smoothing) == 0.0


def drop_unspaced(text: str) -> str:
    """Without scripts that put no space between words: the other libraries do not cut them."""
    return "".join(char for char in text if not re.match(f"[{_UNSPACED}]", char))


@given(texts)
@settings(deadline=None)
def test_tokenizers_equal_their_models(text: str) -> None:
    expected = nist.Tokenizer13a()(text).split()
    assert tokenize(text, "13a", lower=False) == expected
    # Python and the package regex disagree on fractions such as ¼.
    plain = "".join(char for char in text if char.isascii() or char.isalpha())
    plain = drop_unspaced(plain)
    assert tokenize(plain, lower=False) == nltk_tokenize.wordpunct_tokenize(plain)
    assert tokenize(text, "space", lower=False) == text.split()


@pytest.mark.parametrize("stemmed", [False, True])
@given(own=st.one_of(words.map(" ".join), texts), other=st.one_of(words.map(" ".join), texts))
@settings(max_examples=80, deadline=None)
def test_rouge_l_equals_rouge_score(stemmed: bool, own: str, other: str) -> None:
    own, other = drop_unspaced(own), drop_unspaced(other)
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=stemmed)
    expected = scorer.score(other, own)["rougeL"]
    found = rouge_l(own, other, load_porter() if stemmed else None)
    assert (found.precision, found.recall, found.f1) == pytest.approx(tuple(expected))


def test_the_stemmer_finds_what_plain_words_miss() -> None:
    pair = "the meme mocks running updates", "the meme mocked run update"
    assert rouge_l(*pair).f1 < rouge_l(*pair, load_porter()).f1 == 1.0


def test_best_constant_is_the_best_of_all_short_texts() -> None:
    """Every text of up to four words from a small vocabulary, tried one by one."""
    references = [["the meme mocks cats"], ["the meme mocks a cat", "a cat"], ["the late cat"]]
    vocabulary = sorted({word for texts in references for text in texts for word in text.split()})

    def mean(text: str) -> float:
        scores = [best(rouge_l(text, other).f1 for other in texts) for texts in references]
        return sum(score or 0 for score in scores) / len(references)

    tried = [" ".join(one) for n in range(1, 5) for one in itertools.product(vocabulary, repeat=n)]
    found = find_best_constant(references)
    assert found is not None
    assert found.value == pytest.approx(mean(found.text))
    assert found.value >= max(map(mean, tried)) - 1e-9


def test_best_constant_with_a_stemmer_is_made_of_words() -> None:
    found = find_best_constant(
        [["the meme mocks updates"], ["the meme mocked updates"]], load_porter()
    )
    assert found is not None
    assert found.value == pytest.approx(1.0)
    assert found.text == "the meme mocks updates"


def test_best_constant_of_nothing_is_none() -> None:
    assert find_best_constant([]) is None
    assert find_best_constant([[], ["…"]]) is None


def test_prefix_goes_once_and_only_in_front() -> None:
    assert strip_prefix("  The Meme the meme wins", "the meme ") == "the meme wins"
    assert strip_prefix("so the meme wins", "the meme ") == "so the meme wins"


def test_sentences() -> None:
    assert split_sentences("") == []
    assert split_sentences("One. Two! 3.5 stay") == ["One.", "Two!", "3.5 stay"]


@given(st.text("ab中", max_size=70), st.text("abc中", max_size=70))
def test_common_subsequences_equal_the_table_of_all_beginnings(first: str, second: str) -> None:
    row = [0] * (len(second) + 1)
    for one in first:
        before = row[:]
        for place, other in enumerate(second, 1):
            row[place] = (
                before[place - 1] + 1 if one == other else max(before[place], row[place - 1])
            )
    assert count_common(first, second) == count_common(second, first) == row[-1]


def test_texts_are_the_same_from_nine_characters_of_ten_on() -> None:
    assert measure_overlap("abcdefghij", "abcdefghiX") == 0.9
    assert measure_overlap("abcdefghi", "abcdefghXY") < 0.9
    assert measure_overlap("ab", "") == 0.0
