"""Rules of a reappraisal plan, and the gate that admits only clearly negative memes.

Each broken rule gives a sentence that tells the planner what to correct. Phrases of motivational
posters break a rule. The gate uses the emotion labels of annotators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import get_args

from memantics.core.data import toml_beside
from memantics.core.errors import DataError, InputError
from memantics.core.memes import Meme
from memantics.core.queue import read_annotations
from memantics.understanding.reappraisal.expressions import find_expressions
from memantics.understanding.reappraisal.records import PAIRS, ReappraisalPlan, SourceEmotion
from memantics.understanding.reappraisal.sentences import is_sentence, keeps_subject
from memantics.understanding.reappraisal.topics import find_topic
from memantics.understanding.vision.page import MemeStructure
from memantics.understanding.vision.regions import has_chinese
from memantics.understanding.vision.typesetting import fit_text

_MOTTOS = toml_beside(__file__, "mottos.toml")
_MOTTO = re.compile(
    rf"\b(?:{'|'.join(_MOTTOS['english'])})\b|{'|'.join(_MOTTOS['chinese'])}", re.IGNORECASE
)
_STOP = """the a an and or but of to in on at is are was were be been am i you he she it we they
me my your his her its our their this that these those with for from as so if when what who how why
not no do does did just all can will would have has had get got out up than then there about
very too more most me us them him by into over again don dont im ive youre its thats"""
_COMMON = frozenset(_STOP.split())
_WORD = re.compile(r"[a-z0-9']+")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_ADDED = re.compile(
    r"[啊呀呢嘛哦啦呗哈吧哟咯了哒喔么]|放心|没事|真好|挺好|不急|不气|加油|"
    r"\b(?:lol|haha\w*|yay|wow|easy|easily|fine|happily|gently|all good|no worries|no rush|game on"
    r"|how sweet|and i like it|and i smile|and that is fine|take it easy)\b",
    re.IGNORECASE,
)
_PIECE = re.compile(r"[\w'’]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class FeelingGate:
    """Memes to rewrite with the emotion that annotators agree on; reasons for all other memes."""

    memes: tuple[Meme, ...]
    emotions: Mapping[str, SourceEmotion] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)


def pass_gate(memes: Sequence[Meme], annotations: Path | None) -> FeelingGate:
    """Select the memes that annotators labelled clearly negative (workflow ``find-emotions``).

    Without annotations every meme is admitted, and the model decides.
    """
    if annotations is None:
        return FeelingGate(tuple(memes))
    known = {annotation.item: annotation for annotation in read_annotations(annotations)}
    named = {emotion: emotion for emotion in get_args(SourceEmotion)}
    kept, emotions, skipped = [], dict[str, SourceEmotion](), dict[str, str]()
    for meme in memes:
        annotation = known.get(meme.id)
        said = {} if annotation is None else annotation.values
        emotion = named.get(str(said.get("source_emotion")))
        if annotation is None:
            skipped[meme.id] = "not annotated"
        elif not annotation.kept:
            skipped[meme.id] = annotation.reason or "excluded by annotators"
        elif said.get("negative") != "yes" or emotion is None:
            skipped[meme.id] = f"not clearly negative: {said.get('negative', 'no majority')}"
        else:
            kept.append(meme)
            emotions[meme.id] = emotion
    if not kept:
        raise DataError(annotations, "no meme of the folder is annotated as clearly negative")
    return FeelingGate(tuple(kept), emotions, skipped)


def find_motto(text: str, source: str = "") -> str | None:
    """Find the first motivational phrase in a text that is not in the source.

    >>> find_motto("Believe in yourself, small potato"), find_motto("fast potato")
    ('Believe in yourself', None)
    >>> find_motto("明天再来，未来可期")
    '未来可期'
    """
    for match in _MOTTO.finditer(text.replace("’", "'")):
        if match.group().casefold() not in source.casefold():
            return match.group()
    return None


def find_faults(plan: ReappraisalPlan, emotion: SourceEmotion, page: MemeStructure) -> list[str]:
    """List all rules that a plan breaks; an empty list means a valid plan."""
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


def _check_lengths(plan: ReappraisalPlan, page: MemeStructure) -> list[str]:
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
            fit_text(text, caption.lettering, caption.ink.room)
        except InputError as error:
            faults.append(f"caption {number}: {error}")
    return faults


def _check_words(plan: ReappraisalPlan, page: MemeStructure) -> list[str]:
    before = [caption.text for caption in page.captions]
    after = [plan.captions[str(number)] for number in range(1, len(before) + 1)]
    faults = []
    topic = find_topic(after)
    if topic is not None and find_topic(before) is None:
        faults.append(f"the new captions mention {topic.words!r}, a topic for no kinder meme")
    motto = find_motto(" ".join(after), " ".join(before))
    if motto:
        faults.append(f"{motto!r} is poster text: stay with the situation of the meme instead")
    if before and [text.strip() for text in after] == before:
        faults.append("no caption changes: rewrite at least one")
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1].strip()]
    faults += [
        f"{new!r} is not a sentence of its language for the language model"
        for old, new in changed
        if not is_sentence(new, old)
    ]
    if changed and all(only_adds(old, new) for old, new in changed):
        faults.append("only a particle is added: say what is felt in another way")
    missing = [word for word in plan.scenario if word.casefold() not in _fold(after)]
    if missing:
        faults.append(f"the scenario words {', '.join(missing)} are not in the new captions")
    unknown = [word for word in plan.scenario if word.casefold() not in _fold(before)]
    if unknown:
        faults.append(f"the scenario words {', '.join(unknown)} are not in the old captions")
    if not keeps_scenario(before, after):
        faults.append("the new captions keep no word of the old ones: stay with the same scenario")
    elif not keeps_subject(before, after):
        faults.append("the subject of a caption is lost: say something else about the same subject")
    return faults


def only_adds(old: str, new: str) -> bool:
    """Tell whether a text only adds or replaces particles or stock phrases.

    >>> only_adds("药丸啊", "药丸呢"), only_adds("无语", "无语，放心"), only_adds("好烦", "好玩")
    (True, True, False)
    >>> only_adds("I am late", "I am late, no worries"), only_adds("I am late", "I am here")
    (True, False)
    """
    chinese = has_chinese(old)
    one, other = (list(text) if chinese else _PIECE.findall(text) for text in (old, new))
    rest = []
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            glue = "" if chinese else " "
            rest += [glue.join(one[a:b]), glue.join(other[c:d])]
    left = _ADDED.sub("", " ".join(rest))
    return old.strip() != new.strip() and not re.search(r"\w", left)


def keeps_scenario(before: Sequence[str], after: Sequence[str]) -> bool:
    """Tell whether new captions share a word with the old ones.

    Content words count in English and characters in Chinese. Words that express the emotion need
    not stay. A caption of one word need not stay either, since the image shows the scenario.

    >>> keeps_scenario(["My phone is at one percent"], ["My phone is plugged in"])
    True
    >>> keeps_scenario(["闹钟响了"], ["今天真好"]), keeps_scenario(["失落"], ["洒脱"])
    (False, True)
    >>> keeps_scenario(["IAM no good under pressure", "I crack"], ["I am no good under pressure"])
    True
    """
    said = " ".join(before)
    chinese = has_chinese(said)
    if len(list_words(said)) <= 1 + chinese:
        return True
    new = list_words(" ".join(after))
    old = list_words(find_expressions(said).drop(said))
    # Words that express the emotion also count if they stay: a pun on them keeps the rest of the
    # sentence.
    return not old or bool(old & new) or len(list_words(said) & new) > 1 + chinese


def list_words(text: str) -> set[str]:
    """List content words: English words, and single Chinese characters."""
    words = {word for word in _WORD.findall(text.casefold().replace("’", "'")) if len(word) > 2}
    signs = set("".join(_HAN.findall(text))) - set("的了是我你他她它们在就都也和有这那吗吧呢啊不")
    return (words - _COMMON) | (signs if has_chinese(text) else set())


def _fold(texts: Sequence[str]) -> str:
    return " ".join(texts).casefold()
