from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.core.lines import ImageReading, TextLine
from memantics.models.embedded import ocr
from memantics.moderation import detector as detector_verbs
from memantics.moderation.examples import Loaded
from tests.commands import Shell
from tests.metrics.tiny_models import make_encoder
from tests.moderation.commands import run
from tests.moderation.samples import make_examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Toy memes as a file, and two detectors trained on them by command."""
    place = tmp_path_factory.mktemp("client")
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


def test_training_writes_a_detector_and_its_card(folder: Path) -> None:
    card = json.loads((folder / "fast.card.json").read_text(encoding="utf-8"))
    assert card["examples"] == 100
    assert card["licence"] == "not stated"
    assert "macro-f1" in (folder / "fast.card.md").read_text(encoding="utf-8")
    assert (folder / "fast.zip").stat().st_size < 25_000_000


def test_eval_prints_the_metrics(folder: Path) -> None:
    data = str(folder / "unseen.jsonl")
    found = json.loads(run("eval", str(folder / "fast.zip"), "--data", data, "--json"))
    metrics = {own["key"]: own["value"] for own in found["metrics"]["harmful"]}
    assert metrics["macro_f1"] > 0.9
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
    assert said[0]["not_scored"] == ""
    texts = ("我们买苦瓜", "you are all so stupid")
    shown = run("predict", str(folder / "fast.zip"), *texts)
    why = "the text is in en, a script without training texts; the detector was trained on zh"
    assert f"not scored: {why}" in " ".join(shown.split())
    (line,) = [line for line in shown.splitlines() if "so stupid" in line]
    assert line.split()[:2] == ["2", "not_scored,"]  # neither a label nor a probability
    both = json.loads(run("predict", str(folder / "fast.zip"), *texts, "--json"))
    assert [own["not_scored"] for own in both] == ["", why]
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


class Reader:
    """Reads the same word in every image whose name starts with b."""

    version = "reader-1"

    def __init__(self, profile: str = "thorough") -> None:
        del profile

    def read(self, data: bytes, name: str) -> ImageReading:
        del data
        return ImageReading(
            (TextLine("苦瓜酸菜" if name[0] == "b" else "西瓜", (0, 0, 9, 9), 1.0),)
        )


def test_what_was_learnt_from_images_is_read_in_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The label shows in the image alone: a detector that does not look knows nothing."""
    monkeypatch.setattr(ocr, "RapidReader", Reader)
    rows = []
    for number in range(40):
        name = f"{'ab'[number % 2]}{number}.png"
        (tmp_path / name).write_bytes(b"image %d" % number)
        rows.append({"file_name": name, "text": "看", "label": number % 2})
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    model, data = str(tmp_path / "m.zip"), ("--data", str(tmp_path))
    run("train", *data, "--preset", "ridge", "--ocr", "--out", model)
    said = json.loads(run("predict", model, *data, "--json"))
    assert [own["label"] for own in said] == [row["label"] for row in rows]
    found = json.loads(run("eval", model, *data, "--json"))
    assert found["metrics"]["harmful"][2]["value"] == 1
    assert "苦" in run("explain", model, *data, "--id", "b1")


@pytest.mark.slow
def test_meanings_by_an_encoder_of_one_s_own(folder: Path, tmp_path: Path) -> None:
    for name in ("torch", "transformers"):
        pytest.importorskip(name)
    encoder, data = make_encoder(tmp_path / "encoder"), ("--data", folder / "memes.jsonl")
    model = tmp_path / "own.zip"
    run("train", *data, "--preset", "full", "--embedder", encoder, "--out", model)
    with pytest.raises(InputError, match=r"needs the encoder local/encoder-.*--embedder"):
        run("predict", model, "我们买苦瓜")
    together = json.loads(run("predict", model, *data, "--embedder", encoder, "--json"))
    text = json.loads((folder / "memes.jsonl").read_text(encoding="utf-8").splitlines()[0])
    (tmp_path / "one.jsonl").write_text(json.dumps(text), encoding="utf-8")
    one = ("--data", tmp_path / "one.jsonl", "--embedder", encoder, "--json")
    assert json.loads(run("predict", model, *one))[0] == together[0]
    found = run("compare", folder / "ridge.zip", model, *data, "--embedder", encoder, "--json")
    assert json.loads(found)["count"] == 100


@pytest.mark.slow
def test_near_duplicates_in_the_training_data_are_counted(folder: Path) -> None:
    memes = str(folder / "memes.jsonl")
    found = json.loads(
        run(
            *("eval", str(folder / "ridge.zip"), "--data", memes, "--robustness"),
            *("--trained-on", memes, "--json"),
        )
    )
    leakage = found["robustness"]["leakage"]
    assert (leakage["duplicates"], leakage["where"]) == (100, "the training data")
    assert {own["attack"] for own in found["robustness"]["evasions"]} >= {"none", "spaces"}


def test_what_predict_leaves_out_is_listed(folder: Path) -> None:
    lines = [{"text": "我们买苦瓜"}, {"text": " "}]
    path = folder / "gaps.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    shown = run("predict", str(folder / "ridge.zip"), "--data", str(path))
    assert "row 2: no text and no image" in " ".join(shown.split())


def test_a_split_that_is_named_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def load(data: str | None, split: str, labels: str, *_: object) -> Loaded:
        asked.append(split)
        raise InputError(f"{data} {labels}")

    monkeypatch.setattr(detector_verbs, "load_examples", load)
    for words in ((), ("--split", "test"), ("--split", "all")):
        with pytest.raises(InputError):
            run("eval", "--preset", "ridge", *words)
    assert asked == ["train", "test", "all"]


def test_wrong_use_is_one_line(shell: Shell) -> None:
    (shell.folder / "m.csv").write_text("text,label\nhi,1\nho,1\n")
    assert "only one class" in shell.refused("detector", "train", "--data", "m.csv")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("predict", "none.zip", "hi"),
            "no detector at none.zip; train one with 'memantics detector train'",
        ),
        (("train", "--preset", "quick"), "unknown preset"),
        (("train", "--preset", "ridge", "--embedder", "x"), "no effect; use --preset full"),
        (
            ("train", "--preset", "full", "--embedder", "x"),
            "config.json is missing; give a model folder",
        ),
        (("predict", "broken.zip", "hi"), "not a detector file, or damaged"),
        (("predict", "broken.zip", "hi", "--data", "sample"), "not a detector file"),
        (("explain", "broken.zip"), "not a detector file"),
        (("eval", "--data", "nowhere.csv"), "no data at nowhere.csv; use sample"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(
    words: tuple[str, ...], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.zip").write_bytes(b"PK\5\6" + b"\1" * 18)
    with pytest.raises(InputError, match=re.escape(problem)):
        run(*words)
