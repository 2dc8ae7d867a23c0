"""What an extraction amounts to: four status counts, individuals, and references that dangle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memantics.build.extract.chain import Extraction, ExtractSettings
from memantics.core.data import Skip
from memantics.core.records import STATUSES
from memantics.knowledge.ontology.vocabulary import DIMENSIONS, RELATIONS
from memantics.knowledge.records import Dangling, Knowledge


@dataclass(frozen=True, slots=True)
class DimensionReport:
    """One dimension over all memes: an empty answer is a result, so it is counted apart."""

    individuals: int
    memes: int
    empty: int
    statuses: dict[str, int]


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


@dataclass(frozen=True, slots=True)
class KnowledgeReport:
    """``report.json`` of ``build knowledge``."""

    kind: str
    model: str
    order: str
    refine: str
    language: str
    memes: int
    individuals: int
    statuses: dict[str, int]
    skipped_steps: int
    repaired: int
    merged: int
    renamed: int
    tokens_in: int
    tokens_out: int
    dimensions: dict[str, DimensionReport]
    relations: dict[str, int]
    dangling: list[Dangling]
    misplaced: list[Misplaced]
    failures: list[Failure]
    unusable: list[Skip]


@dataclass(slots=True)
class ReportTally:
    """Adds up extractions one by one."""

    statuses: Counter[str] = field(default_factory=Counter)
    by_dimension: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in DIMENSIONS}
    )
    relations: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    dangling: list[Dangling] = field(default_factory=list)
    misplaced: list[Misplaced] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def add(self, extraction: Extraction) -> None:
        """Count one meme."""
        knowledge = extraction.knowledge
        self.counts["memes"] += 1
        self.counts["individuals"] += len(knowledge.individuals)
        for name, count in knowledge.counts().items():
            counts = self.by_dimension.setdefault(name, Counter())
            counts["individuals"] += count
            counts["memes"] += count > 0
        self.relations.update(
            link.relation for individual in knowledge.individuals for link in individual.relations
        )
        self.dangling += knowledge.dangling()
        self.misplaced += find_misplaced(knowledge)
        for step in extraction.steps:
            self.statuses[step.status] += 1
            self.counts["repaired"] += step.status == "answered" and step.attempts > 1
            for figure in ("merged", "renamed", "tokens_in", "tokens_out"):
                self.counts[figure] += getattr(step, figure)
            if step.stage == "individuals":
                counts = self.by_dimension.setdefault(step.dimension, Counter())
                counts[step.status] += 1
                counts["empty"] += step.status == "answered" and not step.found
            if step.status not in ("answered", "skipped"):
                self.failures.append(
                    Failure(knowledge.meme, step.dimension, step.stage, step.status, step.reason)
                )

    def report(
        self, model: str, settings: ExtractSettings, skips: Sequence[Skip] = ()
    ) -> KnowledgeReport:
        """The report so far."""
        return KnowledgeReport(
            kind="knowledge",
            model=model,
            order=settings.plan.name,
            refine=settings.when,
            language=settings.language,
            memes=self.counts["memes"],
            individuals=self.counts["individuals"],
            statuses={name: self.statuses[name] for name in STATUSES},
            skipped_steps=self.statuses["skipped"],
            repaired=self.counts["repaired"],
            merged=self.counts["merged"],
            renamed=self.counts["renamed"],
            tokens_in=self.counts["tokens_in"],
            tokens_out=self.counts["tokens_out"],
            dimensions={
                name: DimensionReport(
                    counts["individuals"],
                    counts["memes"],
                    counts["empty"],
                    {status: counts[status] for status in (*STATUSES, "skipped")},
                )
                for name, counts in self.by_dimension.items()
            },
            relations=dict(sorted(self.relations.items())),
            dangling=self.dangling,
            misplaced=self.misplaced,
            failures=self.failures,
            unusable=list(skips),
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
