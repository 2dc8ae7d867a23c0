"""Programs that others wrote, to call the service with: `make clients` installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("MEMANTICS_CLIENTS") or Path(sys.prefix) / "clients")


def find_package(name: str) -> Path:
    """The folder of an npm package; without it, or without Node, the test is skipped."""
    folder = FOLDER / "node_modules" / name
    if shutil.which("node") is None or not folder.is_dir():
        pytest.skip(f"Node or its package {name} is not installed (make clients)")
    return folder


def find_python(name: str) -> Path:
    """The interpreter of an environment with a tool of its own, such as ``threatexchange``."""
    python = FOLDER / name / "bin" / "python"
    if not python.is_file():
        pytest.skip(f"{name} is not installed (make clients)")
    return python


def run_node(script: Path, *arguments: str, cwd: Path | None = None) -> str:
    """What a script prints; it finds the packages of ``make clients``."""
    given = {**os.environ, "NODE_PATH": str(FOLDER / "node_modules")}
    done = subprocess.run(
        ["node", str(script), *arguments],
        capture_output=True, text=True, timeout=120, env=given, cwd=cwd, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
