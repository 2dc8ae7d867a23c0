"""Leave the examples of public functions to ``tests/docs/test_examples.py``, which has their data.

The hook is in this folder, because a ``conftest.py`` in ``tests`` is not read if pytest gets a file
of ``src`` alone.
"""

from __future__ import annotations

import re

import pytest

PUBLIC = re.compile(r">>> .*\bmm\.")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Drop the doctests that use ``mm``, the name of the package in examples."""
    items[:] = [item for item in items if not uses_package(item)]


def uses_package(item: pytest.Item) -> bool:
    """Whether an item is a doctest that calls public functions and needs their data."""
    if not isinstance(item, pytest.DoctestItem) or item.dtest is None:
        return False
    text = item.dtest.docstring or ""
    return "import memantics as mm" not in text and PUBLIC.search(text) is not None
