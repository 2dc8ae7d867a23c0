"""A caption as something to be said: tokens, and the sounds each of them may have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Literal, Protocol

from memantics.core.text import UNSEEN, drop_unseen
from memantics.phonetics.loanword import (
    find_phonemes,
    speak_digit,
    speak_letters,
    speak_phonemes,
)
from memantics.phonetics.pronunciation import Sound, list_sounds, read_in_context
from memantics.phonetics.sound import KNOWN_SYLLABLES

Kind = Literal["han", "latin", "digit", "other"]

_TOKEN = re.compile(r"[a-zA-Z]+|.", re.DOTALL)
_MAX_LATIN = 12
_OTHER_READING = 0.2
_ANY_TONE = range(1, 6)
# Two syllables that quick speech runs into one: what chats write with one character.
FUSED = {
    "jiang": "zhe yang",
    "niang": "na yang",
    "biao": "bu yao",
    "bao": "bu hao",
    "zao": "zhi dao",
    "xuan": "xi huan",
    "beng": "bu yong",
    "mao": "mei you",
    "nia": "ni ya",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the caption: a character, a run of letters, a digit, or something silent."""

    text: str
    start: int
    end: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Slot:
    """One syllable that is said. Silent tokens have one slot without sounds.

    ``sounds`` maps each possible sound to what it costs to take it. ``simple`` is the character
    in simplified form, empty where the slot is no character.
    """

    token: int
    simple: str
    sounds: Mapping[Sound, float]
    main: Sound | None


@dataclass(frozen=True, slots=True)
class Script:
    """A caption ready to be said: tokens and slots; a token may take several slots."""

    tokens: tuple[Token, ...]
    slots: tuple[Slot, ...]


def clean_text(text: str) -> str:
    r"""Drop what cannot be said or seen: control, format and unpaired surrogate characters.

    >>> clean_text("a\u202eb\x00c\nd")
    'abc d'
    """
    kept = drop_unseen(text, (*UNSEEN, "Co", "Cn"), keep="\n\r\t")
    return re.sub(r"[\n\r\t]", " ", kept)


def split_tokens(caption: str) -> tuple[Token, ...]:
    """Split a caption into what is said as one.

    >>> [(t.text, t.kind) for t in split_tokens("你peach1！")]
    [('你', 'han'), ('peach', 'latin'), ('1', 'digit'), ('！', 'other')]
    """
    return tuple(
        Token(m.group(), m.start(), m.end(), _classify(m.group())) for m in _TOKEN.finditer(caption)
    )


def _classify(text: str) -> Kind:
    if text.isascii() and text.isalpha():
        return "latin"
    if text.isascii() and text.isdigit():
        return "digit"
    return "han" if list_sounds(text) else "other"


@lru_cache(maxsize=8192)
def simplify(character: str) -> str:
    """The simplified form of a traditional character, where the converter is installed.

    >>> simplify("马")
    '马'
    """
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        converter = _load_converter()
        if converter is not None:
            simple = str(converter.convert(character))
            return simple if len(simple) == 1 else character
    return character


@lru_cache(maxsize=1)
def _load_converter() -> _Converter | None:
    try:
        opencc = import_module("opencc")
    except ImportError:
        return None
    converter: _Converter = opencc.OpenCC("t2s")
    return converter


class _Converter(Protocol):
    """What we use of the converter."""

    def convert(self, text: str) -> str:
        """Traditional to simplified."""
        ...


def write_scripts(caption: str) -> Iterator[Script]:
    """The caption as it is said: plainly, then with each fused syllable spoken in full."""
    tokens = split_tokens(caption)
    plain = "".join(simplify(t.text) if t.kind == "han" else "，" * len(t.text) for t in tokens)
    context = read_in_context(plain)
    slots = [_slots(i, token, plain, context[token.start]) for i, token in enumerate(tokens)]
    yield Script(tokens, tuple(slot for group in slots for slot in group))
    spread = [i for i, group in enumerate(slots) if _fused(group)]
    for i in spread[:2]:
        parts = FUSED[_fused(slots[i])].split()
        full = [Slot(i, "", _any_tone(frozenset((part,))), None) for part in parts]
        groups = [*slots[:i], full, *slots[i + 1 :]]
        yield Script(tokens, tuple(slot for group in groups for slot in group))


def _fused(group: list[Slot]) -> str:
    main = group[0].main if len(group) == 1 else None
    return main.syllable if main and main.syllable in FUSED else ""


def _any_tone(syllables: frozenset[str]) -> dict[Sound, float]:
    return {Sound(s, tone): 0.0 for s in sorted(syllables) for tone in _ANY_TONE}


def _slots(number: int, token: Token, plain: str, context: Sound | None) -> list[Slot]:
    if token.kind == "han":
        character = plain[token.start]
        sounds = {} if context is None else {context: 0.0}
        for sound in list_sounds(character):
            sounds.setdefault(sound, _OTHER_READING)
        main = context or next(iter(sounds), None)
        return [Slot(number, character, sounds, main)]
    spoken: tuple[frozenset[str], ...] = ()
    if token.kind == "digit":
        spoken = (speak_digit(token.text),)
    elif token.kind == "latin" and len(token.text) <= _MAX_LATIN:
        spoken = _speak_latin(token.text)
    if not spoken:
        return [Slot(number, "", {}, None)]
    return [Slot(number, "", _any_tone(s), Sound(min(s), 5)) for s in spoken]


def _speak_latin(text: str) -> tuple[frozenset[str], ...]:
    word = text.lower()
    if len(word) > 1:
        phonemes = find_phonemes(word)
        english = speak_phonemes(phonemes, KNOWN_SYLLABLES) if phonemes else ()
        if word in KNOWN_SYLLABLES:
            return (frozenset((word,)) | (english[0] if len(english) == 1 else frozenset()),)
        if english:
            return english
    return speak_letters(word) if len(word) <= 4 else ()
