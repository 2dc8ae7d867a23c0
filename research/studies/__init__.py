"""Studies of the protocol: one module per topic, each with a tuple ``STUDIES``."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from memantics.core.errors import UnknownName
from research.protocol import Study


def find_studies() -> list[Study[Any]]:
    """List all studies, in the order of their modules."""
    names = sorted(module.name for module in iter_modules(__path__))
    return [study for name in names for study in import_module(f"{__name__}.{name}").STUDIES]


def find_study(name: str) -> Study[Any]:
    """Find a study by its name."""
    known = {study.name: study for study in find_studies()}
    if name not in known:
        raise UnknownName("study", name, known)
    return known[name]
