"""What an extraction amounts to: four status counts, individuals, and references that dangle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memantics.build.extract.chain import Extraction, ExtractSettings, StepResult
from memantics.core.data import Skip
from memantics.core.records import STATUSES
from memantics.knowledge.ontology.vocabulary import DIMENSIONS, RELATIONS
from memantics.knowledge.records import Dangling, Knowledge

_STEPS = (*STATUSES, "skipped")


@dataclass(slots=True)
class DimensionReport:
    """One dimension over all memes: an empty answer is a result, so it is counted apart."""

    individuals: int = 0
    memes: int = 0
    empty: int = 0
    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STEPS, 0))


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A relation between dimensions that the ontology does not relate so; it is kept."""

    meme: str
    source: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A step without a value, and why."""

    meme: str
    dimension: str
    stage: str
    status: str
    reason: str


@dataclass(slots=True)
class KnowledgeReport:
    """``report.json`` of ``build knowledge``: adds up extractions one by one."""

    kind: str = field(default="knowledge", init=False)
    model: str
    order: str
    refine: str
    language: str
    toxicity: str = "paper"
    memes: int = 0
    individuals: int = 0
    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    skipped_steps: int = 0
    repaired: int = 0
    merged: int = 0
    renamed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dimensions: dict[str, DimensionReport] = field(
        default_factory=lambda: {name: DimensionReport() for name in DIMENSIONS}
    )
    relations: dict[str, int] = field(default_factory=dict)
    dangling: list[Dangling] = field(default_factory=list)
    misplaced: list[Misplaced] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    unusable: list[Skip] = field(default_factory=list)

    @classmethod
    def begin(
        cls, model: str, settings: ExtractSettings, skips: Sequence[Skip] = ()
    ) -> KnowledgeReport:
        """The report before the first meme."""
        plan = settings.plan.name
        told = (model, plan, settings.when, settings.language, settings.toxicity)
        return cls(*told, unusable=list(skips))

    def add(self, extraction: Extraction) -> None:
        """Count one meme."""
        knowledge = extraction.knowledge
        self.memes += 1
        self.individuals += len(knowledge.individuals)
        for name, count in knowledge.counts().items():
            part = self.dimensions.setdefault(name, DimensionReport())
            part.individuals += count
            part.memes += count > 0
        links = (link for individual in knowledge.individuals for link in individual.relations)
        found = Counter(self.relations) + Counter(link.relation for link in links)
        self.relations = dict(sorted(found.items()))
        self.dangling += knowledge.dangling()
        self.misplaced += find_misplaced(knowledge)
        for step in extraction.steps:
            self._count(step, knowledge.meme)

    def _count(self, step: StepResult, meme: str) -> None:
        if step.status == "skipped":
            self.skipped_steps += 1
        else:
            self.statuses[step.status] += 1
        self.repaired += step.status == "answered" and step.attempts > 1
        for figure in ("merged", "renamed", "tokens_in", "tokens_out"):
            setattr(self, figure, getattr(self, figure) + getattr(step, figure))
        if step.stage == "individuals":
            part = self.dimensions.setdefault(step.dimension, DimensionReport())
            part.statuses[step.status] += 1
            part.empty += step.status == "answered" and not step.found
        if step.status not in ("answered", "skipped"):
            self.failures.append(
                Failure(meme, step.dimension, step.stage, step.status, step.reason)
            )


def find_misplaced(knowledge: Knowledge) -> Iterator[Misplaced]:
    """Relations whose ends both exist but do not belong to the relation's dimensions."""
    for individual in knowledge.individuals:
        for link in individual.relations:
            term, target = RELATIONS.get(link.relation), knowledge.by_key.get(link.target)
            if term is None or target is None:
                continue
            if individual.dimension not in term.domain or target.dimension not in term.range:
                yield Misplaced(knowledge.meme, individual.key, link.relation, link.target)
