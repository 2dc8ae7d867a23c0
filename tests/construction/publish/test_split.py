"""A published set of harm labels is split by template cluster, and can train a detector."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from memantics.benchmarks.writing import draw_parts, name_memes
from memantics.core.errors import InputError
from memantics.moderation.data import load_examples
from tests.commands import Shell
from tests.construction.publish.queues import judge, make_queue, pick_memes
from tests.construction.publish.test_publish import label


def publish(shell: Shell, count: int, *flags: str, siblings: int = 0) -> str:
    """``siblings`` memes after the first get its picture with one corner changed."""
    memes = pick_memes("zh", count)
    queue = make_queue(shell.folder / "queue", "label-by-vote", memes)
    first = Image.open(queue / "images" / memes[0].file).convert("RGB")
    for meme in memes[1 : siblings + 1]:
        drawn = first.copy()
        drawn.putpixel((0, 0), (1, 2, 3))
        drawn.save(queue / "images" / meme.file)
    judge(queue, "label-by-vote", {meme.id: label(meme) for meme in memes})
    return shell.done("publish", queue, "--name", "own_harm", "--licence", "CC0-1.0", *flags)


def read_part(shell: Shell, part: str) -> list[dict[str, object]]:
    data = shell.folder / "published" / "own_harm" / "data"
    found: list[dict[str, object]] = json.loads(
        (data / f"{part}_data_discription_2.0.json").read_text(encoding="utf-8")
    )
    return found


def test_families_stay_together_and_a_detector_is_trained_by_name(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    publish(shell, 30, "--split", "8:2", siblings=3)
    train, test = read_part(shell, "train"), read_part(shell, "test")
    assert (len(train), len(test)) == (24, 6)
    family = {
        f"{name}.png" for name in name_memes(meme.id for meme in pick_memes("zh", 4)).values()
    }
    parts = [{str(row["path"]) for row in part} & family for part in (train, test)]
    assert sorted(map(len, parts)) == [0, 4], "one template, one part"
    assert {row["label"] for row in train} == {row["label"] for row in test} == {0, 1}
    told = shell.done("detector", "train", "--data", "own_harm", "--preset", "ridge")
    assert "24 memes" in told
    told = shell.done("detector", "eval", "detector.zip", "--data", "own_harm")
    assert "6 memes" in told
    told = shell.done(
        "detector", "predict", "detector.zip", "--data", "published/own_harm/data", "--json"
    )
    assert len(json.loads(told)) == 6, "its folder is as good as its name"
    shell.done("run", "own_harm/detection", "-m", "fake/keys", "--split", "train", "--limit", "2")


def test_a_set_without_a_training_part_says_how_to_get_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    publish(shell, 8)
    told = shell.refused("detector", "train", "--data", "own_harm")
    assert "own_harm has no split 'train', only test" in told
    assert "--split 8:2" in told
    assert "no data at own_ham" in shell.refused("detector", "train", "--data", "own_ham")
    assert "M-QUEST has no harm labels" in shell.refused("detector", "train", "--data", "mquest")


@pytest.mark.parametrize("split", ["8", "8:0", "a:b", "8:2:1"])
def test_shares_are_two_whole_numbers(tmp_path: Path, split: str) -> None:
    memes = pick_memes("zh", 4)
    queue = make_queue(tmp_path / "queue", "label-by-vote", memes)
    judge(queue, "label-by-vote", {meme.id: label(meme) for meme in memes})
    told = Shell(tmp_path).refused(
        "publish",
        queue,
        "--name",
        "own_harm",
        "--licence",
        "CC0-1.0",
        "--split",
        split,
    )
    assert "is not a valid pair of proportions" in told


def test_one_family_cannot_be_split(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    memes = pick_memes("zh", 2)
    queue = make_queue(tmp_path / "queue", "label-by-vote", memes)
    shutil.copy(queue / "images" / memes[0].file, queue / "images" / memes[1].file)
    judge(queue, "label-by-vote", {meme.id: label(meme) for meme in memes})
    told = shell.refused("publish", queue, "--name", "x_harm", "--licence", "X", "--split", "1:1")
    assert "cannot be split" in told


def test_shares_hold_for_each_stratum() -> None:
    names = [f"m{n}" for n in range(100)]
    strata = {name: ["rare" if n % 5 == 0 else "common"] for n, name in enumerate(names)}
    parts = draw_parts(dict.fromkeys(names, ""), strata, (8, 2))
    rare = [parts[name] for name in names if strata[name] == ["rare"]]
    assert (rare.count(0), rare.count(1)) == (16, 4)
    assert list(parts.values()).count(1) == 20
    assert parts == draw_parts(dict.fromkeys(names, ""), strata, (8, 2)), "the same every time"
    assert parts != draw_parts(dict.fromkeys(names, ""), strata, (8, 2), seed=1)
    assert draw_parts({}, {}, (8, 2)) == {}


def test_a_small_test_part_has_both_labels_and_no_large_family() -> None:
    """Ten memes, two templates with two of them: a pair would be the whole test part."""
    clusters = dict.fromkeys("abcdefghij", "") | {"a": "x", "b": "x", "f": "y", "g": "y"}
    labels = {name: "harmful" if name < "f" else "harmless" for name in clusters}
    strata = {name: [label, f"{label} {name in 'abfg'}"] for name, label in labels.items()}
    for seed in range(20):
        parts = draw_parts(clusters, strata, (8, 2), seed)
        held = [name for name, part in parts.items() if part == 1]
        assert {labels[name] for name in held} == {"harmful", "harmless"}, seed
        assert len(held) == 2
        assert parts["a"] == parts["b"] == 0


def test_a_detector_refuses_a_part_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no data at"):
        load_examples(str(tmp_path / "nothing"))
