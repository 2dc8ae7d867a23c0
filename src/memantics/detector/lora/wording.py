"""What a model is asked about a meme, what it should say, and what it said."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args

from memantics.core.errors import InputError
from memantics.core.prompt import Prompt, read_prompts
from memantics.core.records import Form, Image, Message, Part, Request

# The paper's split of its 653 groups; other numbers are cut in the same proportion.
TRAIN_GROUPS, ALL_GROUPS = 500, 653


@dataclass(frozen=True, slots=True)
class TuningCase:
    """One meme with its label. ``reason`` is what a good answer says before its verdict.

    A pun and the two memes made from it share a ``group``: they share their words, too, so a
    split that parts them would ask about what was trained on.
    """

    id: str
    group: str
    label: bool
    caption: str = ""
    reason: str = ""
    image: Path | None = None


@dataclass(frozen=True, slots=True)
class Lesson:
    """A request, and what a good reply to it says."""

    request: Request
    answer: str = ""


class HasGroup(Protocol):
    """What belongs to a group that is never parted."""

    @property
    def group(self) -> str:
        """The group's name."""
        ...


G = TypeVar("G", bound=HasGroup)


@dataclass(frozen=True, slots=True)
class Split:
    """Cases by use."""

    train: tuple[TuningCase, ...]
    valid: tuple[TuningCase, ...]


def part_groups(
    cases: Sequence[G], seed: int = 0, train_groups: int | None = None
) -> tuple[tuple[G, ...], tuple[G, ...]]:
    """Put whole groups aside at random: 153 of 653, or as large a share."""
    groups = sorted({case.group for case in cases})
    count = train_groups or round(len(groups) * TRAIN_GROUPS / ALL_GROUPS)
    if not 0 < count < len(groups):
        raise InputError(
            f"{len(groups)} groups cannot be split into {count} to train on and some to test on",
            hint="give more memes, or another --train-groups",
        )
    random.Random(seed).shuffle(groups)
    chosen = set(groups[:count])
    return (
        tuple(case for case in cases if case.group in chosen),
        tuple(case for case in cases if case.group not in chosen),
    )


def split_groups(
    cases: Sequence[TuningCase], seed: int = 0, train_groups: int | None = None
) -> Split:
    """Whole groups to train on and to judge; each part must hold both classes.

    >>> pairs = [(n, part) for n in range(653) for part in "abc"]
    >>> cases = [TuningCase(f"{n}{part}", str(n), part == "a") for n, part in pairs]
    >>> split = split_groups(cases)
    >>> len(split.train), len(split.valid)
    (1500, 459)
    """
    split = Split(*part_groups(cases, seed, train_groups))
    for name, part in (("training", split.train), ("validation", split.valid)):
        if len({case.label for case in part}) < 2:
            raise InputError(
                f"the {name} part of {len(part)} memes holds one class only",
                hint="give more memes of both classes, or another seed",
            )
    return split


Question = Literal["pun", "harm"]
Style = Literal["image", "caption", "reasons"]
Language = Literal["zh", "en"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
STYLES: tuple[Style, ...] = get_args(Style)
LANGUAGES: tuple[Language, ...] = get_args(Language)
WORDS: dict[Language, tuple[str, str]] = {"zh": ("否", "是"), "en": ("No", "Yes")}
_MARKS: dict[Language, tuple[str, str]] = {"zh": ("", "判断："), "en": ("", "Verdict: ")}


@dataclass(frozen=True, slots=True)
class Wording:
    """How a meme is put to a model, and how its reply is read.

    ``text`` is a prompt in the place of ours, ``said`` its words for no and for yes, ``marks`` what
    its reasons and its verdict begin with, ``shown`` the images of its worked examples.
    """

    question: Question = "pun"
    style: Style = "caption"
    language: Language = "zh"
    text: str = ""
    said: tuple[str, str] | None = None
    marks: tuple[str, str] | None = None
    shown: tuple[Path, ...] = ()

    @property
    def prompt(self) -> Prompt:
        """The text with its hole for the caption."""
        if self.text:
            return Prompt("own", self.text)
        return _prompts()[f"{self.question}.{self.style}.{self.language}"]

    @property
    def words(self) -> tuple[str, str]:
        """What is said for no and for yes."""
        return self.said or WORDS[self.language]

    def describe(self) -> dict[str, Any]:
        """The wording in cards and fingerprints; what is not set says nothing."""
        told = asdict(self) | {"shown": [path.name for path in self.shown]}
        return {name: value for name, value in told.items() if value}

    def ask(self, case: TuningCase) -> str:
        """The question about one meme.

        >>> "蒸多鱼" in Wording().ask(TuningCase("1", "1", True, caption="蒸多鱼"))
        True
        """
        prompt = self.prompt
        return prompt.fill(caption=case.caption) if prompt.holes else prompt.fill()

    def pose(self, case: TuningCase, sees: bool) -> Lesson:
        """A case as a request: images, its own last, where the model sees, then the question."""
        parts: tuple[Part, ...] = (self.ask(case),)
        if sees:
            if case.image is None:
                raise InputError(f"meme {case.id} has no image", hint="leave it out")
            parts = (*map(Image, self.shown), Image(case.image), *parts)
        return Lesson(Request((Message("user", parts),), Form("", ())), self.answer(case))

    def answer(self, case: TuningCase) -> str:
        r"""What a tuned model should say.

        >>> case = TuningCase("1", "1", True, reason="鱼和余同音。")
        >>> Wording().answer(case), Wording(style="reasons").answer(case)
        ('是', '鱼和余同音。\n判断：是')
        """
        word = self.words[case.label]
        if self.style != "reasons":
            return word
        before, verdict = self.marks or _MARKS[self.language]
        return f"{before}{' '.join(case.reason.split())}\n{verdict}{word}".strip()

    def read(self, reply: str) -> bool | None:
        r"""The verdict in a reply; None where there is none, or more than one.

        >>> Wording(style="reasons").read("同音。\n判断: 否"), Wording().read("也许")
        (False, None)
        >>> marked = Wording(style="reasons", said=("非双关", "双关"), marks=("分析：", "判断："))
        >>> marked.read("分析：同音。\n判断:非双关"), marked.read("判断：双关\n判断：非双关")
        (False, None)
        """
        # The longer word first: one may begin the other.
        ends = {word: re.escape(word) + r"\b" * word.isascii() for word in self.words}
        either = "|".join(ends[word] for word in sorted(ends, key=len, reverse=True))
        if self.style == "reasons":
            mark = re.escape((self.marks or _MARKS[self.language])[1].rstrip(" ：:"))
            # Both widths of the colon: models copy whichever they saw last.
            said = re.finditer(rf"{mark}\s*[：:]\s*[“\"]?({either})", reply, re.IGNORECASE)
            found = {str(verdict[1]).lower() for verdict in said}
        else:
            first = re.match(rf"[\s“\"]*({either})", reply, re.IGNORECASE)
            found = {str(first[1]).lower()} if first else set()
        if len(found) != 1:
            return None
        return found.pop() == self.words[1].lower()


@cache
def _prompts() -> dict[str, Prompt]:
    return dict(read_prompts(Path(__file__).parent / "prompts"))
