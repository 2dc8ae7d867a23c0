"""The stress test: does hiding words behind their sound get harmful captions past a judge?

PunMemeCN reports that models find fewer harmful memes where the harm is in a pun. Its harmful
subsets are not released, so the test makes its own pairs: harmful captions as they are, and the
same captions with words swapped for others that sound alike. A judge is any function from text
to a verdict; with readings it also hears what the caption says aloud.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memantics.core.errors import InputError
from memantics.phonetics.caption import clean_text, write_scripts
from memantics.phonetics.lexicon import Costs
from memantics.phonetics.reading import Settings
from memantics.phonetics.senses import rate_drawable
from memantics.phonetics.speech import load_lattice, read_aloud

Judge = Callable[[str], bool]
_ALIKE = Costs(change=0.0, tone=0.5, sound=3.0, common=0.3)
_OPTIONS = 40


@dataclass(frozen=True, slots=True)
class StressScores:
    """Recall of a judge on harmful captions: plain, disguised, and disguised but read aloud.

    ``alarms_plain`` and ``alarms_read`` are the shares of harmless captions called harmful
    without and with readings: what hearing more costs.
    """

    recall_plain: float
    recall_disguised: float
    recall_read: float
    alarms_plain: float
    alarms_read: float
    count: int

    @property
    def drop(self) -> float:
        """What the disguise takes away."""
        return self.recall_plain - self.recall_disguised

    @property
    def drop_with_readings(self) -> float:
        """What is still lost when the caption is read aloud."""
        return self.recall_plain - self.recall_read


def disguise(
    caption: str, targets: Sequence[str], *, seed: int = 0, settings: Settings | None = None
) -> str:
    """Write the target words with other characters that sound the same, drawable ones first.

    >>> disguise("你真笨", ["笨"], settings=Settings(model="dictionary")) != "你真笨"
    True
    """
    chosen = settings or Settings()
    lattice = load_lattice(chosen.model, chosen.model_file)
    text = clean_text(caption)[: chosen.max_characters]
    script = next(write_scripts(text))
    heard = lattice.hear(script)
    pick = random.Random(f"{seed}:{caption}")
    letters = list(text)
    spots = [
        start + offset
        for target in targets
        if target and (start := text.find(target)) >= 0
        for offset in range(len(target))
    ]
    for number, slot in enumerate(script.slots):
        place, said = script.tokens[slot.token].start, heard[number]
        if place not in spots or said is None or not slot.simple:
            continue
        found = lattice.lexicon.find([said], _ALIKE, 0.4, _OPTIONS)
        options = sorted({m.word for m in found[0] if m.cost < 0.6} - {slot.simple, text[place]})
        drawable = [word for word in options if rate_drawable(word)] or options
        if drawable:
            letters[place] = pick.choice(drawable)
    return "".join(letters)


def judge_aloud(judge: Judge, settings: Settings | None = None) -> Judge:
    """A judge that also hears the reading that is probably meant."""
    chosen = settings or Settings()

    def verdict(caption: str) -> bool:
        if judge(caption):
            return True
        meant = read_aloud(caption, settings=chosen).meant
        return meant is not None and judge(meant.text)

    return verdict


def stress(
    judge: Judge,
    harmful: Sequence[tuple[str, str]],
    harmless: Sequence[str],
    settings: Settings | None = None,
) -> StressScores:
    """Recall on (plain, disguised) pairs of harmful captions, with and without readings."""
    if not harmful:
        raise InputError("the stress test needs harmful captions", hint="give at least one pair")
    aloud = judge_aloud(judge, settings)

    def share(verdict: Judge, captions: Sequence[str]) -> float:
        return sum(map(verdict, captions)) / len(captions) if captions else 0.0

    hidden = [disguised for _, disguised in harmful]
    return StressScores(
        recall_plain=share(judge, [plain for plain, _ in harmful]),
        recall_disguised=share(judge, hidden),
        recall_read=share(aloud, hidden),
        alarms_plain=share(judge, harmless),
        alarms_read=share(aloud, harmless),
        count=len(harmful),
    )
