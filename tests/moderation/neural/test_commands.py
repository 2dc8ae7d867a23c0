"""``memantics detector train-neural`` and ``tune`` as a user runs them."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest

from memantics.core.errors import InputError
from tests.commands import Shell
from tests.local import tiny as local_tiny
from tests.moderation.commands import run
from tests.moderation.neural.conftest import Make
from tests.moderation.neural.tiny import draw_memes

pytestmark = pytest.mark.slow


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


def test_a_network_is_trained_exported_and_asked(encoder: Make, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    data, out = write_csv(tmp_path, 60), tmp_path / "det"
    said = run(
        *("train-neural", "--preset", "mke", "--text-backbone", encoder("text")),
        *("--data", data, "--seeds", "0,1", "--epochs", "1", "--share", "0.2"),
        *("--rate", "1e-3", "--out", out),
    )
    assert "seed 1: epoch 1/1" in said
    assert "valid   f1 harmful" in said
    assert "Encoders: text." in (out / "CARD.md").read_text(encoding="utf-8")
    run("export", out, "--out", tmp_path / "det.zip")
    lines = []
    for place in (out, tmp_path / "det.zip"):
        rows = json.loads(run("predict", place, "--data", data, "--json"))
        lines.append([row["probability"] for row in rows])
    assert len(lines[0]) == 60
    assert lines[0] == pytest.approx(lines[1], abs=1e-5)


def test_types_are_trained_without_the_memes_that_have_none(encoder: Make, tmp_path: Path) -> None:
    """One meme of ToxiCN MM 2.0 is harmful and of no type: it must not stop the others."""
    data = write_csv(tmp_path, 60)
    lines = data.read_text(encoding="utf-8").splitlines()
    place = next(n for n, line in enumerate(lines) if line.endswith(",1,offence"))
    lines[place] = lines[place].removesuffix("offence")
    data.write_text("\n".join(lines), encoding="utf-8")
    said = run(
        *("train-neural", "--preset", "text", "--text-backbone", encoder("text")),
        *("--target", "type", "--data", data, "--seeds", "0", "--epochs", "1", "--share", "0.2"),
        *("--hold-out", "random", "--out", tmp_path / "det"),
    )
    assert "skipped: 1 memes" in said
    assert "no type" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train-neural", "--preset", "mke", "--text-backbone", "nowhere"), "no such folder"),
        (("train-neural", "--preset", "text", "--seeds", "a,b"), "is not a valid list of seeds"),
        (("train", "--preset", "mke"), "train-neural --preset mke"),
        (("tune", "nowhere", "--question", "harm", "--data", "sample"), "config.json is missing"),
        (("tune", "nowhere", "--data", "sample", "--rate", "-1"), "not a valid learning rate"),
    ],
)
def test_what_cannot_be_says_what_to_do(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if importlib.util.find_spec("peft") is None:
        pytest.skip("peft is not installed (extra detector)")
    with pytest.raises(InputError, match=message):
        run(*words)


def test_a_wrong_command_is_one_line(shell: Shell) -> None:
    said = shell.refused("detector", "train-neural", "--preset", "clip-mke")
    assert "needs a CLIP backbone" in said


@pytest.mark.filterwarnings("ignore::UserWarning:peft")
def test_a_local_model_is_tuned(tmp_path: Path) -> None:
    for name in ("torch", "peft"):
        pytest.importorskip(name)
    model, out = local_tiny.make_llava(tmp_path / "model"), tmp_path / "tuned"
    data = write_csv(tmp_path / "memes", 10, images=True)
    said = run(
        *("tune", model, "--question", "harm", "--style", "image"),
        *("--language", "en", "--data", data, "--external", data.parent, "--epochs", "1"),
        *("--portion", "4", "--rate", "1e-3", "--out", out, "--json"),
    )
    found = json.loads(said)
    assert found["external"]["memes"] == 10
    assert found["after"]["unparsed"] == 0
    assert (out / "adapter" / "adapter_config.json").is_file()
    card = (out / "CARD.md").read_text(encoding="utf-8")
    assert "licence of the data: not stated" in card
    assert "| external, after | 10 |" in card
    assert "identity terms were not measured: the detector needs an image" in card
