"""Sets of the field, each read from a made-up file of its published layout."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from memantics.actions.datasets import add_release, load_dataset

PRIDE = """name,text,split,humour,hate,target,stance
img_1.png,we march,train,0,0,NA,1
img_2.png,go away,test,1,1,2,2
img_3.png,a parade,test,0,0,NA,0
"""
MULTIOFF = "image_name,sentence,label\n{0}a.png,vote twice,Non-offensiv\n{0}b.png,boo,offensive\n"
MEMOTION = """\
,image_name,text_ocr,text_corrected,humour,sarcasm,offensive,motivational,overall_sentiment
0,image_1.jpg,LOOK,look there,hilarious,general,not_offensive,not_motivational,very_positive
1,image_2.jpg,OH,oh no,not_funny,general,slight,motivational,negative
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def armeme() -> dict[str, str]:
    files = {}
    for split in ("train", "dev", "test"):
        rows = [
            {
                "id": f"{split}{n}",
                "text": "مرحبا",
                "img_path": f"data/{n}.jpg",
                "class_label": label,
            }
            for n, label in enumerate(("propaganda", "not_propaganda", "other"))
        ]
        lines = b"\n".join(map(orjson.dumps, rows)).decode()
        files[f"arabic_memes_categorization_{split}.jsonl"] = lines
    return files


def multioff() -> dict[str, str]:
    names = {"Training": "t", "Validation": "v", "Testing": "s"}
    return {
        f"Split Dataset/{name}_meme_dataset.csv": MULTIOFF.format(mark)
        for name, mark in names.items()
    }


@pytest.mark.parametrize(
    ("name", "files", "task", "classes", "records"),
    [
        ("pridemm", {"PrideMM.csv": PRIDE}, "hate", {"hate", "no hate"}, 3),
        ("pridemm", {"PrideMM/PrideMM.csv": PRIDE}, "target", {"community"}, 3),
        ("multioff", multioff(), "offence", {"offensive", "not offensive"}, 6),
        ("armeme", armeme(), "propaganda", {"propaganda", "not_propaganda", "other"}, 9),
        (
            "memotion",
            {"memotion_dataset_7k/labels.csv": MEMOTION},
            "sentiment",
            {"very_positive", "negative"},
            2,
        ),
    ],
)
def test_a_made_up_file_of_the_published_layout_is_read_and_asked(
    name: str, files: dict[str, str], task: str, classes: set[str], records: int, tmp_path: Path
) -> None:
    survey = add_release(name, write_files(tmp_path / "clone", files))
    assert survey.found.records == records
    split = "train" if name == "memotion" else "test"
    items = load_dataset(name, task=task, split=split).items
    assert {item.tags["class"] for item in items} == classes


def test_images_are_found_in_the_folders_that_the_releases_have(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "clone", {"PrideMM.csv": PRIDE, "Images/img_2.png": "x"})
    survey = add_release("pridemm", folder)
    assert (survey.found.images_found, survey.found.images_expected) == (1, 3)
