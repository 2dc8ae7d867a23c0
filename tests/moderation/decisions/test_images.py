"""Images of appealed posts: kept only if asked, shown to reviewers, deleted by retention."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from PIL import Image
from pydantic import JsonValue

from memantics.core.errors import InputError, StoreError
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    QueueItem,
    read_queue,
    write_annotations,
)
from memantics.moderation import (
    appeal_decision,
    queue_appeals,
    record_reviews,
    retain_decisions,
    verify_decisions,
)
from memantics.moderation.decisions.images import NOT_KEPT
from memantics.moderation.decisions.log import DecisionLog, name_image
from tests.annotation.postgres import start_postgres, why_not
from tests.commands import Shell
from tests.moderation.policies.scripted import POLICIES

POLICY = POLICIES / "forum.md"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Callable[[], str]]:
    if problem := why_not():
        pytest.skip(problem)
    with start_postgres() as server:
        yield server.make_database


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    make: Callable[[], str] = request.getfixturevalue("postgres")
    return make()


def draw(color: str, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (32, 24), color).save(file, kind)
    return file.getvalue()


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


KEPT, OTHER = draw("red"), draw("blue", "JPEG")


def write_reviews(path: Path, language: str = "en") -> None:
    """Two images and a text on which a reviewer decided."""
    rows = []
    for number, data in enumerate((KEPT, OTHER, None), 1):
        vote = IndividualAnnotation(
            annotator="reviewer-1", stage="review", values={"harmful": "yes", "clause": "1"},
            roles=["reviewer"],
        )  # fmt: skip
        hidden: dict[str, JsonValue] = {
            "id": f"post-{number}", "text": "the old turnip", "language": language,
            "sha256": "" if data is None else hash_of(data),
        }  # fmt: skip
        rows.append(
            AggregatedAnnotation(
                item=f"{number}",
                group=f"{number}",
                workflow="review-policy",
                kept=True,
                values={"harmful": "yes", "clause": "1"},
                annotations=[vote],
                hidden=hidden,
            )
        )
    write_annotations(path, rows)


def record(folder: Path, url: str, **options: object) -> list[str]:
    """Record the reviews, appeal against each, and return the decisions."""
    write_reviews(folder / "reviewed.jsonl")
    done = record_reviews(folder / "reviewed.jsonl", url, policy=POLICY, **options)  # type: ignore[arg-type]
    for one in done.decisions:
        appeal_decision(one.id, url, statement="It is art.")
    return [one.id for one in done.decisions]


def read_items(folder: Path) -> dict[str, QueueItem]:
    return {str(item.hidden["id"]): item for item in read_queue(folder)[1]}


def find_note(item: QueueItem) -> str:
    return next((str(one.value) for one in item.shown if one.label == "image"), "")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder as ``screen`` writes it, with one image in a subfolder under another name."""
    folder = tmp_path / "pictures"
    (folder / "old").mkdir(parents=True)
    (folder / f"{hash_of(KEPT)}.png").write_bytes(KEPT)
    (folder / "old" / "x.jpg").write_bytes(draw("green", "JPEG"))
    (folder / "damaged.png").write_bytes(KEPT[:30])
    return folder


def test_a_kept_image_is_shown_and_a_missing_one_is_explained(
    url: str, tmp_path: Path, pictures: Path
) -> None:
    shell = Shell(tmp_path)
    write_reviews(tmp_path / "reviewed.jsonl")
    words = ("decisions", "record", "reviewed.jsonl", "--db", url, "--policy", POLICY)
    told = shell.done(*words, "--images", "pictures", "--keep-images", "30")
    assert "recorded: 3; skipped: 0" in told
    assert "images kept: 1; not found in --images: 1" in told
    with DecisionLog(url) as log:
        names = [line.case for line in log.walk()]
        assert [log.read_image(name) for name in names] == [KEPT, None, None]
        assert KEPT not in b"".join(str(line.body).encode() for line in log.walk())
    assert verify_decisions(url).sound
    for name in names:
        appeal_decision(name, url, statement="It is art.")
    told = shell.done("decisions", "queue", "appeals", "--db", url, "--policy", POLICY)
    assert "3 items" in told
    assert "1 without their image, which was not kept: add --images FOLDER" in told
    items = read_items(tmp_path / "appeals")
    assert items["post-1"].images == [f"images/{hash_of(KEPT)}.png"]
    assert (tmp_path / "appeals" / items["post-1"].images[0]).read_bytes() == KEPT
    assert [one.label for one in items["post-1"].shown] == ["statement of the poster"]
    assert items["post-2"].images == []
    assert find_note(items["post-2"]) == NOT_KEPT["en"]
    assert "--keep-images DAYS" in find_note(items["post-2"])
    assert find_note(items["post-3"]) == ""
    # A folder that the operator keeps outside of the log serves as well.
    (pictures / "old" / "y.jpeg").write_bytes(OTHER)
    found = queue_appeals(tmp_path / "again", url, policy=POLICY, images=pictures)
    assert found.images_missing == 0
    items = read_items(tmp_path / "again")
    assert items["post-2"].images == [f"images/{hash_of(OTHER)}.jpg"]
    with DecisionLog(url) as log:
        assert log.read_image(names[1]) is None


def test_nothing_is_kept_unless_asked(url: str, tmp_path: Path, pictures: Path) -> None:
    names = record(tmp_path, url)
    with DecisionLog(url) as log:
        assert [log.read_image(name) for name in names] == [None] * 3
    found = queue_appeals(tmp_path / "appeals", url, policy=POLICY)
    assert found.images_missing == 2
    for options in ({"images": pictures}, {"keep_images": 3.0}):
        with pytest.raises(InputError, match="--images and --keep-images belong together"):
            record(tmp_path, url, **options)
    with pytest.raises(InputError, match="no folder"):
        record(tmp_path, url, images=tmp_path / "nothing", keep_images=3.0)


def test_the_note_is_chinese_in_a_chinese_queue(tmp_path: Path) -> None:
    url = str(tmp_path / "log.db")
    write_reviews(tmp_path / "reviewed.jsonl", "zh-CN")
    for one in record_reviews(tmp_path / "reviewed.jsonl", url, policy=POLICY).decisions:
        appeal_decision(one.id, url)
    queue_appeals(tmp_path / "appeals", url, policy=POLICY)
    assert find_note(read_items(tmp_path / "appeals")["post-1"]) == NOT_KEPT["zh"]


def test_retention_deletes_images(url: str, tmp_path: Path, pictures: Path) -> None:
    names = record(tmp_path, url, images=pictures, keep_images=1.0, keep_texts=3.0)
    with DecisionLog(url) as log:
        until = log.clock() + 86_400
        table = log.tables["decision_contents"]
        query = sa.select(table.c.expires_at).where(table.c.content_key == name_image(names[0]))
        with log.read() as connection:
            assert connection.execute(query).scalar_one() == pytest.approx(until, abs=600)
    assert retain_decisions(url).contents == 0
    with DecisionLog(url) as log, log.write() as connection:
        ending = table.c.expires_at.is_not(None)  # statements are kept until they are deleted
        connection.execute(sa.update(table).where(ending).values(expires_at=1.0))
    # The image and the text of the text post and of both images.
    assert retain_decisions(url).contents == 4
    with DecisionLog(url) as log:
        assert log.read_image(names[0]) is None
    assert verify_decisions(url).sound


def test_a_changed_image_is_found_and_not_shown(url: str, tmp_path: Path, pictures: Path) -> None:
    names = record(tmp_path, url, images=pictures, keep_images=1.0)
    for text in ("aGk=", "not base64"):
        with DecisionLog(url) as log, log.write() as connection:
            table = log.tables["decision_contents"]
            chosen = table.c.content_key == name_image(names[0])
            connection.execute(sa.update(table).where(chosen).values(text=text))
        (fault,) = verify_decisions(url).faults
        assert (fault.seq, fault.problem) == (1, "the stored image was changed")
        with pytest.raises(StoreError, match=f"the stored image of {names[0]} was changed"):
            queue_appeals(tmp_path / "appeals", url, policy=POLICY)
