"""Queues and annotations survive the way through a file, and bad lines are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import DataError
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    QueueCard,
    QueueItem,
    Shown,
    read_annotations,
    read_queue,
    write_annotations,
    write_queue,
)

CARD = QueueCard(title="Two memes", workflow="validate", warning="rude")
ITEMS = [
    QueueItem(
        id="q1",
        group="m1",
        images=["images/m1.png"],
        shown=[Shown(label="Question", value="Who?"), Shown(label="Options", value=["a", "b"])],
        values={"question": "YES"},
        gold={"question": "NO"},
        hidden={"model": "x"},
    ),
    QueueItem(id="q2", group="m1"),
]


def test_a_queue_comes_back_as_it_went(tmp_path: Path) -> None:
    assert write_queue(tmp_path, CARD, ITEMS) == 2
    assert read_queue(tmp_path) == (CARD, ITEMS)


def test_verdicts_come_back_as_they_went(tmp_path: Path) -> None:
    annotation = AggregatedAnnotation(
        item="q1",
        group="m1",
        workflow="validate",
        kept=True,
        values={"question": "YES"},
        annotations=[
            IndividualAnnotation(
                annotator="p1", stage="judge", values={"question": "YES"}, at="2026-01-01"
            )
        ],
        hidden={"model": "x"},
    )
    path = tmp_path / "annotations.jsonl"
    assert write_annotations(path, [annotation]) == 1
    assert list(read_annotations(path)) == [annotation]


def test_an_image_outside_the_queue_is_refused(tmp_path: Path) -> None:
    bad = QueueItem(id="q", group="m", images=["../../secret.png"])
    with pytest.raises(DataError, match="outside"):
        write_queue(tmp_path, CARD, [bad])
    (tmp_path / "items.jsonl").write_text(bad.model_dump_json(exclude_defaults=True) + "\n")
    with pytest.raises(DataError, match="outside"):
        read_queue(tmp_path)


def test_an_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    write_queue(tmp_path, CARD, [ITEMS[1], ITEMS[1]])
    with pytest.raises(DataError, match="row 2: id 'q2' occurs twice"):
        read_queue(tmp_path)


def test_a_folder_without_a_card_is_no_queue(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a queue"):
        read_queue(tmp_path)
