"""The words of the ontology: ten dimensions, the relations between them, six kinds of toxicity.

Relations and kinds are in ``vocabulary.toml``. ``meme.ttl`` says the same in RDF; a test holds the
two together.
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
# Dimensions as data: one TOML file each, ours in ``dimensions/`` and those of the user.

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
        form, see = (
            "a dimension is UTF-8 TOML",
            "see docs/how-to/build-a-benchmark.md on dimensions",
        )
        found[path.stem] = read_toml(path, DimensionSpec, form, see)
    if not found:
        raise InputError(f"{folder}: holds no dimension", hint="one NAME.toml for each")
    return found


SPECS: Mapping[str, DimensionSpec] = MappingProxyType(
    read_specs(Path(__file__).with_name("dimensions"))
)


ToxicityKind = Literal["Abusive", "Cyberbullying", "Harmful", "Hateful", "Misogynous", "Propaganda"]


class KindTerm(Closed):
    """A kind of toxicity; ``spellings`` are other ways to write its name."""

    name: ToxicityKind
    label: str
    definition: str
    spellings: tuple[str, ...] = ()


class RelationTerm(Closed):
    """What may link an individual of ``domain`` to one of ``range``; ``label`` reads as a verb.

    Relations in space have ``spellings``: words in which a model may say them.
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
    """The dimension that a name stands for, ours or an official one.

    >>> find_dimension("EmotionExpression"), find_dimension("Scene"), find_dimension("Weather")
    ('Emotion', 'Scene', None)
    """
    return _DIMENSION_NAMES.get(name)


def name_dimension(name: Dimension) -> str:
    """How people call a dimension; one of a user's own by its name, spelled out.

    >>> name_dimension("Scene"), name_dimension("ColorUse")
    ('scene', 'color use')
    """
    term = DIMENSION_TERMS.get(name)
    return term.label if term else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def find_spatial(name: str) -> str | None:
    """The relation in space that words joined by underscores stand for.

    >>> find_spatial("to_the_left_of"), find_spatial("isleftof"), find_spatial("is_above")
    ('isLeftOf', 'isLeftOf', 'isAbove')
    >>> find_spatial("holds") is None
    True
    """
    return _SPATIAL_NAMES.get(name) or _SPATIAL_NAMES.get(name.removeprefix("is_"))


def find_kind(label: str) -> ToxicityKind | None:
    """The kind of toxicity that a label names, whatever its case or spelling.

    A label that describes toxicity in other words names no kind: nothing is guessed.

    >>> find_kind("Mysogynous"), find_kind(" hate speech "), find_kind("Dark humour")
    ('Misogynous', 'Hateful', None)
    """
    return _KIND_NAMES.get(re.sub(r"[\s_-]+", " ", label).strip().casefold())


def find_dimensions(names: Sequence[str]) -> tuple[Dimension, ...]:
    """Dimensions by our names or the official ones, each once.

    >>> find_dimensions(["EmotionExpression", "Emotion"])
    ('Emotion',)
    """
    found = {name: find_dimension(name) for name in names}
    for name, dimension in found.items():
        if dimension is None:
            raise UnknownName("dimension", name, DIMENSIONS)
    return tuple(dict.fromkeys(dimension for dimension in found.values() if dimension is not None))
