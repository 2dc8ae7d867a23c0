"""A process in which only the core's packages can be imported, as after a plain install."""

from __future__ import annotations

import os
import re
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement

_BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def find_extras() -> set[str]:
    """Modules of packages that are here only for extras."""
    core = _reach("memantics")
    return {
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not {_plain(owner) for owner in owners} & core
    } - {"memantics", "_distutils_hack", "pip", "setuptools", "sitecustomize", "pkg_resources"}


def block_extras(folder: Path) -> dict[str, str]:
    """What to add to a process's environment so that extras are absent there."""
    folder.mkdir(exist_ok=True)
    code = _BLOCK.format(names=find_extras())
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}


def _reach(name: str) -> set[str]:
    """A distribution and all that it needs without extras."""
    found, waiting = set[str](), [name]
    while waiting:
        plain = _plain(waiting.pop())
        if plain in found:
            continue
        found.add(plain)
        for line in distribution(plain).requires or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
