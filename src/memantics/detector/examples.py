"""One meme as a detector sees it, with its labels where they are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from memantics.core.data import Skip
from memantics.core.errors import InputError
from memantics.core.labelled import LabelledMeme
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.splits import SplitFile

Type = Literal["none", "targeted", "offence", "sexual", "dispirited"]
Modality = Literal["fusion", "text", "image", "both"]
# The order of the paper's tables. The official files number sexual before offence.
TYPES: tuple[Type, ...] = get_args(Type)
TYPE_IDS: tuple[Type, ...] = ("none", "targeted", "sexual", "offence", "dispirited")
MODALITIES: tuple[Modality, ...] = get_args(Modality)
LABELS = ("harmless", "harmful")
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Example:
    """One meme.

    ``text`` is printed on it, ``text_caption`` says what that text means and ``image_caption``
    what the image shows; ``ocr`` is what a reader found in the image, where one was asked.
    ``printed`` is all text of an image that has more than its caption.
    ``label`` is 1 for harmful, 0 for harmless, None where nobody said. ``modality`` says where
    the harm lies, ``target`` whom it attacks. ``id`` and the image's name are for people and for
    splits: no feature may look at them.
    """

    id: str
    text: str
    text_caption: str = ""
    image_caption: str = ""
    image: Path | None = None
    label: int | None = None
    type: Type | None = None
    modality: Modality | None = None
    ocr: str = ""
    target: str | None = None
    printed: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to read in it."""
        return not (self.text + self.text_caption + self.image_caption + self.ocr).strip()


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Labels that are told apart; ``several``: any number of them can hold. Harm has no name."""

    name: str
    classes: tuple[str, ...]
    several: bool = False


HARM = LabelSet("", LABELS)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Examples from one place. ``skips`` were left out, ``notes`` say what else to know.

    ``licence`` is that of the data, ``checksum`` pins the files and the part they came from;
    ``sample`` marks the starter pack, whose figures mean nothing. Labels other than harm are in
    ``gold``, one or several for each example; ``groups`` are never parted between what is learnt
    from and what is judged; ``topic`` is what the labels are about. ``memes`` are the rows behind
    the examples, where labels other than harm were read.
    """

    name: str
    examples: tuple[Example, ...]
    skips: tuple[Skip, ...] = ()
    notes: tuple[str, ...] = ()
    licence: str = "not said"
    checksum: str = ""
    sample: bool = False
    labels: LabelSet = HARM
    gold: tuple[tuple[str, ...], ...] = ()
    groups: tuple[str, ...] = ()
    topic: str = ""
    memes: tuple[LabelledMeme, ...] = ()

    @property
    def texts(self) -> list[str]:
        """What is printed on the memes, where anything is."""
        return [example.text for example in self.examples if example.text.strip()]

    def list_languages(self) -> list[str]:
        """The languages of its texts."""
        return list_languages(self.texts)

    @property
    def counts(self) -> dict[str, int]:
        """How many memes have each label."""
        if not self.labels.name:
            said = Counter(example.label for example in self.examples)
            return {name: said[place] for place, name in enumerate(LABELS)}
        held = Counter(label for gold in self.gold for label in gold)
        return {name: held[name] for name in self.labels.classes}

    def take(self, places: Sequence[int]) -> Loaded:
        """Some of the examples, with their labels and groups where they have any."""
        return replace(
            self,
            examples=tuple(self.examples[place] for place in places),
            gold=tuple(self.gold[place] for place in places) if self.gold else (),
            groups=tuple(self.groups[place] for place in places) if self.groups else (),
            memes=tuple(self.memes[place] for place in places) if self.memes else (),
        )

    def keep_part(self, split: SplitFile, part: str) -> Loaded:
        """The examples that a split file puts into one of its parts."""
        ids = frozenset(split.list_ids(part))
        places = [place for place, example in enumerate(self.examples) if example.id in ids]
        if not places:
            raise InputError(
                f"the split of {split.data} names no meme of {self.name}",
                hint="use the split that was made of these data",
            )
        kept = self.take(places)
        name, pinned = f"{self.name}, {part} of {split.by}", f"{self.checksum}/{split.checksum}"
        return replace(kept, name=name, checksum=f"{pinned}/{part}")

    def describe(self) -> Iterator[str]:
        """How many memes have each label, and what was left out."""
        shown = f"{self.name}: {len(self.examples):,} memes"
        if self.labels.name:
            counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
            yield f"{shown} ({counts})"
        else:
            yield f"{shown}, {self.counts['harmful']:,} harmful"
        if self.labels.name and self.sample:
            yield "note: the starter sample, not the release"
        yield from (f"note: {note}" for note in self.notes)
        if not self.labels.name:  # notes on other labels count what was left out
            yield from self.describe_skips()

    def describe_skips(self) -> Iterator[str]:
        """The first rows that were left out, and how many there are."""
        for skip in self.skips[:5]:
            yield f"left out: {skip.file}: row {skip.row}: {skip.reason}"
        if len(self.skips) > 5:
            yield f"left out: {len(self.skips):,} in all"


def list_languages(texts: Sequence[str]) -> list[str]:
    """Languages of at least a tenth of the texts, as five hundred of them tell."""
    some = texts[:: max(1, len(texts) // 500)]
    counts = Counter(guess_language(text).language for text in some)
    return sorted(
        name for name, n in counts.items() if name != UNKNOWN and n >= 0.1 * counts.total()
    )


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key under which ``9`` comes before ``10``: the order in which memes were collected.

    >>> sorted(["10", "9", "a2", "a10"], key=natural_key)
    ['9', '10', 'a2', 'a10']
    """
    return tuple(_rank(part) for part in _DIGITS.split(name) if part)


def _rank(part: str) -> tuple[int, int, str]:
    if not part.isdecimal():
        return 1, 0, part
    # By length, then digit by digit: Python makes no number of more than 4,300 digits.
    digits = part.lstrip("0")
    return 0, len(digits), digits


def need_labels(examples: Iterable[Example], where: str) -> None:
    """Refuse examples without a label.

    >>> need_labels([Example("1", "hi")], "memes.csv")
    Traceback (most recent call last):
    memantics.core.errors.InputError: memes.csv: example 1 has no label; add a label column
    """
    for example in examples:
        if example.label is None:
            raise InputError(
                f"{where}: example {example.id} has no label", hint="add a label column"
            )


def keep_typed(loaded: Loaded) -> Loaded:
    """The examples whose type is known; others are left out and listed.

    One meme of ToxiCN MM 2.0 is harmful without a type.
    """
    if all(e.type in (None, "none") for e in loaded.examples):
        raise InputError(
            f"{loaded.name}: no harmful meme has a type",
            hint="add a type column, or use --target harmful",
        )
    kept = tuple(e for e in loaded.examples if e.type is not None)
    skips = (Skip(loaded.name, e.id, "no type") for e in loaded.examples if e.type is None)
    return replace(loaded, examples=kept, skips=(*loaded.skips, *skips))


def need_two_classes(labels: Sequence[int], where: str) -> None:
    """Refuse labels that are all alike: nothing can be learnt or measured there.

    >>> need_two_classes([1, 1], "fold 2")
    Traceback (most recent call last):
    memantics.core.errors.InputError: fold 2 holds one class only; give harmful and harmless memes
    """
    if len(set(labels)) < 2:
        raise InputError(f"{where} holds one class only", hint="give harmful and harmless memes")
