"""Tokens of a caption and the possible pronunciations of each token."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from memantics.core.language import find_converter
from memantics.core.lines import Alternatives
from memantics.core.text import UNSEEN, drop_unseen
from memantics.understanding.phonetics.pinyin import (
    KNOWN_SYLLABLES,
    SyllableSound,
    list_sounds,
    parse_table,
    read_in_context,
)
from memantics.understanding.phonetics.senses import is_measure

LETTERS = parse_table(
    "a=ei b=bi c=xi|si d=di e=yi f=ai+fu g=ji h=ei+chi i=ai j=zhei|jie k=kai l=ai+le m=ai+mu "
    "n=en o=ou p=pi q=kou|qiu r=a|er s=ai+si t=ti u=you v=wei w=da+bu+liu x=ai+ke+si y=wai z=zei|zi"
)
DIGITS = parse_table("0=ling 1=yi|yao 2=er|liang 3=san 4=si 5=wu 6=liu 7=qi 8=ba 9=jiu")
# Signs that are pronounced when a line is read out.
SIGNS = parse_table("+=jia ×=cheng ÷=chu ==deng π=pai @=ai+te #=jing &=he|an ℃=du ♂=nan ♀=nv")
# English loanwords of Chinese chats; a caption may be a homophone of one of them.
LOANS = (
    *("ok", "nice", "sorry", "thank you", "bye bye", "baby", "no", "yes", "good", "cool", "happy"),
    *("hello", "hi", "love", "money", "honey", "show", "fans", "high", "fine", "wow", "today"),
    *("lucky", "super", "like", "birthday", "party", "please", "welcome", "why", "fighting", "man"),
    *("boy", "girl", "my god", "good night", "good morning", "come on", "so easy", "perfect"),
    "top",
)

# Mandarin syllables for an English consonant without a following vowel, and pinyin initials for one
# with a vowel.
_ALONE = parse_table(
    "B=bu P=pu M=mu F=fu V=wu+fu D=de T=te L=er+ou G=ge K=ke HH=he JH=ji+zhi CH=qi+chi "
    "SH=xi+shi R=er Z=zi S=si TH=si DH=de W=wu Y=yi ZH=ri N=en NG=eng"
)
_ONSETS = parse_table(
    "B=b P=p M=m F=f V=w+f D=d T=t N=n L=l G=g K=k HH=h JH=j+zh CH=ch+q SH=sh+x R=r+l Z=z "
    "S=s+x TH=s DH=d+z W=w Y=y ZH=r"
)
_VOWELS = parse_table(
    "IY=i IH=i EY=ei EH=ai+e+ei AE=ai+a+an AA=a AO=ao+o+uo OW=ou+uo UH=u UW=u+ou AH=a+e "
    "ER=er+e AY=ai+ei AW=ao OY=uo"
)
_CODAS = {"N": "n", "NG": "ng", "M": "n"}


def speak_letters(text: str) -> tuple[frozenset[str], ...]:
    """Spell out letters by their Chinese names: one set of possible syllables per syllable.

    >>> [sorted(s) for s in speak_letters("OK")]
    [['ou'], ['kai']]
    """
    return _name(LETTERS.get(letter, "") for letter in text.lower())


def speak_sign(sign: str) -> tuple[frozenset[str], ...]:
    """Return the syllables of a digit or another sign; empty if it is not pronounced.

    >>> [sorted(s) for s in speak_sign("1")], [sorted(s) for s in speak_sign("@")], speak_sign("!")
    ([['yao', 'yi']], [['ai'], ['te']], ())
    """
    return _name((DIGITS.get(sign) or SIGNS.get(sign, ""),))


def _name(names: Iterable[str]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(part.split("|")) for name in names for part in name.split())


def speak_phonemes(phonemes: Iterable[str], valid: frozenset[str]) -> tuple[frozenset[str], ...]:
    """Transcribe an English word, given in ARPABET, into Mandarin syllables.

    >>> syllables = frozenset("tou tuo ni bu lu".split())
    >>> [sorted(s) for s in speak_phonemes(["T", "OW", "N", "IY"], syllables)]
    [['tou', 'tuo'], ['ni']]
    >>> [sorted(s) for s in speak_phonemes(["B", "L", "UW"], syllables)]
    [['bu'], ['lu']]
    """
    sounds = [phoneme.rstrip("012") for phoneme in phonemes]
    spoken: list[frozenset[str]] = []
    i = 0
    while i < len(sounds):
        here, after = sounds[i], sounds[i + 1 : i + 2]
        onset = ""
        if here not in _VOWELS:
            if not after or after[0] not in _VOWELS:
                spoken.append(frozenset(_ALONE.get(here, "").split()))
                i += 1
                continue
            onset, here = here, after[0]
            i += 1
        i += 1
        coda = ""
        nasal = i < len(sounds) and sounds[i] in _CODAS
        if nasal and (i + 1 == len(sounds) or sounds[i + 1] not in _VOWELS):
            coda = _CODAS[sounds[i]]
            i += 1
        spoken.append(_join(onset, here, coda, valid))
    return tuple(part for part in spoken if part)


def _join(onset: str, vowel: str, coda: str, valid: frozenset[str]) -> frozenset[str]:
    heads = _ONSETS[onset].split() if onset else [""]
    tails = [tail + coda for tail in _VOWELS[vowel].split()]
    if coda:
        tails += [tail[0] + coda for tail in tails] + ["in", "ing"] * (vowel in ("IY", "IH"))
    syllables = {_spell(head, tail) for head in heads for tail in tails}
    return frozenset(syllables & valid) or frozenset({_spell(heads[0], "a")} & valid)


def _spell(head: str, tail: str) -> str:
    if head:
        return {"wou": "wo", "wuo": "wo", "yi": "yi", "yei": "ye", "yuo": "yo"}.get(
            head + tail, head + tail
        )
    return {"i": "yi", "u": "wu", "uo": "wo", "in": "yin", "ing": "ying", "un": "wen"}.get(
        tail, tail
    )


def find_phonemes(word: str) -> tuple[str, ...]:
    """Look up the ARPABET pronunciation of an English word; empty for an unknown word.

    >>> find_phonemes("no such word")
    ()
    """
    text = load_dictionary()
    start = text.find(f"\n{word} ".encode()) if word.isascii() and word.isalpha() else -1
    if start < 0:
        return ()
    line = text[start + 1 : text.index(b"\n", start + 1)]
    return tuple(line.decode("ascii").split()[1:])


@cache
def load_dictionary() -> bytes:
    """Read the pronunciation dictionary, one line per word; empty without pocketsphinx.

    A text search in this dictionary of three megabytes takes less than a millisecond, so no index
    is kept in memory.
    """
    try:
        sphinx = import_module("pocketsphinx")
    except ImportError:
        return b""
    return b"\n" + Path(sphinx.get_model_path("en-us/cmudict-en-us.dict")).read_bytes() + b"\n"


TokenKind = Literal["han", "latin", "digit", "other"]

_TOKEN = re.compile(r"[a-zA-Z]+|.", re.DOTALL)
_MAX_LATIN = 12
# Cost of a character that OCR considered, per factor of ten that it is less probable than the one
# that was read. Chosen by nested selection on the development set (docs/research/puns-ocr.md).
OCR_COST = 0.5
NO_ALTERNATIVES: Alternatives = {}
_OTHER_READING = 0.2
_ANY_TONE = range(1, 6)
# Pairs of syllables that fast speech merges into one; chats write the pair as one character.
FUSED = parse_table(
    "jiang=zhe+yang niang=na+yang biao=bu+yao bao=bu+hao zao=zhi+dao xuan=xi+huan "
    "beng=bu+yong mao=mei+you nia=ni+ya"
)


@dataclass(frozen=True, slots=True)
class CaptionToken:
    """A token of the caption: a character, a run of letters, a digit, or an unpronounced sign."""

    text: str
    start: int
    end: int
    kind: TokenKind


@dataclass(frozen=True, slots=True)
class SyllableSlot:
    """One syllable of a caption; an unpronounced token has one slot without pronunciations.

    ``sounds`` maps each possible pronunciation to its cost. ``simple`` is the simplified character;
    it is empty if the slot is not a character. ``others`` are simplified characters that OCR
    considered instead, with their costs.
    """

    token: int
    simple: str
    sounds: Mapping[SyllableSound, float]
    main: SyllableSound | None
    others: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpokenCaption:
    """The tokens of a caption and their syllable slots; a token may have several slots."""

    tokens: tuple[CaptionToken, ...]
    slots: tuple[SyllableSlot, ...]


def clean_text(text: str) -> str:
    r"""Remove control, format and unpaired surrogate characters.

    >>> clean_text("a\u202eb\x00c\nd")
    'abc d'
    """
    kept = drop_unseen(text, (*UNSEEN, "Co", "Cn"), keep="\n\r\t")
    return re.sub(r"[\n\r\t]", " ", kept).translate(_NARROW)


_QUOTES = re.compile('["“”„‘’「」『』＂]')


def join_fragments(text: str) -> str:
    """Remove quotation marks, and blanks beside a single Chinese character.

    Signs with one character per board, and words in quotation marks, are read as one phrase.

    >>> [join_fragments(text) for text in ("禁 止 杯 伤", "沉默“瓜”言", "好南 像生活一样")]
    ['禁止杯伤', '沉默瓜言', '好南 像生活一样']
    """
    joined, before = "", ""
    for part in _QUOTES.sub("", text).split():
        glued = any(len(side) == 1 and list_sounds(side) for side in (part, before))
        joined += part if glued or not joined else f" {part}"
        before = part
    return joined


# Full-width letters, digits and signs are pronounced like half-width ones; punctuation is kept.
_NARROW = {
    code: code - 0xFEE0
    for code in range(0xFF01, 0xFF5F)
    if chr(code - 0xFEE0).isalnum() or chr(code - 0xFEE0) in SIGNS
}


def split_tokens(caption: str) -> tuple[CaptionToken, ...]:
    """Split a caption into units that are pronounced together.

    >>> [(t.text, t.kind) for t in split_tokens("你peach1！")]
    [('你', 'han'), ('peach', 'latin'), ('1', 'digit'), ('！', 'other')]
    """
    return tuple(
        CaptionToken(m.group(), m.start(), m.end(), _classify(m.group()))
        for m in _TOKEN.finditer(caption)
    )


def _classify(text: str) -> TokenKind:
    if text.isascii() and text.isalpha():
        return "latin"
    if text.isascii() and text.isdigit():
        return "digit"
    return "han" if list_sounds(text) else "other"


@lru_cache(maxsize=8192)
def simplify(character: str) -> str:
    """Convert a traditional character to simplified, if the converter is installed.

    >>> simplify("马")
    '马'
    """
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        convert = find_converter("t2s")
        if convert is not None:
            simple = convert(character)
            return simple if len(simple) == 1 else character
    return character


def write_scripts(
    caption: str, alternatives: Alternatives = NO_ALTERNATIVES
) -> Iterator[SpokenCaption]:
    """Yield the syllables of a caption as written, then with each contracted syllable expanded.

    ``alternatives`` are characters that OCR considered, by offset into the caption.
    """
    tokens = split_tokens(caption)
    plain = "".join(simplify(t.text) if t.kind == "han" else "，" * len(t.text) for t in tokens)
    context = read_in_context(plain)
    numbers = _find_numbers(caption)
    slots = [
        [SyllableSlot(i, "", {}, None)]
        if token.start in numbers
        else _slots(i, token, plain, context[token.start], alternatives.get(token.start, {}))
        for i, token in enumerate(tokens)
    ]
    yield SpokenCaption(tokens, tuple(slot for group in slots for slot in group))
    spread = [i for i, group in enumerate(slots) if _fused(group)]
    for i in spread[:2]:
        parts = FUSED[_fused(slots[i])].split()
        full = [SyllableSlot(i, "", _any_tone(frozenset((part,))), None) for part in parts]
        groups = [*slots[:i], full, *slots[i + 1 :]]
        yield SpokenCaption(tokens, tuple(slot for group in groups for slot in group))


_NUMBER = re.compile(r"(第?)\d+((?:[.:：/-]\d+)*)(\s?[%°℃]|\s?[\u4e00-\u9fff])?")


def _find_numbers(caption: str) -> frozenset[int]:
    """Find the positions of digits in plain numbers: times, dates and counted amounts.

    >>> [sorted(_find_numbers(text)) for text in ("早上8点，520", "12:30见", "6啊")]
    [[2], [0, 1, 3, 4], []]
    """
    return frozenset(
        place
        for found in _NUMBER.finditer(caption)
        if found[1] or found[2] or (found[3] and _counts(found[3].strip()))
        for place in range(found.start(), found.start(3) if found[3] else found.end())
        if caption[place].isdigit()
    )


def _counts(unit: str) -> bool:
    return not unit.isalpha() or is_measure(unit)


def _fused(group: list[SyllableSlot]) -> str:
    main = group[0].main if len(group) == 1 else None
    return main.syllable if main and main.syllable in FUSED else ""


def _any_tone(syllables: frozenset[str]) -> dict[SyllableSound, float]:
    return {SyllableSound(s, tone): 0.0 for s in sorted(syllables) for tone in _ANY_TONE}


def _slots(
    number: int,
    token: CaptionToken,
    plain: str,
    context: SyllableSound | None,
    alternatives: Mapping[str, float],
) -> list[SyllableSlot]:
    if token.kind == "han":
        character = plain[token.start]
        sounds = {} if context is None else {context: 0.0}
        for sound in list_sounds(character):
            sounds.setdefault(sound, _OTHER_READING)
        main = context or next(iter(sounds), None)
        others = rate_alternatives(character, alternatives)
        for other, cost in others.items():
            for sound in list_sounds(other):
                sounds.setdefault(sound, cost)
        return [SyllableSlot(number, character, sounds, main, others)]
    spoken: tuple[frozenset[str], ...] = ()
    if token.kind == "latin" and len(token.text) <= _MAX_LATIN:
        spoken = _speak_latin(token.text)
    elif token.kind != "latin":
        spoken = speak_sign(token.text)
    if not spoken:
        return [SyllableSlot(number, "", {}, None)]
    return [SyllableSlot(number, "", _any_tone(s), SyllableSound(min(s), 5)) for s in spoken]


def rate_alternatives(character: str, alternatives: Mapping[str, float]) -> dict[str, float]:
    """Return the costs of alternative characters, simplified, in units of phonetic distance.

    >>> rate_alternatives("元", {"无": 0.1, "元": 0.5})
    {'无': 0.5}
    """
    found = {}
    for other, score in alternatives.items():
        simple = simplify(other)
        if simple != character and score > 0:
            found[simple] = round(max(0.0, -OCR_COST * math.log10(score)), 4)
    return found


def _speak_latin(text: str) -> tuple[frozenset[str], ...]:
    word = text.lower()
    if len(word) > 1:
        phonemes = find_phonemes(word)
        english = speak_phonemes(phonemes, KNOWN_SYLLABLES) if phonemes else ()
        if word in KNOWN_SYLLABLES:
            return (frozenset((word,)) | (english[0] if len(english) == 1 else frozenset()),)
        if english:
            return english
        syllables = _cut_pinyin(word)
        if syllables:
            return tuple(frozenset((syllable,)) for syllable in syllables)
    return speak_letters(word) if len(word) <= 4 else ()


@lru_cache(maxsize=4096)
def _cut_pinyin(word: str) -> tuple[str, ...]:
    """Split letters into the fewest pinyin syllables of at least two letters; else empty.

    >>> _cut_pinyin("nihao"), _cut_pinyin("yyds")
    (('ni', 'hao'), ())
    """
    best: list[tuple[str, ...] | None] = [(), *([None] * len(word))]
    for end in range(2, len(word) + 1):
        for start in range(max(0, end - 6), end - 1):
            before, part = best[start], word[start:end]
            if before is not None and part in KNOWN_SYLLABLES:
                here = best[end]
                if here is None or len(here) > len(before) + 1:
                    best[end] = (*before, part)
    return best[-1] or ()
