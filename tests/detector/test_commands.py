from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memantics.cli.main import make_app
from tests.commands import Shell
from tests.detector.samples import make_examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Toy memes as a file, and two detectors trained on them by command."""
    place = tmp_path_factory.mktemp("desk")
    for name, seed in (("memes", 0), ("unseen", 7)):
        lines = [
            {"id": e.id, "text": e.text, "text_caption": e.text_caption, "label": e.label,
             "type": e.type, **({"modality": e.modality} if e.modality else {})}
            for e in make_examples(100, seed)
        ]  # fmt: skip
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    for preset in ("fast", "ridge"):
        data, out = str(place / "memes.jsonl"), str(place / f"{preset}.zip")
        run("train", "--data", data, "--preset", preset, "--out", out)
    return place


def run(*arguments: str) -> str:
    done = CliRunner().invoke(make_app(), ["detector", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_training_writes_a_detector_and_its_card(folder: Path) -> None:
    card = json.loads((folder / "fast.card.json").read_text(encoding="utf-8"))
    assert card["examples"] == 100
    assert card["licence"] == "not said"
    assert "macro_f1" in (folder / "fast.card.md").read_text(encoding="utf-8")
    assert (folder / "fast.zip").stat().st_size < 25_000_000


def test_eval_prints_the_figures(folder: Path) -> None:
    data = str(folder / "unseen.jsonl")
    found = json.loads(run("eval", str(folder / "fast.zip"), "--data", data, "--json"))
    figures = {own["key"]: own["value"] for own in found["figures"]["harmful"]}
    assert figures["macro_f1"] > 0.9
    assert found["notes"] == []
    seen = run("eval", str(folder / "fast.zip"), "--data", str(folder / "memes.jsonl"))
    assert "trained on these files" in " ".join(seen.split())


def test_eval_without_a_file_cross_validates(folder: Path) -> None:
    shown = run(
        "eval", "--data", str(folder / "memes.jsonl"), "--preset", "ridge", "--fold-count", "4",
        "--robustness",
    )  # fmt: skip
    assert "4 blocks folds" in shown
    assert "near-duplicate" in shown


def test_predict_takes_texts_and_files(folder: Path) -> None:
    said = json.loads(run("predict", str(folder / "fast.zip"), "我们买苦瓜", "--json"))
    assert said[0]["id"] == "1"
    out = folder / "said.jsonl"
    run(
        "predict",
        str(folder / "fast.zip"),
        "--data",
        str(folder / "unseen.jsonl"),
        "--out",
        str(out),
    )
    assert len(out.read_text(encoding="utf-8").splitlines()) == 100


def test_compare_export_and_explain(folder: Path) -> None:
    data = str(folder / "unseen.jsonl")
    both = (str(folder / "fast.zip"), str(folder / "ridge.zip"))
    assert json.loads(run("compare", *both, "--data", data, "--json"))["count"] == 100
    exported = str(folder / "out.zip")
    assert "sha256" in run("export", both[0], "--out", exported)
    first, second = (
        run("predict", model, "--data", data, "--json") for model in (both[0], exported)
    )
    assert first == second
    shown = run("explain", exported, "我们买苦瓜", "--page", str(folder / "why.html"))
    assert "苦" in shown
    assert "苦" in (folder / "why.html").read_text(encoding="utf-8")
    assert "harm" in run("explain", exported, "--data", data, "--id", "3")


def test_wrong_use_is_one_line(shell: Shell) -> None:
    (shell.folder / "m.csv").write_text("text,label\nhi,1\nho,1\n")
    assert "one class only" in shell.refused("detector", "train", "--data", "m.csv")
    assert "no detector at" in shell.refused("detector", "predict", "none.zip", "hi")
    assert "unknown preset" in shell.refused("detector", "train", "--preset", "quick")
