"""The embedded planner: an offline planner with homophone readings and a lexicon of rewordings.

It finds the cause of the negative emotion, writes several new captions that reframe this cause, and
takes the best one that follows the rules. It does not understand images, so it is a baseline. It
declines memes that it cannot rewrite.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap

import numpy as np

from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.core.labels import Judge
from memantics.core.model import Taken
from memantics.core.samples import Polarity, VisualType
from memantics.core.text import clean_line
from memantics.metrics.rounding import settle
from memantics.understanding.reappraisal.candidates import Candidate, Way, list_candidates
from memantics.understanding.reappraisal.kindness import FeelingMeter, LexiconMeter, feel
from memantics.understanding.reappraisal.lexicon import read_lexicon
from memantics.understanding.reappraisal.messages import say
from memantics.understanding.reappraisal.negative import estimate_negative
from memantics.understanding.reappraisal.ranking import RankedCaptions, reads_as_intended, weigh
from memantics.understanding.reappraisal.records import (
    EMOTIONS,
    PAIRS,
    MemeFeeling,
    ReappraisalPlan,
    SourceEmotion,
    TargetEmotion,
)
from memantics.understanding.reappraisal.rules import find_faults, list_words
from memantics.understanding.reappraisal.situation import Understanding, understand
from memantics.understanding.reappraisal.stages import ReappraisalSubject
from memantics.understanding.vision.page import LetteredCaption, MemeStructure
from memantics.understanding.vision.typesetting import fit_text

EMBEDDED = "embedded/planner"
NO_MODEL = "none"
_OFFERED = 12  # maximum number of plans per meme; only the first ones are drawn
_GLAD = 0.3  # minimum valence of positive captions
_LOOKS: dict[TargetEmotion, str] = {
    "happy": "Brighter, warmer light and richer colours; mouths and eyes smile.",
    "calm": "Softer contrast and quieter colours; faces and shoulders loosen.",
    "relaxed": "Gentle warm light and soft contrast; bodies lean back, eyes are at ease.",
    "excited": "Vivid colours and clear light; eyes wide open, an eager smile.",
}
# Prior score of each way to rewrite.
_PRIOR: dict[Way, float] = {"turn": 0.5, "sound": 0.3, "clause": 0.1, "line": -0.1}
_KEEP = "Panels, persons, things, the places of captions and the situation stay as they are."


UNTOLD = "unknown: no word in the lexicon expresses an emotion, and no emotion classifier is in use"


@dataclass(frozen=True, slots=True)
class EmbeddedPlanner:
    """Determine the emotion and the plan of a meme offline and deterministically.

    It declines memes that are not negative (unless an emotion is given) and memes that no rewriting
    makes kinder. ``meter`` scores kindness. ``judge`` is an emotion
    classifier; it takes precedence over the lexicon.
    """

    meter: FeelingMeter = field(default_factory=LexiconMeter)
    judge: Judge | None = None

    @property
    def name(self) -> str:
        """The name of the planner and of its classifier."""
        return (
            EMBEDDED
            if self.judge is None
            else f"{EMBEDDED} with {self.judge.name}@{self.judge.version}"
        )

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Determine the emotion (stage one) from words, homophone readings and image colours."""
        found = await asyncio.to_thread(understand, _list_texts(subject.page))
        step = f"{subject.id}/feeling"
        reason = _find_objection(subject, found)
        if reason:
            return Taken(step, "answered", None, reason, model=EMBEDDED)
        page = subject.page
        flat, light, warm = await asyncio.to_thread(_look, subject)
        drawn: VisualType = "Template_StylizedMeme" if len(page.panels) > 1 else "Cartoon_Anime"
        emotion, source = self._feel(subject, found)
        feeling = MemeFeeling(
            emotion=emotion,
            description=_describe(page, found, flat, (light, warm)),
            visual_type=drawn if flat > 0.5 else "Object_Animal_Dominant",
            polarity=_judge_polarity(found),
            source=source,
        )
        return Taken(step, "answered", feeling, model=EMBEDDED)

    def _feel(self, subject: ReappraisalSubject, found: Understanding) -> tuple[SourceEmotion, str]:
        """Return the emotion and its source: given, classifier, lexicon, or assumed."""
        if subject.emotion is not None:
            return subject.emotion, "given"
        if self.judge is not None:
            said = self.judge.ask(" ".join(_list_texts(subject.page)), subject.page.language)
            known = next((emotion for emotion in EMOTIONS if emotion == said.label), None)
            if known is not None:
                return known, said.source
        emotion = choose_emotion(found)
        if found.cause is not None:
            return emotion, "the word lexicon, a baseline"
        return emotion, f"{UNTOLD}; {emotion} is assumed"

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Make the plan (stage two): choose the best rewriting that follows the rules."""
        step = f"{subject.id}/plan"
        made, reason = await asyncio.to_thread(
            choose_plan, subject.page, feeling.emotion, self.meter
        )
        return Taken(step, "answered", made, reason, model=EMBEDDED)


@dataclass(frozen=True, slots=True)
class NoPlanner:
    """Decline every meme: fewer than 80 % of the embedded planner's results are worth sharing."""

    name: str = NO_MODEL

    async def feel(self, subject: ReappraisalSubject) -> Taken[MemeFeeling]:
        """Decline the meme with the reason."""
        return Taken(f"{subject.id}/feeling", "answered", None, say("needs_model"), model=self.name)

    async def plan(
        self, subject: ReappraisalSubject, feeling: MemeFeeling
    ) -> Taken[ReappraisalPlan]:
        """Decline the meme; a stored emotion does not need the first stage."""
        del feeling
        return Taken(f"{subject.id}/plan", "answered", None, say("needs_model"), model=self.name)


def _find_objection(subject: ReappraisalSubject, found: Understanding) -> str:
    """Return the reason why a meme is not rewritten; empty if it may be."""
    if subject.emotion is not None:
        return ""
    if not subject.page.captions:
        return say("no_caption")
    if found.negative:
        return ""
    # The word lists found nothing, so the classifier decides.
    found_negative = estimate_negative(_list_texts(subject.page), listed=False).negative
    return "" if found_negative else say("not_negative")


def choose_emotion(found: Understanding) -> SourceEmotion:
    """Return the emotion of the strongest cause; without a cause, sad if gloomy, else angry.

    >>> choose_emotion(understand(["panic before the exam"]))
    'tense'
    """
    if found.cause is not None:
        return found.cause.emotion
    mood = feel(" ".join(line.intended for line in found.lines))
    return "angry" if mood.rude and not mood.gloomy else "sad"


def choose_plan(
    page: MemeStructure, emotion: SourceEmotion, meter: FeelingMeter
) -> tuple[ReappraisalPlan | None, str]:
    """Choose the best plan with its alternatives, or return None and the reason."""
    found = understand(_list_texts(page))
    target = PAIRS[emotion]
    if not page.captions:
        return _make_plan(
            page, target, (), "only light and colours change: the meme has no caption"
        ), ""
    faults: list[str] = []
    plans: dict[str, ReappraisalPlan] = {}
    for candidate, ranked in rank_candidates(found, target, meter):
        texts = ranked.captions
        if not all(starmap(_fits, zip(page.captions, texts, strict=True))):
            faults = faults or [say("too_long")]
            continue
        plan = _make_plan(page, target, texts, tell_why(candidate))
        faults = find_faults(plan, emotion, page)
        if not faults:
            score = round(ranked.score, 4)
            plans.setdefault(str(texts), plan.model_copy(update={"score": score}))
        if len(plans) == _OFFERED:
            break
    if plans:
        first, *others = plans.values()
        return first.model_copy(update={"others": [other.offer() for other in others]}), ""
    if faults:
        return None, say("breaks_rules", faults="; ".join(faults))
    return None, say("nothing_kinder")


def rank_candidates(
    found: Understanding, target: TargetEmotion, meter: FeelingMeter
) -> Iterator[tuple[Candidate, RankedCaptions]]:
    """Rank all rewritings of a meme that are good enough, best first."""
    rated = []
    old = [line.printed for line in found.lines]
    for made in dict.fromkeys(list_candidates(found, target)):
        new, intended = tuple(made.texts(old)), tuple(made.intended(found.lines))
        ranked = weigh(found.lines, new, intended, meter)
        ways = [_PRIOR[rewriting.way] for rewriting in made.rewritings if rewriting is not None]
        if not ranked.declined:
            rated.append((settle(ranked.score + sum(ways) / len(ways)), made, ranked))
    for _, made, ranked in sorted(rated, key=lambda each: -each[0]):
        if all(starmap(reads_as_intended, zip(ranked.captions, ranked.intended, strict=True))):
            yield made, ranked


def tell_why(candidate: Candidate) -> str:
    """Describe in one sentence how the new captions reframe the meme."""
    first = next(rewriting for rewriting in candidate.rewritings if rewriting is not None)
    names = [
        cause for rewriting in candidate.rewritings if rewriting and (cause := rewriting.cause)
    ]
    causes = {**read_lexicon("en").causes, **read_lexicon("zh").causes}
    moves = [causes[name].move for name in dict.fromkeys(names)]
    if not moves:
        pun = "the new pun on the same thing is kind"
        moves = [pun if first.way == "sound" else "the sentence continues with a kinder ending"]
    differs = first.intended.casefold() != first.printed.casefold()
    reading = f"; its intended reading is {first.intended!r}" if differs else ""
    return f"{'; '.join(moves)}{reading}"


def _make_plan(
    page: MemeStructure, target: TargetEmotion, new: Sequence[str], why: str
) -> ReappraisalPlan:
    old = _list_texts(page)
    kept = sorted(list_words(" ".join(old)) & list_words(" ".join(new)))
    return ReappraisalPlan(
        target=target,
        captions={str(number): text for number, text in enumerate(new, 1)},
        visual=_LOOKS[target],
        keep=_KEEP,
        scenario=[word for word in kept if len(word) > 2][:8],
        why=why,
    )


def _list_texts(page: MemeStructure) -> list[str]:
    return [caption.text for caption in page.captions]


def _fits(caption: LetteredCaption, text: str) -> bool:
    """Tell whether a text fits a caption's area without much smaller letters."""
    if text == caption.text:
        return True
    if len(text) > caption.budget:
        return False
    try:
        fit_text(text, caption.lettering, caption.ink.room)
    except InputError:
        return False
    return True


def _judge_polarity(found: Understanding) -> Polarity:
    valence = feel(" ".join(line.intended for line in found.lines)).valence
    if found.negative:
        return "Negative"
    return "Positive" if valence > _GLAD else "Neutral"


def _look(subject: ReappraisalSubject) -> tuple[float, float, float]:
    """Describe the flatness of colours (drawings have plain areas), brightness and warmth."""
    pixels = np.asarray(load(subject.image).resize((128, 128)), dtype=np.int16)
    flat = float((np.abs(np.diff(pixels, axis=1)).max(axis=2) <= 3).mean())
    light = float(pixels.mean()) / 255
    warm = float((pixels[..., 0] - pixels[..., 2]).mean()) / 255
    return flat, light, warm


def _describe(
    page: MemeStructure, found: Understanding, flat: float, tone: tuple[float, float]
) -> str:
    said = " ".join(line.printed for line in found.lines)
    light, warm = tone
    kind = "drawing" if flat > 0.5 else "photograph"
    bright = "bright" if light > 0.6 else "dark" if light < 0.35 else "moderately bright"
    hue = "warm" if warm > 0.06 else "cool" if warm < -0.03 else "neutral"
    panels = "one panel" if len(page.panels) == 1 else f"{len(page.panels)} panels"
    printed = f'Its captions say: "{clean_line(said, 3000)}".' if said else "It has no caption."
    homophones = (
        f' Their homophone reading is "{clean_line(found.homophones, 300)}".'
        if found.homophones
        else ""
    )
    why = f" Cause of the emotion: {found.cause.name}." if found.cause else ""
    return f"A {kind} in {panels}, {bright}, with {hue} colours. {printed}{homophones}{why}"
