"""Audit checks that need PunMemeCN's data: performance of captions and constant answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from memantics.benchmarks.factories import proportion_score, spanned
from memantics.benchmarks.published import read_published
from memantics.benchmarks.punmemecn.load import PunMeme, PunRelease
from memantics.benchmarks.punmemecn.wording import one_line
from memantics.core.finding import Finding, FindingVerdict, FindingWords, Maker, rank
from memantics.core.records import Score
from memantics.core.releases import is_test
from memantics.metrics.classification import (
    balanced_accuracy,
    binary_intervals,
    binary_macro_f1,
    count_binary,
    f1,
)

FOLDER = Path(__file__).parent
_WORDS = FindingWords(__file__)
SHOWN = {"detection": {"prompt": "2"}, "sentiment": {"prompt": "2"}, "chat": {"prompt": "2"}}


def pictures(release: PunRelease) -> Iterator[str]:
    """Return the image file names of a complete copy."""
    return (meme.file for meme in release.memes)


def makers(release: PunRelease) -> tuple[Maker, ...]:
    """Return the model that wrote the chats and checked distractors; the paper evaluates it too."""
    return (Maker("chats", "GPT-4o", ("chat",), "the paper"),) if release.official else ()


def narrow(release: PunRelease, split: str) -> PunRelease:
    """Restrict the data to the memes of a split."""
    if split == "all":
        return release
    kept = (meme for meme in release.memes if is_test(meme.group) == (split == "test"))
    return replace(release, memes=tuple(kept))


def findings(release: PunRelease) -> tuple[Finding, ...]:
    """Yield audit findings on constant answers, caption-only rules, readings and annotators."""
    return (
        _judge_always_pun(release),
        _judge_captions(release.memes),
        _judge_readings(release.memes),
        _judge_votes(release.memes),
    )


def _judge_always_pun(release: PunRelease) -> Finding:
    memes = release.memes
    gold = [meme.is_pun for meme in memes]
    groups = [meme.group for meme in memes]
    always = [True] * len(gold)
    counts, spans = count_binary(gold, always, True), binary_intervals(gold, always, True, groups)
    value = f1(counts)
    words = ""
    verdict: FindingVerdict = "worth knowing"
    if release.official:
        published, alone = _published(), _published("1")
        below, bare = (sum(row <= (value or 0) for row in rows) for rows in (published, alone))
        words = (
            f" {below} of {len(published)} published values are not above it, {bare} of "
            f"{len(alone)} of those with the image only."
        )
        # The general verdict rule, applied to the published rows that use only the image.
        verdict = "broken" if alone and 3 * bare >= len(alone) else "worth knowing"
    score = spanned(Score("f1", value, len(gold)), spans.f1)
    coin = 2 * 0.5 * sum(gold) / (0.5 * len(gold) + sum(gold))
    others = (
        ("balanced_accuracy", "balanced accuracy", balanced_accuracy, spans.balanced_accuracy),
        ("macro_f1", "macro-F1", binary_macro_f1, spans.macro_f1),
    )
    rows = tuple(
        spanned(Score(key, rate(counts), len(gold), by="metric", label=label), span)
        for key, label, rate, span in others
    )
    values = {"value": value or 0, "words": words}
    return _WORDS.find("shortcut.positive", score, verdict, values, expected=coin, rows=rows)


def _published(prompt: str | None = None) -> list[float]:
    rows = read_published(FOLDER / "expected" / "published.json")
    return [
        row.metrics["f1"]
        for row in rows
        if row.task == "detection"
        and "f1" in row.metrics
        and (prompt is None or row.options.get("prompt") == prompt)
    ]


def _judge_captions(memes: Sequence[PunMeme]) -> Finding:
    """Return the highest F1 that any rule can reach if it uses only the caption."""
    puns = Counter(meme.caption for meme in memes if meme.is_pun)
    others = Counter(meme.caption for meme in memes if not meme.is_pun)
    both = puns.keys() & others.keys()
    says = {text: _take(puns[text], others[text]) for text in puns | others}
    gold = [meme.is_pun for meme in memes]
    said = [says[meme.caption] for meme in memes]
    groups = [meme.group for meme in memes]
    counts, spans = count_binary(gold, said, True), binary_intervals(gold, said, True, groups)
    score = spanned(Score("f1", f1(counts), len(gold)), spans.f1)
    return _WORDS.find("punmemecn.captions", score, rank(bool(both)), {"both": len(both)})


def _take(puns: int, plain: int) -> bool:
    """Return whether to call a caption a pun; yes in doubt, since misses reduce F1 more."""
    return puns >= plain and puns > 0


def _judge_readings(memes: Sequence[PunMeme]) -> Finding:
    readings = {meme.group: meme.reading for meme in memes if meme.is_pun}
    alike = [meme for meme in memes if meme.role == "similar_text" and readings.get(meme.group)]
    hits = [meme.caption == readings[meme.group] for meme in alike]
    score = proportion_score("proportion", hits, [meme.group for meme in alike])
    values = {"count": sum(hits), "memes": len(hits)}
    return _WORDS.find("punmemecn.readings", score, rank(any(hits)), values)


def _judge_votes(memes: Sequence[PunMeme]) -> Finding:
    """Return how much annotators gain if the label they are scored against includes their vote."""
    puns = [meme for meme in memes if meme.is_pun and len(meme.votes) == 3]
    against_final = [(vote == meme.sentiment, meme.group) for meme in puns for vote in meme.votes]
    left = [
        (vote == others[0], meme.group)
        for meme in puns
        for place, vote in enumerate(meme.votes)
        if len(set(others := meme.votes[:place] + meme.votes[place + 1 :])) == 1
    ]
    rows = tuple(
        _vote_row(pairs, label)
        for pairs, label in (
            (against_final, "against the final label, own vote included"),
            (left, "against the two others, where they agree"),
        )
        if pairs
    )
    score = rows[0] if rows else Score("proportion", None, 0)
    gap = (rows[0].value or 0) - (rows[1].value or 0) if len(rows) > 1 else 0.0
    whole = Score("proportion", score.value, score.n, score.low, score.high)
    expected = rows[1].value if len(rows) > 1 else None
    return _WORDS.find("punmemecn.humans", whole, rank(gap > 0.02), expected=expected, rows=rows)


def _vote_row(pairs: Sequence[tuple[bool, str]], label: str) -> Score:
    hits, groups = [hit for hit, _ in pairs], [group for _, group in pairs]
    return proportion_score("proportion", hits, groups, "annotators", label)


def must_name(release: PunRelease) -> dict[str, list[frozenset[str]]]:
    """Return, by pun, its pun word and the homophone; a chain of thought must name both."""
    return {
        meme.id: [frozenset({printed}), frozenset({meant})]
        for meme in release.memes
        if meme.reading
        for printed, meant in [find_difference(one_line(meme.caption), one_line(meme.reading))]
        if printed and meant
    }


def find_difference(printed: str, meant: str) -> tuple[str, str]:
    """Return the middle parts of two texts, without their common beginning and end.

    >>> find_difference("左右为男", "左右为难"), find_difference("same", "same")
    (('男', '难'), ('', ''))
    """
    start = _count_shared(printed, meant)
    end = _count_shared(printed[start:][::-1], meant[start:][::-1])
    return printed[start : len(printed) - end], meant[start : len(meant) - end]


def _count_shared(first: str, second: str) -> int:
    """Return the length of the common beginning of two texts."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
