"""Sample data: memes drawn and annotated by the project (CC0), for tests and tutorials.

The sample data is not a benchmark; every page that shows a score on it states that.
"""

from __future__ import annotations

import csv
import io
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ValidationError

from memantics.core.data import inside
from memantics.core.errors import DataError, InputError, first_fault, require_known
from memantics.core.meaning import DIMENSIONS, Dimension, RelationName
from memantics.core.parameters import Argument
from memantics.core.records import Closed

__all__ = [
    "DETECTOR_FILE",
    "DIMENSIONS",
    "IMAGES",
    "MEMES_FILE",
    "Candidates",
    "Caption",
    "Dimension",
    "HardOptions",
    "HarmLabel",
    "PanelLayout",
    "Polarity",
    "Pun",
    "SampleChat",
    "SampleEmotion",
    "SampleIndividual",
    "SampleMeme",
    "SampleQuestion",
    "SampleRelation",
    "Sentiment",
    "VisualType",
    "copy",
    "image_path",
    "read_samples",
]

HERE = Path(__file__).resolve().parent
IMAGES = HERE / "images"
MEMES_FILE = HERE / "memes.jsonl"
DETECTOR_FILE = HERE / "detector.zip"
VisualType = Literal[
    "Template_StylizedMeme", "Object_Animal_Dominant", "Photo_RealPerson", "Cartoon_Anime"
]
Polarity = Literal["Negative", "Neutral", "Positive"]
PanelLayout = Literal["SinglePanel", "MultiPanel"]


class Caption(Closed):
    """A text printed on a sample meme, stored in sentence case even if the image shows capitals."""

    text: str
    panel: int
    style: Literal["overlay", "bar", "bubble", "label"]


class SampleRelation(Closed):
    """A link to another individual of the same meme, written ``Dimension/name``."""

    relation: RelationName
    target: str


class SampleIndividual(Closed):
    """One individual of a meme's knowledge base; ``name`` is unique in its dimension."""

    dimension: Dimension
    name: str
    label: str
    description: str
    relations: tuple[SampleRelation, ...] = ()


class SampleQuestion(Closed):
    """A question with four options; ``answer`` is the index of the correct option."""

    dimension: Dimension
    question: str
    options: tuple[str, str, str, str]
    answer: int
    explanation: str
    related: tuple[str, ...] = ()


class HarmLabel(Closed):
    """A harm label: type, modalities that carry the harm, and the code of the target (0: none)."""

    harmful: bool
    type: Literal["none", "targeted", "offence", "sexual", "dispirited"]
    text: bool
    image: bool
    fusion: bool
    target: int


class SampleEmotion(Closed):
    """The emotion that a meme shows, the target emotion of its reappraisal, and the edit plan."""

    source: Literal["sad", "angry", "tense", "bored"]
    target: Literal["happy", "calm", "relaxed", "excited"]
    rewritten: str
    plan: str
    visual_type: VisualType
    polarity: Polarity
    layout: PanelLayout


class Pun(Closed):
    """Whether the caption is a pun, and the reading that the author intends.

    Chinese puns come in groups: one pun and its hard negatives.
    """

    is_pun: bool
    kind: Literal["homophone", "polysemy", "none"]
    caption: str
    reading: str | None
    group: str | None
    role: Literal["pun", "similar_image", "similar_text"]
    note: str


class Sentiment(Closed):
    """Target and type of the sentiment; ``votes`` are three labels of the form "target-type"."""

    target: Literal["self", "both", "other"]
    type: Literal["positive", "neutral", "negative"]
    votes: tuple[str, str, str]


class Candidates(Closed):
    """The ids of the memes from which each hard distractor was sampled."""

    text: tuple[str, ...]
    image: tuple[str, ...]
    sentiment: tuple[str, ...]


class HardOptions(Closed):
    """Hard distractors: wrong options that are similar in text, image and sentiment."""

    text: str
    image: str
    sentiment: str
    candidates: Candidates


class SampleChat(Closed):
    """A chat to which the meme is the reply; ``speaker`` is the person who sends the meme."""

    topic: Literal["sports", "entertainment", "technology", "games", "work", "daily"]
    turns: tuple[str, ...]
    speaker: Literal["甲", "乙"]
    easy: tuple[str, str, str]
    hard: HardOptions


class SampleMeme(Closed):
    """One sample meme with its annotations; see ``docs/reference/sample-data.md``."""

    id: str
    file: str
    language: Literal["en", "zh"]
    panels: Literal[1, 2, 4]
    text: str
    captions: tuple[Caption, ...]
    description: str
    meaning: str
    knowledge: tuple[SampleIndividual, ...]
    questions: tuple[SampleQuestion, ...]
    intents: tuple[str, ...]
    background: tuple[str, ...]
    harm: HarmLabel
    emotion: SampleEmotion | None
    pun: Pun | None
    sentiment: Sentiment
    explanation: str
    chats: tuple[SampleChat, ...]


def parse_memes(data: bytes, name: str) -> tuple[SampleMeme, ...]:
    """Parse JSON lines of sample memes; an error names the line and the field."""
    memes = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            memes.append(SampleMeme.model_validate_json(line))
        except ValidationError as error:
            raise DataError(
                name,
                first_fault(error),
                row=number,
                hint="regenerate the sample data with 'python -m sample_data'",
            ) from error
    return tuple(memes)


@lru_cache(maxsize=1)
def read_samples() -> tuple[SampleMeme, ...]:
    """Return all memes of the sample data, ordered by id.

    >>> len(read_samples()) >= 12
    True
    """
    try:
        data = MEMES_FILE.read_bytes()
    except OSError as error:
        raise DataError(
            MEMES_FILE.name, "the sample data is missing", hint="reinstall the package"
        ) from error
    return parse_memes(data, MEMES_FILE.name)


def image_path(meme: str) -> Path:
    """Return the image of a sample meme.

    Args:
        meme: The id of the meme.

    Returns:
        The image file.

    Raises:
        UnknownName: The sample data have no meme with this id.

    Example:
        >>> image_path("en-001").name
        'en-001.png'
    """
    known = {m.id: m.file for m in read_samples()}
    require_known("sample meme", meme, known)
    return inside(IMAGES, known[meme])


def copy(folder: Annotated[str | Path, Argument("Folder to copy the sample data to.")]) -> Path:
    """Copy the sample data to a folder, for use with the guides.

    ``memes/`` holds the images, ``memes.jsonl`` all annotations, ``memes.csv`` a table with id,
    image, text, language and harm. Existing files are not changed.

    Args:
        folder: The folder to write to.

    Returns:
        The folder with the copy.

    Raises:
        InputError: ``folder`` is an existing file.

    Example:
        >>> mm.samples.copy("sample")
        PosixPath('sample')
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file", hint="give a folder")
    (target / "memes").mkdir(parents=True, exist_ok=True)
    rows = io.StringIO(newline="")
    table = csv.writer(rows)
    table.writerow(("id", "image", "text", "language", "harmful", "type"))
    for meme in read_samples():
        _copy_once(image_path(meme.id), target / "memes" / meme.file)
        harm = meme.harm
        row = (meme.id, f"memes/{meme.file}", meme.text, meme.language, harm.harmful, harm.type)
        table.writerow(row)
    _copy_once(MEMES_FILE, target / MEMES_FILE.name)
    if not (target / "memes.csv").exists():
        (target / "memes.csv").write_text(rows.getvalue(), encoding="utf-8")
    return target


def _copy_once(source: Path, target: Path) -> None:
    if not target.exists():
        shutil.copyfile(source, target)
