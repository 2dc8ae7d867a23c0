"""``data add my.csv``: a table of one's own without ceremony."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.evaluation.datasets import add_release
from memantics.evaluation.own_columns import LabelledColumns
from memantics.moderation.data import find_examples
from tests.commands import Shell

ROWS = """file,caption,humor,split
images/m00.png,when the printer works,funny,train
images/m01.png,you are late again,serious,train
images/m02.png,me at 3 am,funny,test
images/m03.png,今晚又失眠了,serious,test
images/m04.png,me at 3 am,funny,test
"""
COLUMNS = ("--label", "humor", "--image", "file", "--text", "caption")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "My memes.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def test_a_table_is_understood_registered_and_run(table: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    out = shell.done("data", "add", table, *COLUMNS)
    for said in (
        "splits: train 2, test 3",
        "languages of the texts: Latin letters 4, zh 1",
        "1 rows repeat a text or an image of another row",
        "humor: funny 60.0 %, serious 40.0 %",
        "images: 0 of 5",
        "registered: memantics run my_memes",
    ):
        assert said in out, out
    ran = shell.done("run", "my_memes", "--model", "baseline/majority", "--json")
    assert sum(orjson.loads(ran)[0]["scores"]["counts"].values()) == 3


def test_ids_keep_what_they_hold(table: Path) -> None:
    add_release(str(table), columns=LabelledColumns(["humor"], "file", "caption"))
    items = mm.load_dataset("my_memes").items
    assert [item.id for item in items] == [f"images/m0{n}.png" for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no label column was found; name the label column with --label NAME; columns: file"),
        (("--label", "humour"), "unknown column of My memes.csv: 'humour'"),
        (("--label", "humor"), ""),  # the columns caption and file have usual names
        (("--label", "humor", "--text", "caption"), ""),
        (("--label", "humor", "--text", "image"), "unknown column of My memes.csv: 'image'"),
        (("--label", "file", "--text", "caption", "--id", "file"), ""),
    ],
)
def test_what_is_not_said_is_asked_for(
    words: tuple[str, ...], said: str, table: Path, tmp_path: Path
) -> None:
    if said:
        assert said in Shell(tmp_path).refused("data", "add", table, *words)
    else:
        assert Shell(tmp_path).run("data", "add", table, *words).code == 0


def test_a_label_of_one_value_or_of_too_many_is_none(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for count, code in ((1, 2), (2, 0), (26, 0), (27, 2)):
        path = tmp_path / f"t{count}.csv"
        rows = [f"{n},x,v{n % count}" for n in range(30)]
        path.write_text("\n".join(["id,text,label", *rows]), encoding="utf-8")
        ran = shell.run("data", "add", path, "--label", "label", "--text", "text")
        assert ran.code == code, ran


def test_a_benchmark_keeps_its_name_and_needs_its_folder(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "mquest.csv").write_text("id,text,label\n1,a,x\n2,b,y\n", encoding="utf-8")
    words = ("data", "add", "mquest.csv", "--label", "label", "--text", "text")
    assert "the name mquest is taken by a benchmark" in shell.refused(*words)
    assert "the folder of mquest is missing" in shell.refused("data", "add", "mquest")


def test_a_folder_without_a_name_is_recognised_by_its_files(tmp_path: Path) -> None:
    shell, folder = Shell(tmp_path), tmp_path / "clone"
    folder.mkdir()
    told = shell.refused("data", "add", folder)
    assert "no data set has these files; run memantics data add NAME" in told
    assert {"mquest", "pridemm"} <= set(told.replace(",", " ").split())
    table = "name,text,split,humour,hate,target,stance\n1.png,we march,test,0,0,NA,1\n"
    (folder / "PrideMM.csv").write_text(table, encoding="utf-8")
    ran = shell.run("data", "add", folder)
    assert ran.code == 0, ran
    assert "recognised by its files: pridemm" in ran.out
    (folder / "PrideMM.csv").unlink()
    row = {"id": "1", "text": "a", "image": "1.png", "labels": ["not harmful"]}
    (folder / "train.jsonl").write_bytes(orjson.dumps(row))
    told = shell.refused("data", "add", folder)
    assert "several data sets have files with these names" in told
    assert "harm_c" in told
    assert "mquest" not in told


@pytest.mark.parametrize("place", ["", "data", "data/annotations", "a/b/c"])
def test_a_clone_is_recognised_wherever_its_files_lie(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "clone" / place
    folder.mkdir(parents=True)
    row = {"id": 1, "text": "a", "img": "1.png", "gold_hate": ["not_hateful"]}
    row |= {"gold_pc": ["pc_empty"], "gold_attack": ["attack_empty"]}
    (folder / "train.json").write_bytes(orjson.dumps(row))
    survey = add_release("fine_grained_hateful_memes", tmp_path / "clone")
    assert survey.found.records == 1


def test_deeper_than_three_folders_nothing_is_looked_for(tmp_path: Path) -> None:
    folder = tmp_path / "clone/a/b/c/d"
    folder.mkdir(parents=True)
    (folder / "train.json").write_bytes(b"{}")
    with pytest.raises(mm.DataError, match="Fine-grained Hateful Memes was not found"):
        add_release("fine_grained_hateful_memes", tmp_path / "clone")


def test_a_registered_set_trains_detectors_whatever_its_labels_are_called(table: Path) -> None:
    add_release(str(table), columns=LabelledColumns(["humor"], "file", "caption"))
    found = find_examples("my_memes/humor=serious", "all")
    assert [example.label for example in found.examples] == [0, 1, 0, 1, 0]
    assert found.notes == ("harmful: serious; harmless: funny",)
    assert len(find_examples("my_memes/humor=serious", "test").examples) == 3
    for wrong, said in (
        ("my_memes/mood=serious", "unknown label of my_memes: 'mood'"),
        ("my_memes/humor=sad", "unknown value of my_memes/humor: 'sad'"),
    ):
        with pytest.raises(mm.UnknownName, match=said):
            find_examples(wrong, "all")
    with pytest.raises(mm.UnknownName, match="unknown split"):
        find_examples("my_memes/humor=serious", "dev")
