"""Labelled memes, label predictions of classifiers, and preferences between versions of a meme.

``LabelledMeme`` is the training row of every classifier, and ``LabelSource`` is the interface
through which a benchmark provides labels. A ``ClassifierPrediction`` names its classifier and the
accuracy of that classifier. Preferences are JSON lines without names of people; a later line with
the same ``id`` replaces the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar

import orjson
from pydantic import Field

from memantics.core.data import read_records
from memantics.core.errors import DataError
from memantics.core.files import AppendOnlyFile, refuse_unwritable
from memantics.core.records import Closed
from memantics.core.result import Result

R = TypeVar("R")
UNKNOWN = "unknown"
SURE = 0.5  # minimum probability of a predicted label
PREFERENCES = "preferences.jsonl"
_TEXT = 4000


@dataclass(frozen=True, slots=True)
class LabelledMeme:
    """One meme with one label, or with any number of labels.

    ``group`` names related memes (same text, or one pun and its hard negatives): training and
    evaluation never share a group. ``text_caption`` describes the meaning of the text and
    ``image_caption`` the image, if they are available for new memes too. ``split`` is the split of
    the official release. ``source``, ``author``, ``date`` (year first) and ``template_cluster``
    (memes on one template) are used only to make disjoint splits and are never features. ``votes``
    is the proportion of annotators who gave each label, if the votes are known.
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
    votes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabelSource(Generic[R]):
    """One label type of a dataset: a description, and a function that reads the labels.

    ``several``: a meme may have any number of these labels. ``topic`` names the subject across
    benchmarks (``emotion``, ``intent``, …); analyses select classifiers by topic.
    """

    what: str
    read: Callable[[R], Iterable[LabelledMeme]]
    several: bool = False
    topic: str = ""


def name_group(text: str) -> str:
    """Return the group name of a text; memes with the same words get the same name.

    >>> name_group(" So  Much, fun! "), name_group("…")
    ('somuchfun', '')
    """
    return "".join(character for character in text.casefold() if character.isalnum())


@dataclass(frozen=True, slots=True)
class ClassifierPrediction(Result):
    """A label predicted by a classifier, or ``unknown`` with the reason in ``why``.

    ``topic`` is the subject of the label, ``by`` the name of the classifier. ``accuracy`` is the
    proportion of correct labels on held-out memes with a similar probability, ``baseline`` that of
    the best trivial classifier. ``sample`` marks a classifier that was trained on the sample data.
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
        """Whether the classifier predicted a label."""
        return self.label != UNKNOWN

    @property
    def source(self) -> str:
        """The name of the classifier and its accuracy, in words.

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
    """A loaded classifier: ``ask`` takes a text and its language.

    ``name`` is the label that the classifier was trained for, ``version`` the hash of its file.
    """

    topic: str
    name: str
    version: str
    classes: tuple[str, ...]
    ask: Callable[[str, str], ClassifierPrediction]


Judges = Mapping[str, Judge]  # active classifiers by topic


def name_judges(judges: Judges) -> str:
    """List classifiers with their versions in one line; empty if there are none.

    >>> name_judges({})
    ''
    """
    return ", ".join(f"{judge.name}@{judge.version}" for _, judge in sorted(judges.items()))


PERSON = "a person"  # the author of a version that a user wrote


class OfferedVersion(Closed):
    """One candidate version of a meme: its captions, who wrote them, and the check results.

    ``kindness`` is the score of the classifier for kind captions, if it was asked.
    """

    captions: list[str] = Field(max_length=40)
    by: str = Field(max_length=200)
    status: Literal["done", "flawed"]
    kindness: float | None = None


class Preference(Closed):
    """A person's choice between versions of a meme.

    ``chosen`` is the number of the chosen version from 1 (None: the choice was withdrawn).
    ``undone`` lists former choices. ``meme`` is the name of the meme, or a prefix of its image
    hash. ``words`` are captions written by a person; they are the last candidate.
    """

    id: str = Field(min_length=1, max_length=64)
    meme: str = Field(min_length=1, max_length=500)
    candidates: list[OfferedVersion] = Field(min_length=1, max_length=40)
    chosen: int | None = Field(default=None, ge=1)
    undone: list[int] = Field(default=[], max_length=200)
    words: str = Field(default="", max_length=_TEXT)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the number of the chosen version with that of each other version."""
        for other in range(1, len(self.candidates) + 1 if self.chosen else 1):
            if self.chosen is not None and other != self.chosen:
                yield self.chosen, other


def append_preference(path: Path, preference: Preference) -> None:
    """Append one line to a file of preferences; create the file if needed."""
    with refuse_unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        call_log = AppendOnlyFile(path, path)
    try:
        said = preference.model_dump(mode="json")
        call_log.append(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
    finally:
        call_log.close()


def read_choices(path: Path) -> dict[str, Preference]:
    """Return the latest line of each choice by its id, withdrawn ones included."""
    found: dict[str, Preference] = {}
    for number, preference in read_records(Preference, path):
        if (preference.chosen or 0) > len(preference.candidates):
            raise DataError(path, f"version {preference.chosen} was not offered", row=number)
        found[preference.id] = preference
    return found
