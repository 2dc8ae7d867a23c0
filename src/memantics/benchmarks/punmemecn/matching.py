"""Comparison of captions by characters, common substrings and pinyin, and parsing of replies.

Replies are never executed as code, and ambiguous replies are not guessed. The rules of the official
scripts are available by name.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from memantics.benchmarks.parsing import parse_label
from memantics.core.errors import MissingExtra, need_offline
from memantics.core.language import find_converter
from memantics.core.task import Unparsed

_HAN = re.compile(r"[\u4e00-\u9fff]")
_LABEL = re.compile(r"(?:->|→|拼音\s*[:：]|pinyin\s*[:：])", re.IGNORECASE)
_LONGEST = 20_000
_LONGEST_LITERAL = 4096
_OBJECTS = 50


def keep_chinese(text: str) -> str:
    """Return the Chinese characters of a text.

    >>> keep_chinese("好巧，OK 藕遇！")
    '好巧藕遇'
    """
    return "".join(_HAN.findall(text))


def simplify_text(text: str) -> str:
    """Return a text in simplified characters.

    >>> simplify_text("蝦餃")
    '虾饺'
    """
    convert = find_converter("t2s")
    if convert is None:
        raise MissingExtra("simplified captions (wording=official)", "phonetics")
    return convert(text)


def spell(text: str) -> str:
    """Return pinyin with tone marks, using the first reading of each character.

    >>> spell("好巧，藕遇")
    'hǎo qiǎo ， ǒu yù'
    """
    need_offline("pypinyin")
    from pypinyin import pinyin  # imported on first use

    return " ".join(readings[0] for readings in pinyin(text))


def read_syllables(text: str) -> str:
    """Return the pinyin syllables after the last label of a reply, with tone marks.

    >>> read_syllables("拼音：Hǎo qiǎo, ou3 yu4!")
    'hǎo qiǎo ǒu yù'
    """
    need_offline("pypinyin")
    from pypinyin.contrib.tone_convert import to_tone  # imported on first use

    body = unicodedata.normalize("NFC", _LABEL.split(text)[-1]).lower()
    found = re.findall(r"[^\W\d_]+[1-5]?", body)
    latin = [word for word in found if not _HAN.search(word)]
    return " ".join(to_tone(word) if word[-1].isdigit() else word for word in latin)


def drop_tones(text: str) -> str:
    """Return pinyin without tone marks; ü stays.

    >>> drop_tones("nǚ hái")
    'nü hai'
    """
    split = unicodedata.normalize("NFD", text)
    kept = re.sub("[\u0300\u0301\u0304\u030c]", "", split)
    return unicodedata.normalize("NFC", kept)


def plain(text: str) -> str:
    """Return only letters, digits and Chinese characters, with width and case normalised.

    >>> plain("好巧， ＯＫ！")
    '好巧ok'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())


def longest_run(wanted: Sequence[Hashable], found: Sequence[Hashable]) -> int:
    """Return the length of the longest common substring of two texts.

    >>> longest_run("藕遇啊", "好巧，藕遇")
    2
    """
    best = 0
    before = [0] * (len(found) + 1)
    for one in wanted:
        now = [0] * (len(found) + 1)
        for place, other in enumerate(found, 1):
            if one == other:
                now[place] = before[place - 1] + 1
                best = max(best, now[place])
        before = now
    return best


def run_share(wanted: Sequence[Hashable], found: Sequence[Hashable]) -> float:
    """Return the longest common substring as a proportion of the expected text.

    >>> run_share("藕遇啊呀", "藕遇")
    0.5
    """
    return longest_run(wanted, found) / len(wanted) if wanted else 1.0


def recall(wanted: Sequence[Hashable], found: Sequence[Hashable]) -> float:
    """Return the proportion of expected elements that are found, counting repeats.

    >>> recall("哈哈哈啊", "哈哈呀")
    0.5
    """
    both = Counter(wanted) & Counter(found)
    return both.total() / len(wanted) if wanted else 1.0


def find_objects(text: str) -> Iterator[Mapping[str, JsonValue]]:
    """Return every flat object in a reply (as JSON or as a Python literal), in order.

    >>> list(find_objects('''So: {'target': 'self'} or {"target": "both"}'''))
    [{'target': 'self'}, {'target': 'both'}]
    """
    for match in list(re.finditer(r"\{[^{}]*\}", text))[:_OBJECTS]:
        found = _read_object(match.group())
        if found is not None:
            yield found


def _read_object(text: str) -> Mapping[str, JsonValue] | None:
    if len(text) > _LONGEST:
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        value = _read_literal(text)
    return value if isinstance(value, dict) and all(isinstance(k, str) for k in value) else None


def _read_literal(text: str) -> object:
    """Parse a dict of single-quoted strings, which many models write instead of JSON."""
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def read_choice(
    value: JsonValue,
    aliases: Mapping[str, Sequence[str]],
    name: str,
    opposites: Mapping[str, str] | None = None,
) -> str:
    """Return the only key that a value names, by any of its aliases.

    >>> read_choice(" Self ", {"self": ("自己", "self")}, "target")
    'self'
    """
    if isinstance(value, str):
        with contextlib.suppress(Unparsed):
            return parse_label(value, aliases, opposites)
    raise Unparsed(f"{name} is not one of {', '.join(names[0] for names in aliases.values())}")


def first_braces(text: str) -> object:
    """Return the literal from the first { to the first }, as the official scripts do, or None."""
    start, end = text.find("{"), text.find("}")
    body = text[start : end + 1] if 0 <= start < end else ""
    return _read_literal(body.replace("\n", " ").strip()) if body else None
