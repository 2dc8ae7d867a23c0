"""Checks of a question in its final form: do form, length or wording of an option tell the key?

The checks need no model. They run on the options as a reader sees them, after the last change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

from memantics.construction.questions.critic import alike, content, fold
from memantics.construction.questions.lending import find_form
from memantics.construction.questions.records import (
    DENSE,
    Defect,
    QuestionDraft,
)
from memantics.metrics.rounding import VECTORS, settle
from memantics.models.embedded.encoder import Encoder
from memantics.understanding.knowledge.records import Knowledge

# Questions that one look answers, without any understanding.
_SEEN = re.compile(
    r"\b(who|what|which(?: \w+)?) (?:is|are|can be|do we|do you) (?:seen?|shown|visible|pictured|"
    r"drawn|depicted)\b|\bwh(?:o|at)(?: is| are|'s) (?:in|on) the (?:picture|image|meme|photo)\b|"
    r"\bwhat colou?r\b|\bhow many\b|\bwhat (?:is|are) [\w ]{1,30} (?:wearing|holding)\b|"
    r"\bwhat (?:is|are) (?:printed|written)\b|\bwhat does the (?:caption|text|printed text) say\b|"
    r"图[中里上](?:画的|出现的?|看到的|有的?)?(?:是|有|出现了)?(?:什么|谁|几)|什么颜色|"
    r"有几[个只根条位]|画的是什么|图上写[了着的]",
    re.IGNORECASE,
)
# Last words that add length and no meaning.
_PADDING = re.compile(
    r"(?<!until )(?<!till )(?<!by )(?<!from )(?<!than )(?<!up )(?<!out )(?<!over )(?<!down )"
    r"\b(now|here|there|today|indeed|really|somehow|anyway|at all|as well|for once)$"
    r"|(?:而已|罢了|什么的|之类的?|等等|的样子)$",
    re.IGNORECASE,
)
# Keys that name nobody and nothing.
_VAGUE = re.compile(
    r"\b(?:a|an|the|some|one) (?:figure|thing|element|character|entity|being|party|individual)s?"
    r"\b(?! (?:who|that|which|of|with|in|i|you|he|she|it|we|they|one|nobody|everybody)\b)"
    r"|\b(?:something|somebody|someone)$|^(?:something|somebody|someone)$"
    r"|某个?(?:人|物|角色|东西)|(?:一个|那个)(?:角色|东西|事物)$",
    re.IGNORECASE,
)
_OPENINGS = "by to because with for when if doing that"
_CLAUSES = tuple(_OPENINGS.split(" "))
_ASKS_WHO = re.compile(r"^(who|whom|whose)\b|^谁|是谁|哪[类种个群]人", re.IGNORECASE)
_CJK = re.compile(r"[\u3400-\u9fff]")
_POSSESSIVE = re.compile(r"^(?:\w+ ){0,2}\w+['’]s\b|^(?:his|her|its|their|my|your|our)\b", re.I)
_RELATIVE = re.compile(r" (?:who|that|which|whose|where|when|because|while|although) ", re.I)


def _open(text: str) -> str:
    """Return how an option opens: its form, and for a thing its article."""
    first = fold(text).partition(" ")[0]
    if first in ("a", "an", "the"):
        return "a" if first == "an" else first
    return "own" if _POSSESSIVE.search(text) else find_form(text)


_FEATURES: Mapping[str, Callable[[str], object]] = {
    "opening": _open,
    "clause": lambda text: bool(_RELATIVE.search(f"{text} ")),
    "comma": lambda text: bool(re.search(r"[,;:，；：、—–]", text)),
    "quotes": lambda text: bool(re.search(r"[\"“”「」『』‘]", text)),
    "number": lambda text: bool(re.search(r"\d", text)),
    "brackets": lambda text: bool(re.search(r"[()（）]", text)),
}
_CHINESE_FEATURES = ("comma", "quotes", "number", "brackets")


def find_told(key: str, wrong: Sequence[str]) -> str | None:
    """Return the feature of form that only the correct option has, or that only it lacks.

    >>> find_told("An unseen speaker who listens", ["The child's mother", "The child's aunt"])
    'opening'
    >>> find_told("A cat that waits", ["A dog that barks", "A mouse that hides"]) is None
    True
    """
    names = _CHINESE_FEATURES if _CJK.search(key) else tuple(_FEATURES)
    for name in names:
        values = {_FEATURES[name](text) for text in wrong}
        if len(wrong) > 1 and len(values) == 1 and _FEATURES[name](key) not in values:
            return name
    return None


def measures_apart(key: str, wrong: Sequence[str]) -> bool:
    """Return whether the correct option is much longer or much shorter than every other.

    >>> measures_apart("x" * 40, ["x" * 17, "x" * 18]), measures_apart("x" * 24, ["x" * 18] * 2)
    (True, False)
    """
    room = 2 if _CJK.search(key) else 5
    sizes = [len(text) for text in wrong]
    return len(key) > 1.35 * max(sizes) + room or len(key) < min(sizes) / 1.35 - room


def answers_not(question: str, option: str, others: Sequence[str]) -> bool:
    """Return whether an option has a form that cannot answer the question.

    >>> answers_not("Who is meant here?", "By running away", ["A cat", "A dog"])
    True
    """
    form = find_form(option)
    if _CJK.search(option) or form not in (*_CLAUSES, "thing", "name"):
        return False
    if _ASKS_WHO.search(question) and form in _CLAUSES[:7]:
        return True
    rest = {find_form(other) for other in others}
    return form in _CLAUSES[:7] and len(others) > 1 and not rest & set(_CLAUSES)


def speaks_other(text: str, language: str) -> bool:
    """Return whether a text is written in the script of another language than the questions.

    >>> speaks_other("每天晚上设好几个闹钟", "en"), speaks_other("骂人的“下贱”", "zh")
    (True, False)
    >>> speaks_other("Setting several alarms", "zh"), speaks_other("OK", "zh")
    (True, False)
    """
    wide = sum(bool(_CJK.match(letter)) for letter in text)
    plain = sum(letter.isalpha() for letter in text) - wide
    if language in DENSE:
        return not wide and len(text.split()) > 2
    return wide > plain


def find_padding(question: str, text: str) -> str:
    """Return the last words of an option if they add nothing; empty if there are none.

    >>> find_padding("How does it feel?", "Perfectly content now")
    'now'
    """
    found = _PADDING.search(text)
    return found[0] if found and found[0] not in question else ""


def find_form_faults(question: str, key: str | None, wrong: Sequence[str]) -> Iterator[Defect]:
    """Yield the faults of the options as they are shown; ``key`` is None if "none" is correct."""
    shown = [*([key] if key is not None else []), *wrong]
    for one, other in combinations(shown, 2):
        if alike(one, other) or _contains(one, other):
            yield Defect("options equivalent", f"{one!r} and {other!r} say the same", other)
    for text in shown:
        others = [other for other in shown if other is not text]
        if answers_not(question, text, others):
            fault = "" if text is key else text
            yield Defect("no answer", f"{text!r} does not answer the question", fault)
        if padding := find_padding(question, text):
            fault = "" if text is key else text
            yield Defect("padding", f"{padding!r} at the end of {text!r} adds nothing", fault)
    if key is None:
        return
    if (feature := find_told(key, wrong)) is not None:
        yield Defect(
            "form tells", f"only the key {key!r} differs from the others in its {feature}", wrong[0]
        )
    if measures_apart(key, wrong):
        sizes = " and ".join(str(len(text)) for text in wrong)
        message = f"the key has {len(key)} characters, the others {sizes}"
        yield Defect("length tells", message, wrong[0])


def _contains(one: str, other: str) -> bool:
    """Return whether all content words of one option are in the other."""
    first, second = content(one), content(other)
    smaller = min(first, second, key=len)
    return len(smaller) >= 2 and (first <= second or second <= first)


def find_key_faults(draft: QuestionDraft, knowledge: Knowledge) -> Iterator[Defect]:
    """Yield faults of a question and its key, before there are options."""
    if _SEEN.search(draft.question):
        yield Defect("only seen", "the question asks only for what is seen or printed")
    if _VAGUE.search(draft.correct):
        yield Defect("vague", f"{draft.correct!r} names nobody and nothing: say who or what")
    if padding := _PADDING.search(draft.correct):
        yield Defect("padding", f"{padding[0]!r} at the end of the key adds nothing")
    for one in draft.evidence:
        fact = knowledge.by_key.get(one.fact)
        if fact is None:
            continue  # a citation that leads nowhere is reported elsewhere
        told = content(f"{fact.label} {fact.description}")
        words = content(one.words)
        if not words or len(words & told) < 0.8 * len(words):
            yield Defect("evidence", f"{one.words[:60]!r} are not words of {one.fact}")


SUSPECT = 0.5


def find_suspects(shown: Sequence[str], encoder: Encoder) -> list[tuple[str, str]]:
    """Return pairs of options whose vectors are near; a reader decides whether they are the same.

    Vectors do not tell a paraphrase from exchanged roles, so similarity alone refuses nothing.
    """
    if len(shown) < 2:
        return []
    vectors = encoder.encode(list(shown))
    near = settle(vectors @ vectors.T, VECTORS)
    places = combinations(range(len(shown)), 2)
    return [(shown[i], shown[j]) for i, j in places if float(near[i, j]) >= SUSPECT]
