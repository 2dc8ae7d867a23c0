"""Fixtures for all tests. No test reaches the network beyond this machine."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import tiers
from tests.commands import Shell

# Before numpy is loaded, here and in every process of a test: on small matrices more threads
# only wait for each other, on a busy machine a hundred times longer than they compute.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Every process of a test would compile our modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What a shell starts in the background ignores Ctrl-C, and so would every process of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# No test may fail because a machine is busy, nor for one run's chance: the same examples each time,
# whatever was imported before. Collecting constants from a thousand modules took longer than most
# properties, and made examples depend on the order of tests. Fresh attacks: ``make hostile``.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("patient")
setattr(providers, "_get_local_constants", lambda: providers._local_constants)  # noqa: B010
# Tests are collected before any fixture runs, and those of whole modules before those of a test:
# what somebody published here, or an earlier run left, is none of theirs.
HOME = Path(tempfile.mkdtemp(prefix="memantics-tests-"))
os.environ["MEMANTICS_HOME"] = str(HOME)
# mutmut runs pytest many times in one process and in its children, and they share this module.
MUTATING = "MUTANT_UNDER_TEST" in os.environ
if MUTATING:
    atexit.register(shutil.rmtree, HOME, ignore_errors=True)
# Modules with tests of half a minute: begun first, so that no core waits for one at the end.
LONG = {
    "docs/test_commands.py",
    "docs/test_own_paper.py",
    "docs/test_python.py",
    "docs/test_reader.py",
    "docs/test_studio.py",
    "construction/publish/test_questions.py",
    "moderation/lora/test_as_model.py",
    "moderation/neural/test_training.py",
    "report/test_papers_filled.py",
    "report/test_tour.py",
    "repository/test_dist.py",
    "repository/test_tiers.py",
    "scale/test_kill.py",
    "serve/test_jobs.py",
    "servers/test_real_servers.py",
}
# What another processor may compute otherwise: goldens, sums, encoders, OCR, detectors, sounds.
# One command on any machine: ``make test-processor``.
PROCESSOR = (
    "compat/",
    "moderation/test_",
    "docs/test_puns.py",
    "docs/test_reader.py",
    "mer_bench/test_golden.py",
    "metrics/",
    "models/test_embedded",
    "models/test_static.py",
    "phonetics/",
    "vision/",
)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(tiers.Tiers())
    config.pluginmanager.register(tiers.Spending(config))


@pytest.hookimpl(optionalhook=True)  # `-p no:xdist`: make mutate, one module at a time
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return tiers.count_workers(config.option.markexpr)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    first = {here / name for name in LONG}
    items.sort(key=lambda item: item.path not in first)
    marked = tuple(str(here / name) for name in PROCESSOR)
    for item in items:
        if str(item.path).startswith(marked):
            item.add_marker(pytest.mark.processor)


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory: searching them for garbage took a second each time."""
    freeze()


def pytest_unconfigure() -> None:
    if not MUTATING:
        shutil.rmtree(HOME, ignore_errors=True)


def pytest_runtest_logfinish() -> None:
    """So do the modules of the large packages that tests load as they go."""
    if len(sys.modules) > frozen[-1] + 200:
        freeze()


frozen = [0]


def freeze() -> None:
    gc.collect()
    gc.freeze()
    frozen.append(len(sys.modules))


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
    link = HOME / "ocr"
    link.unlink(missing_ok=True)
    with contextlib.suppress(FileExistsError):  # another process of `make mutate` was quicker
        link.symlink_to(folder)
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
