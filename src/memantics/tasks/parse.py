"""From a reply's text to a value. A parser never guesses: no valid answer is ``Unparsed``."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from memantics.core.task import Unparsed

_MAX_TEXT = 100_000
_QUOTES = "\"'`*_()[]{}<>“”‘’「」『』《》【】（）"
_MARKER = re.compile(
    r"(?:final\s+answer|correct\s+answer|correct\s+option|answer|judge?ment|option|choice|verdict"
    r"|答案|判断|结论|选项|选择)\s*(?:is|:|：|=|为|是|->)+\s*",
    re.IGNORECASE,
)


def clean(text: str) -> str:
    """Fold compatibility forms (full-width letters), drop reasoning blocks, cap the length.

    >>> clean("<think>B? no.</think> Ａ")
    'A'
    """
    text = re.sub(r"<think>.*?</think>", " ", text[:_MAX_TEXT], flags=re.DOTALL)
    return unicodedata.normalize("NFKC", text).strip()


def parse_letter(
    text: str, options: Mapping[str, str], take: Literal["first", "last"] = "last"
) -> str:
    """The option letter of a multiple-choice reply.

    In this order: a JSON object with an ``answer``; the letter behind a marker ("Answer: B"), the
    last or first of them as the prompt asked; a reply that is or begins with one letter ("B",
    "(B)", "B. text"); the only option whose whole text is the reply.

    >>> options = {"A": "a cat", "B": "a dog"}
    >>> parse_letter("It barks. Answer: B", options)
    'B'
    >>> parse_letter("A dog barks.", options)
    Traceback (most recent call last):
    memantics.core.task.Unparsed: no option letter found
    """
    body = clean(text)
    if not body:
        raise Unparsed("empty reply")
    letters = "".join(options)
    held = find_object(body).get("answer") if body.startswith(("{", "```")) else None
    if isinstance(held, str) and held.strip(" .()").upper() in options:
        return held.strip(" .()").upper()
    marked = [
        match.group(1).upper()
        for marker in _MARKER.finditer(body)
        if (match := re.match(rf"[\W_]*([{letters}])(?![A-Za-z0-9'’])", body[marker.end() :]))
    ]
    if marked:
        return marked[0] if take == "first" else marked[-1]
    # A bare "A" may be the article: a letter opens a reply only alone, bracketed or punctuated.
    opening = re.match(rf"[\W_]*([{letters}])(?:[.)\]:：、,，。]|\s*$|\s*[*_\n])", body)
    if opening:
        return opening.group(1).upper()
    same = [key for key, value in options.items() if _plain(value) == _plain(body)]
    if len(same) == 1:
        return same[0]
    raise Unparsed("no option letter found")


def parse_label(text: str, aliases: Mapping[str, Sequence[str]]) -> str:
    """The class that a reply names, by any of its aliases.

    The text behind the last marker ("判断：", "Answer:") counts, else the whole reply. A class is
    taken when an alias opens that text, or when a short text names one class only; longer
    aliases win, so that 非双关 is not read as 双关.

    >>> names = {"pun": ("双关", "pun"), "none": ("非双关", "不是双关", "not a pun")}
    >>> parse_label("判断：非双关", names), parse_label("这个不是双关。", names)
    ('none', 'none')
    """
    body = clean(text)
    if not body:
        raise Unparsed("empty reply")
    markers = list(_MARKER.finditer(body))
    segment = (body[markers[-1].end() :] if markers else body).strip(" \n\t:：" + _QUOTES)
    pairs = sorted(
        ((alias.casefold(), key) for key, names in aliases.items() for alias in names),
        key=lambda pair: -len(pair[0]),
    )
    folded = segment.casefold()
    for alias, key in pairs:
        if re.match(_whole(alias), folded):
            return key
    if len(segment) <= 60:
        named = set()
        for alias, key in pairs:
            folded, count = re.subn(_whole(alias), " ", folded)
            if count:
                named.add(key)
        if len(named) == 1:
            return named.pop()
    raise Unparsed("no known label found")


def find_object(text: str) -> Mapping[str, JsonValue]:
    """The first JSON object in a reply, fenced or between prose; {} when there is none.

    >>> find_object('Sure! {"target": "self", "note": "a } inside"} Bye')
    {'target': 'self', 'note': 'a } inside'}
    """
    decoder = json.JSONDecoder()
    for match in list(re.finditer(r"\{", text[:_MAX_TEXT]))[:50]:
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return {}


def _whole(alias: str) -> str:
    """A pattern for an alias; a Latin one must be a word of its own ("pun", not "punctual")."""
    pattern = re.escape(alias)
    return rf"(?<![a-z0-9]){pattern}(?![a-z0-9])" if alias.isascii() else pattern


def _plain(text: str) -> str:
    return " ".join(clean(text).casefold().strip(" .!?。" + _QUOTES).split())
