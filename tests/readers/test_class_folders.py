"""Folders of images whose names are labels, as torchvision and Hugging Face read them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memantics.benchmarks.dataset_reader import ConfiguredMeme, ConfiguredRelease
from memantics.benchmarks.registry import find_benchmark
from memantics.core.registry import find_registered, read_registry
from tests.commands import Shell
from tests.readers import layouts as made


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))


def write(root: Path, *folders: str, count: int = 3) -> None:
    """Write images with the same names into each folder."""
    for place, folder in enumerate(folders):
        for n in range(count):
            made.write(root / folder / f"{n:04d}.png", made.draw(10 * place + n))


def open_set(name: str) -> list[ConfiguredMeme]:
    release = find_benchmark(name).open(find_registered(name).source)
    assert isinstance(release, ConfiguredRelease)
    return list(release.memes)


def join(out: str) -> str:
    return " ".join(out.split())


@pytest.mark.parametrize("above", ["", "data/", "archive/images/"])
def test_split_and_label_are_the_names_of_folders(above: str, tmp_path: Path) -> None:
    pairs = [(split, label) for split in ("train", "dev", "Test") for label in ("bad", "not bad")]
    write(tmp_path / "set", *(f"{above}{split}/{label}" for split, label in pairs))
    shell = Shell(tmp_path)
    out = join(shell.done("data", "add", "set"))
    told = "class folders: each image has the name of its folder as its label; splits are the names"
    assert told in out
    assert "splits: train 6, validation 6, test 6" in out
    assert "label: bad 50.0 %, not bad 50.0 %" in out
    assert "images: 18 of 18" in out
    memes = open_set("set")
    counts = Counter((meme.split, *meme.labels["label"]) for meme in memes)
    assert counts == {
        (s, b): 3 for s in ("train", "validation", "test") for b in ("bad", "not bad")
    }
    assert memes[0].id == f"{above}train/bad/0000.png"
    assert all(meme.image is not None and meme.id.endswith(meme.image.name) for meme in memes)
    shell.done("run", "set", "--model", "baseline/majority")


def test_folders_without_splits_and_folders_below_a_label(tmp_path: Path) -> None:
    write(tmp_path / "set", "有害/a", "有害/b", "无害")
    made.write(tmp_path / "set/无害/notes.txt", "no image")
    out = join(Shell(tmp_path).done("data", "add", "set"))
    assert "label: 有害 66.7 %, 无害 33.3 %" in out
    assert "splits: test 9" in out
    assert "splits are" not in out


def test_a_split_may_have_no_labels(tmp_path: Path) -> None:
    write(tmp_path / "set", "train/cat", "train/dog", "test", "sources")
    made.write(tmp_path / "set/train/stray.png", made.draw(99))
    out = join(Shell(tmp_path).done("data", "add", "set"))
    assert "folders without labels: test" in out
    assert "label: cat 50.0 %, dog 50.0 %" in out
    assert "images that are not read, since they are in no folder of a label: sources, train" in out
    counts = Counter((meme.split, meme.labels["label"]) for meme in open_set("set"))
    assert counts == {("train", ("cat",)): 3, ("train", ("dog",)): 3, ("test", ()): 3}


@pytest.mark.parametrize("folders", [("train", "test"), ("train/images", "test/images")])
def test_folders_that_name_splits_only_have_no_label(
    folders: tuple[str, str], tmp_path: Path
) -> None:
    write(tmp_path / "set", *folders)
    told = Shell(tmp_path).refused("data", "add", "set")
    assert f"the folders {folders[1]}, {folders[0]} name splits, and no folder below" in told
    assert "SPLIT/LABEL" in told


@pytest.mark.parametrize("folders", [("images",), (".",)])
def test_images_in_one_folder_are_no_data_set(folders: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path / "set", *folders)
    assert "is not recognised" in Shell(tmp_path).refused("data", "add", "set")


def test_tables_are_read_instead_of_folders(tmp_path: Path) -> None:
    write(tmp_path / "set", "train/a", "train/b")
    made.write(tmp_path / "set/train/metadata.csv", "file_name,label\na/0000.png,x\nb/0000.png,y\n")
    Shell(tmp_path).done("data", "add", "set")
    assert [meme.labels["label"] for meme in open_set("set")] == [("x",), ("y",)]


def test_class_folders_have_no_other_label_column(tmp_path: Path) -> None:
    write(tmp_path / "set", "train/a", "train/b")
    told = Shell(tmp_path).refused("data", "add", "set", "--label", "mood")
    assert "unknown column" in told
    assert "set" not in read_registry()


def test_an_added_image_changes_the_data(tmp_path: Path) -> None:
    write(tmp_path / "set", "train/a", "train/b")
    shell = Shell(tmp_path)
    shell.done("data", "add", "set")
    assert "unchanged" in shell.done("data", "check", "set")
    made.write(tmp_path / "set/train/a/more.png", made.draw(50))
    ran = shell.run("data", "check", "set")
    assert ran.code == 2
    assert "the files changed" in ran.err
    shell.done("data", "add", "set")
    assert len(open_set("set")) == 7


def test_training_on_images_without_texts_says_what_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "set", "train/a", "train/b", count=20)
    shell = Shell(tmp_path)
    shell.done("data", "add", "set")
    told = shell.refused("detector", "train", "--data", "set/label=a", "--out", "made.zip")
    assert "no meme of the training data has a text; add a column with their texts" in told
