"""Parsers of model replies (letter, label, JSON object) and of texts in Python source files.

A reply parser never guesses: a text without a valid answer raises ``Unparsed``. Python files are
parsed to a syntax tree and never executed.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from memantics.core.errors import DataError
from memantics.core.files import read_regular_text
from memantics.core.task import Unparsed

_MAX_TEXT = 100_000
_QUOTES = "\"'`*_()[]{}<>“”‘’「」『』《》【】（）"
# Words that announce an answer, and the link to its value: "the correct answer is", "答案应为".
_NAMES = (
    r"(?:final\s+answer|correct\s+answer|correct\s+option|conclusion|answer|judge?ment|option"
    r"|choice|verdict|label|guess|答案|判断|判定|结论|选项|选择|分类|结果)"
)
_JOINED = (
    r"[\s*_]*(?:is|:|：|=|应该|应当|应|大概|可能|为|是|->|→)+\s*"
    r"(?:(?:most\s+)?(?:probably|likely|clearly)\s+)?"
)
_MARKER = re.compile(_NAMES + _JOINED, re.IGNORECASE)
# Words that may come between a marker and the letter: "Answer: Option C", "答案：选项C".
_FILLER = r"[\W_]*(?:(?:the\s+)?(?:option|choice|letter)|选项?)?[\W_]*"
_CHOOSE = re.compile(
    r"\\boxed\s*\{\s*(?:\\text\s*\{)?"
    r"|(?:^|\n)[#*\s]*(?:the\s+)?(?:final\s+|correct\s+)?(?:answer|(?:正确|最终)?答案)[*#\s]*\n"
    r"|\b(?:choose|pick|select|go\s+with)\b|选(?:择|项)?(?:的是|是|了|为)?"
    r"|最(?:合适|贴切|恰当|适合|符合|接近|好|佳)的?[^\s，。,.]{0,6}?(?:应该是|应是|是|为)|而是"
    r"|\bnot\s+(?:option\s+)?\(?[A-Z]\)?\W+but\b",
    re.IGNORECASE,
)
# After these words, a bare letter must end its clause: "It's A." names an option, "It's A cat" does
# not.
_SAID = re.compile(
    r"\bit(?:['’]s|\s+is)\s|\bI(?:['’]d|\s+would)\s+say\s|我猜(?:是|选)?|我(?:觉得|认为)(?:应该)?是",
    re.IGNORECASE,
)
_END = r"(?=[\W_]*(?:$|\n)|[\W_]*[.,;:!?，。；：！？])"
_CLAUSE = re.compile(r"[,.;:!?，。；：！？、\n]")
# Words that contain a negation but negate nothing, and questions that only mention a label.
_AFFIRMED = re.compile(
    r"无疑|毫无疑问|不得不|不难|不错|没错|不愧|不但|不仅|不只|不光|不单|不过|not\s+(?:only|just)"
    r"|(?:no|without\s+(?:a\s+)?)\s*doubt"
)
_ASKED = re.compile(r"(?:是不是|是否|有没有|算不算|属不属于|whether)\S{0,4}\s*(?:an?\s+)?$")
_DENIED = re.compile(
    r"[不没非无未][^吗却但而反难]{0,8}$"
    r"|(?:\b(?:not|no|never|neither|nor|without)\b|(?<!ca)n['’]t\b)(?:\W+\w+){0,2}\W*$"
)
# A more distant negation, or a word of doubt, makes the reply ambiguous.
_DOUBTED = re.compile(
    r"[不没非无未难]|(?<!很)(?<!极)可能|也许|或许"
    r"|\b(?:not|no|never|hardly|barely|cannot|maybe|perhaps|possibly|might|could)\b|n['’]t\b"
)
_OR = re.compile(r"[\s\"'”’]*(?:或者?|还是|和|与|及|、|/|,?\s*\b(?:or|and)\b)[\s\"'“‘]*$")
_LEAD = re.compile(
    r"(?:这|那|该|此|本|张|个|幅|表情包|图片?|梗|它|属于|算|构成|存在|包含|运用|使用|用|有|是|为|的"
    r"|一|种|并|不|没|非|无|未|the|this|that|meme|image|it|is|was|isn['’]t|an?|not|no|['’]s|\W)*",
)


_HEADING = re.compile(r"^ {0,3}#{1,6} +", re.MULTILINE)
_CODE = re.compile(r"`+([^`\n]+)`+")
_EMPHASIS = re.compile(
    r"(?P<mark>\*\*\*?|__)(?=[^\s*_])(?P<bold>[^*\n]{0,400}?[^\s*_])(?P=mark)"
    r"|(?<![A-Za-z0-9*])\*(?=[^\s*])(?P<slanted>[^*\n]{0,400}?[^\s*])\*(?![A-Za-z0-9*])"
)
_AROUND = {(pair[0], pair[1]) for pair in ('""', "''", "“”", "‘’", "「」", "『』", "«»")}


def clean(text: str) -> str:
    """Normalise the Unicode forms of a reply, remove its reasoning, and limit its length.

    A lone ``</think>`` ends reasoning whose opening tag is in the prompt. An unclosed ``<think>``
    means that the reply was cut off before the answer.

    >>> clean("<think>B? no.</think> Ａ"), clean("B? no.</think> A"), clean("<think>B? no")
    ('A', 'A', '')
    """
    if "think>" in text:
        text = re.sub(r"<think>.*?</think>", " ", text, flags=re.DOTALL)
        text = text.rpartition("</think>")[2].partition("<think>")[0]
    return unicodedata.normalize("NFKC", text[:_MAX_TEXT]).strip()


def strip_marks(text: str) -> str:
    r"""Remove Markdown emphasis, headings, code and outer quotation marks from free text.

    Without this, metrics over words or embeddings would count the formatting.

    >>> strip_marks("**The meme** *mocks* `Mondays`"), strip_marks("“the meme jokes”")
    ('The meme mocks Mondays', 'the meme jokes')
    >>> strip_marks("* cats sleep\n* 2*3*4"), strip_marks('"yes" or "no"')
    ('* cats sleep\n* 2*3*4', '"yes" or "no"')
    """
    body = _HEADING.sub("", _CODE.sub(r"\1", text))
    body = _EMPHASIS.sub(lambda found: found["bold"] or found["slanted"], body).strip()
    inner = body[1:-1]
    if inner and (body[0], body[-1]) in _AROUND and not {body[0], body[-1]} & set(inner):
        return inner.strip()
    return body


def parse_letter(
    text: str, options: Mapping[str, str], take: Literal["first", "last"] = "last"
) -> str:
    """Return the option letter of a multiple-choice reply.

    The parser tries these forms in order: (1) a JSON object with an ``answer``; (2) the letter
    after a marker ("Answer: B", "我选 B"), the last or first one as the prompt requested, unless it
    is negated ("不选A"); (3) a reply that is, begins with or ends in one letter ("B", "(B)", "B.
    text"); (4) the only option whose whole text is the reply; (5) the only letter that is called an
    option ("option B", "B选项").

    >>> options = {"A": "a cat", "B": "a dog"}
    >>> parse_letter("It barks. Answer: B", options), parse_letter("不选A，应该选B", options)
    ('B', 'B')
    >>> parse_letter("A dog barks.", options)
    Traceback (most recent call last):
    memantics.core.task.Unparsed: no option letter found
    """
    body = clean(text)
    if not body:
        raise Unparsed("empty reply")
    one = rf"([{''.join(options)}])(?![A-Za-z0-9'’])"
    held = find_object(body).get("answer") if body.startswith(("{", "```")) else None
    for said in (held, body):  # a lower-case letter counts only if it is the whole reply
        if isinstance(said, str) and said.strip(" .()").upper() in options:
            return said.strip(" .()").upper()
    marked = list(_find_marked(body, one))
    if marked:
        return marked[0] if take == "first" else marked[-1]
    # A bare "A" may be the English article, so an initial letter counts only alone, in brackets or
    # with punctuation.
    ends = r"(?:[.)\]:：、,，。]|\s?\(|\s*$|\s*[*_\n]|\s*(?:选?项)?(?:最|更|比较|正确|合适|符合))"
    opening = re.match(rf"[\W_]*{one}{ends}", body)
    if opening:
        return opening[1]
    closing = re.fullmatch(rf"[\W_]*{one}[\W_]*", body.splitlines()[-1])
    if closing:
        return closing[1]
    same = [key for key, value in options.items() if _plain(value) == _plain(body)]
    if len(same) == 1:
        return same[0]
    named = rf"(?:\boption\s+|选项)[\W_]*{one}|{one}\s*选?项"
    called = {
        match[1] or match[2]
        for match in re.finditer(named, body, re.IGNORECASE)
        if not _is_denied(body, match.start())
    } & set(options)
    if len(called) == 1:
        return called.pop()
    raise Unparsed("no option letter found")


def _find_marked(body: str, one: str) -> Iterator[str]:
    """Yield the letters after a marker in the order of the reply, without negated ones."""
    found: dict[int, str] = {}
    for marker, end in ((_MARKER, ""), (_CHOOSE, ""), (_SAID, _END)):
        for match in marker.finditer(body):
            letter = _behind(one, end).match(body[match.end() :])
            if letter and not _is_denied(body, match.start()):
                found[match.end() + letter.start(1)] = letter[1]
    return (found[place] for place in sorted(found))


@cache
def _behind(one: str, end: str) -> re.Pattern[str]:
    """Return the letter after a marker."""
    return re.compile(_FILLER + one + end)


def _is_denied(body: str, place: int) -> bool:
    """Return whether the clause before a position negates what follows."""
    return bool(_DENIED.search(_AFFIRMED.sub("", _CLAUSE.split(body[:place])[-1].casefold())))


def parse_label(
    text: str, aliases: Mapping[str, Sequence[str]], opposites: Mapping[str, str] | None = None
) -> str:
    """Return the class that a reply names, by any of its aliases.

    The text after the last marker ("判断：", "Answer:") counts, else the whole reply. A class is
    accepted if the text begins with it, or if a short text names only one class. Longer aliases
    take precedence, so that 非双关 is not read as 双关. A negated class means its opposite, if it
    has one; otherwise it is ignored. A reply with "one or the other" is not an answer, nor is a
    class in a question ("双关吗？").

    >>> names = {"pun": ("双关", "pun"), "none": ("非双关", "不是双关", "not a pun")}
    >>> parse_label("判断：非双关", names), parse_label("这个不是双关。", names)
    ('none', 'none')
    >>> parse_label("不算双关", names, {"pun": "none"})
    'none'
    """
    body = clean(text)
    if not body:
        raise Unparsed("empty reply")
    markers = list(_MARKER.finditer(body))
    segment = (
        (body[markers[-1].end() :] if markers else body).strip(" \n\t:：" + _QUOTES).casefold()
    )
    said: list[tuple[int, str]] = []
    denied = 0
    for start, end, key in _find_named(segment, aliases):
        before = _CLAUSE.split(segment[:start])[-1]
        # 是不是双关 ("is it a pun?") is a question, although it contains 不是双关 ("not a pun").
        asked = _ASKED.search(before) or re.match(r"(.)[不没]\1", segment[max(0, start - 1) :])
        if asked or re.match(r"[\s\"'”’]*(?:吗|么|\?|？)", segment[end:]):
            continue
        if _is_denied(segment, start) and opposites and key in opposites:
            said.append((start, opposites[key]))
        elif _DOUBTED.search(_AFFIRMED.sub("", before)):
            denied += 1
        else:
            said.append((start, key))
    if said and len({key for _, key in said[:2]}) == 2 and _joins(segment, aliases):
        raise Unparsed("the reply leaves two labels open")
    named = {key for _, key in said}
    opens = said and _LEAD.fullmatch(segment[: said[0][0]])
    if opens or (len(named) == 1 and len(segment) <= 60):
        return said[0][1]
    raise Unparsed("the reply denies the label that it names" if denied else "no known label found")


def _find_named(
    segment: str, aliases: Mapping[str, Sequence[str]]
) -> Iterator[tuple[int, int, str]]:
    """Return where a text names classes: start, end and class; longer aliases first."""
    keys = {alias.casefold(): key for key, names in aliases.items() for alias in names}
    ordered = sorted(keys, key=lambda alias: (-len(alias), alias))
    for match in re.finditer("|".join(map(_whole, ordered)), segment):
        yield match.start(), match.end(), keys[match[0]]


def _joins(segment: str, aliases: Mapping[str, Sequence[str]]) -> bool:
    """Return whether two classes are named as alternatives, as in "性暗示或者消沉" (A or B)."""
    found = list(_find_named(segment, aliases))
    return any(
        first[2] != second[2] and _OR.fullmatch(segment[first[1] : second[0]])
        for first, second in pairwise(found)
    )


def find_object(text: str) -> Mapping[str, JsonValue]:
    """Return the first JSON object in a reply, fenced or within prose; {} if there is none.

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
    """Return a regular expression for an alias; a Latin alias must be a whole word."""
    pattern = re.escape(alias)
    return rf"(?<![a-z0-9]){pattern}(?![a-z0-9])" if alias.isascii() else pattern


def _plain(text: str) -> str:
    return " ".join(clean(text).casefold().strip(" .!?。" + _QUOTES).split())


_LARGEST = 4 * 1024 * 1024


def parse_file(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(path, "is too large for a script")
        return ast.parse(read_regular_text(path))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError) as error:
        raise DataError(path, f"is not valid Python: {error}") from error


def find_function(tree: ast.AST, name: str) -> ast.FunctionDef | None:
    """Return the first function with this name, at any depth of the syntax tree."""
    found = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    return next(found, None)


def assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield assigned names and values, in file order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                yield target.id, node.value


def read_text(node: ast.expr, placeholders: Mapping[str, str]) -> str | None:
    """Return a text from literals, with ``$placeholder`` for each expression; None otherwise.

    ``placeholders`` maps expressions, as Python source, to placeholders. A dollar sign is doubled.

    >>> tree = ast.parse("f'Hello {user.name}, 5$'", mode="eval")
    >>> read_text(tree.body, {"user.name": "$name"})
    'Hello $name, 5$$'
    >>> read_text(ast.parse("open('x')", mode="eval").body, {}) is None
    True
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace("$", "$$")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [read_text(node.left, placeholders), read_text(node.right, placeholders)]
        return None if None in parts else "".join(part for part in parts if part is not None)
    if isinstance(node, ast.JoinedStr):
        read = [
            placeholders.get(ast.unparse(part.value))
            if isinstance(part, ast.FormattedValue)
            else read_text(part, placeholders)
            for part in node.values
        ]
        return None if None in read else "".join(part for part in read if part is not None)
    return placeholders.get(ast.unparse(node))
