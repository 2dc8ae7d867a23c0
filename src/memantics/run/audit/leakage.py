"""Texts that come twice: from train into test, and from one meme to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memantics.core.finding import Finding, FindingVerdict, Gap
from memantics.core.records import Item
from memantics.core.text import split_pieces
from memantics.metrics.duplicates import find_near_duplicates, find_twins
from memantics.run.audit.rows import share
from memantics.run.audit.subject import Exam, find_text

THRESHOLD = 0.8
_SHORTEST = 4


def find_leaks(exam: Exam) -> tuple[list[Finding], list[Gap]]:
    """Near-duplicates across splits, and across memes within the split that is audited."""
    found = list(_find_across(exam))
    gaps = []
    if not found and {"train", "test"} <= set(exam.card.splits):
        have = ", ".join(exam.splits) or "neither"
        gaps.append(
            Gap(
                exam.name,
                "train/test leakage",
                f"of train and test this copy has: {have}",
                "add the missing file",
            )
        )
    found += _find_within(exam)
    return found, gaps


def _find_across(exam: Exam) -> Iterator[Finding]:
    train, test = (read_texts(exam.splits.get(name, ())) for name in ("train", "test"))
    if not train or not test:
        return
    known = {text for _, text in train}
    places = find_near_duplicates(
        [text for _, text in test], [text for _, text in train], THRESHOLD, split_pieces
    )
    near = [place is not None for place in places]
    exact = [text in known for _, text in test]
    groups = [item.group for item, _ in test]
    same = [
        test[i][0].gold == train[place][0].gold
        for i, place in enumerate(places)
        if place is not None
    ]
    figure = share(near, groups)
    agreeing = sum(same) / len(same) if same else None
    verdict: FindingVerdict = "sound"
    if any(near):
        verdict = "broken" if sum(near) >= 0.1 * len(near) else "worth knowing"
    yield Finding(
        key="leak.split",
        title="Test texts that the training part holds",
        measured="share of test texts with a near-duplicate in train (words or "
        f"Chinese characters shared, Jaccard {THRESHOLD} or more)",
        figure=figure,
        expected=0.0,
        reference="disjoint parts",
        verdict=verdict,
        meaning="No text of test is in train."
        if not any(near)
        else f"{sum(near)} of {len(near):,} test texts are known from training"
        + (f"; {agreeing:.0%} of them carry the same label." if agreeing is not None else "."),
        advice="Nothing."
        if not any(near)
        else "Score the test part without them too, or split by groups of like texts.",
        task=exam.name,
        rows=(share(exact, groups, "texts", "identical"), share(near, groups, "texts", "near")),
    )


def _find_within(exam: Exam) -> Iterator[Finding]:
    rows = read_texts(exam.texts)
    if len({item.group for item, _ in rows}) < 2:
        return
    groups = [item.group for item, _ in rows]
    twins = find_twins([text for _, text in rows], groups, THRESHOLD, split_pieces)
    figure = share(twins, groups)
    many = (figure.value or 0) >= 0.05
    yield Finding(
        key="leak.memes",
        title="Texts that another meme shares",
        measured="share of items whose text nearly equals that of another meme (words or "
        f"Chinese characters shared, Jaccard {THRESHOLD} or more)",
        figure=figure,
        expected=0.0,
        reference="every text its own",
        verdict="worth knowing" if many else "sound",
        meaning="Few texts come twice."
        if not many
        else "Memes with like texts fall on both sides of a random split.",
        advice="Keep memes with like texts on one side of a split." if many else "Nothing.",
        task=exam.name,
    )


def read_texts(items: Sequence[Item]) -> list[tuple[Item, str]]:
    """Each meme once with its text; texts too short to tell apart are left out."""
    seen: dict[str, tuple[Item, str]] = {}
    for item in items:
        text = find_text(item)
        if len(set(split_pieces(text))) >= _SHORTEST:
            seen.setdefault(f"{item.group}\0{text}", (item, text))
    return list(seen.values())
