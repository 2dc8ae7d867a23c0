"""One open service and one guarded one for all tests of the service: loading models takes time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from memantics.models import fake
from memantics.serve.settings import (
    DecisionSettings,
    Intake,
    Reach,
    ServedModels,
    ServeSettings,
    Token,
    digest,
)
from tests.kinder import MODEL, reply
from tests.moderation.policies.scripted import POLICIES
from tests.serve.site import Clock, Site, serving

TOKENS = (
    Token("shop", digest("shop-secret")),
    Token("mod", digest("mod-secret"), ("moderate",)),
    Token("slow", digest("slow-secret"), ("moderate",), rate=12),
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="session")
def site(place: Path) -> Iterator[Site]:
    """Open, as on one's own machine; fake models are connected, and decisions are recorded."""
    settings = ServeSettings(
        models=ServedModels(models=("fake/builder", MODEL), attributes=("TOXICITY=sample",)),
        bounds=Intake(deadline=120),
        state=place / "open",
        decisions=DecisionSettings(str(place / "decisions.db"), POLICIES / "forum.md"),
    )
    with mock.patch.dict(fake.SCRIPTS, kinder=reply), serving(settings, place / "home") as made:
        yield made


@pytest.fixture(scope="session")
def guarded(place: Path) -> Iterator[Site]:
    """With tokens and narrow bounds."""
    bounds = Intake(body_bytes=300_000, pixels=1_000_000, inputs=3, waiting=4, jobs=1)
    reach = Reach(origins=("https://shop.example",))
    settings = ServeSettings(reach, bounds=bounds, tokens=TOKENS, state=place / "guarded")
    with serving(settings, place / "home") as made:
        yield made
