"""Fixtures for all tests. No test reaches the network beyond this machine."""

from __future__ import annotations

import gc
import os
import signal
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
# What a shell starts in the background ignores Ctrl-C, and so would every process of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# No test may fail because a machine is busy.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# Tests are collected before any fixture runs: what somebody published here is none of theirs.
os.environ["MEMANTICS_HOME"] = str(Path(tempfile.gettempdir()) / "memantics-tests-no-home")


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory: searching them for garbage took a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the embedded reader read in images: the same in every test, and slow, so it is shared.

    It is shared by the processes of one test run too.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "ocr"
    folder.mkdir(exist_ok=True)
    Shell.readings = folder
    return folder


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never read or write the registry and caches of whoever runs the tests."""
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines."""
    connect: Callable[..., Any] = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert address[0] in ("127.0.0.1", "::1", "localhost"), f"network: {address}"
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
