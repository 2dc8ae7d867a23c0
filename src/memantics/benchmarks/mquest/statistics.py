"""Summary of M-QUEST's data, recomputed statistics of its paper, and audit findings.

The audit findings cover ungrounded questions, class names in questions, and repeated questions.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from memantics.benchmarks.factories import proportion_score
from memantics.benchmarks.mquest.knowledge import EXTRA_DIMENSIONS, count_ontology
from memantics.benchmarks.mquest.load import MquestRelease, QaRecord, fault, is_none_option
from memantics.benchmarks.published import read_published
from memantics.core.data import Found, Skip, checksum, note_gaps, note_part, read_json
from memantics.core.finding import Finding, FindingWords, Maker, rank
from memantics.core.meaning import ALIASES, DIMENSIONS
from memantics.core.records import Score
from memantics.core.releases import RAW, REFINED, meme_of

COMPLETE_MEMES = 1000
NAMESPACES = {"example": "multimodal-taxonomy", "general": "memes-ontology/general"}
LABELS = (
    "Harmful",
    "Hateful",
    "Mysogynous",
    "Abusive",
    "Islamophobia",
    "Propaganda",
    "Misogynous",
)
# Relations and classes that the four extraction models (materialisers) were asked for, as spelled
# in their files.
MATERIALISERS = {
    "AnalogicalMapping": "Materialiser",
    "Emotion": "Materialised",
    "Scene": "Materialiser",
    "Toxicity": "Materialiser",
}
_TRIPLE = re.compile(r"\s*:(\S+)\s+:\S+\s+:([^\s;,.]+)")
MATERIALISED = frozenset(
    {
        *("hasMappedEntity", "hasMappingEntity", "mappedOnto"),
        *("hasExpressor", "hasParticipant", "hasToxicElement"),
    }
)
# Counts printed in the paper, from which some of its other values follow.
FINAL_COUNTS = (307, 45, 49, 44, 35, 35, 30, 28, 20, 16)
EXTENSION = (251, 180)
VALIDATED = (76, 76, 74, 64, 60, 56, 56, 40, 32)
# Counts fitted to the percentages of Table 2, which prints no counts.
TOXICITY_HITS = (45, 70, 154, 168, 221, 246, 259, 266)
_WORDS = FindingWords(__file__)
GENERATED = "huggingface_api"
# Parts of individuals' names that do not describe a meme.
_NO_NAMES = frozenset({"text", "word", "scene", "instance", "dimension", "image", "visual"})
_INNER_CAPITAL = re.compile("[a-z][A-Z]")


def survey(release: MquestRelease) -> Found:
    """Summarise a copy of the data: counts, errors, repairs, and the effect of missing files."""
    skips: list[Skip] = []
    repairs: Counter[str] = Counter()
    grounded, details = 0, dict[str, JsonValue]()
    for file in release.files:
        question = release.read_question(file)
        grounded += bool(question.related)
        repairs[f"{file.declared} read as {question.dimension}"] += file.declared in ALIASES
        if reason := fault(question):
            skips.append(Skip(_relative(release, file.path), question.id, reason))
    counts = {
        "memes": len(release.memes),
        "questions": len(release.files),
        "questions with related individuals": grounded,
        "knowledge bases": len(release.raw),
        "individuals": _count(release, "raw", repairs, details),
        "refined graphs": len(release.refined),
    }
    if find_spec("pyoxigraph") is not None:
        counts["individuals in refined graphs"] = _count(release, "refined", repairs, details)
    data = [file.path for file in release.files] + [*release.raw, *release.refined]
    found = sum(f"{meme}.png" in release.pictures for meme in release.memes)
    return Found(
        records=len(release.files),
        counts=counts,
        files=_files(release),
        checksum=checksum(data, release.source.root),
        images_found=found,
        images_expected=len(release.memes),
        skips=tuple(skips),
        repairs={name: count for name, count in sorted(repairs.items()) if count},
        notes=tuple(_notes(release, found)),
        details=details,
    )


def _count(
    release: MquestRelease,
    kind: Literal["raw", "refined"],
    repairs: Counter[str],
    details: dict[str, JsonValue],
) -> int:
    """Count individuals; ``details`` gets relations by name, and memes that have none of a kind."""
    total = 0
    relations: Counter[str] = Counter()
    seen: defaultdict[str, set[str]] = defaultdict(set)
    related: set[str] = set()
    for individual in release.individuals(kind):
        total += 1
        seen[individual.dimension].add(individual.meme)
        relations.update(relation.name for relation in individual.relations)
        if individual.relations:
            related.add(individual.meme)
        repairs[f"{individual.declared} read as {individual.dimension}"] += (
            individual.declared in ALIASES
        )
    paths = release.raw if kind == "raw" else release.refined
    named = "knowledge bases" if kind == "raw" else "refined graphs"
    memes = {meme_of(path) for path in paths}
    ordered = sorted(relations.items(), key=lambda pair: (-pair[1], pair[0]))
    details[f"relations of {named}"] = dict(ordered)
    details[f"{named} without a relation"] = len(memes - related)
    details[f"{named} without an individual, by dimension"] = {
        name: len(memes - seen[name]) for name in DIMENSIONS
    }
    return total


def _relative(release: MquestRelease, path: Path) -> str:
    return path.relative_to(release.source.root).as_posix()


def _files(release: MquestRelease) -> tuple[str, ...]:
    """Return file name patterns instead of thousands of names."""
    found = []
    if release.qa:
        found.append(_relative(release, release.qa / "*_qa/**/*.jsonld"))
    for paths, ending in ((release.raw, RAW), (release.refined, REFINED)):
        if paths:
            found.append(_relative(release, paths[0].with_name(f"*{ending}")))
    if release.ontology:
        found.append(_relative(release, release.ontology))
    return tuple(found)


def _notes(release: MquestRelease, images: int) -> list[str]:
    official, memes = release.source.official, len(release.memes)
    ask = "Request the images from the Hateful Memes release and give their folder (<id>.png)."
    notes = [
        *note_part(release.source, memes, COMPLETE_MEMES),
        *note_gaps(images, memes, release.images, ask),
    ]
    if not release.files:
        notes.append("This copy contains no questions: no task can run on it.")
    if not release.raw:
        notes.append("This copy contains no raw knowledge bases.")
    if not release.refined and official:
        notes.append("This copy contains no refined graphs.")
    if release.refined and find_spec("pyoxigraph") is None:
        notes.append("Refined graphs are skipped: install 'memantics[offline]' to read them.")
    if official and release.files:
        here = sum(file.id in release.selection for file in release.files)
        notes.append(
            f"This copy contains {here} of the {len(release.selection)} questions "
            "behind the published toxicity scores (split toxmquest350); the later "
            "extension to 609 was never released."
        )
    return notes


def statistics(release: MquestRelease) -> dict[str, JsonValue]:
    """Return every statistic of the paper by key; None if this copy does not contain it."""
    return {
        "memes": len(release.memes),
        "knowledge_bases": len(release.raw),
        **_question_statistics(release),
        **_raw_statistics(release),
        **_refined_statistics(release),
        **_ontology_statistics(release),
        **_arithmetic(),
    }


@dataclass(slots=True)
class _QuestionTally:
    """Counts from one pass over all questions."""

    counts: Counter[str] = field(default_factory=Counter)
    dimensions: Counter[str] = field(default_factory=Counter)
    positions: Counter[tuple[str, int]] = field(default_factory=Counter)
    nones: Counter[int] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    selected: Counter[str] = field(default_factory=Counter)
    selected_memes: set[str] = field(default_factory=set)

    def add(self, question: QaRecord, declared: str, selected: bool) -> None:
        self.dimensions[question.dimension] += 1
        self.pairs[question.meme, question.dimension] += 1
        self.texts[question.question] += 1
        grounded = bool(question.related)
        kind = "grounded" if grounded else "ungrounded"
        ten = question.dimension in DIMENSIONS
        # A class name with an inner capital letter does not appear in a question by chance.
        named = bool(re.search("[a-z][A-Z]", declared)) and declared in question.question
        self.counts.update({kind: 1, f"{kind}.named": named, f"{kind}.ten": ten})
        self.counts["malformed"] += bool(fault(question))
        self._add_options(question)
        if selected:
            self.selected[question.dimension] += 1
            self.selected_memes.add(question.meme)
            if question.dimension == "Toxicity":
                self.counts["selected.grounded"] += grounded
                self.counts["selected.word"] += "toxicity" in question.question.casefold()

    def _add_options(self, question: QaRecord) -> None:
        real = [option for option in question.options if not is_none_option(option)]
        self.counts["options"] += len(real)
        self.counts["options.outside"] += sum(not 2 <= len(o.split()) <= 8 for o in real)
        self.nones.update(i for i, option in enumerate(question.options) if is_none_option(option))
        if question.answer is None:
            return
        self.positions[question.dimension, question.answer] += 1
        key = question.options[question.answer]
        if is_none_option(key):
            self.counts["key.none"] += 1
            return
        others = [o for i, o in enumerate(question.options) if i != question.answer]
        longest = max((len(o) for o in others if not is_none_option(o)), default=0)
        self.counts["key.longest"] += len(key) > longest
        self.counts["key.compared"] += 1


def _question_statistics(release: MquestRelease) -> dict[str, JsonValue]:
    tally = _QuestionTally()
    for file in release.files:
        tally.add(release.read_question(file), file.declared, file.id in release.selection)
    counts, pairs = tally.counts, tally.pairs
    ten_pairs = [pair for pair in pairs if pair[1] in DIMENSIONS]
    memes = {meme for meme, _ in pairs}
    total = len(release.files)
    ten = sum(tally.dimensions[name] for name in DIMENSIONS)
    numbers: dict[str, JsonValue] = {
        "questions.total": total,
        "questions.ten": ten,
        "questions.pairs": len(ten_pairs),
        "questions.pairs_missing": 10 * len(memes) - len(ten_pairs),
        "questions.memes_twice": len({meme for (meme, _), count in pairs.items() if count > 1}),
        "questions.most_repeated": max(tally.texts.values(), default=0),
        "questions.malformed": counts["malformed"],
        "key.single": tally.positions.total(),
        "key.none": counts["key.none"],
        "key.longest_percent": _percent(counts["key.longest"], counts["key.compared"], 1),
        "options.words.counted": counts["options"],
        "options.words.outside": counts["options.outside"],
        "grounded.total": counts["grounded"],
        "grounded.percent": _percent(counts["grounded"], total, 1),
        "grounded.ten_percent": _percent(counts["grounded.ten"], ten, 1),
        "named.ungrounded_percent": _percent(counts["ungrounded.named"], counts["ungrounded"], 1),
        "named.grounded_percent": _percent(counts["grounded.named"], counts["grounded"], 1),
    }
    names = (*DIMENSIONS, *EXTRA_DIMENSIONS)
    for place in range(4):
        numbers[f"none.position.{place}"] = tally.nones[place]
        by_dimension = {name: tally.positions[name, place] for name in names}
        numbers[f"key.position.{place}"] = sum(
            count for (_, position), count in tally.positions.items() if position == place
        )
        numbers |= {f"key.position.{name}.{place}": n for name, n in by_dimension.items()}
    asked = dict.fromkeys(
        (*names, *sorted(tally.dimensions))
    )  # a user's data set may have more dimensions
    numbers |= {f"questions.dimension.{name}": tally.dimensions[name] for name in asked}
    numbers |= _selected_statistics(tally)
    return numbers if release.files else dict.fromkeys(numbers)


def _selected_statistics(tally: _QuestionTally) -> dict[str, JsonValue]:
    memes, total = len(tally.selected_memes), tally.selected.total()
    names = (
        "Toxicity",
        "TextualMaterial",
        "VisualMaterial",
        "Scene",
        "BackgroundKnowledge",
        "OverallIntent",
    )
    return {
        "toxmquest350.total": total,
        "toxmquest350.memes": memes,
        "toxmquest350.per_meme": round(total / memes, 2) if memes else None,
        "toxmquest350.toxicity_grounded": tally.counts["selected.grounded"],
        "toxmquest350.toxicity_word": tally.counts["selected.word"],
        **{f"toxmquest350.dimension.{name}": tally.selected[name] for name in names},
    }


def _raw_statistics(release: MquestRelease) -> dict[str, JsonValue]:
    dimensions: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    toxic: Counter[str] = Counter()
    intents: Counter[str] = Counter()
    related = 0
    for individual in release.individuals("raw"):
        dimensions[individual.dimension] += 1
        related += individual.dimension == "BackgroundKnowledge" and bool(individual.relations)
        if individual.dimension == "Toxicity":
            labels[individual.label] += 1
            toxic[individual.meme] += 1
        elif individual.dimension == "OverallIntent":
            intents[individual.name] += 1
    numbers: dict[str, JsonValue] = {
        "individuals.raw.total": dimensions.total(),
        **{f"individuals.raw.{name}": dimensions[name] for name in DIMENSIONS},
        "individuals.toxicity.memes": len(toxic),
        "individuals.toxicity.memes_without": len(release.raw) - len(toxic),
        "individuals.toxicity.most_per_meme": max(toxic.values(), default=0),
        "toxicity_labels.distinct": len(labels),
        **{f"toxicity_labels.{name}": labels[name] for name in LABELS},
        "intent_names.default": intents["overallintent_instance"],
        "intent_names.fallback": intents["dimension_1"],
        "relations.background": related,
    }
    if not release.raw:
        return dict.fromkeys([*numbers, "individuals.files.total"])
    files = _count_files(release.raw[0].parent / "dimensions")
    return numbers | {"individuals.files.total": files}


def _count_files(folder: Path) -> int | None:
    """Return the number of individual files, if the copy has that folder."""
    if not folder.is_dir():
        return None
    return sum(
        entry.name.endswith(".jsonld")
        for kind in folder.iterdir()
        if kind.is_dir()
        for entry in os.scandir(kind)
    )


def _refined_statistics(release: MquestRelease) -> dict[str, JsonValue]:
    """Return statistics of the refined knowledge graphs; None without the extra ``offline``."""
    readable = find_spec("pyoxigraph") is not None
    dimensions: Counter[str] = Counter()
    namespaces: dict[str, str] = {}
    made: list[tuple[str, str, str]] = []
    names: set[tuple[str, str]] = set()
    for individual in release.individuals("refined") if readable else ():
        dimensions[individual.dimension] += 1
        namespaces[individual.meme] = individual.namespace
        names.add((individual.meme, individual.name))
        made += [
            (individual.dimension, individual.meme, link.target)
            for link in individual.relations
            if link.name in MATERIALISED
        ]
    counts = Counter(name for name, _, _ in made)
    dangling = Counter(name for name, meme, target in made if (meme, target) not in names)
    numbers: dict[str, JsonValue] = {
        "individuals.refined.total": dimensions.total(),
        **{f"individuals.refined.{name}": dimensions[name] for name in DIMENSIONS},
        **{
            f"namespaces.{name}": sum(mark in found for found in namespaces.values())
            for name, mark in NAMESPACES.items()
        },
        **{f"materialised.{name}.triples": counts[name] for name in MATERIALISERS},
        **{f"materialised.{name}.dangling": dangling[name] for name in MATERIALISERS},
        **_output_statistics(release, names),
    }
    return numbers if release.refined and readable else dict.fromkeys(numbers)


def _output_statistics(release: MquestRelease, names: set[tuple[str, str]]) -> dict[str, JsonValue]:
    """Count relations in the extraction models' output, including ends that are not individuals.

    The refined knowledge graphs contain fewer relations, since triples with an undeclared subject
    belong to no individual.
    """
    counts: Counter[str] = Counter()
    files = 0
    for path in release.refined:
        for name, ending in MATERIALISERS.items():
            output = path.with_name(f"{path.stem}_{name}Relations{ending}_output.json")
            if not output.is_file():
                continue
            files += 1
            said = read_json(output)
            triples = said.get("triples") if isinstance(said, dict) else None
            for triple in triples if isinstance(triples, list) else ():
                ends = _TRIPLE.match(str(triple))
                known = ends and all((meme_of(path), end) in names for end in ends.groups())
                counts.update([f"{name}.official", *([] if known else [f"{name}.undeclared"])])
    return {
        f"materialised.{name}.{sort}": counts[f"{name}.{sort}"] if files else None
        for name in MATERIALISERS
        for sort in ("official", "undeclared")
    }


def _ontology_statistics(release: MquestRelease) -> dict[str, JsonValue]:
    keys = ("ontology.triples", "ontology.classes", "ontology.object_properties")
    if release.ontology is None or find_spec("pyoxigraph") is None:
        return dict.fromkeys(keys)
    return dict(zip(keys, count_ontology(release.ontology), strict=True))


def _arithmetic() -> dict[str, JsonValue]:
    """Return values that follow by arithmetic from other values in the paper."""
    memes = FINAL_COUNTS[0]
    table = read_published(Path(__file__).with_name("expected") / "published.json")
    most = max(row.metrics["group_accuracy"] for row in table)
    return {
        "arithmetic.group_accuracy_most": round(100 * most, 2),
        "arithmetic.total": sum(FINAL_COUNTS),
        "arithmetic.per_meme": round(sum(FINAL_COUNTS) / memes, 2),
        "arithmetic.extension_per_meme": round(EXTENSION[0] / EXTENSION[1], 2),
        "arithmetic.validation_percent": _percent(memes, 1000, 1),
        "arithmetic.mean_validation": round(sum(VALIDATED) / len(VALIDATED), 2),
        **{
            # The paper truncates these values after two digits.
            f"arithmetic.toxicity_accuracy.{place}": 10_000 * hits // memes / 100
            for place, hits in enumerate(TOXICITY_HITS, 1)
        },
    }


def _percent(part: int, whole: int, digits: int) -> float | None:
    return round(100 * part / whole, digits) if whole else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parts of one question that the audit checks."""

    meme: str
    dimension: str
    text: str
    grounded: bool
    named: bool


def pictures(release: MquestRelease) -> Iterator[str]:
    """Return the image file names of a complete copy."""
    return (f"{meme}.png" for meme in release.memes)


def makers(release: MquestRelease) -> tuple[Maker, ...]:
    """Return the model that wrote the questions; only the paper names it."""
    written = any(
        release.read_question(file).generator == GENERATED for file in release.files[:100]
    )
    maker = Maker("questions", "Qwen3-VL-8B-Instruct", ("qa",), "the paper; the files name none")
    return (maker,) if written else ()


def narrow(release: MquestRelease, split: str) -> MquestRelease:
    """Restrict the data to the questions of a split; all knowledge bases are kept."""
    return replace(release, files=release.select(split))


def findings(release: MquestRelease) -> tuple[Finding, ...]:
    """Yield audit findings: ungrounded questions, class names in questions, repeated questions."""
    asked = list(_read(release))
    if not asked:
        return ()
    return (_judge_grounds(asked), _judge_names(asked), _judge_repeats(asked))


def _read(release: MquestRelease) -> Iterator[_Asked]:
    for file in release.files:
        record = release.read_question(file)
        # A class name with an inner capital letter does not appear in a question by chance.
        named = bool(_INNER_CAPITAL.search(file.declared)) and file.declared in record.question
        yield _Asked(record.meme, record.dimension, record.question, bool(record.related), named)


def _judge_grounds(asked: Sequence[_Asked]) -> Finding:
    count = sum(not question.grounded for question in asked)
    rows = [
        _share(part, lambda question: not question.grounded, "dimension", name)
        for name in (*DIMENSIONS, *EXTRA_DIMENSIONS)
        if (part := [question for question in asked if question.dimension == name])
    ]
    score = _share(asked, lambda question: not question.grounded)
    verdict = rank(count > 0, broken=count >= 0.2 * len(asked))
    values = {"count": count, "questions": len(asked)}
    return _WORDS.find("mquest.ungrounded", score, verdict, values, rows=tuple(rows))


def _judge_names(asked: Sequence[_Asked]) -> Finding:
    bare = [question for question in asked if not question.grounded]
    grounded = [question for question in asked if question.grounded]
    counted = bare or asked
    score = _share(counted, lambda question: question.named)
    count = sum(question.named for question in counted)
    example = Counter(question.text for question in counted if question.named).most_common(1)
    return _WORDS.find(
        "mquest.class_names",
        score,
        rank(count > 0, broken=(score.value or 0) >= 0.1),
        {"count": count, "questions": len(counted)},
        rows=tuple(
            _share(part, lambda question: question.named, "questions", name)
            for name, part in (("ungrounded", bare), ("grounded", grounded))
            if part
        ),
        details=tuple(f"asked {n} times: {text}" for text, n in example),
    )


def _judge_repeats(asked: Sequence[_Asked]) -> Finding:
    memes: dict[str, set[str]] = {}
    for question in asked:
        memes.setdefault(question.text, set()).add(question.meme)
    score = _share(asked, lambda question: len(memes[question.text]) > 1)
    text, most = max(memes.items(), key=lambda pair: (len(pair[1]), pair[0]))
    details = (f"asked of {len(most)} memes: {text}",) if len(most) > 1 else ()
    many = rank((score.value or 0) >= 0.2)
    return _WORDS.find("mquest.repeated", score, many, details=details)


def _share(
    asked: Sequence[_Asked], test: Callable[[_Asked], bool], by: str = "", label: str = ""
) -> Score:
    memes = [question.meme for question in asked]
    return proportion_score("proportion", [test(question) for question in asked], memes, by, label)


def must_name(release: MquestRelease) -> dict[str, list[frozenset[str]]]:
    """Return, by question, the words of its cited elements, one of which a rationale must name."""
    found: dict[str, list[frozenset[str]]] = {}
    for record in release.questions("all"):
        words = {
            w for name in record.related for w in re.findall(r"[A-Z]?[a-z]+", name) if len(w) > 3
        }
        if words - _NO_NAMES:
            found[record.id] = [frozenset(words - _NO_NAMES)]
    return found
