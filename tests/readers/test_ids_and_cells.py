"""Ids that start again in each split, lists as Python prints them, flags, and empty votes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.benchmarks.dataset_config import Columns, DatasetConfig, LabelConfig
from memantics.benchmarks.dataset_reader import ConfiguredMeme, open_dataset_config
from memantics.benchmarks.registry import find_benchmark
from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.registry import find_registered
from tests.commands import Shell
from tests.readers import layouts as made


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))


def open_set(name: str) -> list[ConfiguredMeme]:
    release = find_benchmark(name).open(find_registered(name).source)
    return list(release.memes)  # type: ignore[attr-defined]


def write_splits(folder: Path, head: str, line: str, form: str = "{}.csv") -> None:
    for split, count in (("train", 4), ("test", 3)):
        rows = [line.format(n=n, split=split, label="xy"[n % 2]) for n in range(count)]
        made.write(folder / form.format(split), "\n".join([head, *rows]))


@pytest.mark.parametrize(
    ("head", "line", "form"),
    [
        ("id,text,label", "{n},{split} caption {n},{label}", "{}.csv"),
        ("text,label", "{split} caption {n},{label}", "{}/data.csv"),
        ("file_name,label", "{n}.png,{label}", "{}/metadata.csv"),
    ],
)
def test_numbers_that_start_again_in_each_split_lose_no_row(
    head: str, line: str, form: str, tmp_path: Path
) -> None:
    write_splits(tmp_path / "set", head, line, form)
    for split, count in (("train", 4), ("test", 3)):
        for n in range(count if "file_name" in head else 0):
            made.write(tmp_path / f"set/{split}/{n}.png", made.draw(n + 9 * (split == "test")))
    out = " ".join(Shell(tmp_path).done("data", "add", "set").split())
    memes = open_set("set")
    assert [meme.split for meme in memes] == ["train"] * 4 + ["test"] * 3
    assert len({meme.id for meme in memes}) == 7
    assert "excluded" not in out
    column = head.partition(",")[0]
    renamed = f"column {column!r} repeats: rows are named by file and row number"
    assert (renamed in out) == (column != "text")
    assert len({meme.image for meme in memes}) == (7 if column == "file_name" else 1)


def test_ids_that_the_user_names_are_kept(tmp_path: Path) -> None:
    write_splits(tmp_path / "set", "id,text,label", "{n},{split} caption {n},{label}")
    out = Shell(tmp_path).done("data", "add", "set", "--id", "id")
    assert "excluded: 3 × the id appears more than once" in out


def test_one_id_with_two_labels_is_asked_for(tmp_path: Path) -> None:
    """Rows of votes without a column of annotators: the first vote must not become the label."""
    rows = [f"{n},caption {n},{a},{'xy'[(n + a) % 2]}" for n in range(4) for a in range(3)]
    made.write(tmp_path / "long.csv", "\n".join(["id,text,batch,label", *rows]))
    told = Shell(tmp_path).refused("data", "add", "long.csv")
    assert "long.csv: rows with the id '0' have different labels; name the column of ann" in told
    assert "else give one row per meme, with a list of votes (--votes)" in told
    same = [f"{n},caption {n},{'xy'[n % 2]}" for n in (0, 1, 1)]
    made.write(tmp_path / "same.csv", "\n".join(["id,text,label", *same]))
    out = Shell(tmp_path).done("data", "add", "same.csv")
    assert "excluded: 1 × the id appears more than once" in out


def test_an_image_with_several_texts_is_several_rows(tmp_path: Path) -> None:
    rows = [f"{n // 2}.png,caption {n},{'xy'[n % 2]}" for n in range(6)]
    made.write(tmp_path / "texts.csv", "\n".join(["image,text,label", *rows]))
    out = Shell(tmp_path).done("data", "add", "texts.csv")
    assert "column 'image' repeats: rows are named by file and row number" in out
    assert len(open_set("texts")) == 6


def test_splits_of_a_column_in_capitals(tmp_path: Path) -> None:
    """The test part is what a run takes, never the first that the column names."""
    rows = [f"{n},caption {n},{'xy'[n % 2]},{('Train', 'Test')[n % 3 == 2]}" for n in range(9)]
    made.write(tmp_path / "parts.csv", "\n".join(["id,text,label,Split", *rows]))
    shell = Shell(tmp_path)
    assert "split train 6, split test 3" in shell.done("data", "add", "parts.csv")
    assert find_benchmark("parts").card.task[0].splits == ("test", "train", "all")


def test_tables_that_are_not_read_are_named(tmp_path: Path) -> None:
    for name in ("train", "test", "sources"):
        rows = [f"{name}{n},caption {n},{'xy'[n % 2]}" for n in range(4)]
        made.write(tmp_path / f"set/{name}.csv", "\n".join(["id,text,label", *rows]))
    out = Shell(tmp_path).done("data", "add", "set")
    assert "not read, since their names name no split: sources.csv" in out


def test_lists_as_python_prints_them(tmp_path: Path) -> None:
    rows = ["id,text,tags,tone,annotators"]
    for n in range(6):
        tags, tone = str(["a", "b"][: n % 2 + 1]), str(["rude", ["fine", "rude"][n % 2]])
        rows.append(f'{n},caption {n},"{tags}","{tone}","[\'p\', \'q\']"')
    made.write(tmp_path / "printed.csv", "\n".join(rows))
    shell = Shell(tmp_path)
    out = shell.done("data", "add", "printed.csv", "--label", "tags", "--votes", "tone")
    assert "tags: a 66.7 %, b 33.3 %" in out
    memes = open_set("printed")
    assert memes[1].labels["tags"] == ("a", "b")
    assert [vote.values for vote in memes[0].votes["tone"]] == [("rude",), ("fine",)]


def test_an_empty_vote_in_a_list_is_no_vote(tmp_path: Path) -> None:
    rows = [
        {"id": f"m{n}", "text": "x", "tone": ["rude", None, "fine"], "annotators": ["p", "q", "r"]}
        for n in range(3)
    ]
    made.write_lines(tmp_path / "test.jsonl", rows)
    Shell(tmp_path).done("data", "add", "test.jsonl", "--votes", "tone", "--name", "gaps")
    assert [(v.annotator, v.values) for v in open_set("gaps")[0].votes["tone"]] == [
        ("p", ("rude",)),
        ("r", ("fine",)),
    ]


def open_flags(folder: Path, cell: str) -> list[ConfiguredMeme]:
    made.write(folder / "train.csv", f"id,text,rude,loud\n1,a,{cell},0\n2,b,no,YES\n")
    config = DatasetConfig(
        title="flags", summary="x", languages=("en",), source="x", licence="x", citation="x",
        files={"train": ("train.csv",)}, columns=Columns(id="id", text="text"),
        label={"kind": LabelConfig(what="kinds", flags=("rude", "loud"), several=True)},
    )  # fmt: skip
    return list(open_dataset_config(config, Source("release", folder)).memes)


@pytest.mark.parametrize(
    ("cell", "set_"), [("TRUE", True), ("yes", True), ("1.0", True), ("", False), ("False", False)]
)
def test_flags_are_yes_or_no_in_any_spelling(cell: str, set_: bool, tmp_path: Path) -> None:
    first, second = open_flags(tmp_path, cell)
    assert first.labels["kind"] == (("rude",) if set_ else ())
    assert second.labels["kind"] == ("loud",)


def test_a_flag_that_is_neither_yes_nor_no_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train\.csv: row 1: column 'rude': '0\.4' is not a flag"):
        open_flags(tmp_path, "0.4")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    made.write(tmp_path / "twice.csv", "id,text,label,label,,\n1,a,x,y,,\n2,b,y,x,,\n")
    told = Shell(tmp_path).refused("data", "add", "twice.csv", "--label", "label")
    assert "twice.csv: has 2 columns 'label'; rename or remove one of them" in told


def test_memes_of_a_split_without_labels_are_not_asked_for(tmp_path: Path) -> None:
    rows = [{"id": f"m{n}", "text": "x", "tags": ["a", "b"][: n % 2 + 1]} for n in range(4)]
    made.write_lines(tmp_path / "set/train.jsonl", rows)
    made.write_lines(tmp_path / "set/test.jsonl", [{"id": "t", "text": "y"}])
    shell = Shell(tmp_path)
    shell.done("data", "add", "set", "--label", "tags")
    out = shell.done("run", "set/tags", "--split", "all", "--model", "baseline/majority", "--json")
    assert '"answered":4,' in out.replace(" ", "")
