"""Words of options and questions: how long, how much alike, and what gives a key away."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from memantics.knowledge.ontology.vocabulary import DIMENSIONS

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['’][^\W_]+)?")
_STOP_WORDS = (
    "a an and are as at be by does do for from has have how in into is it its of on or that the "
    "their there this these to was what when where which who whom whose why with meme it's "
    "的 了 是 在 和 与 这 那 个 哪 吗"
)
_STOP = frozenset(_STOP_WORDS.split(" "))
_SAME = 0.9
_ALIKE = 0.8
_ALL_OF = re.compile(
    r"\b(all|both|any|each|most)\s+of\s+(the|these|those|them)\b|\ball\s+(are|is)\s+(correct|true)"
    r"|\bboth\s+[abcd1-4]\b|\b[abcd]\s+and\s+[abcd]\b|以上(都|皆|全)|全都(是|对)",
    re.IGNORECASE,
)
_NONE_OF = re.compile(
    r"\b(none|neither|nothing)\s+of\s+(the|these|those|them)\b|\bnone\s+(is|are)\s+(correct|true)"
    r"|都不(是|对)|以上皆非",
    re.IGNORECASE,
)
# "scene" and "emotion" are everyday words; as names of a class they stand with a capital.
_EVERYDAY = frozenset({"Scene", "Emotion"})


def _spell(name: str) -> re.Pattern[str]:
    """A pattern for the common spellings of a class's name."""
    if name in _EVERYDAY:
        return re.compile(rf"(?<=[a-z,] ){name}\b|{name}/")
    spelled = r"[\s_-]*".join(re.findall(r"[A-Z][a-z]+", name))
    return re.compile(rf"(?i)\b{spelled}\b")


_CLASS_NAMES = {
    name: _spell(name) for name in (*DIMENSIONS, "EmotionExpression", "ToxicityAssessment")
}


@lru_cache(maxsize=65_536)
def fold(text: str) -> str:
    """A text without case, outer punctuation and compatibility forms.

    >>> fold(" “A  Cat.” ")
    'a cat'
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(plain.split()).strip(" .,;:!?\"'“”‘’。，；：！？「」")


def tokens(text: str) -> list[str]:
    """The words of a text; each Chinese, Japanese or Korean character is one.

    >>> tokens("A cat's 键盘")
    ['a', "cat's", '键', '盘']
    """
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=65_536)
def content(text: str) -> frozenset[str]:
    """The words that carry meaning."""
    return frozenset(word for word in tokens(text) if word not in _STOP)


def count_words(text: str) -> int:
    """How many words a reader counts; two Chinese characters make about one.

    >>> count_words("Loose key caps"), count_words("键帽掉了")
    (3, 2)
    """
    characters = len(_CJK.findall(text))
    return len(tokens(text)) - characters + math.ceil(characters / 2)


def alike(one: str, other: str) -> bool:
    """Whether two texts say the same in (nearly) the same words.

    >>> alike("A grumpy cat", "a grumpy cat."), alike("a cat", "a dog")
    (True, False)
    """
    first, second = fold(one), fold(other)
    if first == second:
        return True
    left, right = content(one), content(other)
    if left and right and len(left & right) / len(left | right) > _ALIKE:
        return True
    if min(len(first), len(second)) < 8:
        return False
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    # Upper bounds first: they are cheap, and most pairs are not alike.
    likely = matcher.real_quick_ratio() > _SAME and matcher.quick_ratio() > _SAME
    return likely and matcher.ratio() > _SAME


def find_class_name(text: str) -> str | None:
    """The name of a class of our ontology that stands in a text, in any common spelling.

    >>> find_class_name("What does SemioticProjection imply here?")
    'SemioticProjection'
    >>> find_class_name("What is the overall intent?"), find_class_name("What emotion is it?")
    ('OverallIntent', None)
    """
    return next((name for name, pattern in _CLASS_NAMES.items() if pattern.search(text)), None)


def claims_all(text: str) -> bool:
    """Whether an option points to several others.

    >>> claims_all("All of the above"), claims_all("All the cats")
    (True, False)
    """
    return _ALL_OF.search(text) is not None


def claims_none(text: str) -> bool:
    """Whether an option is a "none of these" of the model's own.

    >>> claims_none("None of these fits"), claims_none("Nobody laughs")
    (True, False)
    """
    return _NONE_OF.search(text) is not None


def leaks_into(question: str, correct: str, wrong: Sequence[str]) -> bool:
    """Whether a question holds most words of its answer, and of no other option.

    >>> leaks_into("Why is the grumpy cat angry?", "a grumpy cat", ["a tired dog", "a red car"])
    True
    """
    asked = content(question)

    def share(text: str) -> float:
        words = content(text)
        return len(words & asked) / len(words) if words else 0.0

    return share(correct) >= 0.66 and share(correct) > max(map(share, wrong), default=0.0) + 0.2
