"""Packages below ours send nothing to their makers."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

_CODE = "import memantics, onnxruntime; onnxruntime.SessionOptions()"
_HUB = "from huggingface_hub import constants; print(constants.HF_HUB_DISABLE_TELEMETRY)"
_RAY = "from ray._common.usage import usage_lib; print(not usage_lib.usage_stats_enabled())"


def run(code: str, home: Path, **told: str) -> str:
    # The runtime sends nothing where it believes to be tested, so nothing of our own environment
    # may say so.
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    given = kept | {"HOME": str(home)} | told
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, env=given, check=True, timeout=240, capture_output=True, text=True
    ).stdout.strip()


def test_the_runtime_of_networks_keeps_no_events_for_its_maker(tmp_path: Path) -> None:
    # It writes an id of the machine and a queue of events into the cache, and sends them.
    run(_CODE, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "code", "variable", "on"),
    [
        ("huggingface_hub", _HUB, "HF_HUB_DISABLE_TELEMETRY", "0"),
        ("ray", _RAY, "RAY_USAGE_STATS_ENABLED", "1"),
    ],
)
def test_use_is_not_reported_unless_somebody_wants_it(
    tmp_path: Path, package: str, code: str, variable: str, on: str
) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    assert run(f"import memantics; {code}", tmp_path) == "True"
    assert run(f"import memantics; {code}", tmp_path, **{variable: on}) == "False"
