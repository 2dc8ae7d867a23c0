"""The two scripted models of the tutorial, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.places import ROOT

POLICIES = ROOT / "examples" / "policies"


@contextmanager
def serve_scripted() -> Iterator[str]:
    """Start the server on a free port and yield its URL."""
    script = [sys.executable, str(POLICIES / "scripted_model.py"), "0"]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
