"""Reader of the M-QUEST release: questions, knowledge bases, and image paths by id."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, JsonValue

from memantics.benchmarks.mquest import knowledge
from memantics.core.data import Source, conform, list_names, read_json
from memantics.core.errors import DataError, require_known
from memantics.core.files import read_regular_text
from memantics.core.meaning import DIMENSIONS
from memantics.core.records import Closed
from memantics.core.releases import FOLDERS, RAW, REFINED, meme_of, read_file

LIST_NAME = "toxmquest350.txt"
SHIPPED = Path(__file__).with_name(LIST_NAME)
LOG_CLONE = "VLMs_meme-inference"
_LOG_ENDINGS = (".out", ".log", ".txt")
_MAX_LOG_BYTES = 5_000_000
_STEM = r"[A-Za-z0-9_-]+_[A-Za-z]+_qa_[0-9a-f]{8}"
_FINISHED = re.compile(rf"^\[FINISH\]\s.*?({_STEM})\.jsonld\s*$", re.MULTILINE)


def find_selection(root: Path) -> tuple[str, ...]:
    """Return the file stems of the questions that the paper evaluates, in evaluation order.

    A list of the user in the release folder takes precedence. Otherwise the longest list is used:
    an evaluation log near the release, or the list in this package. A log may come from an
    interrupted run, so it may be shorter.
    """
    folder = root / LIST_NAME
    if folder.is_file():
        return read_list(folder)
    candidates = [read_list(SHIPPED)] if SHIPPED.is_file() else []
    candidates += [read_log(path) for path in _logs(root)]
    best = max(candidates, key=len, default=())
    if not best:
        raise DataError(
            root,
            f"the list of the questions that the paper evaluated is missing: no {LIST_NAME},"
            " no evaluation log with [FINISH] lines",
            hint=f"clone {LOG_CLONE} beside the release, or write the names of the question files,"
            f" without their endings, into {LIST_NAME}",
        )
    return best


def read_list(path: Path) -> tuple[str, ...]:
    """Read a list of file stems, one per line; ``#`` begins a comment; repeats are an error."""
    stems: dict[str, int] = {}
    for row, line in enumerate(_text(path).splitlines(), 1):
        stem = line.partition("#")[0].strip().removesuffix(".jsonld")
        if stem and not re.fullmatch(_STEM, stem):
            raise DataError(
                path.name,
                f"{stem[:60]!r} is not the name of a question file without its ending",
                row=row,
            )
        if stem in stems:
            raise DataError(path.name, f"{stem} is already listed in row {stems[stem]}", row=row)
        if stem:
            stems[stem] = row
    return tuple(stems)


def read_log(path: Path) -> tuple[str, ...]:
    """Return the questions that an evaluation log reports as finished, without repeats."""
    return tuple(dict.fromkeys(_FINISHED.findall(_text(path))))


def _text(path: Path) -> str:
    try:
        return read_regular_text(path, errors="replace")
    except OSError as error:
        raise DataError(path.name, f"cannot be read: {error.strerror}") from error


def _logs(root: Path) -> Iterator[Path]:
    for folder in (root, root / LOG_CLONE, root.parent / LOG_CLONE):
        for place in (folder, folder / "slurm_logs"):
            if place.is_dir():
                for path in sorted(place.iterdir()):
                    if (
                        path.suffix in _LOG_ENDINGS
                        and path.is_file()
                        and path.stat().st_size <= _MAX_LOG_BYTES
                    ):
                        yield path


SPLITS = ("all", "ten", "toxmquest350")
QA_FOLDERS = (
    "output_reversed/hateful_memes_out_final",
    "hateful_memes_out_final",
    "qa",
    "benchmark_extracted",
    ".",
)
IMAGE_FOLDERS = ("img/hateful-memes-img", "images", "benchmark_imgs", "img")
ONTOLOGIES = ("memes-features/meme-dimensions.ttl", "meme-dimensions.ttl")
Found = TypeVar("Found")
# The text of the option "none of the others" in the release, and in Chinese questions of ``build
# questions``.
NONE_OPTIONS = ("none of the others", "其他都不对")
_TOXIC_ELEMENT = re.compile(rb":hasToxicElement\s+:([^\s;,.]+)")
_DECLARED = re.compile(rb"^:([^\s;,.]+)\s+(?:a|rdf:type)\s+([^;.]+?)\s*[;.]\s*$", re.MULTILINE)
_MEME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class QaRecord:
    """One question; ``answer`` is the index of the correct option, None if it is not unique.

    If the question asks for the reason of a toxicity question, ``pair`` is the id of that question,
    if the file states it. Official files do not state it.
    """

    id: str
    meme: str
    dimension: str
    question: str
    options: tuple[str, ...]
    answer: int | None
    explanation: str
    related: tuple[str, ...]
    generator: str
    image: Path | None
    pair: str = ""


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """The path of a question file, and the metadata in its folder and file name."""

    path: Path
    meme: str
    declared: str

    @property
    def id(self) -> str:
        """The file stem, which is the id of the question."""
        return self.path.name.removesuffix(".jsonld")


class _ReleaseOption(Closed):
    text: str
    is_correct: bool


class _SourceImage(Closed):
    id: JsonValue = Field(alias="@id")
    type: JsonValue = Field(alias="@type")
    filename: str
    path: JsonValue


class _Pair(Closed):
    context: JsonValue = Field(alias="@context")
    id: str = Field(alias="@id")
    type: Literal["QuestionAnswerPair"] = Field(alias="@type")
    question: str = Field(min_length=1)
    answers: list[_ReleaseOption]
    explanation: str
    dimension: str
    related: list[str] = Field(alias="relatedInstances")
    timestamp: JsonValue = Field(alias="generationTimestamp")
    generator: str = Field(alias="generationMethod")
    image: _SourceImage = Field(alias="sourceImage")
    pair: str = Field("", alias="pairedWith")


@dataclass(frozen=True)
class MquestRelease:
    """One copy of the M-QUEST release; files are listed on opening and read on demand."""

    source: Source
    qa: Path | None
    files: tuple[QuestionFile, ...]
    raw: tuple[Path, ...]
    refined: tuple[Path, ...]
    images: Path | None
    pictures: frozenset[str]
    ontology: Path | None

    def questions(self, split: str = "all") -> Iterator[QaRecord]:
        """Yield the valid questions of a split, meme by meme."""
        files = self.select(split)
        return (record for record in map(self.read_question, files) if not fault(record))

    def select(self, split: str) -> tuple[QuestionFile, ...]:
        """Return the question files of a split; raise an error if none of them is in this copy."""
        require_known("split", split, SPLITS)
        files = self.files
        if split == "ten":
            files = tuple(f for f in files if knowledge.find_dimension(f.declared) in DIMENSIONS)
        elif split == "toxmquest350":
            files = tuple(f for f in files if f.id in self.selection)
        if not files:
            raise DataError(
                self.source.root,
                f"this copy contains none of the questions of split {split}",
                hint="use --split all, or register a copy with the question files",
            )
        return files

    @cached_property
    def selection(self) -> frozenset[str]:
        """The ids of the questions behind the paper's toxicity scores."""
        return frozenset(find_selection(self.source.root))

    @cached_property
    def toxic_dimensions(self) -> dict[str, frozenset[str]]:
        """Return the dimensions of toxic elements in the refined knowledge graph, by meme."""
        found: dict[str, frozenset[str]] = {}
        for path in self.refined:
            # The files are searched as text: parsing the graphs needs an extra package and takes as
            # long as reading the questions.
            text = read_file(path)
            if names := set(_TOXIC_ELEMENT.findall(text)):
                kinds = (
                    kind
                    for name, said in _DECLARED.findall(text)
                    if name in names
                    for kind in said.decode().split(",")
                )
                dimensions = (
                    knowledge.find_dimension(kind.rpartition(":")[2].strip()) for kind in kinds
                )
                found[meme_of(path)] = frozenset(filter(None, dimensions))
        return found

    @cached_property
    def memes(self) -> tuple[str, ...]:
        """All memes with a question or a knowledge base in this copy."""
        known = {file.meme for file in self.files}
        return tuple(sorted(known.union(map(meme_of, self.raw), map(meme_of, self.refined))))

    def read_question(self, file: QuestionFile) -> QaRecord:
        """Read one question file, valid or not (see :func:`fault`)."""
        pair = conform(_Pair, read_json(file.path), file.path.name)
        published, name = self.source.published, file.path.name
        dimension = knowledge.canonical(pair.dimension, name, published=published)
        if dimension != knowledge.canonical(file.declared, name, published=published):
            raise DataError(
                file.path.name,
                f"states dimension {pair.dimension}, but is in the folder {file.declared}",
            )
        keys = [index for index, option in enumerate(pair.answers) if option.is_correct]
        return QaRecord(
            id=file.id,
            meme=file.meme,
            dimension=dimension,
            question=pair.question,
            options=tuple(option.text for option in pair.answers),
            answer=keys[0] if len(keys) == 1 else None,
            explanation=pair.explanation,
            related=tuple(pair.related),
            generator=pair.generator,
            image=self._find_image(pair.image.filename, file),
            pair=pair.pair,
        )

    def _find_image(self, name: str, file: QuestionFile) -> Path | None:
        if not name or name in (".", "..") or re.search(r"[/\\\0]", name):
            raise DataError(
                file.path.name, f"image name {name[:60]!r} points outside the image folder"
            )
        return self.images / name if self.images and name in self.pictures else None

    def individuals(
        self, kind: Literal["raw", "refined"] = "raw"
    ) -> Iterator[knowledge.QaIndividual]:
        """Yield the individuals of the knowledge bases, meme by meme."""
        raw = partial(knowledge.read_raw, own_names=self.source.published)
        read, paths = (raw, self.raw) if kind == "raw" else (knowledge.read_refined, self.refined)
        return (individual for path in paths for individual in read(path))


def is_none_option(text: str) -> bool:
    """Return whether an option means "none of the others".

    >>> is_none_option("none of the others. "), is_none_option("None of them")
    (True, False)
    """
    return text.strip().rstrip(".。").casefold() in NONE_OPTIONS


def fault(question: QaRecord) -> str:
    """Return why a question is invalid; empty if it is valid.

    >>> good = QaRecord("1", "1", "Scene", "?", ("a", "b", "c", "None of the others"), 0, "",
    ...                 (), "", None)
    >>> fault(good)
    ''
    """
    options = question.options
    if len(options) != 4:
        return f"has {len(options)} options instead of 4"
    if len({option.strip() for option in options}) != 4:
        return "repeats an option"
    if question.answer is None:
        return "does not mark exactly one option as correct"
    if sum(map(is_none_option, options)) != 1:
        return "does not offer 'None of the others' exactly once"
    return ""


def open_release(source: Source) -> MquestRelease:
    """Find questions, knowledge bases and images in a folder, in any official layout."""
    root = source.root
    if not root.is_dir():
        raise DataError(root, "folder not found", hint="give the folder of the M-QUEST release")
    qa, files = _first(root, QA_FOLDERS, _list_questions)
    for file in files:
        knowledge.canonical(file.declared, file.path.name, published=source.published)
    _, bases = _first(root, FOLDERS, _list_bases)
    raw = tuple(path for path in bases if path.name.endswith(RAW))
    refined = tuple(path for path in bases if path.name.endswith(REFINED))
    if not files and not bases:
        raise DataError(
            root,
            "no M-QUEST release found: expected questions in "
            f"<id>_qa/<Dimension>/*.jsonld (below {', '.join(QA_FOLDERS[:3])}) and "
            f"knowledge bases named <id>{RAW} or <id>{REFINED} (below "
            f"{', '.join(FOLDERS[:3])})",
            hint="give the clone of semantic-memes, or the folder that contains these files",
        )
    images = _find_images(source)
    pictures = list_names(images)
    ontology = next((root / name for name in ONTOLOGIES if (root / name).is_file()), None)
    return MquestRelease(source, qa, files, raw, refined, images, pictures, ontology)


def _first(
    root: Path, folders: tuple[str, ...], listing: Callable[[Path], Iterator[Found]]
) -> tuple[Path | None, tuple[Found, ...]]:
    """Return the first folder that contains matching files, and these files."""
    for name in folders:
        if found := tuple(listing(root / name)):
            return root / name, found
    return None, ()


def _list_questions(folder: Path) -> Iterator[QuestionFile]:
    seen: dict[str, Path] = {}
    for name in sorted(list_names(folder)):
        meme = name.removesuffix("_qa")
        if meme == name or not _MEME.fullmatch(meme) or not (folder / name).is_dir():
            continue
        for path in sorted(_find_jsonld(folder / name)):
            file = _place(path, meme)
            if file.id in seen:
                raise DataError(
                    path.name, f"a question with this id is also in {seen[file.id].parent}"
                )
            seen[file.id] = path
            yield file


def _find_jsonld(folder: Path) -> Iterator[Path]:
    """Yield question files in the dimension folders of a meme, or directly in its folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _find_jsonld(Path(entry.path))
            elif entry.name.endswith(".jsonld") and not entry.name.startswith("."):
                yield Path(entry.path)


def _place(path: Path, meme: str) -> QuestionFile:
    head, mark, tail = path.name.removesuffix(".jsonld").rpartition("_qa_")
    declared = head.removeprefix(f"{meme}_")
    if not mark or not tail or declared == head:
        raise DataError(
            path.name, f"expected a name like {meme}_<Dimension>_qa_<id>.jsonld in {path.parent}"
        )
    return QuestionFile(path, meme, declared)


def _list_bases(folder: Path) -> Iterator[Path]:
    for name in sorted(list_names(folder)):
        if name.endswith((RAW, REFINED)) and not name.startswith("."):
            yield folder / name


def _find_images(source: Source) -> Path | None:
    if source.images is not None:
        return source.images if source.images.is_dir() else None
    return next(
        (source.root / name for name in IMAGE_FOLDERS if (source.root / name).is_dir()), None
    )
