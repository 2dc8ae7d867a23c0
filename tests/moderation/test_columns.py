"""A company's table of labelled posts is read as it is."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from memantics.core.errors import DataError
from memantics.moderation.data import load_examples
from memantics.moderation.detect import Detector
from memantics.moderation.detector import measure_detector
from memantics.moderation.examples import ExampleColumns, find_columns, read_examples
from memantics.moderation.scale.sources import read_sources
from tests.moderation.commands import run
from tests.moderation.samples import make_examples

HEADER = ("post_id", "caption", "image", "label", "created_at")


def write_posts(path: Path, header: tuple[str, ...] = HEADER, count: int = 80) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(header)
        for e in make_examples(count):
            rows.writerow((f"p{e.id}", e.text, "", ("benign", "hateful")[e.label or 0], "2026-10"))
    return path


def test_usual_names_are_recognised_and_others_ignored(tmp_path: Path) -> None:
    found = read_examples(write_posts(tmp_path / "posts.csv"))
    assert [e.id for e in found.examples[:2]] == ["p1", "p2"]
    assert [e.label for e in found.examples] == [e.label for e in make_examples(80)]
    assert found.notes == (
        "columns read: id = post_id, text = caption",
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
    assert Detector.load(tmp_path / "d.zip").columns == ExampleColumns("key", "said", "verdict")
    # Tables of the same company need no names again.
    done = measure_detector(tmp_path / "d.zip", data=str(table))
    assert done.metrics.count == 80


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    table = write_posts(tmp_path / "posts.csv")
    with pytest.raises(DataError, match="has no column 'body'; its columns: post_id, caption"):
        load_examples(str(table), columns=ExampleColumns(text_column="body"))


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
    assert find_columns(header, ExampleColumns(), "t")[0] == known
