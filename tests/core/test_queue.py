"""Queues and annotations survive the way through a file, and bad lines are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import DataError, ImageError
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    QueueCard,
    QueueItem,
    QueueOption,
    Shown,
    copy_picture,
    read_annotations,
    read_queue,
    write_annotations,
    write_queue,
)
from memantics.core.samples import image_path, read_samples

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


def test_the_number_of_lines_is_returned(tmp_path: Path) -> None:
    done = AggregatedAnnotation(item="q", group="m", workflow="v", kept=True, values={})
    for count in (0, 1, 3):
        assert (
            write_queue(tmp_path, CARD, [QueueItem(id=f"{n}", group="m") for n in range(count)])
            == count
        )
        assert write_annotations(tmp_path / "a.jsonl", [done] * count) == count
        assert len(list(read_annotations(tmp_path / "a.jsonl"))) == count
        assert len(read_queue(tmp_path)[1]) == count


def test_a_queue_has_its_card_last(tmp_path: Path) -> None:
    """A folder whose items broke off is no queue."""
    items = [ITEMS[0], QueueItem(id="a\tb", group="m")]
    with pytest.raises(DataError, match=r"row 2: id 'a\\tb' contains U\+0009; change it in the"):
        write_queue(tmp_path / "new", CARD, items)
    assert list((tmp_path / "new").iterdir()) == []


def test_items_with_invalid_ids_are_returned_on_demand(tmp_path: Path) -> None:
    write_queue(tmp_path, CARD, [ITEMS[1]])
    with (tmp_path / "items.jsonl").open("a") as file:
        file.write('{"id": "a\\tb", "group": "m"}\n')
    assert [item.id for item in read_queue(tmp_path, any_id=True)[1]] == ["q2", "a\tb"]
    with pytest.raises(DataError, match="row 2: id"):
        read_queue(tmp_path)


def test_options_of_a_card_have_different_values() -> None:
    one, other = QueueOption(value="a", en="A"), QueueOption(value="b", en="A")
    assert QueueCard(title="t", workflow="w", options={"x": [one, other]}).options["x"][1] == other
    assert QueueCard(title="t", workflow="w", options={"x": [one], "y": [one]}).options["y"] == [
        one
    ]
    with pytest.raises(ValueError, match="options of 'x': two options have the same value"):
        QueueCard(title="t", workflow="w", options={"x": [one, one]})
    for wrong in (-1, 51):
        with pytest.raises(ValueError, match="annotators_per_item"):
            QueueCard(title="t", workflow="w", annotators_per_item=wrong)
    assert QueueCard(title="t", workflow="w", annotators_per_item=50).annotators_per_item == 50


def test_an_image_is_copied_under_a_plain_name(tmp_path: Path) -> None:
    image = tmp_path / "A.PNG"
    image.write_bytes(image_path(read_samples()[0].id).read_bytes())
    for name, place in (("m 1/ü_-.x", "images/m-1-_-.x.png"), ("..", "images/...png")):
        assert copy_picture(image, tmp_path / "q", name) == place
        assert (tmp_path / "q" / place).read_bytes() == image.read_bytes()
    with pytest.raises(ImageError):
        copy_picture(tmp_path / "gone.png", tmp_path / "q", "x")
