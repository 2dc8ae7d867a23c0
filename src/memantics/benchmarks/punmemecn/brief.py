"""What every task of PunMemeCN is made from: its options read, its data opened once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from memantics.benchmarks.punmemecn.load import PunRelease, open_release
from memantics.benchmarks.punmemecn.records import PunMeme
from memantics.core.data import open_once
from memantics.core.errors import InputError
from memantics.core.records import Image
from memantics.tasks.plugin import TaskSetup

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


@dataclass(frozen=True)
class Brief(TaskSetup):
    """A task's setup, with the options that the tasks of PunMemeCN share read out."""

    @classmethod
    def of(cls, setup: TaskSetup) -> Brief:
        """The same setup as a brief."""
        return cls(**{own.name: getattr(setup, own.name) for own in fields(setup)})

    @cached_property
    def release(self) -> PunRelease:
        """The data, read once."""
        return open_once(open_release, self.need_source())

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

    def show(self, meme: PunMeme) -> Image | None:
        """The image of a meme; without it, an error or None (the item is left out)."""
        hint = "add the images, or leave such memes out with --set images=present"
        return self.picture(meme.image, meme.id, hint)

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
