"""Which rewriting is best: the feeling changes, the situation and the pun stay."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from memantics.core.closed import Closed
from memantics.core.errors import MissingExtra
from memantics.metrics.rounding import settle
from memantics.phonetics.caption import write_scripts
from memantics.phonetics.english import load_vocabulary
from memantics.phonetics.sound import read_in_context
from memantics.phonetics.speech import load_lattice
from memantics.reappraise.candidates import Candidate, Way
from memantics.reappraise.rules import list_words
from memantics.reappraise.sentiment import FeelingMeter, LexiconMeter, feel
from memantics.reappraise.understanding import (
    UnderstoodLine,
    find_reading,
    lexicon_of,
    understand,
)
from memantics.vision.captions import has_chinese

_PRIOR: dict[Way, float] = {"turn": 0.5, "sound": 0.0, "clause": 0.1, "line": -0.1}
_KEPT, _PUN, _LENGTH, _LEFT = 0.6, 0.5, 0.3, 0.5
LEAST = 0.05  # of the meter's scale: a smaller change of feeling is none
_FLUENT, _CLOSE, _JOKE = 0.3, 0.6, 0.5
_STRANGE = -1.6  # powers of ten a character or word: so much less usual, and it makes no sense


@dataclass(frozen=True, slots=True)
class Merit:
    """Why a candidate is good.

    ``gain`` is how much kinder it sounds, ``kept`` the share of the words of the situation that
    stayed, ``pun`` the share of things that are still heard as something else, ``length`` how near
    the new captions are to the old length, ``left`` how many unkind words are still there.
    """

    gain: float
    kept: float
    pun: float
    length: float
    left: int
    prior: float = 0.0

    @property
    def score(self) -> float:
        """One number to order candidates by."""
        return (
            self.gain
            + _KEPT * self.kept
            + _PUN * self.pun
            + _LENGTH * self.length
            - _LEFT * self.left
            + self.prior
        )


def rate(candidate: Candidate, lines: Sequence[UnderstoodLine], meter: FeelingMeter) -> Merit:
    """The merit of a candidate for some captions."""
    old, new = [line.printed for line in lines], candidate.texts([line.printed for line in lines])
    before, after = " ".join(line.meant for line in lines), " ".join(candidate.meant(lines))
    words = list_words(lexicon_of(before).drop(before))
    kept = len(words & list_words(" ".join((after, *new)))) / len(words) if words else 1.0
    things = [written for line in lines for written, _ in line.things]
    shown = "".join(new)
    mood = feel(after)
    ways = [rewriting for rewriting in candidate.rewritings if rewriting is not None]
    ratios = [len(b) / max(1, len(a)) for a, b in zip(old, new, strict=True) if a != b]
    return Merit(
        gain=max(-1.0, min(1.0, meter.measure(after) - meter.measure(before))),
        kept=kept,
        pun=sum(thing in shown for thing in things) / len(things) if things else 1.0,
        length=min((math.exp(-abs(math.log(ratio))) for ratio in ratios), default=1.0),
        left=len(mood.rude) + len(mood.gloomy),
        prior=sum(_PRIOR[rewriting.way] for rewriting in ways) / max(1, len(ways)),
    )


class RankedCaptions(Closed):
    """New captions of a meme, and what speaks for them.

    ``kindness`` is how much kinder they sound than the old ones (-1 to 1), ``fluency`` how usual
    their words are in this order beside the old ones (log10 for each character or English word),
    ``closeness`` how near they are in sound and length, ``joke`` the chance that a pun is heard in
    them (both 0 to 1). ``declined`` says why nobody should be shown them; empty where they are
    good enough.
    """

    captions: tuple[str, ...]
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
            + _FLUENT * min(0.0, self.fluency)
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
    ranked = [_weigh(lines, tuple(new), meter) for new in dict.fromkeys(map(tuple, candidates))]
    return sorted(ranked, key=lambda each: (bool(each.declined), -settle(each.score)))


def _weigh(
    lines: Sequence[UnderstoodLine], new: tuple[str, ...], meter: FeelingMeter
) -> RankedCaptions:
    old, before = [line.printed for line in lines], " ".join(line.meant for line in lines)
    heard = [UnderstoodLine(text, find_reading(text)) for text in new]
    after = " ".join(line.meant for line in heard)
    pairs = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
    things = [thing for line in lines for thing, _ in line.things]
    kindness = max(-1.0, min(1.0, meter.measure(after) - meter.measure(before)))
    fluency = rate_fluency(after) - rate_fluency(before)
    declined = "they sound no kinder" if kindness < LEAST else ""
    return RankedCaptions(
        captions=new,
        kindness=kindness,
        fluency=fluency,
        closeness=min((rate_closeness(*pair) for pair in pairs), default=1.0),
        joke=sum(thing in "".join(new) for thing in things) / len(things) if things else 1.0,
        declined=declined or ("they read like no sentence" if fluency < _STRANGE else ""),
    )


@lru_cache(maxsize=4096)
def rate_fluency(text: str) -> float:
    """How usual words are in their order: log10 for each character, or English word.

    >>> rate_fluency("see you tomorrow") > rate_fluency("tomorrow you purple")
    True
    """
    try:
        if has_chinese(text):
            script = next(iter(write_scripts(text)))
            return load_lattice("auto", None).read_plainly(script).common / max(1, len(text))
        words = re.findall(r"[a-z']+", text.casefold().replace("’", "'"))
        weigh = load_vocabulary().weigh
        return sum(weigh(words[max(0, i - 2) : i + 1]) for i in range(len(words))) / max(
            1, len(words)
        )
    except MissingExtra:
        return 0.0


def rate_closeness(old: str, new: str) -> float:
    """How near a text is to another in sound and length, from 0 to 1.

    >>> rate_closeness("so am i", "so am i"), rate_closeness("so am i", "")
    (1.0, 0.0)
    """
    if has_chinese(old):
        one, other = ([s and s.syllable for s in read_in_context(text)] for text in (old, new))
        return SequenceMatcher(None, one, other, autojunk=False).ratio()
    return SequenceMatcher(None, old.casefold(), new.casefold(), autojunk=False).ratio()
