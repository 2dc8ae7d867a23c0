"""Labelled memes, label predictions of classifiers, and preferences between versions of a meme.

``LabelledMeme`` is the training row of every classifier, and ``LabelSource`` is how a benchmark
offers its labels. A ``ClassifierPrediction`` names its source and its accuracy. Preferences are
JSON lines without names of people; a later line with the same ``id`` replaces the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar, cast

import orjson
from pydantic import Field

from memantics.core.data import read_records
from memantics.core.errors import DataError
from memantics.core.files import AppendOnlyFile, refuse_unwritable
from memantics.core.plugins import Plugins
from memantics.core.records import Closed
from memantics.core.result import Result

R = TypeVar("R")
UNKNOWN = "unknown"
SURE = 0.5  # a label is said only where it is more likely than not
PREFERENCES = "preferences.jsonl"
_TEXT = 4000


@dataclass(frozen=True, slots=True)
class LabelledMeme:
    """One meme with its labels: one of them, or any number where several can hold.

    ``group`` names memes that hang together (one text, one pun and its hard-negatives): they are
    never parted between what is learnt from and what is judged. ``text_caption`` says what the
    text means, ``image_caption`` what the image shows, as far as they would be at hand for a new
    meme. ``split`` is the release's own. ``source``, ``author``, ``date`` (year first) and
    ``template_cluster`` (memes on one template) are for disjoint splits: no feature may look at them.
    """

    id: str
    text: str
    labels: tuple[str, ...]
    group: str = ""
    text_caption: str = ""
    image_caption: str = ""
    image: Path | None = None
    split: str = ""
    source: str = ""
    author: str = ""
    date: str = ""
    template_cluster: str = ""


@dataclass(frozen=True, slots=True)
class LabelSource(Generic[R]):
    """A kind of label that a release has: what it says, and how it is read.

    ``several``: a meme may have any number of these labels. ``topic`` names what the label is
    about across benchmarks (``emotion``, ``intent``, …); analysis asks classifiers by topic.
    """

    what: str
    read: Callable[[R], Iterable[LabelledMeme]]
    several: bool = False
    topic: str = ""


def name_group(text: str) -> str:
    """A text as the name of its group: memes with the same words are never parted.

    >>> name_group(" So  Much, fun! "), name_group("…")
    ('somuchfun', '')
    """
    return "".join(character for character in text.casefold() if character.isalnum())


@dataclass(frozen=True, slots=True)
class ClassifierPrediction(Result):
    """A label by a classifier; ``unknown`` where it cannot tell, and ``why``.

    ``topic`` is what the label is about, ``by`` names the classifier. On memes held out in training
    of which it was as sure, ``accuracy`` is its share of right labels and ``baseline`` that of the
    best trivial answer.
    ``sample`` marks a classifier that was trained on the sample data.
    """

    topic: str
    label: str
    by: str
    probability: float | None = None
    accuracy: float | None = None
    baseline: float | None = None
    why: str = ""
    sample: bool = False

    @property
    def known(self) -> bool:
        """Whether anything is said."""
        return self.label != UNKNOWN

    @property
    def source(self) -> str:
        """Who says so and how often that is right, in words.

        >>> by = "classifier mer_bench/emotion"
        >>> ClassifierPrediction("emotion", "sad", by, 0.7, 0.65, 0.33).source
        'classifier mer_bench/emotion, right on 65% of held-out memes (best trivial answer 33%)'
        """
        if self.accuracy is None:
            return self.by
        best = "" if self.baseline is None else f" (best trivial answer {self.baseline:.0%})"
        return f"{self.by}, right on {self.accuracy:.0%} of held-out memes{best}"


@dataclass(frozen=True, slots=True)
class Judge:
    """A classifier that is ready to be asked: ``ask`` takes a text and its language.

    ``name`` is what it was trained for, ``version`` pins its file.
    """

    topic: str
    name: str
    version: str
    classes: tuple[str, ...]
    ask: Callable[[str, str], ClassifierPrediction]


Judges = Mapping[str, Judge]  # by topic
# Named, not imported: what only uses classifiers need not know the package that trains them.
_OPENERS: Plugins[Callable[[Sequence[str] | None], Judges]] = Plugins(
    "memantics.classifiers",
    cast("type[Callable[[Sequence[str] | None], Judges]]", Callable),
    {"ours": "memantics.moderation.classifiers:open_judges"},
)


def find_judges(topics: Sequence[str] | None = None) -> Judges:
    """The classifiers in use, by topic."""
    opener = _OPENERS.find("ours")
    return opener(topics) if opener else {}


def name_judges(judges: Judges) -> str:
    """Which classifiers these are, in one line; empty without any.

    >>> name_judges({})
    ''
    """
    return ", ".join(f"{judge.name}@{judge.version}" for _, judge in sorted(judges.items()))


class OfferedVersion(Closed):
    """A version that somebody could choose: its captions, who wrote them, and what checks said.

    ``score`` is that of our ranking, ``kindness`` the classifier's, where they are known.
    """

    captions: list[str] = Field(max_length=40)
    by: str = Field(max_length=200)
    status: Literal["done", "flawed"]
    score: float | None = None
    kindness: float | None = None


class Preference(Closed):
    """A choice: ``chosen`` is a number from 1 (None: taken back), ``undone`` what was before it.

    ``meme`` is the name of the meme, or the beginning of its picture's hash; ``words`` are a
    person's captions, which are the last candidate.
    """

    id: str = Field(min_length=1, max_length=64)
    meme: str = Field(min_length=1, max_length=500)
    candidates: list[OfferedVersion] = Field(min_length=1, max_length=40)
    chosen: int | None = Field(default=None, ge=1)
    undone: list[int] = Field(default=[], max_length=200)
    words: str = Field(default="", max_length=_TEXT)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """The number of the chosen version with that of each other one."""
        for other in range(1, len(self.candidates) + 1 if self.chosen else 1):
            if self.chosen is not None and other != self.chosen:
                yield self.chosen, other


def append_preference(path: Path, preference: Preference) -> None:
    """Add one line to a file of preferences, which may be new."""
    with refuse_unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        call_log = AppendOnlyFile(path, path)
    try:
        said = preference.model_dump(mode="json")
        call_log.append(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
    finally:
        call_log.close()


def read_choices(path: Path) -> dict[str, Preference]:
    """The last word of each choice by its id, those taken back included."""
    found: dict[str, Preference] = {}
    for number, preference in read_records(Preference, path):
        if (preference.chosen or 0) > len(preference.candidates):
            raise DataError(path, f"version {preference.chosen} was not offered", row=number)
        found[preference.id] = preference
    return found
