"""A process in which only the core's packages can be imported, as after a plain install."""

from __future__ import annotations

import os
import re
import tomllib
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement

from tests.places import ROOT

# Finders that do not see some packages: looking for one finds nothing, importing it fails.
_BLOCK = """
import sys
class Blind:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            return None
        return self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Blind, sys.meta_path)
"""


@cache
def find_extras(*kept: str) -> set[str]:
    """Modules of packages that are here only for extras, besides those ``kept``."""
    core = reach_core(*kept)
    return {
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not {_plain(owner) for owner in owners} & core
    } - {"memantics", "_distutils_hack", "pip", "setuptools", "sitecustomize", "pkg_resources"}


def block_extras(folder: Path, names: set[str] | None = None) -> dict[str, str]:
    """What to add to a process's environment so that extras (or ``names``) are absent there."""
    folder.mkdir(exist_ok=True)
    code = _BLOCK.format(names=find_extras() if names is None else names)
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}


def reach_core(*extras: str) -> set[str]:
    """The distributions of the core and of ``extras``, and all that they need."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    more = [name for extra in extras for name in project["optional-dependencies"][extra]]
    found, waiting = {"memantics"}, [*project["dependencies"], *more]
    while waiting:
        needed = Requirement(waiting.pop())
        name = _plain(needed.name)
        if name in found or (needed.marker and not needed.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += distribution(name).requires or []
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
