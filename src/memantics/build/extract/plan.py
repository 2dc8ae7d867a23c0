"""In which order the dimensions of a meme are asked for, and what each step is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from memantics.core.errors import InputError, UnknownName, require_known
from memantics.knowledge.ontology.vocabulary import (
    RELATIONS,
    SPECS,
    Dimension,
    DimensionSpec,
    RelationTerm,
)

Refine = Literal["same", "second", "off"]


def list_relations(
    dimension: Dimension, spec: DimensionSpec | None = None
) -> tuple[RelationTerm, ...]:
    """The relations that are asked for with the individuals of one dimension.

    What stands for what is asked with the analogy that says so, and nowhere else.

    >>> [term.name for term in list_relations("Scene")], list_relations("VisualMaterial")
    (['hasParticipant'], ())
    """
    dimension_spec = spec or SPECS[dimension]
    terms = {
        one.name: RelationTerm(
            name=one.name,
            label=one.name,
            definition=one.definition,
            domain=(dimension,),
            range=one.to,
        )
        for one in dimension_spec.relation
    }
    unknown = [
        name for name in dimension_spec.relations if name not in terms and name not in RELATIONS
    ]
    if unknown:
        raise UnknownName(f"relation of {dimension}:", unknown[0], [*terms, *RELATIONS])
    named = (terms.get(name) or RELATIONS[name] for name in dimension_spec.relations)
    return tuple(dict.fromkeys((*named, *terms.values())))


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
    spec: DimensionSpec | None = None

    @property
    def told(self) -> DimensionSpec:
        """What the dimension is, and how it is asked for."""
        return self.spec or SPECS[self.dimension]

    def all_relations(self) -> tuple[RelationTerm, ...]:
        """The relations that the individuals of this step can have."""
        return list_relations(self.dimension, self.spec)

    def relations(self) -> tuple[RelationTerm, ...]:
        """The relations that this step itself can state: those that lead to one of its inputs.

        ``mappedOnto`` links the two ends of an analogy, not the analogy: a second pass can ask it.
        """
        return tuple(
            term
            for term in self.all_relations()
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


_ORDER = (
    *("TextualMaterial", "VisualMaterial", "Scene", "BackgroundKnowledge", "Emotion"),
    *("SemioticProjection", "AnalogicalMapping", "TargetCommunity", "OverallIntent", "Toxicity"),
)
DEFAULT = ExtractionPlan(
    "default",
    "seen and read first, then what it means, then whom it may hurt; as parallel as it can be",
    tuple(
        PlannedStep(name, SPECS[name].inputs or (), background=SPECS[name].background)
        for name in _ORDER
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
    require_known("order", name, PLANS)
    return PLANS[name]


def adapt_plan(plan: ExtractionPlan, given: Mapping[str, DimensionSpec]) -> ExtractionPlan:
    """A plan with dimensions of the user's own: changed, added, or dropped.

    A new one is told of its inputs, or of all others; steps come after what they are told of.
    """
    dropped = {name for name, spec in given.items() if spec.drop}
    kept = [step for step in plan.steps if step.dimension not in dropped]
    known = {step.dimension for step in kept}
    steps = [_adapt(step, given.get(step.dimension), dropped) for step in kept]
    for name, spec in given.items():
        if name in known or spec.drop:
            continue
        if not spec.label or not spec.definition:
            raise InputError(
                f"dimension {name} has no label or no definition", hint=f"say both in {name}.toml"
            )
        inputs = tuple(sorted(known)) if spec.inputs is None else spec.inputs
        steps.append(PlannedStep(name, inputs, spec.needs, spec.background, spec))
    names = {step.dimension for step in steps}
    for step in steps:
        for name in (*step.inputs, *step.needs):
            require_known(f"input of {step.dimension}:", name, names)
    return replace(plan, name=f"{plan.name}, adapted", steps=tuple(_sort(steps)))


def _adapt(step: PlannedStep, spec: DimensionSpec | None, dropped: set[str]) -> PlannedStep:
    inputs = tuple(name for name in step.inputs if name not in dropped)
    needs = tuple(name for name in step.needs if name not in dropped)
    if spec is None:
        return replace(step, inputs=inputs, needs=needs)
    return PlannedStep(
        step.dimension,
        inputs if spec.inputs is None else spec.inputs,
        spec.needs or needs,
        spec.background if "background" in spec.model_fields_set else step.background,
        spec.over(step.told),
    )


def _sort(steps: list[PlannedStep]) -> Iterator[PlannedStep]:
    """In their order, but each after what it is told of."""
    left, done = list(steps), set[str]()
    while left:
        ready = next((s for s in left if {*s.inputs, *s.needs} <= done), None)
        if ready is None:
            names = ", ".join(step.dimension for step in left)
            raise InputError(f"dimensions are told of each other in a circle: {names}")
        left.remove(ready)
        done.add(ready.dimension)
        yield ready
