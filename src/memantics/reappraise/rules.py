"""The rules of a plan. Each fault is a sentence that whoever made the plan can act on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memantics.core.errors import InputError
from memantics.reappraise.lexicon import read_lexicon
from memantics.reappraise.motto import find_motto
from memantics.reappraise.records import PAIRS, Emotion, ReappraisalPlan
from memantics.vision.captions import has_chinese
from memantics.vision.page import Page
from memantics.vision.typesetting import fit_text

_STOP = """the a an and or but of to in on at is are was were be been am i you he she it we they
me my your his her its our their this that these those with for from as so if when what who how why
not no do does did just all can will would have has had get got out up than then there about
very too more most me us them him by into over again don dont im ive youre its thats"""
_COMMON = frozenset(_STOP.split())
_WORD = re.compile(r"[a-z0-9']+")
_HAN = re.compile(r"[\u3400-\u9fff]+")


def find_faults(plan: ReappraisalPlan, emotion: Emotion, page: Page) -> list[str]:
    """All rules that a plan breaks; an empty list is a good plan."""
    faults = []
    if plan.target != PAIRS[emotion]:
        faults.append(f"the target of {emotion} is {PAIRS[emotion]}, not {plan.target}")
    expected = [str(number) for number in range(1, len(page.captions) + 1)]
    if sorted(plan.captions) != sorted(expected):
        wanted = ", ".join(expected) or "none"
        given = ", ".join(sorted(plan.captions)) or "none"
        faults.append(f"captions must have exactly the regions {wanted}; the plan has {given}")
        return faults
    faults += _check_lengths(plan, page)
    faults += _check_words(plan, page)
    return faults


def _check_lengths(plan: ReappraisalPlan, page: Page) -> list[str]:
    faults = []
    for number, caption in enumerate(page.captions, 1):
        text = plan.captions[str(number)]
        if text.strip() == caption.text:
            continue
        if not text.strip():
            faults.append(f"caption {number} is empty; repeat the old text to keep it")
            continue
        if len(text) > caption.budget:
            faults.append(
                f"caption {number} has {len(text)} characters, its place holds {caption.budget}"
            )
            continue
        try:
            fit_text(text, caption.lettering, caption.ink.box)
        except InputError as error:
            faults.append(f"caption {number}: {error}")
    return faults


def _check_words(plan: ReappraisalPlan, page: Page) -> list[str]:
    before = [caption.text for caption in page.captions]
    after = [plan.captions[str(number)] for number in range(1, len(before) + 1)]
    faults = []
    motto = find_motto(" ".join(after), " ".join(before))
    if motto:
        faults.append(f"{motto!r} is poster text: stay with the situation of the meme instead")
    if before and [text.strip() for text in after] == before:
        faults.append("no caption changes: rewrite at least one")
    missing = [word for word in plan.scenario if word.casefold() not in _fold(after)]
    if missing:
        faults.append(f"the scenario words {', '.join(missing)} are not in the new captions")
    unknown = [word for word in plan.scenario if word.casefold() not in _fold(before)]
    if unknown:
        faults.append(f"the scenario words {', '.join(unknown)} are not in the old captions")
    if not keeps_scenario(before, after):
        faults.append("the new captions keep no word of the old ones: stay with the same scenario")
    return faults


def keeps_scenario(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether new captions share a word with the old ones; with nothing to keep, they do.

    A word is one that carries meaning in English, a character in Chinese. Words that carry the
    feeling itself need not stay.

    >>> keeps_scenario(["My phone is at one percent"], ["My phone is plugged in"])
    True
    >>> keeps_scenario(["闹钟响了"], ["今天真好"])
    False
    """
    said = " ".join(before)
    old = list_words(read_lexicon("zh" if has_chinese(said) else "en").drop(said))
    return not old or bool(old & list_words(" ".join(after)))


def list_words(text: str) -> set[str]:
    """Words that carry meaning: English ones, and Chinese characters one by one."""
    words = {word for word in _WORD.findall(text.casefold().replace("’", "'")) if len(word) > 2}
    signs = set("".join(_HAN.findall(text))) - set("的了是我你他她它们在就都也和有这那吗吧呢啊不")
    return (words - _COMMON) | (signs if has_chinese(text) else set())


def _fold(texts: Sequence[str]) -> str:
    return " ".join(texts).casefold()
