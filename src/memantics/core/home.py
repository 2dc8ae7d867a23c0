"""Where Memantics keeps what outlives a command: the registry of releases and the cache."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """``$MEMANTICS_HOME``, else ``~/.memantics``."""
    return Path(os.environ.get("MEMANTICS_HOME") or Path.home() / ".memantics").expanduser()
