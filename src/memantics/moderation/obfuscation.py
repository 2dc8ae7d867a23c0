"""Text obfuscation: undo it before a text is scored, and add obfuscated copies for training.

Each step changes only unusual writing, and reports it. Steps that could change ordinary text
(spaced letters, digits for letters) apply only if the result is in the detector's vocabulary.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import unquote

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


def augment(examples: Sequence[Example], share: float = 0.3, seed: int = 0) -> Augmented:
    """Add obfuscated copies of a proportion ``share`` of the examples, with their labels.

    Homophones come from the characters of the data, which is fast and needs no other package.
    Copies get new ids. Random characters are obfuscated, since there is no detector yet.
    """
    pick = random.Random(seed)
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


_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}){2,}")
# Invisible format characters, fillers and variation selectors between letters.
_HIDDEN = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u3164\uffa0"
_WORD = re.compile(r"[^\W\d_]+")
_MIXED = re.compile(r"[^\W_]+")
# Homoglyphs: Cyrillic, Greek and other letters that look like Latin ones.
_ALIKE = str.maketrans(
    "аАвВгеЕзкКмМнНоОрРсСтТуУхХѕЅіІјЈһԁԛԝӏαΑΒεΕΖΗιΙκΚΜνΝοΟρΡτΤυΥΧχɑɡıʟ",
    "aAbBreE3kKmMhHoOpPcCtTyYxXsSiIjJhdqwlaABeEZHiIkKMvNoOpPtTuYXxagiL",
)
# Runs of single characters with one separator between them: k.i.l.l, k i l l, 你 真 笨
_MARK = r"[ .·•・*_|/\\'`~^+=:,;-]"
_SPELT = re.compile(rf"(?<![^\W_])[^\W_]({_MARK}{{1,3}})[^\W_](?:\1[^\W_])+(?![^\W_])")
_BETWEEN_HAN = re.compile(rf"(?<=[\u3400-\u9fff]){_MARK}+(?=[\u3400-\u9fff])")
_HAN_APART = re.compile(rf"[\u3400-\u9fff](?:{_MARK}+[\u3400-\u9fff]){{2,}}(?![\u3400-\u9fff])")
# Word-start assertions and possessive matching read long runs only once.
_PULLED = re.compile(r"(?<![^\W\d_])[^\W\d_]++(?:[.·•*_|/\\`~^+=:-]++[^\W\d_]++)+")
_LEET = re.compile(
    r"(?<![a-z0-9@$!])[a-z0-9@$!]*(?:[a-z][0-9@$!]|[0-9@$][a-z])[a-z0-9@$!]*(?<![!.])",
    re.IGNORECASE,
)
_DIGITS = str.maketrans("0134578@$!", "oieastbasi")
_ELSE = str.maketrans("01345@$!", "olgasasl")
_NOTHING: frozenset[str] = frozenset()


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
    found: list[str] = []
    for name, step in _STEPS:
        changed = step(text, known)
        if changed != text:
            found.append(name)
            text = changed
    return Unmasked(text, tuple(found))


def _decode(text: str, _known: Container[str]) -> str:
    """Decode percent-encoded runs that are valid UTF-8."""

    def read(found: re.Match[str]) -> str:
        try:
            said = unquote(found.group(), errors="strict")
        except UnicodeDecodeError:
            return found.group()
        return said if said.isprintable() else found.group()

    return _PERCENT.sub(read, text) if "%" in text else text


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
    return before.isalnum() or after.isalnum()


def _strip_marks(text: str, _known: Container[str]) -> str:
    """Remove combining marks that form no letter, as in k̶i̶l̶l̶."""
    if text.isascii():
        return text
    whole = unicodedata.normalize("NFC", text)
    kept, latin = [], False
    for sign in whole:
        mark = "\u0300" <= sign <= "\u036f"
        latin = latin if mark else unicodedata.name(sign, "").startswith("LATIN")
        if not (mark and latin):
            kept.append(sign)
    return text if len(kept) == len(whole) else "".join(kept)


def _narrow(text: str, _known: Container[str]) -> str:
    """Convert full-width, mathematical and circled letters and digits to plain ones."""
    return text if text.isascii() else "".join(map(_narrow_sign, text))


@lru_cache(maxsize=65536)
def _narrow_sign(sign: str) -> str:
    if sign.isascii():
        return sign
    plain = unicodedata.normalize("NFKC", sign)
    return plain if plain.isascii() and plain.isalnum() and plain != sign else sign


def _replace_alike(text: str, _known: Container[str]) -> str:
    """Replace homoglyphs in words that also have Latin letters."""
    if text.isascii():
        return text

    def read(found: re.Match[str]) -> str:
        plain = found.group().translate(_ALIKE)
        latin = any(sign.isascii() and sign.isalpha() for sign in found.group())
        return plain if latin and plain.isascii() else found.group()

    return _MIXED.sub(read, text)


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
    """Join words with marks inside, if the result is a known word and the parts are not."""

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

    return _LEET.sub(read, text)


_STEPS: tuple[tuple[str, Callable[[str, Container[str]], str]], ...] = (
    ("percent-encoded letters", _decode),
    ("zero-width characters", _drop_hidden),
    ("marks over letters", _strip_marks),
    ("full-width or styled letters", _narrow),
    ("homoglyphs", _replace_alike),
    ("spaced letters", _join_spelt),
    ("marks inside words", _join_pulled),
    ("digits for letters", _read_digits),
)
