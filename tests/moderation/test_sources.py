from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.core.errors import DataError, InputError
from memantics.core.samples import image_path
from memantics.moderation.examples import natural_key, need_labels, need_two_classes, read_examples


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_rows_become_examples(tmp_path: Path) -> None:
    path = write(
        tmp_path / "memes.csv",
        "id,text,text_caption,image_caption,label,type,modality\n"
        "7,苦瓜,说苦,一只猫,1,targeted,text\n8,西瓜,,,harmless,,\n9,辣椒,,,true,2,\n",
    )
    one, two, three = read_examples(path).examples
    assert (one.id, one.text, one.label, one.type, one.modality) == (
        "7", "苦瓜", 1, "targeted", "text",
    )  # fmt: skip
    assert (two.label, two.type) == (0, "none")
    # The official ids number sexual before offence.
    assert (three.label, three.type) == (1, "sexual")


def test_json_lines_and_a_type_alone_give_the_label(tmp_path: Path) -> None:
    lines = [{"text": "a", "type": "offence"}, {"text": "b", "label": False}]
    path = write(tmp_path / "m.jsonl", "\n".join(map(json.dumps, lines)))
    assert [e.label for e in read_examples(path).examples] == [1, 0]


def test_the_ending_of_a_file_may_be_in_capitals(tmp_path: Path) -> None:
    path = write(tmp_path / "MEMES.CSV", "text,label\nhi,1\n")
    assert read_examples(path).examples[0].text == "hi"


def test_folders_may_hold_images_of_the_same_name(tmp_path: Path) -> None:
    body = "file_name,text,label\nbad/1.png,hi,1\ngood/1.png,ho,0\n.,he,0\n"
    loaded = read_examples(write(tmp_path / "m.csv", body))
    assert [e.id for e in loaded.examples] == ["bad/1", "good/1", "."]


def test_numbers_of_any_length_are_names(tmp_path: Path) -> None:
    """Python refuses to make a number of so many digits."""
    long = "9" * 5000
    with pytest.raises(DataError, match="unknown type"):
        read_examples(write(tmp_path / "m.csv", f"text,type\nhi,{long}\n"))
    assert sorted([long, "10", "007", "9", "a"], key=natural_key) == ["007", "9", "10", long, "a"]


def test_an_imagefolder_keeps_images_inside(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(image_path("en-001").read_bytes())
    write(tmp_path / "metadata.csv", "file_name,text,label\na.png,hi,0\nlost.png,ho,1\n")
    loaded = read_examples(tmp_path)
    assert loaded.examples[0].image == tmp_path / "a.png"
    assert loaded.examples[1].image is None
    assert loaded.notes[-1] == "1 image files are missing: only the texts are used"
    write(tmp_path / "metadata.csv", "file_name,text\n../../etc/passwd,hi\n")
    with pytest.raises(DataError, match="points outside"):
        read_examples(tmp_path)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("text,label\nhi,7\n", "row 2: unknown label '7'"),
        ("text,type\nhi,9\n", "row 2: unknown type '9'"),
        ("text,type\nhi,rude\n", "row 2: unknown type 'rude'"),
        ("text,modality\nhi,smell\n", "row 2: unknown modality"),
        ("text,label\nhi,1,2\n", "row 2: the number of cells differs from the"),
        ("text,label,type\nhi,0,sexual\n", "label 0 contradicts type sexual"),
        ("id,text\n1,hi\n1,ho\n", "row 3: id '1' is not unique"),
        ("text\n", "has no examples"),
        ('text\n"hi', "cannot be read as CSV"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, body: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read_examples(write(tmp_path / "m.csv", body))


def test_rows_with_nothing_to_read_are_left_out_and_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", "id,text,image,label\n1,hi,,0\n2,,,1\n3, ,gone.png,1\n")
    loaded = read_examples(path)
    assert [e.id for e in loaded.examples] == ["1"]
    assert [(s.row, s.reason) for s in loaded.skips] == [
        ("3", "no text and no image"),
        ("4", "no text, and its image is missing"),
    ]


@pytest.mark.parametrize(
    ("name", "body"), [("m.jsonl", "{broken"), ("m.txt", "hi"), ("m.csv", "\udcff")]
)
def test_files_that_cannot_be_read_are_errors(tmp_path: Path, name: str, body: str) -> None:
    (tmp_path / name).write_bytes(body.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError):
        read_examples(tmp_path / name)
    with pytest.raises(DataError):
        read_examples(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="neither metadata"):
        read_examples(tmp_path)


def test_labels_are_needed_in_two_classes(tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", "text,label\nhi,1\nho,\n")
    with pytest.raises(InputError, match="has no label"):
        need_labels(read_examples(path).examples, "m.csv")
    with pytest.raises(InputError, match="only one class"):
        need_two_classes([0, 0], "fold 1")
