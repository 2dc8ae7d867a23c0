"""Texts that come twice: from train into test, and from one meme to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memantics.core.finding import Finding, FindingWords, Gap, rank
from memantics.core.records import Item
from memantics.core.text import split_pieces
from memantics.metrics.duplicates import find_near_duplicates, find_twins
from memantics.run.audit.subject import Exam, find_text
from memantics.tasks.factories import share

THRESHOLD = 0.8
_SHORTEST = 4
_WORDS = FindingWords(__file__)


def find_leaks(exam: Exam) -> tuple[list[Finding], list[Gap]]:
    """Near-duplicates across splits, and across memes within the split that is audited."""
    found = list(_find_across(exam))
    gaps = []
    if not found and {"train", "test"} <= set(exam.card.splits):
        have = f"of train and test this copy has: {', '.join(exam.splits) or 'neither'}"
        gaps.append(Gap(exam.name, "train/test leakage", have, "add the missing file"))
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
    marks = {"identical": exact, "near": near}
    yield _WORDS.find(
        "leak.split",
        share("share", near, groups),
        rank(any(near), broken=any(near) and sum(near) >= 0.1 * len(near)),
        {
            "least": THRESHOLD,
            "near": sum(near),
            "texts": len(near),
            "same": sum(same) / max(1, len(same)),
        },
        task=exam.name,
        rows=tuple(share("share", held, groups, "texts", name) for name, held in marks.items()),
    )


def _find_within(exam: Exam) -> Iterator[Finding]:
    rows = read_texts(exam.texts)
    if len({item.group for item, _ in rows}) < 2:
        return
    groups = [item.group for item, _ in rows]
    twins = find_twins([text for _, text in rows], groups, THRESHOLD, split_pieces)
    figure = share("share", twins, groups)
    many = rank((figure.value or 0) >= 0.05)
    yield _WORDS.find("leak.memes", figure, many, {"least": THRESHOLD}, task=exam.name)


def read_texts(items: Sequence[Item]) -> list[tuple[Item, str]]:
    """Each meme once with its text; texts too short to tell apart are left out."""
    seen: dict[str, tuple[Item, str]] = {}
    for item in items:
        text = find_text(item)
        if len(set(split_pieces(text))) >= _SHORTEST:
            seen.setdefault(f"{item.group}\0{text}", (item, text))
    return list(seen.values())
