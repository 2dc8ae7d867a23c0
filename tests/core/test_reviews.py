"""Queues with their annotations: which items are kept, which file counts, and what is refused."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue

from memantics.core.errors import DataError, InputError
from memantics.core.queue import (
    AggregatedAnnotation,
    JudgedQuestion,
    QueueCard,
    QueueItem,
    Review,
    Reviewed,
    find_queues,
    list_judged_questions,
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


def write_folder(folder: Path, *items: str) -> Path:
    """A folder of two memes with captions, and annotations of some of them."""
    lines = [
        {"id": "a", "image": "images/a.png", "text": "wir haben Montag", "language": "de",
         "template_cluster": "t", "notes": {"meaning": "written down"}},
        {"id": "b", "image": "b.png", "text": "今晚又失眠了"},
    ]  # fmt: skip
    folder.mkdir()
    (folder / "memes.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    write_annotations(
        folder / "annotations.jsonl",
        [
            AggregatedAnnotation(item=n, group=n, workflow="pun", kept=n != "b", values={"x": n})
            for n in items
        ],
    )
    return folder


def test_a_folder_of_annotated_memes_is_read_like_a_queue(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "memes", "b", "a")
    (folder / "captions.jsonl").write_bytes(
        orjson.dumps({"id": "a", "text_caption": "mined", "image_caption": "a desk"})
    )
    review = read_review(folder, None)
    assert review.card == QueueCard(
        title="memes", workflow="pun", warning="Memes may be offensive."
    )
    first, second = review.items
    assert first.item == QueueItem(
        id="a",
        group="a",
        images=["images/a.png"],
        hidden={
            "text": "wir haben Montag",
            "language": "de",
            "template_cluster": "t",
            "description": "a desk",
            "meaning": "written down",
        },
    )
    assert second.item.hidden == {
        "text": "今晚又失眠了", "language": "zh", "template_cluster": "", "description": "",
        "meaning": "",
    }  # fmt: skip
    assert [(one.values, one.kept) for one in review.items] == [
        ({"x": "a"}, True), ({"x": "b"}, False),
    ]  # fmt: skip
    (folder / "captions.jsonl").unlink()
    assert read_review(folder, None).items[0].item.hidden["description"] == ""


def test_a_folder_without_annotations_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "memes")
    with pytest.raises(DataError) as caught:
        read_review(folder, None)
    assert str(caught.value) == (
        f"{folder / 'annotations.jsonl'}: contains no annotation; finish the review first"
    )


def test_values_of_the_last_round_count_and_images_are_below_the_folder(tmp_path: Path) -> None:
    for name, value in (("queue", 1), ("queue-2", 2)):
        folder = tmp_path / name
        hidden: dict[str, JsonValue] = {"edits": {"x": f"e{value}.png"}, "n": 1}
        item = QueueItem(id="a", group="g", images=["images/a.png"], hidden=hidden)
        write_queue(folder, CARD.model_copy(update={"title": name}), [item])
        done = AggregatedAnnotation(
            item="a", group="g", workflow="review", kept=True, values={"x": value}
        )
        write_annotations(folder / "annotations.jsonl", [done])
    merged = read_reviews(find_queues(tmp_path))
    assert merged.card.title == "queue"
    (found,) = merged.items
    assert found.values == {"x": 2}
    assert found.item.images == ["queue-2/images/a.png"]
    assert found.item.hidden == {"edits": {"x": "queue-2/e2.png"}, "n": 1}
    assert found.aggregated is not None


def judged(
    hidden: dict[str, JsonValue], values: dict[str, JsonValue], *, kept: bool = True
) -> list[JudgedQuestion]:
    item = QueueItem(id="q", group="m", hidden=hidden)
    done = AggregatedAnnotation(item="q", group="m", workflow="v", kept=kept, values=values)
    items = (Reviewed(item, values, done), Reviewed(item, values, None))
    return list(list_judged_questions(Review(Path(), CARD, items)))


ASKED: dict[str, JsonValue] = {"dimension": "Intent", "element": "text/word", "questions": []}
YES: dict[str, JsonValue] = {"second_question": "yes", "second_answer": "yes"}


def test_questions_of_a_validated_queue() -> None:
    first = JudgedQuestion("Intent", "m", accepted=True, first=True)
    second = JudgedQuestion("text", "m", accepted=True, first=False)
    assert judged(ASKED, YES) == [first, second]
    assert judged(ASKED | {"element": "image"}, YES)[1].dimension == "image"
    # The second one was not asked, or has no element.
    assert judged(ASKED, {"second_answer": "yes"}) == [first]
    for element in ("", None, 7):
        assert judged(ASKED | {"element": element}, YES) == [first]
    # Other queues have no questions.
    assert judged(ASKED | {"dimension": None}, YES) == []
    assert judged({"dimension": "Intent", "element": "text"}, YES) == []


@pytest.mark.parametrize(
    ("kept", "values", "accepted"),
    [
        (True, YES, (True, True)),
        (True, YES | {"second_answer": "no"}, (True, False)),
        (True, YES | {"second_question": "no"}, (True, False)),
        (True, {"second_question": "yes"}, (True, False)),
        (False, YES, (False, False)),
    ],
)
def test_which_questions_are_accepted(
    kept: bool, values: dict[str, JsonValue], accepted: tuple[bool, bool]
) -> None:
    found = judged(ASKED, values, kept=kept)
    assert tuple(one.accepted for one in found) == accepted
