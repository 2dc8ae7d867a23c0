"""How varied texts are: distinct n-grams among all n-grams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

Cut = Callable[[str], Iterable[str]]


def distinct(utterances: Iterable[Sequence[str]], n: int) -> float | None:
    """Distinct-n of utterances cut into words: different n-grams over all, within utterances.

    None where there is no n-gram at all.

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


def measure_distinct(utterances: Iterable[str], cut: Cut = str.split) -> dict[int, float | None]:
    """Distinct-1 and Distinct-2 of texts; ``cut`` makes words (jieba's, for Chinese).

    >>> measure_distinct(["so good", "so so"])
    {1: 0.5, 2: 1.0}
    """
    words = [list(cut(utterance)) for utterance in utterances]
    return {n: distinct(words, n) for n in (1, 2)}
