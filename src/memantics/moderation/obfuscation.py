"""Text obfuscation: undo it before a text is scored, and add obfuscated copies for training.

Each step changes only unusual writing, such as letters separated by symbols, and reports the
change. Steps that could change ordinary text (spaced letters, digits for letters) apply only if the
result is in the detector's vocabulary.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from memantics.moderation import encodings
from memantics.moderation.examples import Example
from memantics.moderation.features import clean, sound_of

MOST_TARGETS = 4
_EMOJI = ("😀", "🌶", "✨", "🐟", "🍵", "👀")
_Alike = Mapping[str, Sequence[str]]


def space_out(text: str, targets: Sequence[str], seed: int) -> str:
    """Insert spaces between and around the characters of the target words.

    >>> space_out("你真笨", ["笨"], 0)
    '你真 笨 '
    """
    del seed
    for target in targets:
        text = text.replace(target, " " + " ".join(target) + " ")
    return text


def add_emoji(text: str, targets: Sequence[str], seed: int) -> str:
    """Insert an emoji before each character of the target words."""
    pick = random.Random(f"{seed}:{text}")
    for target in targets:
        text = text.replace(target, "".join(pick.choice(_EMOJI) + letter for letter in target))
    return text


def spell_out(text: str, targets: Sequence[str], seed: int) -> str:
    """Write the target words in pinyin.

    >>> spell_out("你真笨", ["笨"], 0)
    '你真ben'
    """
    del seed
    for target in targets:
        text = text.replace(target, "".join(map(sound_of, target)))
    return text


@dataclass(frozen=True, slots=True)
class Augmented:
    """Examples followed by augmented copies; ``origins`` has the index of each original."""

    examples: tuple[Example, ...]
    origins: tuple[int, ...]


def augment(examples: Sequence[Example], share: float = 0.3) -> Augmented:
    """Add obfuscated copies of a proportion ``share`` of the examples, with their labels.

    Homophones are chosen among the characters of the data, which is fast and needs no other
    package. Copies get new ids. Random characters are obfuscated, since no trained detector can
    select the important ones yet.
    """
    pick = random.Random(0)
    chosen = pick.sample(range(len(examples)), int(share * len(examples)))
    alike = _group_sounds(examples) if chosen else {}
    copies = []
    for number, place in enumerate(chosen):
        example = examples[place]
        text = clean(example.text)
        targets = _draw(text, pick)
        obfuscated = _AUGMENTERS[number % len(_AUGMENTERS)](text, targets, pick, alike)
        copies.append(replace(example, id=f"{example.id}~{number}", text=obfuscated))
    return Augmented((*examples, *copies), (*range(len(examples)), *chosen))


def add_copies(
    examples: Sequence[Example], origins: Sequence[int], share: float, seed: int
) -> Augmented:
    """Add text-only copies of a proportion ``share`` of the examples, with misspelt characters.

    Characters are replaced by homophones from the data. A copy has no captions, so that the model
    learns to use pinyin and the text alone. ``origins`` has the index of the example that each one
    was made from; only originals are copied.
    """
    originals = [place for place, origin in enumerate(origins) if place == origin]
    pick = random.Random(f"copies:{seed}")
    chosen = pick.sample(originals, int(share * len(originals)))
    alike = _group_sounds(examples) if chosen else {}
    copies = [
        replace(
            examples[place],
            id=f"{examples[place].id}~heard",
            text=_swap(text, _draw(text, pick), pick, alike),
            text_caption="",
            image_caption="",
            ocr="",
            image=None,
        )
        for place in chosen
        if (text := clean(examples[place].text))
    ]
    kept = [place for place in chosen if clean(examples[place].text)]
    return Augmented((*examples, *copies), (*origins, *kept))


def _draw(text: str, pick: random.Random) -> list[str]:
    letters = sorted({letter for letter in text if letter.isalpha()})
    return pick.sample(letters, min(len(letters), MOST_TARGETS))


def _group_sounds(examples: Sequence[Example]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for character in sorted({letter for e in examples for letter in e.text if letter >= "\u3400"}):
        groups.setdefault(sound_of(character), []).append(character)
    return groups


def _swap(text: str, targets: Sequence[str], pick: random.Random, alike: _Alike) -> str:
    for target in targets:
        others = [character for character in alike.get(sound_of(target), ()) if character != target]
        if others:
            text = text.replace(target, pick.choice(others))
    return text


_AUGMENTERS: tuple[Callable[[str, Sequence[str], random.Random, _Alike], str], ...] = (
    _swap,
    lambda text, targets, pick, _: add_emoji(text, targets, pick.randrange(10**6)),
    lambda text, targets, _pick, _: space_out(text, targets, 0),
    lambda text, targets, _pick, _: spell_out(text, targets, 0),
)


MOST_READINGS = 2  # maximum number of versions without decoration that are scored for a text
_ROUNDS = 4  # maximum depth of nested obfuscations that are undone
# Control characters other than white space, and other than the quotation marks of Windows-1252.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x90\x98-\x9f]+")
_OVERRIDE = re.compile("\u202e([^\u202c-\u202e\\n]*+)\u202c?")
# Invisible format characters, fillers and variation selectors between letters.
_KEYCAP, _KEYS = "\u20e3", frozenset("0123456789#*")
_HIDDEN = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u3164\uffa0"
_WORD = re.compile(r"[^\W\d_]+")
# Runs of single characters with one separator between them: k.i.l.l, k i l l, 你 真 笨
_MARK = r"[ .·•・*_|/\\'`~^+=:,;-]"
_SPELT = re.compile(rf"(?<![^\W_])[^\W_]({_MARK}{{1,3}})[^\W_](?:\1[^\W_])+(?![^\W_])")
_BETWEEN_HAN = re.compile(rf"(?<=[\u3400-\u9fff]){_MARK}+(?=[\u3400-\u9fff])")
_HAN_APART = re.compile(rf"[\u3400-\u9fff](?:{_MARK}+[\u3400-\u9fff]){{2,}}(?![\u3400-\u9fff])")
# Word-start assertions and possessive quantifiers keep the search linear in long runs.
_PULLED = re.compile(r"(?<![^\W\d_])[^\W\d_]++(?:[.·•*_|/\\`~^+=:-]++[^\W\d_]++)+")
_LEET = re.compile(
    r"(?<![a-z0-9@$!])[a-z0-9@$!]*(?:[a-z][0-9@$!]|[0-9@$][a-z])[a-z0-9@$!]*(?<![!.])",
    re.IGNORECASE,
)
# Letters drawn with several signs: |< for k. The longest come first.
_DRAWN = (
    ("\\/\\/", "w"), ("/\\/\\", "m"), ("|\\/|", "m"), ("|\\|", "n"), ("|_|", "u"), ("|-|", "h"),
    ("|<", "k"), ("|)", "d"), ("|3", "b"), ("|2", "r"), ("|=", "f"), ("|_", "l"), ("/\\", "a"),
    ("\\/", "v"), ("()", "o"), ("><", "x"),
)  # fmt: skip
_DRAWINGS = dict(_DRAWN)
_DRAWING = re.compile("|".join(map(re.escape, _DRAWINGS)))
_NO_U = re.compile("|".join(re.escape(signs) for signs in _DRAWINGS if signs != "|_|"))  # |_|_: ll
_TOKEN = re.compile(r"\S+")
_TAGS = re.compile(
    r"(?<=[^\W\d_])(?:<!--[^>]{0,80}-->|</?[A-Za-z][^<>]{0,80}>"
    r"|\[/?(?:b|i|u|s|url|img|size|color|code|quote|spoiler)(?:=[^\[\]]{0,80})?\])++(?=[^\W\d_])"
)
_REPEATED = re.compile(r"([^\W\d_])\1{2,}")
_BROKEN = re.compile(r"(?<![\w'’-])([^\W\d_]+)-?[ \t\n](?=([^\W\d_]+)(?![\w'’-]))")
_SHORTEST = 5  # minimum letters of a word that was broken
_DIGITS = str.maketrans("0134578@$!", "oieastbasi")
_ELSE = str.maketrans("01345@$!", "olgasasl")
_NOTHING: frozenset[str] = frozenset()
_SPOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LAST, _FIRST = re.compile(r"[^\W_]+\Z"), re.compile(r"\A[^\W_]+")
_SHORT, _LONG = 3, 4  # minimum letters of reversed words: in reversed texts, and in other texts
_LONGEST_WORD = 20
# Symbols inside words, other than usual punctuation; and at least four letters pulled apart.
_USUAL = "'’‘ʼ,!?…()\"“”:;&/、，。！？；：（）《》【】「」·—–‐-"
_SYMBOLS = re.compile(rf"(?<=[^\W\d_])(?:(?![{_USUAL}])[^\w\s]|_)+(?=[^\W\d_])")
_GAP = r"[\W\d_]{1,6}"
_APART = re.compile(rf"(?<![^\W\d_])[^\W\d_](?:{_GAP}[^\W\d_](?![^\W\d_])){{3,}}")
_BARE = re.compile(r"[^\w\s'’]+|_+")
_REVERSED = 0.2  # minimum decrease of the unseen-n-gram rate if a text is read in reverse


@dataclass(frozen=True, slots=True)
class Unmasked:
    """A text with obfuscations undone, and the names of those obfuscations (usually none)."""

    text: str
    obfuscations: tuple[str, ...] = ()


def unmask(text: str, known: Container[str] = _NOTHING) -> Unmasked:
    """Undo obfuscations of a text; ``known`` is the detector's vocabulary in lower case.

    >>> unmask("k\u200bill th\u200bem"), unmask("ｋｉｌｌ").text, unmask("%6b%69%6c%6c").text
    (Unmasked(text='kill them', obfuscations=('zero-width characters',)), 'kill', 'kill')
    >>> unmask("k.i.l.l th3m", {"kill", "them"}).text, unmask("see e.g. w3c").obfuscations
    ('kill them', ())
    """
    found: dict[str, None] = {}
    for _ in range(_ROUNDS):
        before = text
        for name, step in _STEPS:
            changed = step(text, known)
            if changed != text:
                found[name] = None
                text = changed
        if text == before:
            break
    return Unmasked(text, tuple(found))


@dataclass(frozen=True, slots=True)
class Undecorated:
    """Kinds of decoration (symbols in words, …) of a text, and at most two versions without it."""

    kinds: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()


def undecorate(
    text: str, known: Container[str] = _NOTHING, rate: Callable[[str], float] | None = None
) -> Undecorated:
    """Return versions of a text without symbols in words, with joined letters, or reversed.

    Args:
        text: The text after :func:`unmask`.
        known: Vocabulary of the detector in lower case; it separates words of joined letters.
        rate: Unseen-n-gram rate of a text. A text counts as reversed if its reverse has a far lower
            rate. Default: no text counts as reversed.

    Returns:
        Kinds and readings; both are empty for ordinary texts.

    >>> undecorate("ki#ll them")
    Undecorated(kinds=('symbols inside words',), readings=('kill them',))
    >>> undecorate("it's half-done, and/or fine!")
    Undecorated(kinds=(), readings=())
    """
    kinds: list[str] = []
    plain = spaced = text
    if _APART.search(text):
        kinds.append("letters pulled apart")
        plain = _APART.sub(lambda found: _join_by_gaps(found.group()), text)
        spaced = _APART.sub(lambda found: _split_words(_join(found.group()), known), text)
    if _SYMBOLS.search(plain):
        kinds.append("symbols inside words")
        plain = _drop_between(plain, known, _SYMBOLS)
        spaced = " ".join(_BARE.sub("", spaced).split())
    if rate is not None and rate(plain) - rate(plain[::-1]) >= _REVERSED:
        kinds.append("reversed order")
        plain, spaced = plain[::-1], plain
    elif (turned := _turn_words(plain, known, _LONG)) != plain:
        kinds.append("reversed words")
        plain, spaced = turned, plain
    readings = [one for one in dict.fromkeys((plain, spaced)) if one.strip() and one != text]
    return Undecorated(tuple(kinds), tuple(readings[:MOST_READINGS]) if kinds else ())


def _join(letters: str) -> str:
    return "".join(filter(str.isalpha, letters))


def _join_by_gaps(letters: str) -> str:
    """Join separated letters; gaps with white space, or else wider gaps, separate words."""
    gaps = re.findall(r"[\W\d_]+", letters)
    spaces = [any(map(str.isspace, gap)) for gap in gaps]
    least = min(map(len, gaps))
    wide = [len(gap) > least for gap in gaps] if all(spaces) or not any(spaces) else spaces
    pairs = zip(_join(letters), [*wide, False], strict=True)
    return "".join(sign + " " * apart for sign, apart in pairs)


def _split_words(joined: str, known: Container[str]) -> str:
    """Split joined letters into known words; letters of unknown words stay together.

    >>> _split_words("killzedall", {"kill", "all"})
    'kill zed all'
    """
    low = joined.lower()
    # cost, start of the word, and whether the word is known
    best: list[tuple[int, int, bool]] = [(0, 0, False)]
    for end in range(1, len(low) + 1):
        options = [(best[end - 1][0] + 2, end - 1, False)]
        options += [
            (best[start][0] + 1, start, True)
            for start in range(max(0, end - _LONGEST_WORD), end - 1)
            if low[start:end] in known
        ]
        best.append(min(options))
    pieces: list[tuple[str, bool]] = []
    end = len(low)
    while end:
        _, start, whole = best[end]
        if pieces and not whole and not pieces[-1][1]:
            pieces[-1] = (joined[start:end] + pieces[-1][0], False)
        else:
            pieces.append((joined[start:end], whole))
        end = start
    return " ".join(piece for piece, _ in reversed(pieces))


def _drop_controls(text: str, known: Container[str]) -> str:
    """Remove control characters; those between two known words become a space."""
    return _drop_between(text, known, _CONTROL)


def _drop_tags(text: str, known: Container[str]) -> str:
    """Remove HTML tags, comments and BBCode inside words; others stay.

    >>> _drop_tags("ki<b>ll</b> k[i]i[/i]ll [b]all[/b]", ())
    'kill</b> kill [b]all[/b]'
    """
    return _drop_between(text, known, _TAGS) if "<" in text or "[" in text else text


def _drop_between(text: str, known: Container[str], signs: re.Pattern[str]) -> str:
    """Remove matches of a pattern; those between two known words become a space.

    >>> _drop_between("ki#ll#them", {"kill", "them"}, re.compile("#"))
    'kill them'
    """
    parts = signs.split(text)
    read, word = [parts[0]], _find_piece(_LAST, parts[0][-_LONGEST_WORD:])
    for part in parts[1:]:
        start = _find_piece(_FIRST, part[:_LONGEST_WORD])
        apart = _is_word(word, known) and _is_word(start, known) and word + start not in known
        read += " " * apart, part
        end = _find_piece(_LAST, part[-_LONGEST_WORD:])
        joined = end == part.lower() and not apart
        word = (word + end)[-_LONGEST_WORD:] if joined else end
    return "".join(read)


def _find_piece(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group().lower() if found else ""


def _is_word(word: str, known: Container[str]) -> bool:
    return len(word) > 1 and word in known


def _turn_override(text: str, _known: Container[str]) -> str:
    """Reverse text inside a right-to-left override, unless its script runs from right to left."""

    def read(found: re.Match[str]) -> str:
        inside = found.group(1)
        right = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in inside)
        return inside if right else inside[::-1]

    return _OVERRIDE.sub(read, text) if "\u202e" in text else text


def _drop_hidden(text: str, _known: Container[str]) -> str:
    """Remove invisible characters, except joiners between emoji."""
    if text.isascii():
        return text
    kept = [
        sign
        for place, sign in enumerate(text)
        if not (_is_hidden(sign) and _stands_in_a_word(text, place))
    ]
    return "".join(kept)


@lru_cache(maxsize=65536)
def _is_hidden(sign: str) -> bool:
    return sign in _HIDDEN or unicodedata.category(sign) == "Cf" or "\ufe00" <= sign <= "\ufe0f"


def _stands_in_a_word(text: str, place: int) -> bool:
    before = next((s for s in reversed(text[max(0, place - 8) : place]) if not _is_hidden(s)), "")
    after = next((s for s in text[place + 1 : place + 9] if not _is_hidden(s)), "")
    # these marks are ordinary after symbols and in keycap emoji
    if "\ufe00" <= text[place] <= "\ufe0f":
        return before.isalnum() and after != _KEYCAP
    return before.isalnum() or after.isalnum()


def _strip_marks(text: str, _known: Container[str]) -> str:
    """Remove combining marks that form no letter, as in k̶i̶l̶l̶, and overlays of any script."""
    if text.isascii():
        return text
    whole = unicodedata.normalize("NFC", text)
    kept, latin, base = [], False, ""
    for sign in whole:
        mark = "\u0300" <= sign <= "\u036f"
        overlay = "\u0334" <= sign <= "\u0338" or "\u20d0" <= sign <= "\u20ff"
        if not mark and not overlay and not _is_hidden(sign):
            latin, base = unicodedata.name(sign, "").startswith("LATIN"), sign
        keycap = sign == _KEYCAP and base in _KEYS
        if not ((mark and latin) or (overlay and base.isalnum() and not keycap)):
            kept.append(sign)
    return text if len(kept) == len(whole) else "".join(kept)


def _join_spelt(text: str, known: Container[str]) -> str:
    """Join letters separated by marks, if the result is in the vocabulary."""

    def read(found: re.Match[str]) -> str:
        joined = re.sub(_MARK, "", found.group())
        if joined.isdigit() or not joined.isascii():
            return found.group()
        return _find_words(joined, known) or found.group()

    text = _SPELT.sub(read, text)
    return _HAN_APART.sub(lambda found: _BETWEEN_HAN.sub("", found.group()), text)


def _find_words(joined: str, known: Container[str]) -> str:
    """Split into the fewest known words of at least two letters; empty if not possible."""
    low = joined.lower()
    if low in known:
        return joined
    best: list[list[str] | None] = [[]] + [None] * len(low)
    for end in range(2, len(low) + 1):
        for start in range(max(0, end - 20), end - 1):
            head, word = best[start], low[start:end]
            if (
                head is not None
                and word in known
                and (best[end] is None or len(head) + 1 < len(best[end] or ()))
            ):
                best[end] = [*head, joined[start:end]]
    return " ".join(best[-1] or ())


def _join_pulled(text: str, known: Container[str]) -> str:
    """Join words that contain marks, if the result is a known word and the parts are not."""

    def read(found: re.Match[str]) -> str:
        pieces = _WORD.findall(found.group())
        joined = "".join(pieces)
        pulled = joined.lower() in known and not all(p.lower() in known for p in pieces)
        return joined if pulled else found.group()

    return _PULLED.sub(read, text)


def _read_digits(text: str, known: Container[str]) -> str:
    """Replace digits and signs by letters, if the result is a known word."""

    def read(found: re.Match[str]) -> str:
        said = found.group()
        if said.lower() in known:
            return said
        spellings = (said.translate(_DIGITS), said.translate(_ELSE))
        return next((plain for plain in spellings if plain.lower() in known), said)

    return _LEET.sub(read, _read_drawings(text, known))


def _read_drawings(text: str, known: Container[str]) -> str:
    """Replace letters drawn with several signs, if that makes a known word.

    >>> _read_drawings("|<ill a |<", {"kill"})
    'kill a |<'
    """
    if not _DRAWING.search(text):
        return text

    def read(found: re.Match[str]) -> str:
        for pattern in (_DRAWING, _NO_U):
            plain = pattern.sub(lambda drawn: _DRAWINGS[drawn.group()], found.group())
            for one in (plain, plain.translate(_DIGITS), plain.translate(_ELSE)):
                if plain != found.group() and _has_known_word(one, known):
                    return one
        return found.group()

    return _TOKEN.sub(read, text)


def _has_known_word(text: str, known: Container[str]) -> bool:
    return _is_word(max(_WORD.findall(text), key=len, default="").lower(), known)


def _shorten(text: str, known: Container[str]) -> str:
    """Write a letter once or twice that stands three times or more, if that makes a known word."""
    if not _REPEATED.search(text):
        return text

    def read(found: re.Match[str]) -> str:
        said = found.group()
        if not _REPEATED.search(said) or said.lower() in known:
            return said
        spellings = (_REPEATED.sub(r"\1", said), _REPEATED.sub(r"\1\1", said))
        return next((plain for plain in spellings if plain.lower() in known), said)

    return _WORD.sub(read, text)


def _join_broken(text: str, known: Container[str]) -> str:
    """Join two neighbouring words that make a known word, unless both are words by themselves."""

    def read(found: re.Match[str]) -> str:
        one, two = (word.lower() for word in found.groups())
        apart = one in known and two in known
        whole = len(one + two) >= _SHORTEST and one + two in known
        return found[1] if whole and not apart else found.group()

    return _BROKEN.sub(read, text)


def _turn_back(text: str, known: Container[str]) -> str:
    """Undo reversed texts, and reversed words if there are at least two.

    A word counts as reversed if only its reverse is in the vocabulary.
    """
    words = [word.lower() for word in _SPOKEN.findall(text)]
    back = sum(_is_reversed(word, known, _SHORT) for word in words)
    if back < 2:  # single words such as "stops" are ordinary
        return text
    fore = sum(_is_reversed(word[::-1], known, _SHORT) for word in words)
    least = _LONG
    if back > 2 * fore:
        turned = [word[::-1] for word in words]
        order = [turned, turned[::-1]]
        apart, whole = (sum(f"{one} {two}" in known for one, two in pairwise(row)) for row in order)
        if whole > apart or (whole == apart and not fore):
            return text[::-1]
        least = 2
    elif sum(_is_reversed(word, known, _LONG) for word in words) < 2:
        return text
    return _turn_words(text, known, least)


def _turn_words(text: str, known: Container[str], least: int) -> str:
    """Reverse the words that are known only in reverse."""

    def read(found: re.Match[str]) -> str:
        word = found.group()
        return word[::-1] if _is_reversed(word.lower(), known, least) else word

    return _SPOKEN.sub(read, text)


def _is_reversed(word: str, known: Container[str], least: int) -> bool:
    return len(word) >= least and word not in known and word[::-1] in known


_STEPS: tuple[tuple[str, Callable[[str, Container[str]], str]], ...] = (
    ("percent-encoded letters", lambda text, _: encodings.decode_percents(text)),
    ("HTML entities", lambda text, _: encodings.read_entities(text)),
    ("escaped letters", lambda text, _: encodings.read_escapes(text)),
    ("tags in words", _drop_tags),
    ("control characters", _drop_controls),
    ("right-to-left override", _turn_override),
    ("zero-width characters", _drop_hidden),
    ("marks over letters", _strip_marks),
    ("full-width or styled letters", lambda text, _: encodings.narrow(text)),
    ("homoglyphs", lambda text, _: encodings.replace_alike(text)),
    ("spaced letters", _join_spelt),
    ("marks inside words", _join_pulled),
    ("digits for letters", _read_digits),
    ("repeated letters", _shorten),
    ("broken words", _join_broken),
    ("reversed text", _turn_back),
)
