"""Which rewriting is best: the feeling changes, the situation and the pun stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memantics.reappraise.candidates import Candidate, Way
from memantics.reappraise.rules import list_words
from memantics.reappraise.sentiment import FeelingMeter, feel
from memantics.reappraise.understanding import UnderstoodLine, lexicon_of

_PRIOR: dict[Way, float] = {"turn": 0.5, "sound": 0.0, "clause": 0.1, "line": -0.1}
_KEPT, _PUN, _LENGTH, _LEFT = 0.6, 0.5, 0.3, 0.5
LEAST = 0.05  # of the meter's scale: a smaller change of feeling is none


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
