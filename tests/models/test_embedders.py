"""Embedders from folders: tiny random models, made here."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from memantics.core.errors import InputError, MissingExtra
from memantics.core.samples import image_path
from memantics.models.embedders import LocalImageEncoder, LocalTextEncoder
from tests.metrics.tiny_models import make_encoder, make_image_encoder

pytestmark = pytest.mark.slow

TEXTS = ["the cat sleeps", "a meme mocks updates", "the cat sleeps", ""]


@pytest.fixture(scope="module")
def text_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_image_encoder(tmp_path_factory.mktemp("image"))


def test_texts_become_unit_vectors(text_folder: Path) -> None:
    rows = LocalTextEncoder(text_folder).encode(TEXTS)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(rows[0], rows[2], atol=1e-5)
    assert float(rows[0] @ rows[1]) < 0.999


def test_a_sentence_model_says_how_it_pools(text_folder: Path) -> None:
    mean = LocalTextEncoder(text_folder).encode(TEXTS[:1])
    pooling = text_folder / "1_Pooling"
    pooling.mkdir()
    (pooling / "config.json").write_text('{"pooling_mode_cls_token": true}')
    first = LocalTextEncoder(text_folder).encode(TEXTS[:1])
    assert not np.allclose(mean, first, atol=1e-3)


def test_the_version_is_that_of_the_weights(text_folder: Path, tmp_path: Path) -> None:
    """Two models may lie in folders of the same name."""
    before = LocalTextEncoder(text_folder).version
    moved = shutil.copytree(text_folder, tmp_path / text_folder.name)
    assert LocalTextEncoder(moved).version == before
    other = make_encoder(tmp_path / "other", seed=9)
    shutil.copy(other / "model.safetensors", moved)
    assert LocalTextEncoder(moved).version != before


def test_images_become_unit_vectors(image_folder: Path) -> None:
    paths = [image_path("en-001"), image_path("en-002"), image_path("en-001")]
    rows = LocalImageEncoder(image_folder).encode_files(paths)
    assert rows.shape == (3, 8)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(rows[0], rows[2], atol=1e-5)


@pytest.mark.parametrize(("family", "width"), [("CLIP", 8), ("Siglip", 16), ("ChineseCLIP", 8)])
def test_each_family_of_vision_models_sees(family: str, width: int, tmp_path: Path) -> None:
    paths = [image_path("en-001"), image_path("en-002"), image_path("en-001")]
    encoder = LocalImageEncoder(make_image_encoder(tmp_path / family, family))
    rows = encoder.encode_files(paths)
    assert rows.shape == (3, width) == (3, encoder.width)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(rows[0], rows[2], atol=1e-5)
    assert not np.allclose(rows[0], rows[1], atol=1e-4)


def test_other_folders_are_one_line(tmp_path: Path, text_folder: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json is missing"):
        LocalTextEncoder(tmp_path)
    with pytest.raises(InputError, match="cannot be loaded"):
        LocalImageEncoder(text_folder)


def test_absent_packages_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memantics.core.errors.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"memantics\[local\]"):
        LocalTextEncoder(tmp_path)
