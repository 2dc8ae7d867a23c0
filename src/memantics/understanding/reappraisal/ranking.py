"""Rank new captions by kindness, fluency, closeness to the old ones, and whether a pun is kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from memantics.core.records import Closed
from memantics.metrics.rounding import settle
from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.pinyin import read_in_context
from memantics.understanding.phonetics.reading import Settings
from memantics.understanding.reappraisal.kindness import FeelingMeter, LexiconMeter, feel
from memantics.understanding.reappraisal.rules import list_words
from memantics.understanding.reappraisal.sentences import rate_fluency
from memantics.understanding.reappraisal.situation import (
    UnderstoodLine,
    find_reading,
    lexicon_of,
    understand,
)
from memantics.understanding.vision.regions import has_chinese

LEAST = 0.05  # minimum gain in kindness, on a scale from -1 to 1
_FLUENT, _CLOSE, _JOKE = 0.3, 0.9, 0.5
# Typical log10 probability per Chinese character or English word in captions; idioms are more
# probable.
_USUAL = {True: -4.2, False: -2.4}
_STRANGE = -1.3  # maximum loss of log10 probability of new captions; a larger loss means nonsense
_TOP_READINGS = 2  # the intended reading of a pun must be among this number of best readings
_FAMILIAR = -5.6  # minimum log10 probability per character; readers do not recognise rarer puns


class RankedCaptions(Closed):
    """New captions of a meme and their scores.

    ``kindness`` is the gain over the old captions (-1 to 1). ``fluency`` is the log10 probability
    per character or English word, relative to the old captions or to usual ones. ``closeness``
    compares words, pronunciation and length, and ``joke`` is the proportion of visible things that
    are still homophones (both 0 to 1). ``declined`` is the reason to reject the captions; it is
    empty if they are good enough.
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
        """The overall score that ranks captions."""
        return (
            self.kindness
            + _FLUENT * max(-3.0, min(0.0, self.fluency))
            + _CLOSE * self.closeness
            + _JOKE * self.joke
        )


def rank_captions(
    old: Sequence[str], candidates: Iterable[Sequence[str]], meter: FeelingMeter | None = None
) -> list[RankedCaptions]:
    """Rank replacement captions, best first; declined ones come last.

    Captions of a model, a person or the planner are scored alike, by text and intended reading.
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
    """Score new captions, given their intended homophone readings ``intended``."""
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
        declined = "the captions are not kinder"
    elif feel(after).rude:
        declined = "an unkind word remains"
    elif fluency < _STRANGE:
        declined = "the captions are not fluent"
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
    """Tell whether readers recognise the intended reading of a pun; plain text always passes.

    >>> reads_as_intended("so am i", "so am i")
    True
    """
    if printed == intended or not has_chinese(printed):
        return True
    found = read_homophones(printed, settings=Settings(limit=_TOP_READINGS))
    return (rate_fluency(intended) or 0.0) >= _FAMILIAR and intended in (
        each.text for each in found.readings
    )


def compare_sound(old: str, new: str) -> float:
    """Compare two texts by pronunciation and length, from 0 to 1.

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
