"""From replies to classes. A reply that denies what it names is no answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memantics.benchmarks.toxicn_mm.wording import (
    LETTERS,
    TARGET_ALIASES,
    TYPE_ALIASES,
    VERDICT_ALIASES,
)
from memantics.core.records import Form
from memantics.core.task import Unparsed
from memantics.tasks.parse import clean, parse_label, parse_letter

_CONCLUSION = re.compile(
    r"(?:conclusion|verdict|answer|judge?ment|label|结论|判断|判定|答案|分类|结果)"
    r"\W{0,3}?(?:is|:|=|为|是)+\s*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,.;:!?，。；：！？、\n]")
_OR = r"[\s\"'”’]*(?:或者?|还是|和|与|及|、|/|,?\s*\b(?:or|and)\b)[\s\"'“‘]*"
_NEGATION = re.compile(r"[不非未没难]|\b(?:not|never|no|hardly|cannot)\b|n't")


def parse_verdict(text: str) -> str:
    """Harmful or harmless, as the conclusion of a reply names it.

    >>> parse_verdict("分析：话里没有脏字。结论：有害"), parse_verdict("It is not harmful.")
    ('harmful', 'harmless')
    >>> parse_verdict("It can hardly be called harmful")
    Traceback (most recent call last):
    memantics.core.task.Unparsed: the reply denies the label that it names
    """
    body = clean(text)
    ends = [match.end() for match in _CONCLUSION.finditer(body)]
    segment = body[ends[-1] :] if ends else body
    value = parse_one(segment, VERDICT_ALIASES)
    named = re.search(_any_of(VERDICT_ALIASES), segment.casefold())
    if named and _NEGATION.search(_CLAUSE.split(segment.casefold()[: named.start()])[-1]):
        raise Unparsed("the reply denies the label that it names")
    return value


def parse_type(text: str, form: Form) -> str:
    """The type of harm, by its letter or, where there is none, by its name.

    >>> from memantics.tasks.choices import letter_field
    >>> form = Form("?", (letter_field(["targeted", "offence", "sexual", "gloom", "harmless"]),))
    >>> parse_type("B。话里带刺", form), parse_type("性暗示", form)
    ('offence', 'sexual')
    """
    known = {option.key: option.text for option in form.fields[0].options}
    try:
        return LETTERS[parse_letter(text, known)]
    except Unparsed:
        return parse_one(text, TYPE_ALIASES)


def parse_target(text: str, form: Form) -> str:
    """The target, by its name; a target that was not offered is no answer.

    >>> from memantics.core.records import Field, Option
    >>> form = Form("?", (Field("target", "choice", (Option("地域", "地域"),)),))
    >>> parse_target("针对的是地域。", form)
    'region'
    """
    offered = {option.key for option in form.fields[0].options}
    known = {name: names for name, names in TARGET_ALIASES.items() if offered & set(names)}
    return parse_one(text, known)


def parse_one(text: str, aliases: Mapping[str, Sequence[str]]) -> str:
    """The class that a reply names; "one or the other" is no answer.

    >>> parse_one("消沉", TYPE_ALIASES)
    'dispirited'
    >>> parse_one("性暗示或者消沉", TYPE_ALIASES)
    Traceback (most recent call last):
    memantics.core.task.Unparsed: the reply leaves two labels open
    """
    value = parse_label(text, aliases)
    names = _any_of(aliases)
    classes = {name.casefold(): own for own, known in aliases.items() for name in known}
    for pair in re.finditer(rf"({names}){_OR}({names})", clean(text).casefold()):
        if classes[pair[1]] != classes[pair[2]]:
            raise Unparsed("the reply leaves two labels open")
    return value


def _any_of(aliases: Mapping[str, Sequence[str]]) -> str:
    """A pattern for any alias; longer ones first, so that 不有害 is not read as 有害."""
    names = {name.casefold() for known in aliases.values() for name in known}
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


def parse_strictly(text: str, keys: Mapping[str, str]) -> str:
    """The class whose key is the whole reply, whatever its case and final mark.

    >>> parse_strictly(" Harmful. ", {"harmful": "harmful", "harmless": "harmless"})
    'harmful'
    """
    body = clean(text).strip(" \n.。!\"'“”").casefold()
    for key, name in keys.items():
        if body == key.casefold():
            return name
    raise Unparsed(f"reply is not one of {', '.join(keys)}")
