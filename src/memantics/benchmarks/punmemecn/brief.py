"""What every task of PunMemeCN is made from: its options read, its data opened once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.punmemecn.load import Meme, Release, open_release
from memantics.core.data import Source
from memantics.core.errors import DataError, InputError
from memantics.core.records import Form, Image, Item, Outcome, Request, Score
from memantics.core.task import InvalidPolicy, Task

FOLDER = Path(__file__).parent
STARTER = FOLDER.parent.parent / "starter"


@dataclass(frozen=True, slots=True)
class Style:
    """What a prompt shows besides the image, and whether reasons are asked for."""

    caption: bool = False
    pinyin: bool = False
    shots: bool = False
    reasons: bool = False


STYLES: Mapping[str, Style] = {
    "1": Style(),
    "2": Style(caption=True),
    "3": Style(shots=True),
    "4": Style(caption=True, shots=True),
    "5": Style(caption=True, pinyin=True, shots=True),
    "6": Style(caption=True, shots=True, reasons=True),
    "7": Style(caption=True, pinyin=True, shots=True, reasons=True),
}


@dataclass(frozen=True, slots=True)
class Parts:
    """The functions of a task, and the hashes of what it says."""

    items: Callable[[], Iterator[Item]]
    ask: Callable[[Item, str | None], Request]
    parse: Callable[[str, Form], JsonValue]
    score: Callable[[Sequence[Outcome]], tuple[Score, ...]]
    prompts: Mapping[str, str]


@dataclass(frozen=True)
class Brief:
    """One task with the user's options over the defaults. Without a source it cannot ask."""

    name: str
    main: str
    options: Mapping[str, str]
    source: Source | None
    invalid: InvalidPolicy

    @cached_property
    def release(self) -> Release:
        """The data, read once."""
        if self.source is None:
            raise DataError(
                "punmemecn", "no data to ask about", hint="memantics data add punmemecn DIR"
            )
        return open_release(self.source)

    @property
    def language(self) -> str:
        """The language of prompt and reply."""
        return self.options["language"]

    @cached_property
    def style(self) -> Style:
        """What the prompt shows: its number, and the hint that may be laid over it."""
        own = STYLES[self.options["prompt"]]
        hint = self.options["hint"]
        pinyin = own.pinyin if hint == "prompt" else hint == "pinyin"
        # Readings say the caption anyway, so it is shown with them.
        return Style(own.caption or hint == "readings", pinyin, own.shots, own.reasons)

    @property
    def excludes(self) -> bool:
        """Whether what serves as an example is left out."""
        return self.options["examples"] == "exclude"

    def picture(self, meme: Meme) -> Image | None:
        """The image of a meme; without it, an error or None (the item is left out)."""
        if meme.image is not None:
            return Image(meme.image)
        if self.options["images"] == "present":
            return None
        raise DataError(
            f"meme {meme.id}",
            "its image is not in this copy of the release",
            hint="add the images, or leave such memes out with --set images=present",
        )

    def read_number(self, option: str, low: float, high: float) -> float:
        """The number that an option holds."""
        text = self.options[option]
        try:
            value = float(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise InputError(
                f"option {option} of {self.name} is {text!r}",
                hint=f"give a number from {low:g} to {high:g}",
            )
        return value

    def read_count(self, option: str, high: int) -> int:
        """The whole number that an option holds, from 1."""
        text = self.options[option]
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:20]) <= high):
            raise InputError(
                f"option {option} of {self.name} is {text!r}",
                hint=f"give a whole number from 1 to {high}",
            )
        return int(text)

    def make(self, parts: Parts) -> Task:
        """The task."""
        return Task(
            name=self.name,
            items=parts.items,
            ask=parts.ask,
            parse=parts.parse,
            score=parts.score,
            main=self.main,
            invalid=self.invalid,
            options=self.options,
            prompts=parts.prompts,
        )
