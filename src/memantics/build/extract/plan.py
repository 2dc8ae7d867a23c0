"""In which order the dimensions of a meme are asked for, and what each step is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from memantics.core.errors import InputError, UnknownName
from memantics.knowledge.ontology.vocabulary import DIMENSIONS, RELATIONS, Dimension, RelationTerm

Refine = Literal["same", "second", "off"]


def list_relations(dimension: Dimension) -> tuple[RelationTerm, ...]:
    """The relations that are asked for with the individuals of one dimension.

    What stands for what is asked with the analogy that says so, and nowhere else.

    >>> [term.name for term in list_relations("Scene")], list_relations("VisualMaterial")
    (['hasParticipant'], ())
    """
    return tuple(
        term
        for term in RELATIONS.values()
        if dimension in term.domain
        and (term.name != "mappedOnto" or dimension == "AnalogicalMapping")
    )


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One call: the dimension it fills and those it is told about.

    ``needs`` are inputs without which there is nothing to ask: when one of them turned out to be
    empty, the step is passed over. ``background`` says whether it is given the user's files.
    """

    dimension: Dimension
    inputs: tuple[Dimension, ...] = ()
    needs: tuple[Dimension, ...] = ()
    background: bool = True

    def relations(self) -> tuple[RelationTerm, ...]:
        """The relations that this step itself can state: those that lead to one of its inputs.

        ``mappedOnto`` links the two ends of an analogy, not the analogy: a second pass can ask it.
        """
        return tuple(
            term
            for term in list_relations(self.dimension)
            if set(term.range) & set(self.inputs) and term.name != "mappedOnto"
        )


@dataclass(frozen=True, slots=True)
class ExtractionPlan:
    """Steps in a declared order; every input of a step comes before it.

    ``refine`` is when relations are asked for: with the individuals, in a second pass, or never.
    """

    name: str
    note: str
    steps: tuple[PlannedStep, ...]
    refine: Refine = "same"

    def __post_init__(self) -> None:
        done: set[Dimension] = set()
        for step in self.steps:
            if missing := (set(step.inputs) | set(step.needs)) - done:
                names = ", ".join(sorted(missing))
                raise InputError(f"plan {self.name}: {step.dimension} needs {names} before it")
            if step.dimension in done:
                raise InputError(f"plan {self.name}: {step.dimension} comes twice")
            done.add(step.dimension)

    def waves(self) -> tuple[tuple[Dimension, ...], ...]:
        """Steps that can run at the same time, wave by wave.

        >>> DEFAULT.waves()[0]
        ('TextualMaterial', 'VisualMaterial')
        """
        depth: dict[Dimension, int] = {}
        for step in self.steps:
            before = (depth[name] for name in {*step.inputs, *step.needs})
            depth[step.dimension] = 1 + max(before, default=-1)
        return tuple(
            tuple(s.dimension for s in self.steps if depth[s.dimension] == wave)
            for wave in range(max(depth.values(), default=-1) + 1)
        )


def _chain(*names: Dimension) -> tuple[PlannedStep, ...]:
    """Each step is told all that came before it."""
    return tuple(PlannedStep(name, names[:place]) for place, name in enumerate(names))


_GROUNDS: tuple[Dimension, ...] = ("TextualMaterial", "VisualMaterial", "Scene")
DEFAULT = ExtractionPlan(
    "default",
    "seen and read first, then what it means, then whom it may hurt; as parallel as it can be",
    (
        PlannedStep("TextualMaterial", background=False),
        PlannedStep("VisualMaterial", background=False),
        PlannedStep("Scene", ("TextualMaterial", "VisualMaterial"), background=False),
        PlannedStep("BackgroundKnowledge", _GROUNDS),
        PlannedStep("Emotion", _GROUNDS, background=False),
        PlannedStep("SemioticProjection", _GROUNDS, background=False),
        PlannedStep("AnalogicalMapping", (*_GROUNDS, "BackgroundKnowledge")),
        PlannedStep("TargetCommunity", (*_GROUNDS, "BackgroundKnowledge")),
        PlannedStep(
            "OverallIntent",
            (
                *_GROUNDS,
                "BackgroundKnowledge",
                "Emotion",
                "SemioticProjection",
                "AnalogicalMapping",
                "TargetCommunity",
            ),
        ),
        PlannedStep("Toxicity", tuple(name for name in DIMENSIONS if name != "Toxicity")),
    ),
)
PAPER = ExtractionPlan(
    "paper",
    "the paper's words: the most basic first, each step told all that came before; toxicity last",
    _chain(
        "TextualMaterial",
        "VisualMaterial",
        "Scene",
        "BackgroundKnowledge",
        "OverallIntent",
        "Emotion",
        "TargetCommunity",
        "SemioticProjection",
        "AnalogicalMapping",
        "Toxicity",
    ),
)
_SEEN: tuple[Dimension, ...] = ("OverallIntent", "VisualMaterial", "TextualMaterial", "Scene")
_KNOWN: tuple[Dimension, ...] = (*_SEEN, "BackgroundKnowledge")
OFFICIAL = ExtractionPlan(
    "official",
    "the order of the released code: the intent first, and told to every later step",
    (
        PlannedStep("OverallIntent"),
        PlannedStep("TextualMaterial", ("OverallIntent",)),
        PlannedStep("VisualMaterial", ("OverallIntent",)),
        PlannedStep("Scene", ("OverallIntent", "VisualMaterial"), ("VisualMaterial",)),
        PlannedStep("BackgroundKnowledge", _SEEN),
        PlannedStep("Emotion", _KNOWN),
        PlannedStep("AnalogicalMapping", (*_KNOWN, "Emotion")),
        PlannedStep("SemioticProjection", (*_KNOWN, "AnalogicalMapping")),
        PlannedStep("Toxicity", (*_KNOWN, "Emotion", "AnalogicalMapping", "SemioticProjection")),
        PlannedStep("TargetCommunity", (*_KNOWN, "AnalogicalMapping", "Toxicity")),
    ),
    refine="second",
)
PLANS: Mapping[str, ExtractionPlan] = MappingProxyType(
    {p.name: p for p in (DEFAULT, PAPER, OFFICIAL)}
)


def find_plan(name: str) -> ExtractionPlan:
    """The plan of that name.

    >>> find_plan("official").steps[0].dimension
    'OverallIntent'
    """
    if name not in PLANS:
        raise UnknownName("order", name, PLANS)
    return PLANS[name]
