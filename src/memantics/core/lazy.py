"""Lazy imports: the public names of a package are imported at first use.

A package lists its names once, as imports for type checkers::

    if TYPE_CHECKING:
        from memantics.evaluation.evaluate import score as score
    else:
        offer(__name__, __file__)

Importing all of them at once would take seconds; importing the package takes a millisecond.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType


def offer(package: str, file: str) -> None:
    """Make the names that a package imports under ``if TYPE_CHECKING`` its attributes."""
    module = sys.modules[package]
    homes = read_offers(Path(file).read_text(encoding="utf-8"))
    names = sorted(homes)

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, attribute = homes[name]
        if home == package:  # the name is a module of the package itself
            value: object = importlib.import_module(f"{home}.{attribute}")
        else:
            value = _find_attribute(home, attribute)
        vars(module)[name] = value
        return value

    known = vars(module).get("__all__", ())
    vars(module).update(__getattr__=find, __dir__=lambda: sorted({*names, *known}))
    vars(module)["__all__"] = sorted({*names, *known})
    module.__class__ = _Package


def read_offers(source: str) -> dict[str, tuple[str, str]]:
    r"""Return the public names of a package, each with its module and its name in that module.

    >>> read_offers("if TYPE_CHECKING:\n    from a.b import c as d\n    from a import b")
    {'d': ('a.b', 'c'), 'b': ('a', 'b')}
    """
    return {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for node in ast.parse(source).body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _find_attribute(home: str, name: str) -> object:
    """Return a name of a module, or a submodule that no code has imported yet."""
    module = importlib.import_module(home)
    if hasattr(module, name):
        return getattr(module, name)
    return importlib.import_module(f"{home}.{name}")


class _Package(ModuleType):
    """A module type in which a public function is not replaced by a submodule of the same name.

    Python binds an imported submodule as an attribute of its package, which would hide the
    function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in self.__all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)
