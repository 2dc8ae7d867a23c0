"""The page of public Python names: every parameter says what it means."""

from __future__ import annotations

import inspect

import pytest
from docs.python_reference import list_parameters

import memantics

FUNCTIONS = [name for name in memantics.__all__ if inspect.isfunction(getattr(memantics, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_of_a_public_function_has_a_meaning(name: str) -> None:
    parameters = list(list_parameters(name, getattr(memantics, name)))
    assert [key for key, _, _, meaning in parameters if not meaning.strip()] == []


def test_a_meaning_comes_from_the_docstring_that_names_the_parameter() -> None:
    def weigh(meme: str, scale: int = 1) -> None:
        """Weigh a meme. ``scale`` is in grams; nothing is kept."""

    found = {key: meaning for key, _, _, meaning in list_parameters("weigh", weigh)}
    assert found == {"meme": "", "scale": "`scale` is in grams"}
