"""Fixtures for all tests. No test reaches the network beyond this machine."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.commands import Shell

# Before numpy is loaded, here and in every process of a test: on small matrices more threads
# only wait for each other, on a busy machine a hundred times longer than they compute.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# No test may fail because a machine is busy.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# Tests are collected before any fixture runs: what somebody published here is none of theirs.
os.environ["MEMANTICS_HOME"] = str(Path(tempfile.gettempdir()) / "memantics-tests-no-home")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(autouse=True)
def own_home(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never read or write the registry and caches of whoever runs the tests.

    What the embedded reader read in an image is the same in every test, and slow: it is shared.
    """
    readings = tmp_path_factory.getbasetemp() / "ocr"
    readings.mkdir(exist_ok=True)
    home = tmp_path / "home"
    home.mkdir()
    (home / "ocr").symlink_to(readings)
    monkeypatch.setenv("MEMANTICS_HOME", str(home))


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines."""
    connect: Callable[..., Any] = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert address[0] in ("127.0.0.1", "::1", "localhost"), f"network: {address}"
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
