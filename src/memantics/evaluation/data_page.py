"""The page of a registered data set: counts, languages, duplicates, failing images, annotators.

The data are read once, meme by meme: the memory does not grow with the size of the set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from memantics.benchmarks.dataset_reader import ConfiguredMeme, ConfiguredRelease
from memantics.benchmarks.registry import find_benchmark, find_own_dataset_configs
from memantics.core.errors import ImageError, InputError
from memantics.core.files import write_text
from memantics.core.images import probe, read_bytes
from memantics.core.labels import name_group
from memantics.core.language import read_script
from memantics.core.parameters import Argument
from memantics.core.registry import find_registered
from memantics.core.result import Result
from memantics.core.seen import SeenKeys
from memantics.web.page import fill_page
from memantics.web.phrases import PageLanguage

_SHOWN = 10
_MOST_NAMES = 200
_MOST_VALUES = 50


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """The number of memes with each value of a label, by split."""

    name: str
    what: str
    splits: Mapping[str, Mapping[str, int]]

    @property
    def values(self) -> list[str]:
        """The values, most frequent first."""
        total = Counter[str]()
        for counts in self.splits.values():
            total.update(counts)
        return [value for value, _ in total.most_common(_MOST_VALUES)]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Memes that repeat the text or the image of an earlier one, in their split or in another.

    ``examples`` names the first pairs: the meme, its split, and the split of the earlier meme.
    """

    within: Mapping[str, int]
    across: Mapping[str, int]
    examples: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DatasetProfile(Result):
    """What a data set contains."""

    name: str
    title: str
    summary: str
    warning: str
    memes: int
    splits: Mapping[str, int]
    labels: tuple[LabelCounts, ...]
    languages: Mapping[str, Mapping[str, int]]
    texts: Duplicates
    images: Duplicates
    images_found: int
    images_expected: int
    failing: int
    failures: tuple[tuple[str, str], ...]
    annotators: int
    votes: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Summarise duplicates, images and annotators in readable lines."""
        for what, found in (("texts", self.texts), ("images", self.images)):
            within, across = sum(found.within.values()), sum(found.across.values())
            if within or across:
                yield f"repeated {what}: {within:,} within a split, {across:,} across splits"
        if self.failing:
            yield f"images that cannot be read: {self.failing:,}"
        if self.annotators:
            more = "+" if self.annotators >= _MOST_NAMES else ""
            yield f"annotators: {self.annotators:,}{more}"

    def save(self, out: str | Path, language: PageLanguage = "en") -> Path:
        """Write one self-contained HTML page and return the file."""
        page = fill_page("dataset.html", ["page.css"], found=self, language=language)
        return write_text(out, page, "page of the data set")


def profile_dataset(
    name: Annotated[str, Argument("Registered data set with a dataset config.")],
) -> DatasetProfile:
    """Read a registered data set and describe what it contains.

    Args:
        name: A data set with a dataset config, as ``data add`` registered it.

    Returns:
        Counts by split and label, languages, duplicates, failing images and annotators; ``save``
        writes the page.

    Raises:
        InputError: The data set is not registered, or has no dataset config.

    Example:
        >>> profile_dataset("mami").save("mami.html")  # doctest: +SKIP
    """
    benchmark = find_benchmark(name)
    if benchmark.dataset_config is None:
        hint = f"run memantics audit {name}"
        raise InputError(f"{name} has no dataset config, so it has no page", hint=hint)
    release = benchmark.open(find_registered(name).source)
    assert isinstance(release, ConfiguredRelease)
    with SeenKeys() as texts, SeenKeys() as images:
        reading = _Reading(texts, images)
        for meme in release.memes:
            reading.add(meme)
    config, tally = release.config, release.tally
    labels = []
    for label, facts in config.label.items():
        counts: dict[str, dict[str, int]] = {}
        for (called, split, value), count in tally.labels.items():
            if called == label:
                counts.setdefault(split, {})[value] = count
        labels.append(LabelCounts(label, facts.what, counts))
    return DatasetProfile(
        name=name,
        title=config.title,
        summary=config.summary,
        warning=config.warning,
        memes=tally.memes,
        splits=dict(tally.splits),
        labels=tuple(labels),
        languages={split: dict(found) for split, found in reading.languages.items()},
        texts=reading.text_copies.result(),
        images=reading.image_copies.result(),
        images_found=tally.images,
        images_expected=tally.expected,
        failing=reading.failing,
        failures=tuple(reading.failures),
        annotators=len(reading.annotators),
        votes={label: found.result() for label, found in reading.votes.items() if found.memes},
        attributes={name: dict(found.most_common()) for name, found in reading.groups.items()},
    )


def write_page(name: str) -> tuple[DatasetProfile, Path]:
    """Write the page of a registered data set beside the dataset configs of the user."""
    profile = profile_dataset(name)
    return profile, profile.save(find_own_dataset_configs() / f"{name}.html")


@dataclass(slots=True)
class _Copies:
    """Counts repeated keys; only their hashes are kept, on disk."""

    seen: SeenKeys
    within: Counter[str] = field(default_factory=Counter)
    across: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, key: str | bytes, meme: ConfiguredMeme) -> None:
        earlier = self.seen.add(key, meme.split)
        if earlier is None:
            return
        if earlier == meme.split:
            self.within[meme.split] += 1
        else:
            self.across[f"{earlier} and {meme.split}"] += 1
        if len(self.examples) < _SHOWN:
            self.examples.append((meme.id, meme.split, earlier))

    def result(self) -> Duplicates:
        return Duplicates(dict(self.within), dict(self.across), tuple(self.examples))


@dataclass(slots=True)
class _Votes:
    """Counts the votes on one label, and how many of them are for the most frequent value."""

    memes: int = 0
    votes: int = 0
    unanimous: int = 0

    def result(self) -> tuple[int, float, float]:
        """Return the number of votes, votes per meme, and the rate of unanimous memes."""
        return self.votes, self.votes / self.memes, self.unanimous / self.memes


class _Reading:
    """The counts of one pass over the memes."""

    def __init__(self, texts: SeenKeys, images: SeenKeys) -> None:
        self.text_copies, self.image_copies = _Copies(texts), _Copies(images)
        self.languages: dict[str, Counter[str]] = {}
        self.failing = 0
        self.failures: list[tuple[str, str]] = []
        self.annotators: set[str] = set()
        self.votes: dict[str, _Votes] = {}
        self.groups: dict[str, Counter[str]] = {}

    def add(self, meme: ConfiguredMeme) -> None:
        """Count one meme."""
        if meme.text:
            told = meme.language or read_script(meme.text) or "Latin letters"
            self.languages.setdefault(meme.split, Counter())[told] += 1
            if key := name_group(meme.text):
                self.text_copies.add(key, meme)
        if meme.image is not None:
            self._look(meme, meme.image)
        for label, votes in meme.votes.items():
            found = self.votes.setdefault(label, _Votes())
            found.memes += bool(votes)
            found.votes += len(votes)
            found.unanimous += len({vote.values for vote in votes}) == 1
            for vote in votes:
                if len(self.annotators) < _MOST_NAMES:
                    self.annotators.add(vote.annotator)
                for name, group in vote.attributes.items():
                    self.groups.setdefault(name, Counter())[group] += 1

    def _look(self, meme: ConfiguredMeme, image: Path) -> None:
        """Check format and size of an image, and whether its bytes were seen before."""
        try:
            data = read_bytes(image)
            probe(data, image.name)
        except ImageError as error:
            self.failing += 1
            if len(self.failures) < _SHOWN:
                self.failures.append((meme.id, error.what))
            return
        self.image_copies.add(sha256(data).digest(), meme)
