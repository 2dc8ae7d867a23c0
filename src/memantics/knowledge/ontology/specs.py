"""Dimensions as data: one TOML file each, ours in ``dimensions/`` and those of the user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from memantics.core.closed import Closed
from memantics.core.data import read_toml
from memantics.core.errors import DataError, InputError

_NAME = re.compile(r"[A-Z][A-Za-z]{1,39}")


class OwnRelation(Closed):
    """A relation that only this dimension has: what it says, and to which dimensions it leads."""

    name: str
    definition: str
    to: tuple[str, ...]


class DimensionSpec(Closed):
    """What one dimension is, and how it is asked for.

    ``guidance`` says what to look for, ``question`` what a question about it tests. ``inputs`` are
    the dimensions that its step is told of, ``needs`` those without which there is nothing to ask,
    ``background`` whether it is told the user's texts. ``relations`` are names of the ontology or
    of ``relation``. ``model`` answers this step in the place of the build's; ``drop`` leaves the
    dimension out.
    """

    label: str = ""
    definition: str = ""
    guidance: str = ""
    question: str = ""
    inputs: tuple[str, ...] | None = None
    needs: tuple[str, ...] = ()
    background: bool = True
    relations: tuple[str, ...] = ()
    relation: tuple[OwnRelation, ...] = ()
    model: str = ""
    drop: bool = False

    def over(self, other: DimensionSpec) -> DimensionSpec:
        """The other with what is said here in its place.

        >>> DimensionSpec(model="fake/builder").over(DimensionSpec(label="scene")).label
        'scene'
        """
        return other.model_copy(
            update={name: getattr(self, name) for name in self.model_fields_set}
        )


def read_specs(folder: Path) -> dict[str, DimensionSpec]:
    """The dimensions of a folder by the names of their files, in order; an error names the file."""
    found: dict[str, DimensionSpec] = {}
    for path in sorted(folder.glob("*.toml")):
        if not _NAME.fullmatch(path.stem):
            raise DataError(
                path, "a dimension is named in letters, as in ColorComposition.toml", hint="rename"
            )
        form, see = "a dimension is UTF-8 TOML", "see docs/build-a-benchmark.md on dimensions"
        found[path.stem] = read_toml(path, DimensionSpec, form, see)
    if not found:
        raise InputError(f"{folder}: holds no dimension", hint="one NAME.toml for each")
    return found


SPECS: Mapping[str, DimensionSpec] = MappingProxyType(
    read_specs(Path(__file__).with_name("dimensions"))
)
