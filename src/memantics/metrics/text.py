"""Metrics of generated texts (BLEU-4, ROUGE-L, Distinct-n) and the best constant reply.

With several references, the score is the best pairwise value (:func:`best`), not multi-reference
BLEU. The best constant text is a ROUGE-L baseline that gives the same reply to every meme.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memantics.metrics.rounding import Floats

Stem = Callable[[str], str]
Smoothing = Literal[
    "none",
    "epsilon",
    "floor",
    "add-k",
    "exp",
    "chen-cherry-2",
    "chen-cherry-3",
    "chen-cherry-4",
    "chen-cherry-5",
]
Tokenizer = Literal["words", "13a", "space"]
TextPair = tuple[str, str]  # a generated text and its reference text

_ORDER = 4
_EPSILON = 0.1
_MARKS_13A = re.compile(r"([{-~\[-` -&(-+:-@/])")
# Scripts without spaces between words: each character is a token.
_UNSPACED = (
    "\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]+")
_ROUGE = re.compile(rf"[a-z0-9]+|[{_UNSPACED}]")
_CANDIDATES = 120
_BEAM = 4
_LONGEST = 16
_MOST = 2_000
WordNumbers = NDArray[np.int32]
Positions = NDArray[np.intp]


def strip_prefix(text: str, prefix: str) -> str:
    """Remove an opening phrase that every reference text shares, ignoring case.

    >>> strip_prefix("The meme mocks updates", "the meme ")
    'mocks updates'
    """
    body = text.lstrip()
    return body[len(prefix) :].lstrip() if body.lower().startswith(prefix.lower()) else body


def tokenize(text: str, how: Tokenizer = "words", *, lower: bool = True) -> list[str]:
    """Split a text into BLEU tokens.

    ``words`` separates letters and digits from punctuation, and splits Chinese, Japanese and Korean
    into characters; ``13a`` follows the NIST script of that name; ``space`` splits at white space
    only.

    >>> tokenize("It's 2.5 %, ok?"), tokenize("It's 2.5 %, ok?", "13a")
    (['it', "'", 's', '2', '.', '5', '%,', 'ok', '?'], ["it's", '2.5', '%', ',', 'ok', '?'])
    """
    return list(_tokenize(text, how, lower))


# A reply is compared with several references in a row, so its tokens are cached.
@lru_cache(maxsize=256)
def _tokenize(text: str, how: Tokenizer, lower: bool) -> tuple[str, ...]:
    if lower:
        text = text.lower()
    if how == "words":
        return tuple(_WORDS.findall(text))
    return tuple((_space_13a(text) if how == "13a" else text).split())


def _space_13a(text: str) -> str:
    """Add white space around punctuation; a point or comma inside a number stays."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for code, mark in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
        text = text.replace(code, mark)
    text = _MARKS_13A.sub(r" \1 ", f" {text} ")
    text = re.sub(r"([^0-9])([.,])", r"\1 \2 ", text)
    text = re.sub(r"([.,])([^0-9])", r" \1 \2", text)
    return re.sub(r"([0-9])(-)", r"\1 \2 ", text)


def bleu_4(
    hypothesis: Sequence[str], reference: Sequence[str], smoothing: Smoothing = "none"
) -> float:
    """Sentence BLEU of orders 1 to 4 over tokens, against one reference.

    ``none`` gives 0 without a common 4-gram. ``floor`` (0.1), ``add-k`` (1) and ``exp`` smooth as
    sacrebleu does: texts with fewer than four tokens score 0 except with ``add-k``. ``epsilon``
    (Chen and Cherry's first method, 0.1) and ``chen-cherry-N`` smooth as NLTK does: an order
    without any n-gram counts as one n-gram that does not match.

    >>> bleu_4("the meme mocks updates".split(), "the meme mocks updates".split())
    1.0
    >>> one_off = "the meme mocks me".split(), "the meme mocks updates".split()
    >>> bleu_4(*one_off), round(bleu_4(*one_off, "epsilon"), 3)
    (0.0, 0.398)
    """
    if not hypothesis or not reference:
        return 0.0
    orders = _ORDER + (smoothing == "chen-cherry-5")  # Its average needs n-grams of one more order.
    counts = _matches(tuple(hypothesis), tuple(reference), orders)
    if smoothing in ("none", "floor", "add-k", "exp"):
        shares = _smooth_short(counts[:_ORDER], smoothing)
    else:
        shares = _smooth_long(counts, len(hypothesis), smoothing)
    if not all(share > 0 for share in shares):
        return 0.0
    penalty = min(0.0, 1 - len(reference) / len(hypothesis))
    # Chen and Cherry's fifth method averages with a lower order and can exceed 1.
    return math.exp(penalty + sum(math.log(share) for share in shares) / _ORDER)


def _matches(
    hypothesis: tuple[str, ...], reference: tuple[str, ...], orders: int
) -> list[tuple[int, int]]:
    """Clipped n-gram matches of each order, and the number of n-grams of the hypothesis."""
    places: dict[str, list[int]] = {}
    for place, token in enumerate(reference):
        places.setdefault(token, []).append(place)
    repeats = len(set(hypothesis)) < len(hypothesis)
    found = []
    for n, ends in enumerate(_find_ends(hypothesis, places, orders), 1):
        right = len(ends)
        if repeats and right > 1:
            grams = [hypothesis[end - n : end] for end in ends]
            different = set(grams)
            if len(different) < right:
                right = sum(
                    min(
                        grams.count(gram),
                        sum(reference[p - n + 1 : p + 1] == gram for p in places[gram[-1]]),
                    )
                    for gram in different
                )
        found.append((right, max(0, len(hypothesis) - n + 1)))
    return found


def _find_ends(
    hypothesis: tuple[str, ...], places: Mapping[str, list[int]], orders: int
) -> list[list[int]]:
    """End positions in the hypothesis of n-grams that also occur in the reference, by order."""
    ends: list[list[int]] = [[] for _ in range(orders)]
    before: dict[
        int, int
    ] = {}  # length of the common n-gram that ends at each position of the reference
    for end, token in enumerate(hypothesis, 1):
        here: dict[int, int] = {}
        longest = 0
        for place in places.get(token, ()):
            here[place] = run = before.get(place - 1, 0) + 1
            longest = max(longest, run)
        for ends_of_length in ends[:longest]:
            ends_of_length.append(end)
        before = here
    return ends


def _smooth_short(counts: Sequence[tuple[int, int]], smoothing: Smoothing) -> list[float]:
    """Smoothed n-gram precisions as in sacrebleu."""
    shares, halving = [], 1.0
    for place, (right, total) in enumerate(counts):
        if smoothing == "add-k" and place:
            shares.append((right + 1) / (total + 1))
        elif not total:
            shares.append(0.0)
        elif right or smoothing in ("none", "add-k"):
            shares.append(right / total)
        elif smoothing == "floor":
            shares.append(_EPSILON / total)
        else:
            halving *= 2
            shares.append(1 / (halving * total))
    # Without a common word the score is 0 for every smoothing method.
    return shares if counts[0][0] else [0.0]


def _smooth_long(
    counts: Sequence[tuple[int, int]], length: int, smoothing: Smoothing
) -> list[float]:
    """Smoothed n-gram precisions as in NLTK."""
    if not counts[0][0]:
        return [0.0]
    if smoothing == "chen-cherry-5":
        return _smooth_by_neighbours([right / max(1, total) for right, total in counts])
    shares, halving = [], 1.0
    for place, (right, whole) in enumerate(counts[:_ORDER]):
        total = max(1, whole)
        if smoothing == "chen-cherry-2":
            shares.append((right + 1) / (total + 1) if place else right / total)
        elif right:
            shares.append(right / total)
        elif smoothing == "epsilon":
            shares.append(_EPSILON / total)
        elif smoothing == "chen-cherry-4" and length == 1:
            return [0.0]
        else:
            halving *= 2
            gain = 5 / math.log(length) if smoothing == "chen-cherry-4" else 1.0
            shares.append(1 / (halving * gain * total))
    return shares


def _smooth_by_neighbours(shares: Sequence[float]) -> list[float]:
    smoothed: list[float] = []
    before = shares[0] + 1
    for share, after in pairwise(shares):
        before = (before + share + after) / 3
        smoothed.append(before)
    return smoothed


@dataclass(frozen=True, slots=True)
class RougeL:
    """Precision, recall and F1 of the longest common subsequence."""

    precision: float
    recall: float
    f1: float


def rouge_tokens(text: str, stem: Stem | None = None) -> list[str]:
    """Split a text into lower-case Latin words and digits; stem words of more than three letters.

    Chinese, Japanese and Korean are split into characters, since they have no spaces between words.

    >>> rouge_tokens("The meme's joke: 2 cats"), rouge_tokens("吐槽加班, OK")
    (['the', 'meme', 's', 'joke', '2', 'cats'], ['吐', '槽', '加', '班', 'ok'])
    """
    return list(_rouge_tokens(text, stem))


@lru_cache(maxsize=256)
def _rouge_tokens(text: str, stem: Stem | None) -> tuple[str, ...]:
    words = _ROUGE.findall(text.lower())
    return tuple(words if stem is None else map(_stem_long(stem), words))


@lru_cache(maxsize=2)
def _stem_long(stem: Stem) -> Stem:
    return lru_cache(maxsize=1 << 16)(lambda word: stem(word) if len(word) > 3 else word)


def join_tokens(tokens: Sequence[str]) -> str:
    """Join tokens to a text, with spaces only in languages that use them.

    >>> join_tokens(["the", "meme"]), join_tokens(["吐", "槽", "ok", "了"])
    ('the meme', '吐槽ok了')
    """
    return re.sub(rf"(?<=[{_UNSPACED}]) | (?=[{_UNSPACED}])", "", " ".join(tokens))


def rouge_l(hypothesis: str, reference: str, stem: Stem | None = None) -> RougeL:
    """ROUGE-L of one generated text against one reference text.

    >>> rouge_l("the meme mocks updates", "the meme mocks cats").f1
    0.75
    >>> rouge_l("吐槽加班太多", "吐槽加班太多").f1, rouge_l("吐槽加班", "吐槽上班").f1
    (1.0, 0.75)
    """
    found, other = _rouge_tokens(hypothesis, stem), _rouge_tokens(reference, stem)
    common = count_common(found, other)
    if not common:
        return RougeL(0.0, 0.0, 0.0)
    precision, recall = common / len(found), common / len(other)
    return RougeL(precision, recall, 2 * precision * recall / (precision + recall))


def count_common(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence of two token lists.

    >>> count_common("rapid", "rabbit"), count_common(["a", "b"], [])
    (3, 0)
    """
    # Bit-parallel algorithm: one bit per position of the first text (Hyyrö 2004).
    places: dict[Hashable, int] = {}
    for number, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << number
    every = (1 << len(first)) - 1
    unmatched = every
    for token in second:
        matched = unmatched & places.get(token, 0)
        unmatched = (unmatched + matched | unmatched - matched) & every
    return len(first) - unmatched.bit_count()


def measure_overlap(first: str, second: str) -> float:
    """Proportion of the characters of two texts that are in their longest common subsequence.

    >>> measure_overlap("rapid", "rabbit"), measure_overlap("", "")
    (0.5454545454545454, 1.0)
    """
    both = len(first) + len(second)
    return 2 * count_common(first, second) / both if both else 1.0


def load_porter() -> Stem:
    """Load Porter's stemmer of the package nltk (ModuleNotFoundError if it is missing)."""
    from nltk.stem.porter import PorterStemmer

    stemmer = PorterStemmer()
    return lambda word: str(stemmer.stem(word))


def best(values: Iterable[float]) -> float | None:
    """Highest of the values against each reference; None without a reference.

    >>> best([0.2, 0.5]), best([])
    (0.5, None)
    """
    return max(values, default=None)


def split_sentences(text: str) -> list[str]:
    r"""Split into sentences at final punctuation and line ends; sufficient for short replies.

    >>> split_sentences("It mocks updates. Why? Because they take long\n* really")
    ['It mocks updates.', 'Why?', 'Because they take long', '* really']
    >>> split_sentences("吐槽加班。为什么？太累")
    ['吐槽加班。', '为什么？', '太累']
    """
    parts = re.split(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\s*\n\s*", text.strip())
    return [part for part in parts if part.strip()]


# Diversity of texts: the number of distinct n-grams divided by the number of all n-grams.

WordSplitter = Callable[[str], Iterable[str]]


def distinct(utterances: Iterable[Sequence[str]], n: int) -> float | None:
    """Distinct-n of tokenised utterances: distinct n-grams over all n-grams, within utterances.

    None if there is no n-gram.

    >>> distinct([["a", "b", "a"], ["a", "b"]], 1), distinct([["a", "b", "a"], ["a", "b"]], 2)
    (0.4, 0.6666666666666666)
    """
    if n < 1:
        raise ValueError("n must be at least 1")
    total = 0
    different: set[tuple[str, ...]] = set()
    for words in utterances:
        grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        total += len(grams)
        different.update(grams)
    return len(different) / total if total else None


def measure_distinct(
    utterances: Iterable[str], cut: WordSplitter = str.split
) -> dict[int, float | None]:
    """Distinct-1 and Distinct-2 of texts; ``cut`` splits into words (jieba for Chinese).

    >>> measure_distinct(["so good", "so so"])
    {1: 0.5, 2: 1.0}
    """
    words = [list(cut(utterance)) for utterance in utterances]
    return {n: distinct(words, n) for n in (1, 2)}


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant reply and its mean ROUGE-L F1 over memes (best reference of each meme)."""

    text: str
    value: float


@dataclass(frozen=True, slots=True)
class _Runs:
    """Array entries sorted by a key, so that one ``reduceat`` gives the maximum of each key."""

    order: Positions
    starts: Positions
    keys: Positions

    @classmethod
    def sort(cls, keys: Positions) -> _Runs:
        order = np.argsort(keys, kind="stable")
        different, starts = np.unique(keys[order], return_index=True)
        return cls(order, starts, different)

    def maxima(self, values: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = np.maximum.reduceat(values[self.order], self.starts)
        return found


@dataclass(frozen=True, slots=True)
class _References:
    """All reference texts as padded rows of token numbers; ``starts`` is each meme's first row.

    ``places`` are the positions of candidate words. ``by_row`` joins equal words within one
    reference, and ``by_meme`` joins them within all references of one meme.
    """

    words: WordNumbers
    lengths: WordNumbers
    starts: Positions
    places: Positions
    by_row: _Runs
    by_meme: _Runs


@dataclass(frozen=True, slots=True)
class _Draft:
    """A partial text of the search for the best constant reply."""

    words: tuple[int, ...]
    value: float


def correct_for_constant(
    values: Sequence[float | None], elsewhere: Sequence[float | None]
) -> list[float | None]:
    """Rescale scores so that constant replies get 0 on average and a perfect reply gets 1.

    ``elsewhere`` is the score of each reply on other memes, as a constant reply would get; None:
    not scored.

    >>> correct_for_constant([0.75, 0.5, None], [0.5, 0.5, None])
    [0.5, 0.0, None]
    """
    known = [value for value in elsewhere if value is not None]
    room = 1 - math.fsum(known) / len(known) if known else 0.0
    return [
        None if value is None or other is None or room < 1e-9 else (value - other) / room
        for value, other in zip(values, elsewhere, strict=True)
    ]


def find_best_constant(
    references: Sequence[Sequence[str]], stem: Stem | None = None
) -> Constant | None:
    """Find the constant reply with the highest mean ROUGE-L F1, by beam search over words.

    The text is fitted on the references on which it is scored, so it shows a score that is possible
    without any understanding. A longer search can only improve it. The result is None without
    references. Beyond ``_MOST`` memes the text is fitted on a part of them and scored on all.

    >>> found = find_best_constant([["the meme mocks me"], ["the meme mocks me too"]])
    >>> found.text, round(found.value, 3)
    ('the meme mocks me', 0.944)
    """
    asked = [texts for texts in references if texts]
    found = _search(_thin_out(asked), stem)
    if found is None or len(asked) <= _MOST:
        return found
    best = [max(rouge_l(found.text, text, stem).f1 for text in texts) for texts in asked]
    return Constant(found.text, math.fsum(best) / len(best))


def find_constant_text(references: Sequence[Sequence[str]]) -> str | None:
    """Return only the best constant reply, without its mean score, which is slow to compute."""
    found = _search(_thin_out([texts for texts in references if texts]), None)
    return found.text if found else None


def _thin_out(references: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Select at most this many memes, evenly spaced; more memes would only take longer."""
    return references[:: math.ceil(len(references) / _MOST)] if references else references


def _search(references: Sequence[Sequence[str]], stem: Stem | None) -> Constant | None:
    tokens = [[rouge_tokens(text, stem) for text in texts] for texts in references]
    if not any(words for texts in tokens for words in texts):
        return None
    counts = Counter(word for texts in tokens for words in texts for word in set(words))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    offered = min(_CANDIDATES, len(ranked))
    held = _number(tokens, {word: place for place, word in enumerate(ranked)}, offered)
    top = _Draft((), 0.0)
    beam = [top]
    for _ in range(_LONGEST):
        grown = {draft for old in beam for draft in _grow(old, held, offered)}
        beam = sorted(grown, key=lambda draft: (-draft.value, draft.words))[:_BEAM]
        if beam[0].value <= top.value:
            break
        top = beam[0]
    return Constant(_spell([ranked[word] for word in top.words], references, stem), top.value)


def _number(
    tokens: Sequence[Sequence[Sequence[str]]], numbers: dict[str, int], offered: int
) -> _References:
    rows = [words for texts in tokens for words in texts]
    words = np.full((len(rows), max(map(len, rows))), -1, np.int32)
    for row, text_words in zip(words, rows, strict=True):
        row[: len(text_words)] = [numbers[word] for word in text_words]
    starts = np.cumsum([0, *(len(texts) for texts in tokens[:-1])])
    lengths = np.array([len(text_words) for text_words in rows], np.int32)
    places = np.flatnonzero((words >= 0) & (words < offered))
    by_row = _Runs.sort(places // words.shape[1] * offered + words.ravel()[places])
    memes = np.repeat(np.arange(len(tokens)), [len(texts) for texts in tokens])
    by_meme = _Runs.sort(memes[by_row.keys // offered] * offered + by_row.keys % offered)
    return _References(words, lengths, starts, places, by_row, by_meme)


def _grow(draft: _Draft, held: _References, offered: int) -> Iterator[_Draft]:
    """Return the best words to insert at each position of a partial text.

    Take a word at position j of a reference. Its common subsequence is that of the draft's words
    before it with the reference before j, plus that of the draft's words after it with the
    reference after j.
    """
    before = _tables(draft.words, held.words)
    after = [table[:, ::-1] for table in _tables(draft.words[::-1], held.words[:, ::-1])]
    whole = before[-1][:, -1]
    # F1 is 2 PR / (P + R) with P = common / own length and R = common / reference length.
    lengths = len(draft.words) + 1 + held.lengths
    plain = 2 * whole / lengths
    rows, found = np.divmod(held.by_row.keys, offered)
    for place in range(len(draft.words) + 1):
        joined = before[place][:, :-1] + 1 + after[len(draft.words) - place][:, 1:]
        common = np.maximum(held.by_row.maxima(joined.ravel()[held.places]), whole[rows])
        f1 = 2 * common / lengths[rows]
        likely = _find_likely(plain, f1, held, offered)
        table = np.repeat(plain[:, None], max(2, len(likely)), axis=1)
        columns = np.full(offered, -1)
        columns[likely] = np.arange(len(likely))
        kept = columns[found] >= 0
        table[rows[kept], columns[found[kept]]] = f1[kept]
        values = np.maximum.reduceat(table, held.starts, axis=0).mean(axis=0)[: len(likely)]
        for best in np.argsort(-values, kind="stable")[:_BEAM].tolist():
            words = (*draft.words[:place], int(likely[best]), *draft.words[place:])
            yield _Draft(words, float(values[best]))


def _find_likely(plain: Floats, f1: Floats, held: _References, offered: int) -> Positions:
    """Select the words that may be best at a position, so that only these are scored exactly.

    A word improves the partial text only at memes that have the word in a reference.
    """
    base = np.maximum.reduceat(plain, held.starts)
    memes, words = np.divmod(held.by_meme.keys, offered)
    gains = np.maximum(held.by_meme.maxima(f1) - base[memes], 0.0)
    total = np.bincount(words, gains, minlength=offered)
    bound = np.sort(total)[-min(_BEAM, offered)]
    return np.flatnonzero(total >= bound - 1e-9 * len(base))


def _tables(words: Sequence[int], references: WordNumbers) -> list[WordNumbers]:
    """Common subsequence lengths of all prefixes of a text, for all references at once."""
    table = np.zeros((len(references), references.shape[1] + 1), np.int32)
    tables = [table]
    for word in words:
        grown = table.copy()
        grown[:, 1:] = np.maximum(table[:, 1:], table[:, :-1] + (references == word))
        table = np.maximum.accumulate(grown, axis=1)
        tables.append(table)
    return tables


def _spell(words: Sequence[str], references: Sequence[Sequence[str]], stem: Stem | None) -> str:
    """Write stemmed words out: a stem is replaced by its most frequent word."""
    if stem is None:
        return join_tokens(words)
    spelled: dict[str, Counter[str]] = {}
    for text in (text for texts in references for text in texts):
        for plain, stemmed in zip(rouge_tokens(text), rouge_tokens(text, stem), strict=True):
            spelled.setdefault(stemmed, Counter())[plain] += 1
    return join_tokens([spelled[word].most_common(1)[0][0] for word in words])
