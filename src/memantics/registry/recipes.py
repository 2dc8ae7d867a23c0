"""Data sets that are told by a recipe: those that ship, and ``*.toml`` of the user's folders."""

from __future__ import annotations

from memantics.registry.contract import RECIPES, Benchmark, list_recipes, list_roots
from memantics.tasks.recipe import make_card, read_recipe


def find_recipes() -> dict[str, Benchmark]:
    """Every recipe by the name of its file; it becomes a benchmark without a sample."""
    roots = [RECIPES, *list_roots()[1:]]
    paths = [path for root in roots for path in list_recipes(root)]
    return {
        path.stem: Benchmark(path.parent, make_card(path.stem, read_recipe(path)), path)
        for path in paths
    }
