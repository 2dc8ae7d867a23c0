"""A company's table of labelled posts is read as it is."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from memantics.core.errors import DataError
from memantics.moderation.columns import USUAL, ExampleColumns, TableColumns
from memantics.moderation.data import load_examples
from memantics.moderation.detect import Detector
from memantics.moderation.detector import measure_detector
from memantics.moderation.examples import find_columns, read_examples
from memantics.moderation.review_reasons import IMAGE_MISSING
from memantics.moderation.scale.sources import read_sources
from memantics.moderation.scale.tables import find_columns as find_table_columns
from memantics.moderation.scale.tables import read_header
from memantics.moderation.screen import ScreenSettings, screen
from tests.moderation.commands import run
from tests.moderation.samples import make_examples
from tests.scale.inline import InlineEngine

HEADER = ("post_id", "caption", "image", "label", "created_at")


def write_posts(
    path: Path,
    header: tuple[str, ...] = HEADER,
    count: int = 80,
    labels: tuple[str, str] = ("benign", "hateful"),
    form: tuple[str, str] = ("utf-8", ","),
) -> Path:
    with path.open("w", encoding=form[0], newline="") as file:
        rows = csv.writer(file, delimiter=form[1])
        rows.writerow(header)
        for e in make_examples(count):
            rows.writerow((f"p{e.id}", e.text, "", labels[e.label or 0], "2026-10"))
    return path


@pytest.mark.parametrize(
    ("header", "labels"),
    [
        (HEADER, ("not hateful", "hateful")),
        (HEADER, ("0.0", "1.0")),
        (("编号", "文本", "图片", "标签", "时间"), ("无害", "有害")),
    ],
)
def test_training_and_screening_read_one_table_with_semicolons(
    tmp_path: Path, header: tuple[str, ...], labels: tuple[str, str]
) -> None:
    path = write_posts(tmp_path / "posts.csv", header, 8, labels, ("utf-8-sig", ";"))
    found = read_examples(path)
    assert [e.label for e in found.examples] == [e.label for e in make_examples(8)]
    screened = [(ref.id, ref.text) for ref in read_sources([path])]
    assert screened == [(e.id, e.text) for e in found.examples]
    assert read_header(path) == list(header)


def test_usual_names_are_recognised_and_others_ignored(tmp_path: Path) -> None:
    found = read_examples(write_posts(tmp_path / "posts.csv"))
    assert [e.id for e in found.examples[:2]] == ["p1", "p2"]
    assert [e.label for e in found.examples] == [e.label for e in make_examples(80)]
    assert found.notes == (
        "columns read: id = post_id, text = caption, label",
        "columns ignored: created_at",
    )
    (first, *_) = read_sources([tmp_path / "posts.csv"])
    assert (first.id, first.text) == ("p1", found.examples[0].text)


def test_columns_are_named_and_remembered_with_the_detector(tmp_path: Path) -> None:
    header = ("key", "said", "picture", "verdict", "when")
    table = write_posts(tmp_path / "posts.csv", header)
    with pytest.raises(DataError, match=r"only key, said, verdict, when; name one with --text-col"):
        read_examples(table)
    names = ("--id-column", "key", "--text-column", "said", "--label-column", "verdict")
    said = run("train", "--data", table, *names, "--out", tmp_path / "d.zip", "--preset", "ridge")
    assert "columns read: id = key, text = said, label = verdict" in " ".join(said.split())
    assert Detector.load(tmp_path / "d.zip").columns == {
        "id": "key", "text": "said", "label": "verdict",
    }  # fmt: skip
    # Tables of the same company need no names again.
    done = measure_detector(tmp_path / "d.zip", data=str(table))
    assert done.metrics.count == 80
    # The command line and the other verbs remember them, too.
    said = run("eval", tmp_path / "d.zip", "--data", table)
    assert "columns read: id = key, text = said, label = verdict" in " ".join(said.split())
    run("predict", tmp_path / "d.zip", "--data", table, "--out", tmp_path / "said.jsonl")
    assert len((tmp_path / "said.jsonl").read_text("utf-8").splitlines()) == 80
    settings = ScreenSettings(detector=tmp_path / "d.zip", readings="none")
    screened = screen(table, settings, out=tmp_path / "screened", engine=InlineEngine())
    assert (screened.rows, screened.statuses["scored"]) == (80, 80)
    assert screened.notes == (
        "columns read: id = key, text = said",
        "columns ignored: picture, verdict, when",
    )
    # A table with other columns is read by their usual names.
    other = write_posts(tmp_path / "other.csv")
    assert measure_detector(tmp_path / "d.zip", data=str(other)).metrics.count == 80


def test_all_commands_guess_the_same_columns() -> None:
    for role, names in USUAL.items():
        for name in names:
            header = [name.upper(), "caption" if role in ("id", "label") else "likes"]
            assert ExampleColumns().find(header)[role] == name.upper()
            if role != "label":
                found = find_table_columns(header, TableColumns(), Path("t"))
                assert getattr(found, role) == name.upper()


def test_images_that_are_not_there_send_posts_to_review_unless_they_are_ignored(
    tmp_path: Path,
) -> None:
    table = tmp_path / "posts.csv"
    rows = "".join(f"{e.id},{e.text},img/{e.id}.png\n" for e in make_examples(20))
    table.write_text(f"id,text,image\n{rows}", encoding="utf-8")
    settings = ScreenSettings(readings="none", threshold=1.0)
    found = screen(table, settings, out=tmp_path / "a", engine=InlineEngine())
    assert found.review_reasons[IMAGE_MISSING] == found.queued == 20
    assert not any("expected" in reason for reason in found.review_reasons)
    (note,) = found.notes
    assert note.startswith("20 memes need review because their images could not be read")
    assert note.endswith("add --image-column none")
    columns = TableColumns(image="none")
    found = screen(table, settings, out=tmp_path / "b", columns=columns, engine=InlineEngine())
    assert IMAGE_MISSING not in found.review_reasons
    assert found.notes == ("columns read: id, text", "columns ignored: image")


def test_a_named_column_may_be_empty_and_is_not_guessed(tmp_path: Path) -> None:
    table = tmp_path / "posts.csv"
    table.write_text("text,caption,picture,label\n,hello,,1\n,good night,,0\n", encoding="utf-8")
    columns = ExampleColumns(image="picture")
    for given, image in ((None, {}), (columns, {"image": "picture"})):
        found = load_examples(str(table), columns=given)
        assert found.columns == {"text": "caption", "label": "label", **image}
        assert [example.text for example in found.examples] == ["hello", "good night"]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    table = write_posts(tmp_path / "posts.csv")
    with pytest.raises(DataError, match="has no column 'body'; its columns: post_id, caption"):
        load_examples(str(table), columns=ExampleColumns(text="body"))


@pytest.mark.parametrize(
    ("header", "known"),
    [
        (["Text", "LABEL"], {"text": "Text", "label": "LABEL"}),
        (["text", "caption"], {"text": "text"}),
        (["img", "text_caption"], {"image": "img", "text_caption": "text_caption"}),
    ],
)
def test_names_are_found_in_any_case_and_the_first_usual_one_wins(
    header: list[str], known: dict[str, str]
) -> None:
    assert find_columns(header, ExampleColumns(), "t") == known
