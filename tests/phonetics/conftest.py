"""One search per language model for all tests: building it takes a second or two."""

from __future__ import annotations

import pytest

from memantics.core.errors import InputError
from memantics.understanding.phonetics.homophones import load_lattice
from memantics.understanding.phonetics.lattice import Lattice


@pytest.fixture(scope="session")
def lattice() -> Lattice:
    return load_lattice("dictionary", None)


@pytest.fixture(scope="session")
def trigram() -> Lattice:
    try:
        return load_lattice("trigram", None)
    except InputError as error:
        pytest.skip(f"no trigram model: {error}")


@pytest.fixture(scope="session")
def frequencies() -> Lattice:
    try:
        return load_lattice("frequencies", None)
    except InputError as error:
        pytest.skip(f"no frequency data: {error}")
