"""The plan of fact extraction and its prompts: order of dimensions, known facts, strict schema.

Printed text, notes, background files and earlier answers are enclosed between marks
(:func:`~memantics.core.prompt.enclose`); the prompt states that they are not instructions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import Template
from types import MappingProxyType
from typing import Literal

from pydantic import JsonValue

from memantics.core.errors import InputError, UnknownName, require_known
from memantics.core.meaning import DIMENSIONS, Dimension
from memantics.core.memes import Meme
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.records import Form, Image, Message, Request, Sampling
from memantics.core.retrieval import Passage
from memantics.core.text import cut_short
from memantics.models.drafts import choice, name_language, record, show_material
from memantics.understanding.analysis.asking import ToxicityRule, tell_rule
from memantics.understanding.extraction import reading
from memantics.understanding.knowledge.ontology.vocabulary import (
    DIMENSION_TERMS,
    KIND_TERMS,
    RELATIONS,
    SPATIAL,
    SPECS,
    DimensionSpec,
    RelationTerm,
)
from memantics.understanding.knowledge.records import Individual

Refine = Literal["same", "second", "off"]
# With constrained decoding, a list of allowed targets prevents references to facts that do not
# exist. Servers limit the length of such lists.
_MOST_LISTED = 400
# Later steps read whole descriptions; the limit only stops replies that run on.
_TOLD = 600
MOST_ARRANGED = 50
_THINGS: tuple[Dimension, ...] = ("VisualMaterial", "TextualMaterial")
# Known facts (individuals) by dimension; None if the model gave no answer for the dimension.
KnownIndividuals = Mapping[Dimension, Sequence[Individual] | None]


def list_relations(
    dimension: Dimension, spec: DimensionSpec | None = None
) -> tuple[RelationTerm, ...]:
    """List the relations that are requested together with the facts of one dimension.

    ``mappedOnto`` is requested only with analogies.

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
    """One model call: the dimension that it extracts, and the dimensions given in its prompt.

    ``needs`` are required inputs: if one of them is empty, the step is skipped. ``background``
    tells whether the prompt includes the user's files.
    """

    dimension: Dimension
    inputs: tuple[Dimension, ...] = ()
    needs: tuple[Dimension, ...] = ()
    background: bool = True
    spec: DimensionSpec | None = None

    @property
    def told(self) -> DimensionSpec:
        """The dimension's definition and guidance."""
        return self.spec or SPECS[self.dimension]

    def all_relations(self) -> tuple[RelationTerm, ...]:
        """The relations that facts of this dimension can have."""
        return list_relations(self.dimension, self.spec)

    def relations(self) -> tuple[RelationTerm, ...]:
        """The relations requested in this step: those to facts given in its prompt.

        ``mappedOnto`` links the two ends of an analogy, not the analogy itself; the second pass can
        request it.
        """
        return tuple(
            term
            for term in self.all_relations()
            if set(term.range) & set(self.inputs) and term.name != "mappedOnto"
        )


@dataclass(frozen=True, slots=True)
class ExtractionPlan:
    """Steps in a declared order; every input of a step comes before it.

    ``refine`` is when relations are requested: with the individuals, in a second pass, or never.
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
        """Groups of steps that can run concurrently.

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
    """Build a list of steps in which each prompt includes all earlier results."""
    return tuple(PlannedStep(name, names[:place]) for place, name in enumerate(names))


_ORDER = (
    *("TextualMaterial", "VisualMaterial", "Scene", "BackgroundKnowledge", "Emotion"),
    *("SemioticProjection", "AnalogicalMapping", "TargetCommunity", "OverallIntent", "Toxicity"),
)
DEFAULT = ExtractionPlan(
    "default",
    "visible and textual content first, then meaning, then harm; as parallel as possible",
    tuple(
        PlannedStep(name, SPECS[name].inputs or (), background=SPECS[name].background)
        for name in _ORDER
    ),
)
PAPER = ExtractionPlan(
    "paper",
    "order of the paper: basic dimensions first, all earlier results in each prompt, toxicity last",
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
    "order of the released code: the intent first, given in every later prompt",
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
    """Find a plan by name.

    >>> find_plan("official").steps[0].dimension
    'OverallIntent'
    """
    require_known("order", name, PLANS)
    return PLANS[name]


def adapt_plan(plan: ExtractionPlan, given: Mapping[str, DimensionSpec]) -> ExtractionPlan:
    """Apply the user's dimensions to a plan: changed, added or dropped ones.

    A new dimension gets its declared inputs, or all others. Steps are sorted after their inputs.
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
                f"dimension {name} has no label or no definition", hint=f"add both to {name}.toml"
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
    """Sort steps so that each comes after its inputs."""
    left, done = list(steps), set[str]()
    while left:
        ready = next((s for s in left if {*s.inputs, *s.needs} <= done), None)
        if ready is None:
            names = ", ".join(step.dimension for step in left)
            raise InputError(f"the inputs of these dimensions form a cycle: {names}")
        left.remove(ready)
        done.add(ready.dimension)
        yield ready


@dataclass(frozen=True, slots=True)
class Situation:
    """The constant inputs of all steps of one meme.

    ``background`` are the user's files, ``passages`` retrieved statements, and ``toxicity`` the
    definition of toxicity.
    """

    meme: Meme
    background: str = ""
    language: str = "en"
    sampling: Sampling = field(default_factory=Sampling)
    passages: tuple[Passage, ...] = ()
    toxicity: ToxicityRule = "paper"


find_prompts = prompts_beside(__file__)


def ask_individuals(
    situation: Situation,
    step: PlannedStep,
    known: KnownIndividuals,
    relations: Sequence[RelationTerm],
) -> Request:
    """Build the request for the facts of a dimension, with their relations if allowed."""
    told = step.told
    listed = [individual for name in step.inputs for individual in known.get(name) or ()]
    usable = _usable(relations, listed)
    prompts = find_prompts()
    text = prompts["individuals"].fill(
        label=f'"{told.label}" ({step.dimension})',
        definition=told.definition,
        guidance=_guide(step, situation.toxicity),
        language=name_language(situation.language),
        extra=_describe_extra(step.dimension, usable, listed),
        reply=_example(step.dimension, usable, listed),
    )
    before = _show_before(situation, step.inputs, known, background=step.background)
    return _request(situation, before, text, _schema(step.dimension, usable, listed))


def _arranges(
    dimension: Dimension, relations: Sequence[RelationTerm], listed: Sequence[Individual]
) -> bool:
    """Tell whether to ask for spatial relations, which need at least two known elements."""
    things = [individual for individual in listed if individual.dimension in _THINGS]
    return dimension == reading.ARRANGED and bool(relations) and len(things) > 1


def _guide(step: PlannedStep, rule: ToxicityRule) -> str:
    """Return the guidance of a step, including the definition of toxicity."""
    text = step.told.guidance
    return Template(text).safe_substitute(tell_rule(rule)) if step.dimension == "Toxicity" else text


def ask_links(
    situation: Situation,
    dimension: Dimension,
    sources: Sequence[Individual],
    known: KnownIndividuals,
    relations: Sequence[RelationTerm],
) -> Request:
    """Build the request for the relations of a dimension in the second pass."""
    names = tuple(dict.fromkeys(name for term in relations for name in term.range))
    listed = [individual for name in names for individual in known.get(name) or ()]
    lines = [_describe(term, listed) for term in relations]
    free = _arranges(dimension, relations, listed)
    if free:
        lines.append(f"- {_tell_spatial('arrangement_links')}")
    text = find_prompts()["relations"].fill(
        label=DIMENSION_TERMS[dimension].label if dimension in DIMENSION_TERMS else dimension,
        context=enclose("entries to link", _list_individuals(sources)),
        relations="\n".join(lines),
        reply='{"relations": [{"source": "Dimension/name", "relation": "…", '
        '"target": "Dimension/name"}]}',
    )
    link = _link_schema(_usable(relations, listed), listed, sources)
    if free:
        link = {"anyOf": [link, _free_schema(listed)]}
    before = _show_before(situation, names, known, background=False)
    return _request(
        situation, before, text, record(relations=_list_of(link, reading.MOST_RELATIONS))
    )


def _request(situation: Situation, before: str, text: str, schema: dict[str, JsonValue]) -> Request:
    """Build a request: image, known facts in a fixed order, then the task, to use prefix caches."""
    form = Form("", (), situation.language, "json", {"text": situation.meme.text})
    texts = (before, text) if before else (text,)
    parts = (Image(situation.meme.image), *texts)
    system = Message("system", (find_prompts()["system"].text,))
    return Request((system, Message("user", parts)), form, situation.sampling, schema)


def _show_before(
    situation: Situation, names: Iterable[Dimension], known: KnownIndividuals, *, background: bool
) -> str:
    meme = situation.meme
    notes = {f"note: {name}": text for name, text in sorted(meme.notes.items())}
    files = {}
    if background:
        found = "\n".join(passage.cited for passage in situation.passages)
        files = {"background files": situation.background, "retrieved background": found}
    given = show_material({"printed text": meme.text, **notes, **files}, "")
    lines = []
    for name in sorted(names, key=_rank):
        entries = known.get(name)
        unknown = "not known" if entries is None else "none found"
        lines.append(_list_individuals(entries) if entries else f"{name}: {unknown}")
    told = enclose("known so far", "\n".join(lines)) if lines else ""
    return "\n\n".join(part for part in (given, told) if part)


def _rank(name: Dimension) -> int:
    return DIMENSIONS.index(name) if name in DIMENSIONS else len(DIMENSIONS)


def _list_individuals(entries: Iterable[Individual]) -> str:
    """List known facts by dimension, one per line, with kinds and whole descriptions."""
    lines, last = [], ""
    for individual in entries:
        if individual.dimension != last:
            lines.append(f"{individual.dimension}/")
            last = individual.dimension
        told = "; ".join(
            part for part in (individual.kind, cut_short(individual.description, _TOLD)) if part
        )
        label = "" if reading.make_name(individual.label) == individual.name else individual.label
        said = f"{label} ({told})" if label and told else label or told
        lines.append(f"{individual.name}: {said}" if said else individual.name)
    return "\n".join(lines)


def _usable(
    relations: Sequence[RelationTerm], listed: Sequence[Individual]
) -> tuple[RelationTerm, ...]:
    present = {individual.dimension for individual in listed}
    return tuple(term for term in relations if present & set(term.range))


def _describe(term: RelationTerm, listed: Iterable[Individual]) -> str:
    """Describe a relation with its possible target dimensions."""
    present = {individual.dimension for individual in listed}
    ends = [name for name in term.range if name in present]
    where = f" (to {', '.join(ends)})" if present - set(ends) else ""
    return f"- {term.name}{where}: {term.definition}"


def _describe_extra(
    dimension: Dimension, relations: Sequence[RelationTerm], listed: Sequence[Individual]
) -> str:
    lines = []
    if dimension == "Toxicity":
        kinds = " ".join(f"{kind.name}: {kind.definition}" for kind in KIND_TERMS.values())
        lines.append(f"Kinds. {kinds}")
    if relations:
        lines.append("Relations link an entry to what is known so far:")
        lines += [_describe(term, listed) for term in relations]
    if _arranges(dimension, relations, listed):
        lines.append(_tell_spatial("arrangement"))
    return "\n".join(lines)


def _tell_spatial(prompt: str) -> str:
    return find_prompts()[prompt].fill(spatial=", ".join(SPATIAL))


def _example(
    dimension: Dimension, relations: Sequence[RelationTerm], listed: Sequence[Individual]
) -> str:
    """Build the example of a reply; its values describe each field."""
    entry: dict[str, JsonValue] = {
        "name": "short_name",
        "label": reading.EXAMPLE,
        "description": "one sentence",
    }
    if dimension in reading.ROLES:
        name, words = reading.ROLES[dimension]
        entry[name] = " or ".join(words)
    if dimension == "Toxicity":
        entry["kind"] = "…"
    if relations:
        entry["relations"] = [{"relation": "…", "target": "Dimension/name as listed"}]
    if _arranges(dimension, relations, listed):
        entry["arrangement"] = [{"source": "…", "relation": "isLeftOf", "target": "…"}]
    return json.dumps({"individuals": [entry]}, ensure_ascii=False)


def _schema(
    dimension: Dimension, relations: Sequence[RelationTerm], listed: Sequence[Individual]
) -> dict[str, JsonValue]:
    text: dict[str, JsonValue] = {"type": "string"}
    fields: dict[str, JsonValue] = {"name": text, "label": text | {"minLength": 1}}
    fields["description"] = text
    if dimension in reading.ROLES:
        name, words = reading.ROLES[dimension]
        fields[name] = choice(*words)
    if dimension == "Toxicity":
        fields["kind"] = choice(*KIND_TERMS)
    if relations:
        fields["relations"] = {"type": "array", "items": _link_schema(relations, listed)}
    if _arranges(dimension, relations, listed):
        fields["arrangement"] = _list_of(_free_schema(listed), MOST_ARRANGED)
    return record(individuals=_list_of(record(**fields), reading.MOST))


def _free_schema(listed: Sequence[Individual]) -> JsonValue:
    """Build the schema of a spatial or free relation between two listed facts."""
    end = _reference(listed, _THINGS, _MOST_LISTED)
    said: JsonValue = {"anyOf": [choice(*SPATIAL), {"type": "string", "minLength": 1}]}
    return record(source=end, relation=said, target=end)


def _link_schema(
    relations: Sequence[RelationTerm],
    listed: Sequence[Individual],
    sources: Sequence[Individual] | None = None,
) -> JsonValue:
    """Build the JSON schema of relations.

    Targets and sources are limited to known facts; for long lists, any string is allowed.
    """
    shapes: list[JsonValue] = []
    room = _MOST_LISTED // max(1, len(relations))
    for term in relations:
        fields: dict[str, JsonValue] = {"relation": {"type": "string", "enum": [term.name]}}
        if sources is not None:
            fields = {"source": _reference(sources, term.domain, room), **fields}
        shapes.append(record(**fields, target=_reference(listed, term.range, room)))
    return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}


def _reference(
    listed: Sequence[Individual], dimensions: Sequence[Dimension], room: int
) -> dict[str, JsonValue]:
    keys: list[JsonValue] = [
        individual.key for individual in listed if individual.dimension in dimensions
    ]
    if 0 < len(keys) <= room:
        return {"type": "string", "enum": keys}
    return {"type": "string"}


def _list_of(items: JsonValue, most: int) -> JsonValue:
    return {"type": "array", "maxItems": most, "items": items}
