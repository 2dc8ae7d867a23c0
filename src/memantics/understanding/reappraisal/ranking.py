"""Which captions are best, whoever wrote them: kinder, fluent, near the old ones, still a joke."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from memantics.core.errors import MissingExtra
from memantics.core.records import Closed
from memantics.metrics.rounding import settle
from memantics.understanding.phonetics.caption import write_scripts
from memantics.understanding.phonetics.english import load_vocabulary
from memantics.understanding.phonetics.homophones import load_lattice, read_homophones
from memantics.understanding.phonetics.pinyin import read_in_context
from memantics.understanding.phonetics.reading import Settings
from memantics.understanding.reappraisal.kindness import FeelingMeter, LexiconMeter, feel
from memantics.understanding.reappraisal.rules import list_words
from memantics.understanding.reappraisal.situation import (
    UnderstoodLine,
    find_reading,
    lexicon_of,
    understand,
)
from memantics.understanding.vision.regions import has_chinese

LEAST = 0.05  # of the meter's scale: a smaller change of feeling is none
_FLUENT, _CLOSE, _JOKE = 0.3, 0.9, 0.5
# log10 of a Chinese character or an English word: what captions have; idioms are far more usual.
_USUAL = {True: -4.2, False: -2.4}
_STRANGE = -1.3  # below that or the old text: so much less usual, and it makes no sense
_TOP_READINGS = 2  # readings of our ear among which what a pun means must be
_FAMILIAR = -5.6  # log10 of a character: rarer puns are not heard by people either


class RankedCaptions(Closed):
    """New captions of a meme, and what speaks for them.

    ``kindness`` is how much kinder they sound than the old ones (-1 to 1), ``fluency`` how usual
    their words are in this order beside the old ones or what is usual (log10 for each character or
    English word),
    ``closeness`` how near they are in words, sound and length, ``joke`` the share of things in the
    picture that are still heard as something else (both 0 to 1). ``declined`` says why nobody
    should be shown them; empty where they are good enough.
    """

    captions: tuple[str, ...]
    intended: tuple[str, ...]
    kindness: float
    fluency: float
    closeness: float
    joke: float
    declined: str = ""

    @property
    def score(self) -> float:
        """One number to order captions by."""
        return (
            self.kindness
            + _FLUENT * max(-3.0, min(0.0, self.fluency))
            + _CLOSE * self.closeness
            + _JOKE * self.joke
        )


def rank_captions(
    old: Sequence[str], candidates: Iterable[Sequence[str]], meter: FeelingMeter | None = None
) -> list[RankedCaptions]:
    """Captions that may stand for the old ones, the best first; those declined come last.

    Whoever wrote them, a model, a person or our own planner, is asked nothing: they are weighed as
    they will be printed and heard.
    """
    lines, meter = understand(old).lines, meter or LexiconMeter()
    ranked = []
    for new in dict.fromkeys(map(tuple, candidates)):
        intended = (UnderstoodLine(text, find_reading(text)).intended for text in new)
        ranked.append(weigh(lines, new, tuple(intended), meter))
    return sorted(ranked, key=lambda each: (bool(each.declined), -settle(each.score)))


def weigh(
    lines: Sequence[UnderstoodLine],
    new: tuple[str, ...],
    intended: tuple[str, ...],
    meter: FeelingMeter,
) -> RankedCaptions:
    """What speaks for captions that are meant to be heard as ``intended``."""
    before, after = " ".join(line.intended for line in lines), " ".join(intended)
    words = list_words(lexicon_of(before).drop(before))
    kept = len(words & list_words(" ".join((after, *new)))) / len(words) if words else 1.0
    old = [line.printed for line in lines]
    near = [compare_sound(*pair) for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
    things = [thing for line in lines for thing, _ in line.things]
    kindness = max(-1.0, min(1.0, meter.measure(after) - meter.measure(before)))
    chinese = has_chinese(after)
    was, now = rate_fluency(before), rate_fluency(after)
    fluency = 0.0 if was is None or now is None else now - min(was, _USUAL[chinese])
    declined = ""
    if kindness < LEAST:
        declined = "they sound no kinder"
    elif feel(after).rude:
        declined = "an unkind word stays"
    elif fluency < _STRANGE:
        declined = "they read like no sentence"
    return RankedCaptions(
        captions=new,
        intended=intended,
        kindness=kindness,
        fluency=fluency,
        closeness=(2 * kept + min(near, default=1.0)) / 3,
        joke=sum(thing in "".join(new) for thing in things) / len(things) if things else 1.0,
        declined=declined,
    )


def reads_as_intended(printed: str, intended: str) -> bool:
    """Whether readers hear in a pun what it means; a text that says what it means is heard.

    >>> reads_as_intended("so am i", "so am i")
    True
    """
    if printed == intended or not has_chinese(printed):
        return True
    found = read_homophones(printed, settings=Settings(limit=_TOP_READINGS))
    return (rate_fluency(intended) or 0.0) >= _FAMILIAR and intended in (
        each.text for each in found.readings
    )


@lru_cache(maxsize=4096)
def rate_fluency(text: str) -> float | None:
    """How usual words are in their order: log10 for each character, or English word.

    None where the extra that knows the language is not installed.
    """
    try:
        if has_chinese(text):
            script = next(iter(write_scripts(text)))
            return load_lattice("auto", None).read_plainly(script).common / max(1, len(text))
        words = re.findall(r"[a-z']+", text.casefold().replace("’", "'"))
        weigh_word = load_vocabulary().weigh
        sums = sum(weigh_word(words[max(0, i - 2) : i + 1]) for i in range(len(words)))
        return sums / max(1, len(words))
    except MissingExtra:
        return None


def compare_sound(old: str, new: str) -> float:
    """How near a text is to another in sound and length, from 0 to 1.

    >>> compare_sound("so am i", "so am i"), compare_sound("so am i", "")
    (1.0, 0.0)
    """
    one, other = (
        [sound and sound.syllable for sound in read_in_context(text)]
        if has_chinese(old)
        else list(text.casefold())
        for text in (old, new)
    )
    length = math.exp(-abs(math.log(len(new) / len(old)))) if old and new else 0.0
    return (SequenceMatcher(None, one, other, autojunk=False).ratio() + length) / 2
