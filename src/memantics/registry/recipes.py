"""Data sets that are told by a recipe: those that ship, and ``*.toml`` of the user's folders."""

from __future__ import annotations

from pathlib import Path

from memantics.core.home import home
from memantics.registry.contract import RECIPES, Benchmark, list_recipes, list_roots
from memantics.tasks.recipe import make_card, read_recipe


def find_recipes() -> dict[str, Benchmark]:
    """Every recipe by the name of its file; it becomes a benchmark without a sample.

    What ``data add`` wrote for a table of the user's takes the place of one of the same name.
    """
    roots = [RECIPES, *list_roots()[1:], find_own_recipes()]
    paths = [path for root in roots for path in list_recipes(root)]
    return {
        path.stem: Benchmark(path.parent, make_card(path.stem, read_recipe(path)), path)
        for path in paths
    }


def find_own_recipes() -> Path:
    """The folder of recipes that ``data add`` writes for tables."""
    return home() / "recipes"
