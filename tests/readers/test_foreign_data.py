"""What users stumble over with their own data: names, folders, splits and the next command."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from memantics.benchmarks.dataset_reader import ConfiguredRelease
from memantics.benchmarks.registry import find_benchmark
from memantics.core.registry import find_registered, read_registry
from tests.commands import Shell
from tests.readers import layouts as made
from tests.readers.layouts import Row, make_rows

HEAD = "id,text,label\n"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))


def join(out: str) -> str:
    return " ".join(out.split())


def find_command(out: str) -> list[str]:
    """The command that ``data add`` prints."""
    line = next(line for line in out.splitlines() if "memantics run " in line)
    return shlex.split(line.partition("memantics ")[2])


def write_table(path: Path, *labels: str) -> None:
    made.write(path, HEAD + "".join(f"{n},t{n},{label}\n" for n, label in enumerate(labels)))


def test_a_name_that_is_taken_is_refused_and_another_can_be_given(tmp_path: Path) -> None:
    write_table(tmp_path / "a/memes.csv", "x", "y")
    write_table(tmp_path / "b/memes.csv", "x", "y", "z")
    shell = Shell(tmp_path)
    shell.done("data", "add", "a/memes.csv")
    told = shell.refused("data", "add", "b/memes.csv")
    assert told.endswith("name these data with --name NAME")
    assert find_registered("memes").root == tmp_path / "a"
    shell.done("data", "add", "b/memes.csv", "--name", "Other memes")
    assert find_registered("other_memes").records == 3
    shell.done("data", "add", "a/memes.csv")  # the same data again
    (tmp_path / "a").rename(tmp_path / "c")
    shell.done("data", "add", "c/memes.csv")  # the folder was moved
    assert find_registered("memes").root == tmp_path / "c"


def test_labels_without_latin_letters_keep_apart(tmp_path: Path) -> None:
    made.write(tmp_path / "cn.csv", "编号,文本,标签,类别\n1,a,有害,p\n2,b,无害,q\n")
    shell = Shell(tmp_path)
    out = join(shell.done("data", "add", "cn.csv", "--label", "标签", "--label", "类别"))
    assert "id = 编号, text = 文本, label label = 标签, label label_2 = 类别" in out
    assert [task.name for task in find_benchmark("cn").card.task] == ["label", "label_2"]
    release = find_benchmark("cn").open(find_registered("cn").source)
    assert isinstance(release, ConfiguredRelease)
    assert [meme.labels for meme in release.memes] == [
        {"label": ("有害",), "label_2": ("p",)},
        {"label": ("无害",), "label_2": ("q",)},
    ]


def test_the_folder_of_missing_images_is_named_and_never_guessed(tmp_path: Path) -> None:
    rows = make_rows()
    values = [{"文件名": r.file, "文本": r.text, "label": r.label} for r in rows]
    made.write_csv(tmp_path / "set/memes.csv", values, ";", "gb18030")
    made.write_images(tmp_path / "set/my pics", rows)
    shell = Shell(tmp_path)
    out = join(shell.done("data", "add", "set"))
    assert "images: 0 of 12" in out
    folder = str(tmp_path / "set/my pics")
    assert f"add --images {shlex.quote(folder)}".replace(" ", "") in out.replace(" ", "")
    assert "images: 12 of 12" in shell.done("data", "add", "set", "--images", folder)
    made.write_images(tmp_path / "set/my pics", [Row("other", "", "", "", b"")])
    for row in rows:
        (tmp_path / "set/my pics" / row.file).unlink()
    assert "Name their folder with data add --images DIR" in join(shell.done("data", "add", "set"))


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_printed_command_runs_as_it_stands(split: str, tmp_path: Path) -> None:
    made.write_lines(
        tmp_path / f"set/{split}.jsonl",
        [{"id": str(n), "text": f"t{n}", "label": "ab"[n % 2]} for n in range(4)],
    )
    unlabelled = [{"id": f"u{n}", "text": f"u{n}"} for n in range(2)]
    if split == "train":
        made.write_lines(tmp_path / "set/test.jsonl", unlabelled)
    shell = Shell(tmp_path)
    command = find_command(shell.done("data", "add", "set"))
    assert ("--split" in command) is (split == "train")
    shell.done(*command)


def test_a_tree_names_every_set_whole_and_the_next_command(tmp_path: Path) -> None:
    for place in ("en/a_name_of_some_length", "zh/other"):
        write_table(tmp_path / "tree" / place / "train.csv", "x", "y")
    write_table(tmp_path / "tree/zh/broken/train.csv", "x", "x")
    shell = Shell(tmp_path)
    out = shell.done("data", "add", "tree")
    for said in ("tree_en_a_name_of_some_length", "tree_zh_other", "registered", "pages: "):
        assert said in out
    assert "zh/broken is not registered: train.csv: column 'label' has 1 different" in join(out)
    assert set(read_registry()) == {"tree_en_a_name_of_some_length", "tree_zh_other"}
    shell.done(*find_command(out))
    out = shell.done("data", "add", "tree", "--name", "mine")
    assert {"mine_zh_other", "mine_en_a_name_of_some_length"} <= set(read_registry())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_values_of_a_split_column_mean_the_usual_splits(language: str, tmp_path: Path) -> None:
    english = {"Train": "train", "Dev": "validation", "VALIDATION": "validation", "Test": "test"}
    chinese = {"训练集": "train", "验证集": "validation", "开发集": "validation", "测试集": "test"}
    values = {"en": english, "zh": chinese}[language] | {"extra": "extra", "train": "train"}
    body = "".join(
        f"{n},t{n},{'xy'[n % 2]},{value}\n" for n, value in enumerate([*values, *values])
    )
    made.write(tmp_path / "memes.csv", HEAD.strip() + ",split\n" + body)
    shell = Shell(tmp_path)
    out = join(shell.done("data", "add", "memes.csv"))
    renamed = ", ".join(f"{a} = {b}" for a, b in values.items() if a != b)
    assert f"values of the split column: {renamed}" in out
    release = find_benchmark("memes").open(find_registered("memes").source)
    assert isinstance(release, ConfiguredRelease)
    splits = list(values.values()) * 2
    assert {meme.id: meme.split for meme in release.memes} == {
        str(n): split for n, split in enumerate(splits)
    }
    for split in ("train", "validation", "test", "extra"):
        shell.done("run", "memes", "--model", "baseline/majority", "--split", split)


def test_chinese_names_of_files_and_folders_are_splits(tmp_path: Path) -> None:
    write_table(tmp_path / "set/表情包_训练集.csv", "x", "y")
    write_table(tmp_path / "set/测试集/memes.csv", "x", "y", "x")
    assert "splits: train 2, test 3" in Shell(tmp_path).done("data", "add", "set")


def test_one_table_may_have_two_names(tmp_path: Path) -> None:
    write_table(tmp_path / "memes.csv", "x", "y")
    shell = Shell(tmp_path)
    shell.done("data", "add", "memes.csv")
    out = shell.done("data", "add", "memes.csv", "--name", "again")
    assert "memantics run again" in out
    assert {"memes", "again"} <= set(read_registry())
    for words, name in (((), "memes"), (("--name", "again"), "again")):
        out = shell.done("data", "add", "memes.csv", *words)
        assert f"recognised by its files: {name}" in join(out)
