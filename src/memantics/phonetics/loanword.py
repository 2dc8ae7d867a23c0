"""English in a Chinese mouth: letters by name, words as Mandarin syllables, and loans as heard."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path

LETTERS = {
    "a": "ei",
    "b": "bi",
    "c": "xi",
    "d": "di",
    "e": "yi",
    "f": "ai fu",
    "g": "ji",
    "h": "ei chi",
    "i": "ai",
    "j": "zhei",
    "k": "kai",
    "l": "ai le",
    "m": "ai mu",
    "n": "en",
    "o": "ou",
    "p": "pi",
    "q": "kou",
    "r": "a",
    "s": "ai si",
    "t": "ti",
    "u": "you",
    "v": "wei",
    "w": "da bu liu",
    "x": "ai ke si",
    "y": "wai",
    "z": "zei",
}
DIGITS = {
    "0": "ling",
    "1": "yi|yao",
    "2": "er",
    "3": "san",
    "4": "si",
    "5": "wu",
    "6": "liu",
    "7": "qi",
    "8": "ba",
    "9": "jiu",
}
# Words of English that Chinese chats use, so that a caption may be heard as one of them.
LOANS = (
    *("ok", "nice", "sorry", "thank you", "bye bye", "baby", "no", "yes", "good", "cool", "happy"),
    *("hello", "hi", "love", "money", "honey", "show", "fans", "high", "fine", "wow", "today"),
    *("lucky", "super", "like", "birthday", "party", "please", "welcome", "why", "fighting", "man"),
    *(
        "boy",
        "girl",
        "my god",
        "good night",
        "good morning",
        "come on",
        "so easy",
        "perfect",
        "top",
    ),
)

# How a single consonant is said when no vowel follows, and the initials for one that has a vowel.
_ALONE = {
    "B": "bu",
    "P": "pu",
    "M": "mu",
    "F": "fu",
    "V": "wu fu",
    "D": "de",
    "T": "te",
    "L": "er ou",
    "G": "ge",
    "K": "ke",
    "HH": "he",
    "JH": "ji zhi",
    "CH": "qi chi",
    "SH": "xi shi",
    "R": "er",
    "Z": "zi",
    "S": "si",
    "TH": "si",
    "DH": "de",
    "W": "wu",
    "Y": "yi",
    "ZH": "ri",
    "N": "en",
    "NG": "eng",
}
_ONSETS = {
    "B": "b",
    "P": "p",
    "M": "m",
    "F": "f",
    "V": "w f",
    "D": "d",
    "T": "t",
    "N": "n",
    "L": "l",
    "G": "g",
    "K": "k",
    "HH": "h",
    "JH": "j zh",
    "CH": "ch q",
    "SH": "sh x",
    "R": "r l",
    "Z": "z",
    "S": "s x",
    "TH": "s",
    "DH": "d z",
    "W": "w",
    "Y": "y",
    "ZH": "r",
}
_VOWELS = {
    "IY": "i",
    "IH": "i",
    "EY": "ei",
    "EH": "ai e ei",
    "AE": "ai a an",
    "AA": "a",
    "AO": "ao o uo",
    "OW": "ou uo",
    "UH": "u",
    "UW": "u ou",
    "AH": "a e",
    "ER": "er e",
    "AY": "ai ei",
    "AW": "ao",
    "OY": "uo",
}
_CODAS = {"N": "n", "NG": "ng", "M": "n"}


def speak_letters(text: str) -> tuple[frozenset[str], ...]:
    """Letters by their names, one set of possible syllables per syllable.

    >>> [sorted(s) for s in speak_letters("OK")]
    [['ou'], ['kai']]
    """
    names = (LETTERS.get(letter, "") for letter in text.lower())
    return tuple(frozenset((part,)) for name in names for part in name.split())


def speak_digit(digit: str) -> frozenset[str]:
    """A digit as it is said.

    >>> sorted(speak_digit("1")), speak_digit("x")
    (['yao', 'yi'], frozenset())
    """
    return frozenset(DIGITS[digit].split("|")) if digit in DIGITS else frozenset()


def speak_phonemes(phonemes: Iterable[str], valid: frozenset[str]) -> tuple[frozenset[str], ...]:
    """An English word, given in ARPABET, as Mandarin would say it.

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
    """How an English word is said, in ARPABET; nothing where it is unknown.

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
    """The pronunciation dictionary as it is on disk, a line per word; empty without the package.

    A search in three megabytes takes less than a millisecond and saves the memory of an index.
    """
    try:
        sphinx = import_module("pocketsphinx")
    except ImportError:
        return b""
    return b"\n" + Path(sphinx.get_model_path("en-us/cmudict-en-us.dict")).read_bytes() + b"\n"
