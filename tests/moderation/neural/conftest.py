from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memantics.moderation.neural.settings import Backbones
from tests.moderation.neural import tiny

Make = Callable[[str], Path]
MAKERS: dict[str, Callable[[Path], Path]] = {
    "text": tiny.make_text,
    "image": tiny.make_image,
    "resnet": tiny.make_resnet,
    "clip": tiny.make_clip,
    "english": lambda folder: tiny.make_clip(folder, chinese=False),
}


@pytest.fixture(autouse=True)
def plain_arithmetic() -> Iterator[None]:
    """Trainings ask for fixed sums; other tests of the process must not inherit that."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes each tiny encoder once; without the extra, whoever asks for one is skipped."""
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        for name in ("torch", "transformers", "safetensors"):
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"{name} is not installed (extra detector)")
        if kind not in made:
            made[kind] = MAKERS[kind](tmp_path_factory.mktemp("encoder") / kind)
        return made[kind]

    return make


@pytest.fixture(scope="session")
def text_only(encoder: Make) -> Backbones:
    return Backbones(text=str(encoder("text")))


@pytest.fixture(scope="session")
def fusion(encoder: Make) -> Backbones:
    return Backbones(text=str(encoder("text")), image=encoder("image"))
