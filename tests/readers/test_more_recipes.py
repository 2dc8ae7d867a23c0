"""Sets of the field, each read from a made-up file of its published layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest

from memantics.core.errors import DataError, UnknownName
from memantics.evaluation.datasets import add_release, load_dataset

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


def lines(*rows: Mapping[str, object]) -> str:
    return b"\n".join(map(orjson.dumps, rows)).decode()


def goat() -> dict[str, str]:
    """One folder a task; rows of some have other names for text and picture, and no id."""
    plain = lines(*({"id": n, "img": f"{n}.png", "text": "hm", "label": n % 2} for n in range(4)))
    other = lines(*({"image": f"{n}.jpg", "org_sent": "so", "label": n % 2} for n in range(2)))
    return {"g/harmfulness/test.jsonl": plain, "g/sarcasm/test.jsonl": other}


GUARD = """\
id,img,label,text,Category,caption
a (1),img/a (1).png,1,cheers,1,a glass
b,img/b.png,0,hi,3,a man
"""
CHINESE = [{"文本": "你好", "标签": "不违规"}, {"文本": "来赌", "标签": "博彩"}]
TEMPLATED = {
    "id": "c1",
    "image": "c1.png",
    "labels": ["not harmful"],
    "text": "mask",
    "template": "Drake",
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
        ("goat_harmfulness", goat(), "harmfulness", {"harmful", "not harmful"}, 4),
        ("goat_sarcasm", goat(), "sarcasm", {"sarcastic", "not sarcastic"}, 2),
        (
            "guardharmem",
            {"data/my_harmful_memes_testi_cap.csv": GUARD},
            "category",
            {"harmful substances", "none"},
            2,
        ),
        (
            "chineseharm_bench",
            {"benchmark/bench.json": orjson.dumps(CHINESE).decode()},
            "violation",
            {"gambling", "none"},
            2,
        ),
        ("harmeme_templates", {"test.jsonl": lines(TEMPLATED)}, "harm", {"not harmful"}, 1),
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


def write_parquet(path: Path, rows: list[dict[str, object]]) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_every_country_has_a_label_of_its_own(tmp_path: Path) -> None:
    countries = {"US": 1.0, "DE": 0.0, "MX": 1.0, "CN": None, "IN": 0.0}
    rows = [
        {"image": {"bytes": b"x", "path": "1.jpg"}, "Meme ID": 1, "Language": code, "Caption": "so"}
        | countries
        for code in ("en", "hi")
    ]
    # A release in two parts; what a country did not judge is not asked.
    for part, row in enumerate(rows):
        write_parquet(tmp_path / f"clone/data/train-0000{part}-of-00002.parquet", [row])
    write_files(tmp_path / "memes", {"hi/1.jpg": "x"})
    survey = add_release("multi3hate", tmp_path / "clone", tmp_path / "memes")
    assert (survey.found.records, survey.found.images_found) == (2, 1)
    for task, label in (("us", "hateful"), ("de", "not hateful")):
        items = load_dataset("multi3hate", task=task, split="train").items
        assert [(item.id, item.tags["class"]) for item in items] == [
            ("1-en", label),
            ("1-hi", label),
        ]
    with pytest.raises(UnknownName, match="train"):
        load_dataset("multi3hate", task="cn", split="train")


@pytest.mark.parametrize(
    ("name", "file", "row", "task", "classes"),
    [
        ("toxictags", "data/test-0.parquet", {"finegrained": 3}, "toxicity", {"toxic"}),
        ("toxictags", "data/test-0.parquet", {"finegrained": "O"}, "kind", {"offensive"}),
        (
            "memexplain_ar",
            "ArMemeXplain/test-0.parquet",
            {"class_label": "propaganda"},
            "propaganda",
            {"propaganda"},
        ),
        (
            "memexplain_en",
            "HatefulMemeXplain/test-0.parquet",
            {"class_label": "not-hateful"},
            "hate",
            {"not-hateful"},
        ),
    ],
)
def test_parquet_is_read_and_its_pictures_are_found_by_name(
    name: str, file: str, row: dict[str, object], task: str, classes: set[str], tmp_path: Path
) -> None:
    common = {"id": "a", "text": "so", "ocr": "so", "tags": ["cat", "dog"]}
    picture = {"image": {"bytes": b"x", "path": "a.png"}}
    write_parquet(tmp_path / "clone" / file, [common | picture | row])
    write_files(tmp_path / "clone/images", {"a.png": "x"})
    survey = add_release(name, tmp_path / "clone")
    assert (survey.found.records, survey.found.images_found) == (1, 1)
    items = load_dataset(name, task=task, split="test").items
    assert {item.tags["class"] for item in items} == classes


def test_a_broken_parquet_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    write_files(tmp_path, {"ArMemeXplain/test-0.parquet": "no"})
    with pytest.raises(DataError, match="is not a valid Parquet file"):
        add_release("memexplain_ar", tmp_path)


def test_images_beside_a_table_are_found(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "clone", goat() | {"g/harmfulness/images/1.png": "x"})
    assert add_release("goat_harmfulness", folder).found.images_found == 1


def test_a_column_that_a_file_lacks_is_named_as_the_dataset_config_says_it(tmp_path: Path) -> None:
    folder = write_files(tmp_path, {"sarcasm/test.jsonl": lines({"id": 1, "label": 0})})
    with pytest.raises(DataError, match=r"has no column 'text\|org_sent'"):
        add_release("goat_sarcasm", folder)
