"""Run the model calls that extract facts about a meme; each call starts when its inputs exist."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

from memantics.core.meaning import Dimension
from memantics.core.memes import Meme
from memantics.core.model import Asker, Step, Taken
from memantics.core.records import Sampling, Status
from memantics.core.retrieval import Passage, Retriever
from memantics.understanding.analysis.asking import ToxicityRule
from memantics.understanding.extraction import plan as asking
from memantics.understanding.extraction import reading
from memantics.understanding.extraction.plan import DEFAULT, ExtractionPlan, PlannedStep, Refine
from memantics.understanding.knowledge.records import Individual, Knowledge, Provenance, Relation

StepStatus = Status | Literal["skipped"]
Result = TypeVar("Result")
STAGES = ("individuals", "relations")


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """How knowledge is extracted.

    Attributes:
        plan: The dimensions and their order.
        refine: When relations are extracted: with the individuals, in a second pass, or off.
            Default: the plan's.
        language: Language of labels and descriptions.
        background: Background knowledge, given in every prompt.
        attempts: Tries at a reply that can be parsed.
        sampling: Sampling parameters of the model.
        collection: Name of the collection, stored with the knowledge.
        retriever: Finds statements nearest to the text of a meme; its sources are cited.
        retrieved: How many statements are retrieved for each meme.
        askers: Models of steps that name one.
        files: Files of dimensions that the user defined.
        toxicity: What counts as toxic: the paper's six kinds, or what a reviewer calls harmful.
    """

    plan: ExtractionPlan = DEFAULT
    refine: Refine | None = None
    language: str = "en"
    background: str = ""
    attempts: int = 3
    sampling: Sampling = field(default_factory=Sampling)
    collection: str = ""
    retriever: Retriever | None = None
    retrieved: int = 5
    askers: Mapping[str, Asker] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    toxicity: ToxicityRule = "paper"

    @property
    def when(self) -> Refine:
        """When relations are requested: with the facts, in a second pass, or never."""
        return self.refine or self.plan.refine

    @property
    def steps(self) -> int:
        """The maximum number of calls per meme, without retries."""
        refined = [s for s in self.plan.steps if s.all_relations()]
        return len(self.plan.steps) + (len(refined) if self.when == "second" else 0)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step of one meme; ``stage`` is ``individuals`` or ``relations``."""

    dimension: Dimension
    stage: str
    status: StepStatus
    found: int = 0
    reason: str = ""
    attempts: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    merged: int = 0
    renamed: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """The facts extracted from one meme, and the results of all model calls."""

    knowledge: Knowledge
    steps: tuple[StepResult, ...]


@dataclass(slots=True)
class _Found:
    known: dict[Dimension, Sequence[Individual] | None] = field(default_factory=dict)
    results: dict[tuple[Dimension, str], StepResult] = field(default_factory=dict)
    links: dict[str, list[Relation]] = field(default_factory=dict)

    def add_links(self, said: Iterable[reading.ReadRelation], source: Provenance) -> None:
        """Keep relations between extracted facts of other steps until all facts exist."""
        for link in said:
            relation = replace(link.relation, provenance=source)
            self.links.setdefault(link.source, []).append(relation)


async def extract_meme(asker: Asker, meme: Meme, settings: ExtractSettings) -> Extraction:
    """Extract facts (knowledge) about one meme; independent model calls run concurrently."""
    situation = asking.Situation(
        meme,
        settings.background,
        settings.language,
        settings.sampling,
        _retrieve(meme, settings),
        settings.toxicity,
    )
    found = _Found()
    tasks: dict[Dimension, asyncio.Task[None]] = {}

    async def follow(step: PlannedStep) -> None:
        await asyncio.gather(*(tasks[name] for name in {*step.inputs, *step.needs}))
        await _extract_step(asker, situation, step, settings, found)

    for step in settings.plan.steps:
        tasks[step.dimension] = asyncio.create_task(follow(step))
    await _finish(tasks.values())
    individuals = [
        individual
        for step in settings.plan.steps
        for individual in found.known[step.dimension] or ()
    ]
    if settings.when == "second":
        await _link_all(asker, situation, settings, found)
    individuals = [_attach(individual, found.links) for individual in individuals]
    knowledge = Knowledge(
        meme.id,
        tuple(individuals),
        meme.image.name,
        settings.language,
        settings.collection,
    )
    # Results follow the plan's order, so that the same calls give the same report.
    places = [(step.dimension, stage) for stage in STAGES for step in settings.plan.steps]
    return Extraction(knowledge, tuple(found.results[p] for p in places if p in found.results))


def _retrieve(meme: Meme, settings: ExtractSettings) -> tuple[Passage, ...]:
    """Retrieve statements similar to a meme's text, except its own; none for an empty text."""
    told = " ".join((meme.text, *meme.notes.values())).strip()
    if settings.retriever is None or not told:
        return ()
    return settings.retriever.find_passages(told, settings.retrieved, without={meme.id})


async def _extract_step(
    asker: Asker,
    situation: asking.Situation,
    step: PlannedStep,
    settings: ExtractSettings,
    found: _Found,
) -> None:
    place = (step.dimension, "individuals")
    if any(found.known.get(name) == () for name in step.needs):
        reason = f"nothing was found of {' and '.join(step.needs)}"
        found.known[step.dimension] = ()
        found.results[place] = StepResult(*place, "skipped", reason=reason)
        return
    relations = step.relations() if settings.when == "same" else ()
    known: asking.KnownIndividuals = {name: found.known[name] for name in step.inputs}
    listed = [individual for entries in known.values() for individual in entries or ()]

    request = asking.ask_individuals(situation, step, known, relations)

    def read(text: str) -> reading.ReadReply:
        return reading.read_individuals(
            text, step.dimension, listed, (one.name for one in relations)
        )

    name = f"{situation.meme.id}/knowledge/{step.dimension}"
    asked = settings.askers.get(step.told.model, asker)
    taken = await asked.take(Step(name, request, read, settings.attempts))
    result = _result(place, taken)
    if taken.value is None:
        found.known[step.dimension] = None
        found.results[place] = result
        return
    told = situation.passages if step.background else ()
    named = "; ".join(dict.fromkeys(f"{p.source} {p.meme}".strip() for p in told))
    source = Provenance(
        taken.model,
        taken.prompt[:16],
        taken.when,
        source=f"retrieved passages: {named}" if named else "",
    )
    found.known[step.dimension] = tuple(
        replace(individual, provenance=source) for individual in taken.value.individuals
    )
    found.add_links(taken.value.links, source)
    found.results[place] = replace(
        result,
        found=len(taken.value.individuals),
        merged=taken.value.merged,
        renamed=taken.value.renamed,
    )


async def _link_all(
    asker: Asker, situation: asking.Situation, settings: ExtractSettings, found: _Found
) -> None:
    """Run the second pass: ask for the relations of every dimension that has facts and targets."""
    tasks = [
        asyncio.create_task(_link_step(asker, situation, step, settings, found))
        for step in settings.plan.steps
        if step.all_relations()
    ]
    await _finish(tasks)


async def _link_step(
    asker: Asker,
    situation: asking.Situation,
    step: PlannedStep,
    settings: ExtractSettings,
    found: _Found,
) -> None:
    terms, dimension = step.all_relations(), step.dimension
    place = (dimension, "relations")
    sources = list(found.known[dimension] or ())
    known = {
        name: found.known.get(name)
        for name in dict.fromkeys(name for term in terms for name in term.range)
    }
    targets = [individual for entries in known.values() for individual in entries or ()]
    if not sources or not targets:
        reason = "nothing to link" if sources else "no individuals"
        found.results[place] = StepResult(*place, "skipped", reason=reason)
        return
    if dimension in ("AnalogicalMapping", reading.ARRANGED):
        sources += [individual for name in known for individual in found.known.get(name) or ()]
    request = asking.ask_links(situation, dimension, sources, known, terms)

    def read(text: str) -> tuple[reading.ReadRelation, ...]:
        names = (one.name for one in terms)
        return reading.read_links(text, sources, targets, names, free=dimension == reading.ARRANGED)

    name = f"{situation.meme.id}/relations/{dimension}"
    asked = settings.askers.get(step.told.model, asker)
    taken = await asked.take(Step(name, request, read, settings.attempts))
    said = taken.value or ()
    found.results[place] = replace(_result(place, taken), found=len(said))
    found.add_links(said, Provenance(taken.model, taken.prompt[:16], taken.when))


def _attach(individual: Individual, links: dict[str, list[Relation]]) -> Individual:
    return replace(individual, relations=(*individual.relations, *links.get(individual.key, ())))


def _result(place: tuple[Dimension, str], taken: Taken[Result]) -> StepResult:
    reason = "" if taken.status == "answered" else taken.reason
    return StepResult(
        *place,
        taken.status,
        0,
        reason,
        taken.attempts,
        taken.calls,
        taken.tokens_in,
        taken.tokens_out,
    )


async def _finish(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Wait for all tasks; if one fails, cancel the others first."""
    running = list(tasks)
    try:
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def in_order(
    jobs: Iterable[Coroutine[object, object, Result]], window: int
) -> AsyncIterator[Result]:
    """Run many jobs, a bounded number at once, and yield their results in order."""
    left = iter(jobs)
    running: deque[asyncio.Task[Result]] = deque()
    try:
        while True:
            while len(running) < window and (job := next(left, None)) is not None:
                running.append(asyncio.create_task(job))
            if not running:
                return
            yield await running[0]
            running.popleft()
    finally:
        for task in running:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*running, return_exceptions=True)


async def extract_memes(
    asker: Asker, memes: Sequence[Meme], settings: ExtractSettings, window: int = 64
) -> AsyncIterator[Extraction]:
    """Extract facts about many memes in order, up to ``window`` memes at the same time."""
    jobs = (extract_meme(asker, meme, settings) for meme in memes)
    async for extraction in in_order(jobs, window):
        yield extraction
