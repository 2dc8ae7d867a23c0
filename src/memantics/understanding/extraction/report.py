"""The report of an extraction: call counts by status, facts, and references to missing facts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson

from memantics.core.data import Skip, inside
from memantics.core.errors import DataError, ImageError, InputError
from memantics.core.files import (
    open_regular,
    read_regular,
    refuse_unwritable,
    replace_file,
    whole_file,
)
from memantics.core.images import probe, read_bytes
from memantics.core.meaning import DIMENSIONS
from memantics.core.memes import ID, LONGEST_ID, MEMES, SUFFIXES, Meme
from memantics.core.records import STATUSES
from memantics.understanding.extraction.chain import Extraction, ExtractSettings, StepResult
from memantics.understanding.knowledge.ontology.vocabulary import RELATIONS
from memantics.understanding.knowledge.records import Dangling, Knowledge

_STEPS = (*STATUSES, "skipped")


@dataclass(slots=True)
class DimensionReport:
    """One dimension over all memes; empty answers are valid and counted separately."""

    individuals: int = 0
    memes: int = 0
    empty: int = 0
    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STEPS, 0))


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A relation between dimensions that the ontology does not allow; it is kept."""

    meme: str
    source: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A model call without a usable reply, and its reason."""

    meme: str
    dimension: str
    stage: str
    status: str
    reason: str


@dataclass(slots=True)
class KnowledgeReport:
    """``report.json`` of ``build knowledge``, accumulated meme by meme."""

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
        """Create the report before the first meme."""
        plan = settings.plan.name
        told = (model, plan, settings.when, settings.language, settings.toxicity)
        return cls(*told, unusable=list(skips))

    def add(self, extraction: Extraction) -> None:
        """Add the results of one meme to the counts."""
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
        for counter in ("merged", "renamed", "tokens_in", "tokens_out"):
            setattr(self, counter, getattr(self, counter) + getattr(step, counter))
        if step.stage == "individuals":
            part = self.dimensions.setdefault(step.dimension, DimensionReport())
            part.statuses[step.status] += 1
            part.empty += step.status == "answered" and not step.found
        if step.status not in ("answered", "skipped"):
            self.failures.append(
                Failure(meme, step.dimension, step.stage, step.status, step.reason)
            )


def find_misplaced(knowledge: Knowledge) -> Iterator[Misplaced]:
    """Find relations between facts of dimensions that the ontology does not allow."""
    for individual in knowledge.individuals:
        for link in individual.relations:
            term, target = RELATIONS.get(link.relation), knowledge.by_key.get(link.target)
            if term is None or target is None:
                continue
            if individual.dimension not in term.domain or target.dimension not in term.range:
                yield Misplaced(knowledge.meme, individual.key, link.relation, link.target)


# A build folder contains ``memes.jsonl`` with ``images/``, ``knowledge.jsonl``, ``report.json`` and
# the client's ``calls.jsonl``. Files are written atomically; a repeated build reuses the logged
# model calls.

IMAGES, REPORT = "images", "report.json"
_MOST_BACKGROUND = 64_000
_BACKGROUND_SUFFIXES = (".txt", ".md")


@dataclass(frozen=True, slots=True)
class Adopted:
    """The memes copied into a build, and the memes that were skipped for unusable images."""

    memes: tuple[Meme, ...]
    skips: tuple[Skip, ...]


def adopt_memes(memes: Iterable[Meme], folder: Path) -> Adopted:
    """Copy memes with checked images into a build; broken images are listed."""
    kept: list[Meme] = []
    skips: list[Skip] = []
    taken: set[str] = set()
    with refuse_unwritable(folder, "choose another folder with --out"):
        (folder / IMAGES).mkdir(parents=True, exist_ok=True)
        for meme in memes:
            try:
                adopted = _adopt(meme, folder, taken)
            except ImageError as error:
                skips.append(Skip(meme.image.name, meme.id, str(error)))
                continue
            taken.add(adopted.id)
            kept.append(adopted)
        with whole_file(folder / MEMES) as file:
            for meme in kept:
                file.write(_dump_meme(meme, folder))
    if not kept:
        raise InputError(
            f"none of the {len(skips)} memes has a readable image",
            hint=skips[0].reason if skips else "use a folder that contains images",
        )
    return Adopted(tuple(kept), tuple(skips))


def _adopt(meme: Meme, folder: Path, taken: set[str]) -> Meme:
    data = read_bytes(meme.image)
    probe(data, meme.image.name)
    name = safe_id(meme.id, taken)
    suffix = meme.image.suffix.lower()
    place = inside(folder / IMAGES, name + (suffix if suffix in SUFFIXES else ".img"))
    if not (place.is_file() and read_regular(place) == data):
        replace_file(place, data, "image")
    return replace(meme, id=name, image=place)


def safe_id(name: str, taken: Iterable[str] = ()) -> str:
    """Make an id that is valid in all files; an unusual name is shortened and gets a hash.

    >>> safe_id("en-001"), safe_id("my meme (2)")
    ('en-001', 'my-meme-2-c50261')
    """
    if re.fullmatch(ID, name) and len(name) <= LONGEST_ID and name not in taken:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:6]
    kept = re.sub(r"[^\w.]+", "-", name).strip("-._")[:180]
    return f"{kept or 'meme'}-{mark}"


def _dump_meme(meme: Meme, folder: Path) -> bytes:
    line = {
        "id": meme.id,
        "image": meme.image.relative_to(folder).as_posix(),
        "text": meme.text,
        "language": meme.language,
        "notes": dict(meme.notes),
        "template_cluster": meme.template_cluster,
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def write_report(folder: Path, report: object, name: str = REPORT) -> None:
    """Write a report dataclass as readable JSON."""
    with whole_file(folder / name) as file:
        file.write(orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2))  # type: ignore[call-overload]


def read_background(place: Path) -> str:
    """Read the user's background files: one file, or all texts of a folder."""
    if place.is_dir():
        paths = [p for p in sorted(place.iterdir()) if p.suffix.lower() in _BACKGROUND_SUFFIXES]
        if not paths:
            raise DataError(
                place, "contains no .txt or .md file", hint="put background texts there"
            )
    else:
        paths = [place]
    texts = []
    for path in paths:
        try:
            with open_regular(path) as file:
                data = file.read(_MOST_BACKGROUND + 1)
            texts.append(f"[{path.name}]\n{data.decode('utf-8').strip()}")
        except UnicodeDecodeError:
            raise DataError(path, "is not UTF-8 text", hint="save it as UTF-8") from None
        except OSError as error:
            raise DataError(path, f"cannot read the file: {error.strerror}") from error
    text = "\n\n".join(texts)
    if len(text) > _MOST_BACKGROUND:
        raise DataError(
            place,
            f"contains more than {_MOST_BACKGROUND:,} characters",
            hint="shorten the texts: they are part of every prompt",
        )
    return text
