"""A hanging test is ended: the limit of ``pyproject.toml`` is in force."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_a_limit_is_set(pytestconfig: pytest.Config) -> None:
    assert 300 <= float(pytestconfig.getini("timeout")) <= 1800


def test_a_hanging_test_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(
        "import time\ndef test_hangs(): time.sleep(60)\ndef test_runs(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [
            *command,
            "--timeout",
            "0.5",
            "--rootdir",
            str(tmp_path),
            "-c",
            "/dev/null",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert "Timeout" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
