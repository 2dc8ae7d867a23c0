"""Task ``punchline``: name the pun word and its intended homophone.

The question is that of the annotation form: pun word, similar-sounding word, explanation. The paper
shows three wrong homophones (Table 8) and counts none; here all wrong homophones are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from pydantic import JsonValue

from memantics.benchmarks.factories import proportion_score
from memantics.benchmarks.parsing import clean
from memantics.benchmarks.punmemecn.audit import find_difference
from memantics.benchmarks.punmemecn.load import PunMeme
from memantics.benchmarks.punmemecn.matching import find_objects, plain
from memantics.benchmarks.punmemecn.wording import (
    Brief,
    describe,
    name_facts,
    one_line,
    read_wording,
)
from memantics.core.errors import InputError
from memantics.core.records import Field, Form, Item, Message, Outcome, Request, Sampling, Score
from memantics.core.task import Task, Unparsed

NAMES = {
    "zh": {"word": "双关词", "homophone": "谐音词", "explanation": "解释"},
    "en": {"word": "word", "homophone": "homophone", "explanation": "explanation"},
}
QUESTION = {
    "zh": "这张双关表情包的双关词是什么，它谐音什么词？",
    "en": "Which word does this pun meme play with, and which word is it meant to be heard as?",
}
Wrong = Literal[
    "as printed",
    "another word of that sound",
    "a word of another sound",
    "another word",  # without the extra ``offline``, sounds cannot be compared
    "nothing",
]
# Maximum number of wrong homophones that are listed, most frequent first.
LISTED = 40


def make(brief: Brief) -> Task:
    """Build the task ``punchline``; the authors have no prompt for it."""
    if brief.options.get("wording") == "official":
        raise InputError(
            "punmemecn/punchline has no official wording: the paper has no such task",
            hint="omit the task, or add --set punmemecn/punchline:wording=ours",
        )
    wording = read_wording(brief)

    def ask(item: Item, _complaint: str | None) -> Request:
        text = wording.say("punchline", facts=wording.tell(item.form.context))
        message = Message("user", (*item.images, text))
        return Request((message,), item.form, Sampling(temperature=0.0))

    return brief.make(
        items=lambda: _items(brief),
        ask=ask,
        parse=_parse,
        score=score,
        used=wording.hashes("punchline", *name_facts(brief.style)),
    )


def find_homophones(memes: Sequence[PunMeme]) -> Iterator[tuple[PunMeme, str, str]]:
    """Yield homophone puns with printed and intended words, if both can be located."""
    for meme in memes:
        if meme.reading and meme.reading != meme.caption:
            printed, meant = find_difference(plain(meme.caption), plain(meme.reading))
            if printed and meant:
                yield meme, printed, meant


def _items(brief: Brief) -> Iterator[Item]:
    names = NAMES[brief.language]
    fields = tuple(Field(names[part], "text") for part in ("explanation", "word", "homophone"))
    for meme, printed, meant in find_homophones(brief.release.memes):
        image = brief.show(meme)
        if image is not None:
            yield Item(
                id=meme.id,
                group=meme.group,
                gold={"word": printed, "homophone": meant},
                form=Form(
                    QUESTION[brief.language],
                    fields,
                    language=brief.language,
                    reply="json",
                    context=describe(meme, brief.style),
                ),
                images=(image,),
                tags={"caption": one_line(meme.caption), "reading": one_line(meme.reading or "")},
            )


def _parse(text: str, form: Form) -> JsonValue:
    names = NAMES[form.language]
    for reply in find_objects(clean(text)):
        word, homophone = reply.get(names["word"]), reply.get(names["homophone"])
        if isinstance(word, str) and (homophone is None or isinstance(homophone, str)):
            return {"word": word.strip(), "homophone": (homophone or "").strip()}
    raise Unparsed(f"no JSON object with {names['word']} and {names['homophone']}")


def names_part(said: str, whole: str, part: str) -> bool:
    """Return whether an answer occurs in the text and covers the part that differs.

    >>> names_part("饱", "吃饱了撑的", "饱"), names_part("吃饱了", "吃饱了撑的", "饱")
    (True, True)
    >>> names_part("撑", "吃饱了撑的", "饱"), names_part("争夺鱼", "真多余", "真多余")
    (False, False)
    """
    return bool(said) and part in said and said in whole


def names_pair(word: str, homophone: str, caption: str, reading: str) -> bool:
    """Return whether a word and its homophone have the same position in caption and reading.

    If a caption has several pairs of homophones, or was annotated as a whole, one pair is enough.

    >>> names_pair("虾头", "下头", "虾头男和虾头女", "下头男和下头女")
    True
    >>> names_pair("虾头", "吓头", "虾头男", "下头男"), names_pair("男", "男", "虾头男", "下头男")
    (False, False)
    """
    if not word or word == homophone:
        return False
    apart = abs(len(caption) - len(reading))
    return any(
        reading.startswith(homophone, at + shift)
        for at in range(len(caption))
        for shift in range(-min(apart, at), apart + 1)
        if homophone and caption.startswith(word, at)
    )


def judge_wrong(said: str, caption: str) -> Wrong:
    """Classify a wrong homophone by type of error.

    >>> judge_wrong("争夺鱼", "蒸多鱼"), judge_wrong("蒸鱼", "蒸多鱼"), judge_wrong("", "蒸多鱼")
    ('another word of that sound', 'a word of another sound', 'nothing')
    >>> judge_wrong("多鱼", "蒸多鱼")
    'as printed'
    """
    if not said:
        return "nothing"
    if said in caption:
        return "as printed"
    if find_spec("pypinyin") is None:
        return "another word"
    from pypinyin import lazy_pinyin  # imported on first use

    sounds, spoken = lazy_pinyin(caption), lazy_pinyin(said)
    size = len(spoken)
    alike = any(sounds[at : at + size] == spoken for at in range(len(sounds) - size + 1))
    return "another word of that sound" if alike else "a word of another sound"


@dataclass(frozen=True, slots=True)
class Named:
    """The words that a model named, and whether they are correct."""

    outcome: Outcome
    homophone: str
    word_right: bool
    right: bool
    pair_right: bool

    @property
    def caption(self) -> str:
        """The text printed on the meme."""
        return self.outcome.item.tags["caption"]


def _read(outcome: Outcome) -> Named:
    answer = outcome.value if outcome.status == "answered" else None
    said = answer if isinstance(answer, dict) else {}
    word, homophone = (plain(str(said.get(part, ""))) for part in ("word", "homophone"))
    tags, gold = outcome.item.tags, outcome.item.gold
    assert isinstance(gold, dict)
    caption, reading = plain(tags["caption"]), plain(tags["reading"])
    return Named(
        outcome,
        homophone,
        names_part(word, caption, str(gold["word"])),
        names_part(homophone, reading, str(gold["homophone"])),
        names_pair(word, homophone, caption, reading),
    )


def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return the accuracy of punchline, pun word and any correct pair, and the errors."""
    named = [_read(outcome) for outcome in outcomes]
    memes = [outcome.item.group for outcome in outcomes]
    return (
        proportion_score("accuracy", [case.right for case in named], memes),
        proportion_score("word_accuracy", [case.word_right for case in named], memes),
        proportion_score("pair_accuracy", [case.pair_right for case in named], memes),
        *_confuse(named),
    )


def _confuse(named: Sequence[Named]) -> Iterator[Score]:
    """Return the types of wrong homophones and the most frequent ones."""
    wrong = [case for case in named if not case.right and case.outcome.status == "answered"]
    kinds = Counter(judge_wrong(case.homophone, plain(case.caption)) for case in wrong)
    others: tuple[Wrong, ...] = ("another word of that sound", "a word of another sound")
    if find_spec("pypinyin") is None:
        others = ("another word",)
    sorts: tuple[Wrong, ...] = ("as printed", *others, "nothing")
    for kind in sorts if wrong else ():
        n, part = len(wrong), kinds[kind]
        note = f"{part} of {n} wrong ones"
        yield Score("proportion", part / n, n, by="wrong homophones", label=kind, note=note)
    pairs = Counter(
        f"{case.caption}: {case.homophone or '–'} for {case.outcome.item.tags['reading']}"
        for case in wrong
    )
    for label, count in pairs.most_common(LISTED):
        yield Score("count", float(count), len(wrong), by="confused", label=label)
