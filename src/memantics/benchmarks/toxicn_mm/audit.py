"""What only ToxiCN MM's own data can show: what file numbers and label versions give away."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memantics.benchmarks.toxicn_mm.load import NEAR, HarmMeme, HarmRelease, find_leakage
from memantics.core.finding import Finding, FindingWords, rank
from memantics.core.records import Score
from memantics.metrics.classification import balanced_accuracy, binary_intervals, count_binary
from memantics.metrics.classification import macro_f1 as macro
from memantics.tasks.factories import share, spanned

SHOWN = {name: {"input": "captions"} for name in ("detection", "type", "target")}
NEIGHBOURS = 20
_WORDS = FindingWords(__file__)


def pictures(release: HarmRelease) -> Iterator[str]:
    """The images of a complete copy."""
    names = {meme.id for part in release.parts.values() for meme in part}
    return (f"{name}.jpg" for name in sorted(names))


def findings(release: HarmRelease) -> tuple[Finding, ...]:
    """Labels from file numbers, and labels that changed between versions."""
    found: list[Finding] = []
    memes = [meme for meme in release.memes(release.versions[0]) if meme.id.isdecimal()]
    if len(memes) > 10 * NEIGHBOURS:
        found.append(_judge_numbers(memes))
    if len(release.versions) == 2:
        found.append(_judge_versions(release))
    return tuple(found)


def narrow(release: HarmRelease, split: str) -> HarmRelease:
    """The memes of a split, in every label version."""
    if split == "all":
        return release
    return replace(
        release, parts={key: memes for key, memes in release.parts.items() if split in key}
    )


def across(release: HarmRelease) -> tuple[Finding, ...]:
    """Test texts that the training part holds; in place of the general check of splits."""
    leaked = find_leakage(release)
    if leaked is None:
        return ()
    groups, near = [meme.id for meme in leaked.test], leaked.near
    pairs = [(a, b) for a, b in zip(leaked.test, leaked.twins, strict=True) if b is not None]
    same = sum(a.harmful == b.harmful for a, b in pairs)
    many, all_same = len(pairs), same / max(1, len(pairs))
    found = _WORDS.find(
        "leak.split",
        share("share", near, groups),
        rank(many > 0, broken=many > 0 and many >= 0.1 * len(near)),
        {"least": NEAR, "pairs": many, "near": len(near), "same": all_same},
        rows=(
            share("share", leaked.identical, groups, "texts", "identical"),
            share("share", near, groups, "texts", "near"),
        ),
    )
    return (found,)


def _judge_numbers(memes: Sequence[HarmMeme]) -> Finding:
    """Guess each label from the labels of the nearest file numbers, its own left out."""
    ordered = sorted(memes, key=lambda meme: int(meme.id))
    base = sum(meme.harmful for meme in ordered) / len(ordered)
    gold = [meme.harmful for meme in ordered]
    said = [share >= base for share in _average_neighbours(ordered)]
    groups = [meme.id for meme in ordered]
    counts, spans = count_binary(gold, said, True), binary_intervals(gold, said, True, groups)
    low, high = spans.macro_f1 or (None, None)
    value = macro(counts)
    tenth = max(1, len(ordered) // 10)
    rates = [_rate(ordered[start : start + tenth]) for start in range(0, 10 * tenth, tenth)]
    leak = low is not None and low > 0.5
    balance = Score("balanced_accuracy", balanced_accuracy(counts), len(gold))
    rows = (
        spanned(replace(balance, by="figure", label="balanced accuracy"), spans.balanced_accuracy),
        *(
            Score("share", rate, tenth, by="numbers, harmful share", label=f"tenth {place}")
            for place, rate in enumerate(rates, 1)
        ),
    )
    return _WORDS.find(
        "toxicn_mm.numbers",
        Score("macro_f1", value, len(gold), low, high),
        rank(leak, broken=leak and (value or 0) >= 0.6),
        {"neighbours": NEIGHBOURS, "low": min(rates), "high": max(rates)},
        rows=rows,
    )


def _average_neighbours(ordered: Sequence[HarmMeme]) -> Iterator[float]:
    numbers = [int(meme.id) for meme in ordered]
    for place, number in enumerate(numbers):
        start = bisect_left(numbers, number) - NEIGHBOURS
        window = [
            (abs(numbers[i] - number), i)
            for i in range(max(0, start), min(len(numbers), place + NEIGHBOURS + 1))
            if i != place
        ]
        near = sorted(window)[:NEIGHBOURS]
        yield sum(ordered[i].harmful for _, i in near) / len(near)


def _rate(memes: Sequence[HarmMeme]) -> float:
    return sum(meme.harmful for meme in memes) / len(memes) if memes else 0.0


def _judge_versions(release: HarmRelease) -> Finding:
    first = {meme.id: meme for meme in release.memes("v1")}
    pairs = [(first[meme.id], meme) for meme in release.memes("v2") if meme.id in first]
    label = [one.harmful != two.harmful for one, two in pairs]
    kind = [one.type != two.type for one, two in pairs]
    groups = [one.id for one, _ in pairs]
    figure = share("share", kind, groups)
    values = {"types": sum(kind), "labels": sum(label), "memes": len(pairs)}
    return _WORDS.find("toxicn_mm.versions", figure, rank(any(kind)), values)
