from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.local import tiny

Make = Callable[[str], Path]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes each tiny model once; without the extra, whoever asks for one is skipped."""
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        for name in ("torch", "transformers", "accelerate"):
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"{name} is not installed (extra local)")
        if kind in tiny.NEED_TORCHVISION and importlib.util.find_spec("torchvision") is None:
            pytest.skip(f"torchvision is not installed, which {kind} needs")
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            made[kind] = (tiny.MAKERS | tiny.PLAIN)[kind](folder)
        return made[kind]

    return make
