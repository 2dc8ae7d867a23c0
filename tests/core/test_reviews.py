"""Queues with their annotations: which items are kept, which file counts, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import DataError, InputError
from memantics.core.queue import (
    AggregatedAnnotation,
    QueueCard,
    QueueItem,
    find_queues,
    read_review,
    read_reviews,
    write_annotations,
    write_queue,
)

CARD = QueueCard(title="t", workflow="review")


def make(folder: Path, *names: str, done: dict[str, bool] | None = None) -> Path:
    """A queue with annotations of some of its items: whether each is kept."""
    items = [QueueItem(id=name, group="g", values={"x": 1, "y": 2}) for name in names]
    write_queue(folder, CARD, items)
    if done is not None:
        write_annotations(
            folder / "annotations.jsonl",
            [
                AggregatedAnnotation(
                    item=name, group="g", workflow="review", kept=kept, values={"x": 9}
                )
                for name, kept in done.items()
            ],
        )
    return folder


def test_annotations_replace_drafts(tmp_path: Path) -> None:
    queue = make(tmp_path / "q", "a", "b", "c", done={"b": False, "a": True})
    review = read_review(queue, None)
    assert (review.folder, review.card) == (queue, CARD)
    assert [(one.item.id, one.values, one.kept) for one in review.items] == [
        ("a", {"x": 9, "y": 2}, True),
        ("b", {"x": 9, "y": 2}, False),
    ]
    whole = read_review(queue, None, unreviewed=True)
    assert [(one.item.id, one.kept) for one in whole.items] == [
        ("a", True), ("b", False), ("c", True),
    ]  # fmt: skip
    assert [one.item.id for one in whole.annotated] == ["a", "b"]
    assert whole.items[2].values == {"x": 1, "y": 2}


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    queue = make(tmp_path / "q", "a")
    with pytest.raises(InputError, match="no annotations; annotate the queue"):
        read_review(queue, None)
    assert len(read_review(queue, None, unreviewed=True).items) == 1
    with pytest.raises(InputError, match="no annotations; annotate the queue"):
        read_review(queue, tmp_path / "gone.jsonl", unreviewed=True)
    other = make(tmp_path / "o", "z", done={"z": True}) / "annotations.jsonl"
    with pytest.raises(DataError, match="row 1: item 'z' is not in this queue"):
        read_review(queue, other)
    other.write_text("")
    with pytest.raises(DataError, match="no item of the queue has an annotation"):
        read_review(queue, other)
    twice = make(tmp_path / "p", "a", done={"a": True}) / "annotations.jsonl"
    twice.write_text(twice.read_text() * 2)
    with pytest.raises(DataError, match="row 2: item 'a' has two annotations"):
        read_review(queue, twice)


def test_an_item_that_changed_is_refused(tmp_path: Path) -> None:
    write_queue(tmp_path, CARD, [QueueItem(id="a", group="g", hidden={"text": "new", "n": 1})])
    for text, fits in (("new", True), ("old", False)):
        given = AggregatedAnnotation(
            item="a", group="g", workflow="review", kept=True, values={}, hidden={"text": text}
        )
        write_annotations(tmp_path / "annotations.jsonl", [given])
        if fits:
            assert len(read_review(tmp_path, None).items) == 1
        else:
            with pytest.raises(DataError, match="item 'a' has changed since it was annotated"):
                read_review(tmp_path, None)


def test_rounds_are_found_in_their_order_and_the_last_counts(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        name = "queue" if number == 1 else f"queue-{number}"
        make(tmp_path / name, "a", f"b{number}", done={"a": number == 10, f"b{number}": True})
    (tmp_path / "queue-3").mkdir()
    found = find_queues(tmp_path)
    assert [path.name for path in found] == ["queue", "queue-2", "queue-10"]
    assert find_queues(found[1]) == [found[1]]
    merged = read_reviews(found)
    assert merged.folder == tmp_path
    assert {one.item.id: one.kept for one in merged.items} == {
        "a": True, "b1": True, "b2": True, "b10": True,
    }  # fmt: skip
    assert read_reviews(found[:1]).folder == found[0]
    with pytest.raises(InputError, match="no queue was found"):
        read_reviews([])
