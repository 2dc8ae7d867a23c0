"""Writer of M-QUEST's format: question files by meme and dimension, and knowledge bases."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from memantics.benchmarks import writing
from memantics.core.data import conform, read_jsonl
from memantics.core.errors import DataError
from memantics.core.meaning import DIMENSIONS, Dimension
from memantics.core.memes import read_memes
from memantics.core.queue import Review

QUESTIONS, KNOWLEDGE = "questions.jsonl", "knowledge.jsonl"
NAMESPACE = "https://example.org/memantics/published#"
# The official files use other names for two dimensions: one in knowledge bases, one everywhere.
QA_NAMES = {"Toxicity": "ToxicityAssessment"}
_SECOND = ("second_question", "second_answer")
KB_NAMES = {"Emotion": "EmotionExpression", "Toxicity": "ToxicityAssessment"}


class _Read(BaseModel):
    """Base class of records in a dataset build's files; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Source(_Read):
    model: str
    when: str


class _BuiltOption(_Read):
    text: str


class _Question(_Read):
    id: str
    meme: str
    dimension: Dimension
    question: str
    options: list[_BuiltOption]
    answer: int
    explanation: str
    cites: list[str]
    pair: str = ""
    provenance: _Source | None = None


class _Relation(_Read):
    relation: str
    target: str


class _Individual(_Read):
    dimension: Dimension
    name: str
    label: str
    description: str = ""
    relations: list[_Relation] = []
    provenance: _Source | None = None


class _Knowledge(_Read):
    meme: str
    individuals: list[_Individual] = []


Line = TypeVar("Line", bound=_Read)


def _read_lines(shape: type[Line], path: Path) -> Iterator[Line]:
    return (conform(shape, line, path, row) for row, line in read_jsonl(path))


def write_questions(review: Review) -> writing.Made:
    """Return every kept question with the knowledge bases of its meme."""
    if not any("questions" in reviewed.item.hidden for reviewed in review.items):
        raise DataError(
            review.folder,
            "is not a queue of questions",
            hint="chats are published together with their puns: use --chats",
        )
    build = find_build(review.folder)
    given = {meme.id: meme for meme in read_memes(build)}
    memes = {
        name: replace(
            gather_meme,
            text=given[name].text,
            language=given[name].language or gather_meme.language,
            template_cluster=given[name].template_cluster,
        )
        for name, gather_meme in writing.gather_memes(review).items()
        if name in given
    }
    kept = set(_list_kept(review))
    questions = [
        question if question.pair in kept else question.model_copy(update={"pair": ""})
        for question in _read_lines(_Question, build / QUESTIONS)
        if question.id in kept and question.meme in memes
    ]
    if not questions:
        raise DataError(build / QUESTIONS, "no question was kept")
    used = {question.meme for question in questions}
    known = {
        knowledge.meme: knowledge
        for knowledge in _read_lines(_Knowledge, build / KNOWLEDGE)
        if knowledge.meme in used
    }
    files: writing.Files = {}
    for question in questions:
        files |= _pair_file(question, memes[question.meme])
    for name, knowledge in known.items():
        place = f"kb/{memes[name].id}_dimensions_reversed_raw.json"
        files[place] = writing.pack(_base(knowledge, memes[name]))
    return writing.Made(
        "mquest",
        ("qa",),
        tuple(meme for name, meme in memes.items() if name in used),
        files,
        {"questions": [_row(question, memes) for question in questions]},
    )


def find_build(queue: Path) -> Path:
    """Return the dataset build folder of an annotation queue: the queue itself, or its parent."""
    for place in (queue, queue.parent):
        if (place / QUESTIONS).is_file() and (place / KNOWLEDGE).is_file():
            return place
    raise DataError(
        queue,
        f"neither it nor its parent folder contains {QUESTIONS} and {KNOWLEDGE}",
        hint="publish the folder written by 'memantics build questions'",
    )


def _list_kept(review: Review) -> Iterator[str]:
    """Return the ids of confirmed questions, and of unannotated ones if these are allowed."""
    for reviewed in review.items:
        if reviewed.kept:
            ids = writing.take_texts(reviewed, "questions")
            yield from ids[:1]
            if reviewed.aggregated is None or all(
                reviewed.aggregated.values.get(f) == "yes" for f in _SECOND
            ):
                yield from ids[1:]


def _pair_file(question: _Question, meme: writing.PublishedMeme) -> writing.Files:
    dimension = QA_NAMES.get(question.dimension, question.dimension)
    name = _name_file(question.id, dimension, meme)
    digest, place = name[-12:], f"qa/{meme.id}_qa/{dimension}/{name}.jsonld"
    source = question.provenance
    pair: dict[str, object] = {
        "@context": {"@vocab": NAMESPACE},
        "@id": f"{NAMESPACE}qa_{digest}",
        "@type": "QuestionAnswerPair",
        "question": question.question,
        "answers": [
            {"text": option.text, "is_correct": place == question.answer}
            for place, option in enumerate(question.options)
        ],
        "explanation": question.explanation,
        "dimension": dimension,
        "relatedInstances": [key.partition("/")[2] for key in question.cites],
        "generationTimestamp": source.when if source else "",
        "generationMethod": source.model if source else "",
        "sourceImage": {
            "@id": f"{NAMESPACE}image_{meme.id}",
            "@type": "Image",
            "filename": meme.file,
            "path": f"images/{meme.file}",
        },
    }
    if question.pair:
        pair["pairedWith"] = _name_file(question.pair, QA_NAMES["Toxicity"], meme)
    return {place: writing.pack(pair)}


def _name_file(question: str, dimension: str, meme: writing.PublishedMeme) -> str:
    """Return the stem of a question file, which readers use as its id."""
    digest = hashlib.sha256(question.encode()).hexdigest()[:12]
    return f"{meme.id}_{dimension}_qa_{digest}"


def _base(knowledge: _Knowledge, meme: writing.PublishedMeme) -> dict[str, object]:
    return {
        "dimensions": [_individual(individual) for individual in knowledge.individuals],
        "metadata": {
            "image_path": f"images/{meme.file}",
            "image_name": meme.file,
            "extraction_timestamp": _latest(knowledge.individuals),
            "llm_provider": ", ".join(_models(knowledge.individuals)),
            "dimensions_processed": [KB_NAMES.get(name, name) for name in DIMENSIONS],
            "total_dimensions_found": len(knowledge.individuals),
            "pipeline_type": "memantics",
        },
        "success": True,
    }


def _individual(individual: _Individual) -> dict[str, object]:
    name = KB_NAMES.get(individual.dimension, individual.dimension)
    row: dict[str, object] = {
        "class_name": name,
        "class_uri": name,
        "instance_name": individual.name,
        "label": individual.label,
        "description": individual.description,
        "extraction_method": individual.provenance.model if individual.provenance else "",
        "dimension_index": [*DIMENSIONS, individual.dimension].index(individual.dimension) + 1,
    }
    links = [
        {"from": individual.name, "relation": link.relation, "to": link.target.partition("/")[2]}
        for link in individual.relations
    ]
    return row | ({"directRelations": links} if links else {})


def _latest(individuals: Sequence[_Individual]) -> str:
    return max(
        (individual.provenance.when for individual in individuals if individual.provenance),
        default="",
    )


def _models(individuals: Sequence[_Individual]) -> list[str]:
    return sorted(
        {individual.provenance.model for individual in individuals if individual.provenance}
    )


def _row(question: _Question, memes: Mapping[str, writing.PublishedMeme]) -> writing.Record:
    return {
        "id": question.id,
        "meme": memes[question.meme].id,
        "dimension": question.dimension,
        "question": question.question,
        "options": [option.text for option in question.options],
        "answer": question.answer,
        "explanation": question.explanation,
        "cites": list(question.cites),
        "pair": question.pair,
    }


WRITER = writing.Writer(write_questions)
