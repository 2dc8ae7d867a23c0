"""The prompts of one language put together: a frame, facts about a meme, examples, a rule.

Blocks that a style leaves out are empty; the blank lines around them fold.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memantics.benchmarks.punmemecn.brief import FOLDER, Style
from memantics.benchmarks.punmemecn.matching import spell
from memantics.benchmarks.punmemecn.records import PunMeme
from memantics.core.prompt import Prompt, read_prompts
from memantics.core.records import Image, Message

_ORDINALS = {
    "zh": ("一", "二", "三", "四", "五", "六", "七", "八"),
    "en": ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
}


@dataclass(frozen=True, slots=True)
class Shot:
    """A worked example: its images, what is told about them, and the reply it should get."""

    images: tuple[Image, ...]
    context: Mapping[str, str]
    answer: str


@dataclass(frozen=True, slots=True)
class PunWording:
    """The prompt files of one language, by name without the language."""

    language: str
    texts: Mapping[str, Prompt]

    def say(self, name: str, **values: str) -> str:
        """A prompt with its holes filled."""
        return tidy(self.texts[name].fill(**values))

    def ordinal(self, number: int) -> str:
        """The name of a place, from 1."""
        return _ORDINALS[self.language][number - 1]

    def tell(self, context: Mapping[str, str]) -> str:
        """What is known of a meme besides its image."""
        known = {name: context[name] for name in ("caption", "pinyin") if name in context}
        told = [self.say("_".join(["facts", *known]), **known)] if known else []
        if "readings" in context:
            told.append(self.say("facts_readings", readings=context["readings"]))
        return "\n".join(told)

    def explain(self, meme: PunMeme) -> str:
        """The reasons that a worked example gives, from what the annotators wrote of the meme."""
        values = {"explanation": one_line(meme.explanation), "caption": one_line(meme.caption)}
        if not meme.reading:
            return self.say("reason_none", **values)
        if meme.reading == meme.caption:
            return self.say("reason_senses", **values)
        return self.say("reason_homophone", reading=one_line(meme.reading), **values)

    def hashes(self, *names: str) -> dict[str, str]:
        """What a run remembers of the prompts it used."""
        used = [self.texts[name] for name in names]
        return {prompt.name: prompt.hash for prompt in used}


def read_wording(language: str) -> PunWording:
    """Read the prompt files of a language."""
    prompts = read_prompts(FOLDER / "prompts")
    ending = f".{language}"
    own = {n.removesuffix(ending): p for n, p in prompts.items() if n.endswith(ending)}
    return PunWording(language, own)


def tidy(text: str) -> str:
    r"""Fold the blanks that empty blocks leave behind.

    >>> tidy("Look. \n\n\n\nReply.")
    'Look.\n\nReply.'
    """
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()


def one_line(text: str) -> str:
    r"""A text without its line breaks, as the authors send captions.

    >>> one_line("好巧，\n藕遇啊")
    '好巧，藕遇啊'
    """
    return "".join(text.splitlines())


def describe(meme: PunMeme, style: Style) -> dict[str, str]:
    """What a style tells about a meme."""
    caption = one_line(meme.caption)
    known = {"caption": caption} if style.caption else {}
    return known | ({"pinyin": spell(caption)} if style.pinyin else {})


def name_facts(style: Style) -> list[str]:
    """The names of the prompt files by which a style tells them."""
    known = [name for name in ("caption", "pinyin") if getattr(style, name)]
    return ["_".join(["facts", *known])] if known else []


def lay_out(
    images: tuple[Image, ...],
    context: Mapping[str, str],
    shots: Sequence[Shot],
    write: Callable[[Mapping[str, str], bool], str],
    layout: str,
) -> tuple[Message, ...]:
    """One message with the examples' images first, or the examples as earlier turns.

    ``write`` makes the text of a context; its second argument says whether the examples are to
    be told in it.
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


def hash_shots(shots: Sequence[Shot]) -> str:
    """One hash of what the examples show and say."""
    body = [
        [[image.path.name for image in shot.images], sorted(shot.context.items()), shot.answer]
        for shot in shots
    ]
    return hashlib.sha256(json.dumps(body, ensure_ascii=False).encode()).hexdigest()[:16]
