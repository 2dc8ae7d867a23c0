"""Packages below ours send nothing to their makers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_CODE = "import memantics, onnxruntime; onnxruntime.SessionOptions()"


def test_the_runtime_of_networks_keeps_no_events_for_its_maker(tmp_path: Path) -> None:
    # It writes an id of the machine and a queue of events into the cache, and sends them. It does
    # not where it believes to be tested, so nothing of our own environment may say so.
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    told = kept | {"HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", _CODE], env=told, check=True, timeout=120)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
