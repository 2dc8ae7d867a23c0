"""The terms of the ontology: ten dimensions, their relations, and six kinds of toxicity.

Relations and kinds are in ``vocabulary.toml``. ``meme.ttl`` has the same terms in RDF; a test
compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from memantics.core.data import read_toml, toml_beside
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.meaning import ALIASES, DIMENSIONS, Dimension, RelationName
from memantics.core.records import Closed

__all__ = [
    "DIMENSIONS",
    "DIMENSION_TERMS",
    "KIND_TERMS",
    "RELATIONS",
    "SPATIAL",
    "TOXICITY_KINDS",
    "Dimension",
    "KindTerm",
    "RelationName",
    "RelationTerm",
    "ToxicityKind",
    "find_dimension",
    "find_kind",
    "find_spatial",
    "name_dimension",
]
# Each dimension is defined by one TOML file, in ``dimensions/`` or in the user's folder.

_NAME = re.compile(r"[A-Z][A-Za-z]{1,39}")


class OwnRelation(Closed):
    """A relation of a custom dimension: its definition and target dimensions."""

    name: str
    definition: str
    to: tuple[str, ...]


class DimensionSpec(Closed):
    """The definition of one dimension and its extraction.

    ``guidance`` describes what to extract, ``question`` what a question about it tests. ``inputs``
    are dimensions given in its prompt, ``needs`` those that must not be empty, and ``background``
    adds the user's texts. ``relations`` are names of the ontology or of ``relation``. ``model``
    answers this step instead of the build's model; ``drop`` removes the dimension.
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
        """Override the other specification with the values set here.

        >>> DimensionSpec(model="fake/builder").over(DimensionSpec(label="scene")).label
        'scene'
        """
        return other.model_copy(
            update={name: getattr(self, name) for name in self.model_fields_set}
        )


def read_specs(folder: Path) -> dict[str, DimensionSpec]:
    """Read the dimensions of a folder by file name, in order; an error names the file."""
    found: dict[str, DimensionSpec] = {}
    for path in sorted(folder.glob("*.toml")):
        if not _NAME.fullmatch(path.stem):
            raise DataError(
                path,
                "use only letters in the file name, for example ColorComposition.toml",
                hint="rename",
            )
        form, see = (
            "save the dimension as UTF-8 TOML",
            "see docs/how-to/build-a-benchmark.md on dimensions",
        )
        found[path.stem] = read_toml(path, DimensionSpec, form, see)
    if not found:
        raise InputError(
            f"{folder}: contains no dimension", hint="add one file NAME.toml per dimension"
        )
    return found


SPECS: Mapping[str, DimensionSpec] = MappingProxyType(
    read_specs(Path(__file__).with_name("dimensions"))
)


ToxicityKind = Literal["Abusive", "Cyberbullying", "Harmful", "Hateful", "Misogynous", "Propaganda"]


class KindTerm(Closed):
    """A kind of toxicity; ``spellings`` are alternative spellings."""

    name: ToxicityKind
    label: str
    definition: str
    spellings: tuple[str, ...] = ()


class RelationTerm(Closed):
    """A relation from ``domain`` to ``range``; ``label`` reads as a verb.

    Spatial relations have ``spellings``, the wordings that a model may use.
    """

    name: RelationName | str
    label: str
    definition: str
    domain: tuple[Dimension, ...]
    range: tuple[Dimension, ...]
    spellings: tuple[str, ...] = ()


_TERMS = toml_beside(__file__, "vocabulary.toml")
DIMENSION_TERMS: Mapping[str, DimensionSpec] = MappingProxyType({d: SPECS[d] for d in DIMENSIONS})
RELATIONS: Mapping[str, RelationTerm] = MappingProxyType(
    {name: RelationTerm(name=name, **term) for name, term in _TERMS["relations"].items()}
)
SPATIAL: Mapping[str, RelationTerm] = MappingProxyType(
    {name: term for name, term in RELATIONS.items() if term.spellings}
)
_SPATIAL_NAMES: Mapping[str, str] = MappingProxyType(
    {
        spelling: name
        for name, term in SPATIAL.items()
        for spelling in (name.casefold(), *term.spellings)
    }
)
KIND_TERMS: Mapping[str, KindTerm] = MappingProxyType(
    {name: KindTerm(name=name, **term) for name, term in _TERMS["kinds"].items()}
)
TOXICITY_KINDS: tuple[ToxicityKind, ...] = get_args(ToxicityKind)
_DIMENSION_NAMES: Mapping[str, Dimension] = MappingProxyType(
    {name: name for name in DIMENSIONS} | dict(ALIASES)
)
_KIND_NAMES: Mapping[str, ToxicityKind] = MappingProxyType(
    {
        spelling: term.name
        for term in KIND_TERMS.values()
        for spelling in (term.name.casefold(), *term.spellings)
    }
)


def find_dimension(name: str) -> Dimension | None:
    """Find a dimension by its name in this package's ontology or in M-QUEST's.

    >>> find_dimension("EmotionExpression"), find_dimension("Scene"), find_dimension("Weather")
    ('Emotion', 'Scene', None)
    """
    return _DIMENSION_NAMES.get(name)


def name_dimension(name: Dimension) -> str:
    """Return the label of a dimension; a user-defined dimension is labelled by its name.

    >>> name_dimension("Scene"), name_dimension("ColorUse")
    ('scene', 'color use')
    """
    term = DIMENSION_TERMS.get(name)
    return term.label if term else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def find_spatial(name: str) -> str | None:
    """Find the spatial relation of words joined by underscores.

    >>> find_spatial("to_the_left_of"), find_spatial("isleftof"), find_spatial("is_above")
    ('isLeftOf', 'isLeftOf', 'isAbove')
    >>> find_spatial("holds") is None
    True
    """
    return _SPATIAL_NAMES.get(name) or _SPATIAL_NAMES.get(name.removeprefix("is_"))


def find_kind(label: str) -> ToxicityKind | None:
    """Find the kind of toxicity of a label in any case or spelling.

    A label that is not one of the known spellings has no kind.

    >>> find_kind("Mysogynous"), find_kind(" hate speech "), find_kind("Dark humour")
    ('Misogynous', 'Hateful', None)
    """
    return _KIND_NAMES.get(re.sub(r"[\s_-]+", " ", label).strip().casefold())


def find_dimensions(names: Sequence[str]) -> tuple[Dimension, ...]:
    """Find dimensions by this package's or M-QUEST's names, without duplicates.

    >>> find_dimensions(["EmotionExpression", "Emotion"])
    ('Emotion',)
    """
    found = {name: find_dimension(name) for name in names}
    for name, dimension in found.items():
        if dimension is None:
            raise UnknownName("dimension", name, DIMENSIONS)
    return tuple(dict.fromkeys(dimension for dimension in found.values() if dimension is not None))
