"""An exported detector says what the network says, in one file, without PyTorch."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memantics.core.errors import MissingExtra, StoreError
from memantics.moderation.neural import machine as neural_packages
from memantics.moderation.neural.saved import (
    export_onnx,
    is_neural,
    load_neural,
    open_deployed,
    open_export,
    open_neural,
    predict_neural,
)
from memantics.moderation.neural.seeds import SeedPlan, train_neural
from memantics.moderation.neural.settings import Backbones, NetworkShape
from tests.moderation.neural.conftest import Make
from tests.moderation.neural.tiny import QUICK, draw_memes

pytestmark = pytest.mark.slow

# Asks a file about memes in a process that cannot import PyTorch or transformers.
BARE = """
import importlib.abc, json, sys
from pathlib import Path
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "safetensors", "onnx"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from memantics.moderation.examples import Example
from memantics.moderation.neural.saved import open_neural, predict_neural
memes = [Example(i, t, a, b, Path(p)) for i, t, a, b, p in json.load(sys.stdin)]
asked = predict_neural(open_neural(Path(sys.argv[1])), memes)
json.dump([one.chances for one in asked.predictions], sys.stdout)
"""


@pytest.fixture(scope="module")
def trained(encoder: Make, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A CLIP detector after one epoch, and its export."""
    pytest.importorskip("onnxscript")
    folder = tmp_path_factory.mktemp("trained")
    data = draw_memes(60, folder / "images")
    plan = SeedPlan(
        Backbones(clip=encoder("clip")), NetworkShape(length=24), replace(QUICK, epochs=1)
    )
    train_neural(data, plan, folder / "out", lambda _: None)
    return folder, export_onnx(folder / "out", folder / "detector.zip")


def test_the_file_agrees_with_the_network(trained: tuple[Path, Path]) -> None:
    folder, file = trained
    memes = draw_memes(30, folder / "more", seed=8).examples
    slow = predict_neural(load_neural(folder / "out", "cpu"), memes)
    fast = predict_neural(open_neural(file), memes)
    assert [one.label for one in fast.predictions] == [one.label for one in slow.predictions]
    for one, other in zip(fast.predictions, slow.predictions, strict=True):
        assert one.chances == pytest.approx(other.chances, abs=1e-5)
    alone = predict_neural(open_neural(file), memes[:1])
    assert alone.predictions[0].chances == pytest.approx(fast.predictions[0].chances, abs=1e-5)


def test_it_needs_no_torch(trained: tuple[Path, Path]) -> None:
    folder, file = trained
    memes = draw_memes(5, folder / "few", seed=9).examples
    rows = [(m.id, m.text, m.text_caption, m.image_caption, str(m.image)) for m in memes]
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(file)],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = predict_neural(load_neural(folder / "out", "cpu"), memes).predictions
    for found, one in zip(json.loads(done.stdout), expected, strict=True):
        assert found == pytest.approx(one.chances, abs=1e-5)


# Texts alone are exported in test_commands.py, CLIP above.
@pytest.mark.parametrize("kind", ["image", "fusion"])
def test_every_kind_of_network_can_be_exported(kind: str, encoder: Make, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    backbones = {
        "image": lambda: Backbones(image=encoder("image")),
        "fusion": lambda: Backbones(text=str(encoder("text")), image=encoder("image")),
    }[kind]()
    shape = NetworkShape(integration="none" if kind == "image" else "sum", length=24, target="type")
    data = draw_memes(60, tmp_path / "images")
    training = replace(QUICK, epochs=1, hold_out="random")
    train_neural(data, SeedPlan(backbones, shape, training), tmp_path / "out", lambda _: None)
    file = export_onnx(tmp_path / "out", tmp_path / "detector.zip")
    slow = load_neural(tmp_path / "out", "cpu")
    fast = open_deployed(file)
    memes = data.examples[:9]
    assert np.allclose(
        slow.predict(slow.encode(memes)), fast.predict(fast.encode(memes)), atol=1e-5
    )


def rewrite(data: bytes, change: Callable[[dict[str, bytes]], object], packed: int = 0) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", packed) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def test_a_changed_file_is_refused(trained: tuple[Path, Path]) -> None:
    data = trained[1].read_bytes()

    def flip(files: dict[str, bytes]) -> None:
        files["model.onnx"] = files["model.onnx"][:-1] + b"\7"

    def age(files: dict[str, bytes]) -> None:
        facts = json.loads(files["detector.json"])
        files["detector.json"] = json.dumps(facts | {"format": 0}).encode()

    cases: list[tuple[bytes, str]] = [
        (rewrite(data, flip), "model.onnx was changed"),
        (rewrite(data, age), "has format 0"),
        (rewrite(data, lambda files: files.update({"../x": b""})), "unexpected files"),
        (rewrite(data, lambda files: files.pop("tokenizer.json")), "added or removed"),
        (rewrite(data, lambda files: files.pop("detector.json")), "cannot be read"),
        (rewrite(data, lambda _: None, zipfile.ZIP_DEFLATED), "it is compressed"),
        (data[: len(data) // 2], "not an exported detector"),
        (b"not a zip", "not an exported detector"),
    ]
    for bad, message in cases:
        with pytest.raises(StoreError, match=message):
            open_export(bad, "x.zip")


def test_what_is_a_neural_detector(trained: tuple[Path, Path], tmp_path: Path) -> None:
    folder, file = trained
    assert is_neural(folder / "out")
    assert is_neural(folder / "out" / "seed-0")
    assert is_neural(file)
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("weights.npz", b"")
    assert not is_neural(other)
    assert not is_neural(tmp_path / "nowhere")


def test_without_the_extra_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(neural_packages, "find_spec", lambda _: None)
    plan = SeedPlan(Backbones(text="scratch"), NetworkShape(), QUICK)
    with pytest.raises(MissingExtra, match=r"pip install 'memantics\[detector\]'"):
        train_neural(draw_memes(20), plan, tmp_path, lambda _: None)
    with pytest.raises(MissingExtra):
        export_onnx(tmp_path, tmp_path / "x.zip")
