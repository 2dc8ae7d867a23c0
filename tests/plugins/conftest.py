"""Packages as pip leaves them, in a folder of the path."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.places import ROOT

EXAMPLE = ROOT / "examples" / "plugin"
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install packages as pip leaves them: modules and a ``.dist-info`` in a folder of the path."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)

    def add(name: str, points: dict[str, dict[str, str]], version: str = "1.0") -> Path:
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        facts = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(facts, encoding="utf-8")
        groups = (
            f"[{group}]\n" + "".join(f"{n} = {value}\n" for n, value in values.items())
            for group, values in points.items()
        )
        (info / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
        return site

    before = set(sys.modules)
    yield add
    for module in set(sys.modules) - before:
        if (site / f"{module.partition('.')[0]}.py").exists():
            del sys.modules[module]


@pytest.fixture
def says(install: Install) -> Install:
    """The example, with the entry points that its own project file names."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    site = install(project["name"], project["entry-points"], project["version"])
    shutil.copy(EXAMPLE / "memantics_says.py", site)
    return install
