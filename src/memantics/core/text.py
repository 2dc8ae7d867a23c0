"""Functions that repair, bound and neutralise untrusted text, and split Chinese text into words."""

from __future__ import annotations

import logging
import re
import unicodedata
import warnings
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING

from memantics.core.errors import DataError, need_offline

if TYPE_CHECKING:
    from jieba import Tokenizer

# Unicode categories: control characters, invisible formatting marks, and lone surrogates.
UNSEEN = ("Cc", "Cf", "Cs")
# Invisible characters that can reorder or split displayed text. Joiners that scripts need and emoji
# selectors are not included.
_STEERING = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")
_WORDS = re.compile(r"[a-z0-9']+|[^\W\d_a-z]")
_MARK = "\N{REPLACEMENT CHARACTER}"
# Control codes except tab and line end, lone surrogates, and marks that reorder or hide text.
# Joiners and selectors of scripts and emoji are kept.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
    "\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def repair_surrogates(text: str) -> str:
    r"""Replace lone surrogates, which cannot be written to a file; return valid text unchanged.

    >>> repair_surrogates("ok \ud83d!")
    'ok \ufffd!'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def escape_surrogates(text: str) -> str:
    r"""Write lone surrogates, which stand for bytes of a file name that is not UTF-8, as escapes.

    Unlike :func:`repair_surrogates`, different names stay different.

    >>> print(escape_surrogates("photo\udcff.png"))
    photo\udcff.png
    """
    return text.encode("utf-8", "backslashreplace").decode()


def neutralise(text: str) -> str:
    r"""Replace characters that could control a terminal or hide parts of a text.

    These characters are control codes, characters that change the writing direction, and bytes of
    file names that are not UTF-8.

    >>> neutralise("a\x1b]0;title\x07b\u202ec\udcff")
    'a�]0;title�b�c�'
    """
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_MARK, text)


def escape_unseen(text: str) -> str:
    r"""Write control and direction characters as JSON escapes, so that no information is lost.

    >>> print(escape_unseen("a\u202eb"))
    a\u202eb
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def drop_unseen(text: str, kinds: Collection[str] = UNSEEN, keep: str = "") -> str:
    r"""Remove the characters of some Unicode categories, except those in ``keep``.

    >>> drop_unseen("a\u202eb\x00c\n", keep="\n")
    'abc\n'
    """
    return "".join(c for c in text if c in keep or unicodedata.category(c) not in kinds)


def mask_unseen(text: str) -> str:
    r"""Return one line in which control and direction characters are replaced.

    >>> mask_unseen("a\u202e  b\x1b[0m")
    'a\ufffd b\ufffd[0m'
    """
    return "".join(
        _MARK if unicodedata.category(c) in UNSEEN else c for c in " ".join(text.split())
    )


def fold_line(text: str, longest: int) -> str:
    """Return one line of at most ``longest`` characters for a tokenizer.

    White space is folded; lone surrogates become ``?``.

    >>> fold_line(" a   b ", 80)
    'a b'
    """
    return " ".join(text.split())[:longest].encode("utf-8", "replace").decode("utf-8")


def clean_line(text: str, longest: int = 2000) -> str:
    r"""Return a model's text as one safe line without control, bidi or lone surrogate characters.

    >>> clean_line("a\u202e cat \ud800\n with  hat")
    'a cat \ufffd with hat'
    """
    text = _STEERING.sub("", text[: longest * 4])
    text = "".join(_repair(char) for char in text)
    return " ".join(unicodedata.normalize("NFC", text).split())[:longest].rstrip()


def show_probability(chance: float) -> str:
    """Format a probability as a percentage that is never 0 % or 100 %.

    >>> [show_probability(chance) for chance in (0.0, 0.004, 0.005, 0.94, 0.994, 0.995, 1.0)]
    ['under 1%', 'under 1%', '1%', '94%', '99%', 'over 99%', 'over 99%']
    """
    if chance < 0.005:
        return "under 1%"
    return "over 99%" if chance >= 0.995 else f"{max(chance, 0.01):.0%}"


def cut_off(text: str, longest: int) -> str:
    """Shorten a text to one line of at most ``longest`` characters; ``…`` marks a cut.

    >>> cut_off("a  cat", 5), cut_off("a cat on the mat", 5)
    ('a cat', 'a ca…')
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def cut_short(text: str, longest: int) -> str:
    """Shorten a text to one line at a word boundary; ``…`` marks a cut.

    >>> cut_short("a cat on the mat", 12), cut_short("被嘲笑的打工人", 5), cut_short("a cat", 0)
    ('a cat on…', '被嘲笑的…', '')
    """
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    head = line[: max(longest - 1, 0)]
    words = head if line[len(head)] == " " else head.rpartition(" ")[0]
    return f"{(words or head).rstrip()}…" if head else ""


def _repair(char: str) -> str:
    kind = unicodedata.category(char)
    if kind == "Cs":
        return _MARK
    return " " if kind in ("Cc", "Zl", "Zp") else char


def cut_chinese(text: str) -> list[str]:
    """Split a Chinese text into words, with everything between them.

    >>> cut_chinese("我们去公园。")
    ['我们', '去', '公园', '。']
    """
    return list(_load_cutter().cut(text))


@lru_cache(maxsize=1)
def _load_cutter() -> Tokenizer:
    need_offline("jieba")
    with warnings.catch_warnings():
        # jieba's source causes warnings when it is compiled.
        warnings.simplefilter("ignore")
        import jieba

    jieba.setLogLevel(logging.WARNING)
    # A separate jieba tokenizer is used: words that users add to the global one must not change
    # results.
    cutter = jieba.Tokenizer()
    # jieba itself keeps a cache in the shared temporary folder, where any user could replace it.
    # Reading the word list again takes no longer.
    cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
    cutter.initialized = True
    return cutter


def split_pieces(text: str) -> list[str]:
    """Split a text into words of alphabets and single characters of other scripts.

    >>> split_pieces("Two cats 双关")
    ['two', 'cats', '双', '关']
    """
    return _WORDS.findall(text.casefold())


# Maximum nesting of brackets: parsers need stack and memory for each level.

QUOTE = b"<<"  # the opening of a quoted RDF statement
_DEEPEST = 100  # Files written by Memantics have three levels.
# Strings, IRIs and comments may contain any bracket. An escaped character in a name does not begin
# one of them.
_SKIPPED = re.compile(
    r"\\.|\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|<[^<>\s]*>|#[^\n]*",
    re.DOTALL,
)
_SIGNS = re.compile(r"[{}()\[\]]|<<|>>")


def measure_nesting(text: str) -> int:
    """Return the depth of nested brackets in SPARQL, JSON or an RDF format.

    >>> measure_nesting('{ "a": [1, "[[["] }'), measure_nesting("<<( <a> <b> << <c> )>>")
    (2, 3)
    """
    depth = deepest = 0
    for sign in _SIGNS.findall(_SKIPPED.sub(" ", text)):
        depth += 1 if sign in ("{", "(", "[", "<<") else -1
        deepest = max(deepest, depth)
    return deepest


def refuse_nesting(data: bytes, name: str) -> None:
    """Reject a file that is nested so deeply that a parser would crash."""
    deepest = measure_nesting(data.decode("latin-1"))
    if deepest > _DEEPEST:
        raise DataError(
            name,
            f"has {deepest:,} nested brackets; the limit is {_DEEPEST}",
            hint="repair the file, or export it again",
        )
