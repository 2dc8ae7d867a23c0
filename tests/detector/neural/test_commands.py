"""``memantics detector train-neural`` and ``tune`` as a user runs them."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest

from tests.commands import Shell
from tests.detector.neural.conftest import Make
from tests.detector.neural.tiny import draw_memes
from tests.local import tiny as local_tiny


def write_csv(folder: Path, count: int, images: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "memes.csv"
    columns = ["id", "text", "text_caption", "image_caption", "image", "label", "type"]
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        for meme in draw_memes(count, folder if images else None).examples:
            name = meme.image.name if meme.image else ""
            texts = (meme.text, meme.text_caption, meme.image_caption)
            rows.writerow([meme.id, *texts, name, meme.label, meme.type])
    return path


def test_a_network_is_trained_exported_and_asked(shell: Shell, encoder: Make) -> None:
    pytest.importorskip("onnxscript")
    data = write_csv(shell.folder, 60)
    ran = shell.run(
        *("detector", "train-neural", "--preset", "mke", "--text-backbone", encoder("text")),
        *("--data", data, "--seeds", "0,1", "--epochs", "1", "--share", "0.2"),
        *("--rate", "1e-3", "--out", "det"),
    )
    assert ran.code == 0, ran.err
    assert "seed 1: epoch 1/1" in ran.out
    assert "valid   f1 harmful" in ran.out
    card = (shell.folder / "det" / "CARD.md").read_text(encoding="utf-8")
    assert "Encoders: text." in card
    done = shell.run("detector", "export", "det", "--out", "det.zip")
    assert done.code == 0, done.err
    lines = []
    for place in ("det", "det.zip"):
        ran = shell.run("detector", "predict", place, "--data", data, "--json")
        assert ran.code == 0, ran.err
        lines.append([row["probability"] for row in json.loads(ran.out)])
    assert lines[0] == pytest.approx(lines[1], abs=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train-neural", "--preset", "clip-mke"), "needs a CLIP backbone"),
        (("train-neural", "--preset", "mke", "--text-backbone", "nowhere"), "no such folder"),
        (("train-neural", "--preset", "text", "--seeds", "a,b"), "needs a text backbone"),
        (("train", "--preset", "mke"), "train-neural --preset mke"),
        (("tune", "nowhere", "--question", "harm", "--data", "starter"), "no config"),
    ],
)
def test_what_cannot_be_is_one_line(shell: Shell, words: tuple[str, ...], message: str) -> None:
    if importlib.util.find_spec("peft") is None:
        pytest.skip("peft is not installed (extra detector)")
    assert message in shell.refused("detector", *words)


def test_a_local_model_is_tuned(shell: Shell) -> None:
    for name in ("torch", "peft"):
        pytest.importorskip(name)
    model = local_tiny.make_llava(shell.folder / "model")
    data = write_csv(shell.folder / "memes", 10, images=True)
    ran = shell.run(
        *("detector", "tune", model, "--question", "harm", "--style", "image"),
        *("--language", "en", "--data", data, "--external", data.parent, "--epochs", "1"),
        *("--portion", "4", "--rate", "1e-3", "--out", "tuned", "--json"),
    )
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["external"]["memes"] == 10
    assert found["after"]["unparsed"] == 0
    assert (shell.folder / "tuned" / "adapter" / "adapter_config.json").is_file()
