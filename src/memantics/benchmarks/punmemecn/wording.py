"""Options and prompts that the tasks of PunMemeCN share.

Text blocks that a prompt style omits are empty; blank lines around them are removed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from memantics.benchmarks.plugin import TaskSetup
from memantics.benchmarks.punmemecn.load import PunMeme, PunRelease, open_release
from memantics.benchmarks.punmemecn.matching import spell
from memantics.benchmarks.punmemecn.official import write_official
from memantics.core.data import open_once
from memantics.core.errors import DataError, InputError
from memantics.core.prompt import Prompt
from memantics.core.records import Image, Message

FOLDER = Path(__file__).parent
SAMPLE_FOLDER = FOLDER.parent.parent / "core" / "samples"


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """The content of a prompt besides the image, and what the prompt asks for.

    ``structured`` asks for the word with two readings, and for the reading that the image shows.
    """

    caption: bool = False
    pinyin: bool = False
    shots: bool = False
    reasons: bool = False
    structured: bool = False

    @property
    def rule(self) -> str:
        """The suffix of the prompt file that contains the reply instructions."""
        return "structured" if self.structured else "reasons" if self.reasons else "reply"


STYLES: Mapping[str, PromptStyle] = {
    "1": PromptStyle(),
    "2": PromptStyle(caption=True),
    "3": PromptStyle(shots=True),
    "4": PromptStyle(caption=True, shots=True),
    "5": PromptStyle(caption=True, pinyin=True, shots=True),
    "6": PromptStyle(caption=True, shots=True, reasons=True),
    "7": PromptStyle(caption=True, pinyin=True, shots=True, reasons=True),
}


@dataclass(frozen=True)
class Brief(TaskSetup):
    """A task's setup, with the parsed options that PunMemeCN's tasks share."""

    @classmethod
    def of(cls, setup: TaskSetup) -> Brief:
        """Convert a task's setup to a ``Brief``, which adds the parsed options."""
        return cls(**{field.name: getattr(setup, field.name) for field in fields(setup)})

    @cached_property
    def release(self) -> PunRelease:
        """The data of the task, read once."""
        return open_once(open_release, self.need_source())

    @property
    def language(self) -> str:
        """The language of prompt and reply."""
        return self.options["language"]

    @cached_property
    def style(self) -> PromptStyle:
        """The prompt style: given by its number, and changed by the hint option."""
        numbered = STYLES[self.options["prompt"]]
        hint = self.options["hint"]
        pinyin = numbered.pinyin if hint == "prompt" else hint == "pinyin"
        # Homophone readings contain the caption, so the caption is shown with them.
        told = numbered.caption or hint == "readings"
        structured = self.options.get("question") == "structured"
        return PromptStyle(told, pinyin, numbered.shots, numbered.reasons, structured)

    def read_official(self, task: str) -> Prompt | None:
        """Return the authors' prompt for these options; None if the built-in prompt is requested.

        The authors have only seven prompts, with their examples in one message.
        """
        if self.options.get("wording") != "official" or self.source is None:
            return None
        theirs = {"hint": "prompt", "caption": "known", "question": "label"}
        if self.options.get("prompt", "1") in "34567":
            theirs |= {"layout": "message", "shots": "auto"}
        for name, value in theirs.items():
            chosen = self.options.get(name, value)
            if chosen not in (value, "authors"):
                raise InputError(
                    f"wording=official has no prompt for {name}={chosen}",
                    hint=f"use {name}={value}, or omit wording",
                )
        prompt = self.prompts.get(f"official_{task}.{self.language}")
        if prompt is None:
            raise DataError(
                self.name,
                "the authors' script contains no such prompt",
                hint="omit the option wording",
            )
        return prompt

    @property
    def published(self) -> bool:
        """Whether the data are a user's set in this format: the authors' samples do not apply."""
        return self.source is not None and self.source.published

    @property
    def excludes(self) -> bool:
        """Whether the few-shot examples are excluded from evaluation; a user's set has none."""
        return self.options["examples"] == "exclude" and not self.published

    def show(self, meme: PunMeme) -> Image | None:
        """Return the image of a meme; if missing, raise an error or return None (item skipped)."""
        hint = "add the images, or skip such memes with --set images=present"
        return self.picture(meme.image, meme.id, hint)


_ORDINALS = {
    "zh": ("一", "二", "三", "四", "五", "六", "七", "八"),
    "en": ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
}


@dataclass(frozen=True, slots=True)
class Shot:
    """A few-shot example: its images, texts, and the expected reply."""

    images: tuple[Image, ...]
    context: Mapping[str, str]
    answer: str


@dataclass(frozen=True, slots=True)
class PunWording:
    """The prompt files of one language, by name without the language."""

    language: str
    texts: Mapping[str, Prompt]

    def say(self, name: str, **values: str) -> str:
        """Return a prompt with its placeholders filled."""
        return tidy(self.texts[name].fill(**values))

    def ordinal(self, number: int) -> str:
        """Return the name of a position ("first", …), counted from 1."""
        return _ORDINALS[self.language][number - 1]

    def tell(self, context: Mapping[str, str]) -> str:
        """Return the texts that the prompt gives about a meme besides its image."""
        known = {name: context[name] for name in ("caption", "pinyin") if name in context}
        told = [self.say("_".join(["facts", *known]), **known)] if known else []
        if "readings" in context:
            told.append(self.say("facts_readings", readings=context["readings"]))
        return "\n".join(told)

    def explain(self, meme: PunMeme) -> str:
        """Return the rationale of a few-shot example, from the meme's annotations."""
        values = {"explanation": one_line(meme.explanation), "caption": one_line(meme.caption)}
        if not meme.reading:
            return self.say("reason_none", **values)
        if meme.reading == meme.caption:
            return self.say("reason_senses", **values)
        return self.say("reason_homophone", reading=one_line(meme.reading), **values)

    def hashes(self, *names: str) -> dict[str, str]:
        """Return the hashes of the used prompts, which are recorded in ``run.json``."""
        used = [self.texts[name] for name in names]
        return {prompt.name: prompt.hash for prompt in used}


def read_wording(brief: Brief) -> PunWording:
    """Return the prompts in the language of the task's options."""
    ending = f".{brief.language}"
    prompts = {n.removesuffix(ending): p for n, p in brief.prompts.items() if n.endswith(ending)}
    return PunWording(brief.language, prompts)


def tidy(text: str) -> str:
    r"""Collapse blank lines that empty text blocks leave behind.

    >>> tidy("Look. \n\n\n\nReply.")
    'Look.\n\nReply.'
    """
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()


def one_line(text: str) -> str:
    r"""Return a text without line breaks, as the authors send captions.

    >>> one_line("好巧，\n藕遇啊")
    '好巧，藕遇啊'
    """
    return "".join(text.splitlines())


def describe(meme: PunMeme, style: PromptStyle) -> dict[str, str]:
    """Return the texts that a prompt style gives about a meme."""
    caption = one_line(meme.caption)
    known = {"caption": caption} if style.caption else {}
    return known | ({"pinyin": spell(caption)} if style.pinyin else {})


def name_facts(style: PromptStyle) -> list[str]:
    """Return the names of the prompt files that add texts about a meme, for a prompt style."""
    known = [name for name in ("caption", "pinyin") if getattr(style, name)]
    return ["_".join(["facts", *known])] if known else []


def lay_out(
    images: tuple[Image, ...],
    context: Mapping[str, str],
    shots: Sequence[Shot],
    write: Callable[[Mapping[str, str], bool], str],
    layout: str,
) -> tuple[Message, ...]:
    """Return one message with the examples' images first, or the examples as earlier turns.

    ``write`` makes the text of a context; its second argument is true if the text includes the
    examples.
    """
    if shots and layout == "message":
        shown = tuple(image for shot in shots for image in shot.images)
        return (Message("user", (*shown, *images, write(context, True))),)
    turns = [
        message
        for shot in shots
        for message in (
            Message("user", (*shot.images, write(shot.context, False))),
            Message("assistant", (shot.answer,)),
        )
    ]
    return (*turns, Message("user", (*images, write(context, False))))


def ask_officially(
    prompt: Prompt, images: tuple[Image, ...], shots: Sequence[Shot], values: Mapping[str, str]
) -> tuple[Message, ...]:
    """Return one message with the authors' prompt, the examples' images first."""
    shown = tuple(image for shot in shots for image in shot.images)
    return (Message("user", (*shown, *images, write_official(prompt, values))),)


def hash_shots(shots: Sequence[Shot]) -> str:
    """Return one hash of the images and texts of all few-shot examples."""
    body = [
        [[image.path.name for image in shot.images], sorted(shot.context.items()), shot.answer]
        for shot in shots
    ]
    return hashlib.sha256(json.dumps(body, ensure_ascii=False).encode()).hexdigest()[:16]
