"""The embedded planner: a baseline without a model, from a lexicon of reframings.

It exchanges unkind words, and where a meme has none it adds a few words of another attitude. It
tells of nothing that the meme does not tell, and understands no joke.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.core.opinion import Judge
from memantics.core.step import Taken
from memantics.core.text import clean_line
from memantics.reappraise.records import (
    EMOTIONS,
    PAIRS,
    Emotion,
    Feeling,
    Polarity,
    ReappraisalPlan,
    Target,
    VisualType,
)
from memantics.reappraise.rules import Lexicon, find_faults, list_words, read_lexicon
from memantics.reappraise.stages import ReappraisalSubject
from memantics.vision.captions import has_chinese
from memantics.vision.page import Caption, Page
from memantics.vision.typesetting import fit_text

NAME = "embedded/planner"
_PARTICLES = "啊呀呢嘛哦啦呗哈"
_SNUG = 1.3  # a caption that grows by more is set much smaller
_LOOKS: dict[Target, str] = {
    "happy": "Brighter, warmer light and richer colours; mouths and eyes smile.",
    "calm": "Softer contrast and quieter colours; faces and shoulders loosen.",
    "relaxed": "Gentle warm light and soft contrast; bodies lean back, eyes are at ease.",
    "excited": "Vivid colours and clear light; eyes wide open, an eager smile.",
}
_KEEP = "Panels, persons, things, the places of captions and the situation stay as they are."


UNTOLD = "unknown: no word tells the emotion and no expert is in use"


@dataclass(frozen=True, slots=True)
class EmbeddedPlanner:
    """Takes both stages offline, the same way every time. ``emotion`` is taken as given.

    ``judge`` is an expert for emotions; without one the cues of a lexicon are counted.
    """

    emotion: Emotion | None = None
    judge: Judge | None = None

    @property
    def name(self) -> str:
        """The planner, and the expert that it asks."""
        return NAME if self.judge is None else f"{NAME} with {self.judge.name}@{self.judge.version}"

    async def feel(self, subject: ReappraisalSubject) -> Taken[Feeling]:
        """Stage one, from the words of the captions and the colours of the picture."""
        page = subject.page
        said = " ".join(caption.text for caption in page.captions)
        lexicon = read_lexicon(page.language)
        emotion, source = self._feel(said, page.language)
        flat, light, warm = _look(subject)
        drawn: VisualType = "Template_StylizedMeme" if len(page.panels) > 1 else "Cartoon_Anime"
        return Taken(
            f"{subject.id}/feeling",
            "answered",
            Feeling(
                emotion=emotion,
                description=_describe(page, said, flat, (light, warm)),
                visual_type=drawn if flat > 0.5 else "Object_Animal_Dominant",
                polarity=_judge_polarity(lexicon, said),
                source=source,
            ),
            model=NAME,
        )

    def _feel(self, said: str, language: str) -> tuple[Emotion, str]:
        """The emotion, and who says so: what is given, the expert, the lexicon, or nobody."""
        if self.emotion is not None:
            return self.emotion, "given"
        if self.judge is not None:
            found = self.judge.ask(said, language)
            known = next((own for own in EMOTIONS if own == found.label), None)
            if known is not None:
                return known, found.source
        weights = read_lexicon(language).weigh(said)
        emotion = choose_emotion(weights)
        cues = weights.get(emotion, 0)
        told = (
            f"{cues} cues of a lexicon, a baseline" if cues else f"{UNTOLD}; {emotion} is assumed"
        )
        return emotion, told

    async def plan(self, subject: ReappraisalSubject, feeling: Feeling) -> Taken[ReappraisalPlan]:
        """Stage two."""
        target = PAIRS[feeling.emotion]
        made = make_plan(subject.page, target)
        faults = find_faults(made, feeling.emotion, subject.page)
        step = f"{subject.id}/plan"
        if faults:
            return Taken(step, "unparsed", None, "; ".join(faults), model=NAME)
        return Taken(step, "answered", made, model=NAME)


def choose_emotion(weights: dict[Emotion, int]) -> Emotion:
    """The emotion with most cues; without any, tense: most memes squirm a little.

    >>> choose_emotion({"sad": 1, "angry": 2, "tense": 0, "bored": 0})
    'angry'
    """
    order: tuple[Emotion, ...] = ("tense", *(each for each in EMOTIONS if each != "tense"))
    return max(order, key=lambda emotion: weights.get(emotion, 0))


def make_plan(page: Page, target: Target) -> ReappraisalPlan:
    """New captions for a page."""
    old = [caption.text for caption in page.captions]
    new = []
    for caption in page.captions:
        lexicon = read_lexicon("zh" if has_chinese(caption.text) else "en")
        said = lexicon.reframe(caption.text)
        new.append(said if _fits(caption, said) else caption.text)
    if old and new == old:
        _add_ending(page, target, new)
    kept = sorted(list_words(" ".join(old)) & list_words(" ".join(new)))
    return ReappraisalPlan(
        target=target,
        captions={str(number): text for number, text in enumerate(new, 1)},
        visual=_LOOKS[target],
        keep=_KEEP,
        scenario=[word for word in kept if len(word) > 2][:8],
    )


def _add_ending(page: Page, target: Target, texts: list[str]) -> None:
    """Add an attitude to a caption in which it fits well: the last that is large enough."""
    sizes = [caption.lettering.size for caption in page.captions]
    main = [i for i, size in enumerate(sizes) if size >= 0.6 * max(sizes)]
    fallback: tuple[int, str] | None = None
    for place in reversed(main):
        caption = page.captions[place]
        for said in _list_endings(caption, target):
            if len(said) <= _SNUG * len(caption.text) and _fits(caption, said):
                texts[place] = said
                return
            if _fits(caption, said):
                shorter = fallback is None or len(said) - len(caption.text) < len(
                    fallback[1]
                ) - len(page.captions[fallback[0]].text)
                fallback = (place, said) if shorter else fallback
    if fallback is not None:
        texts[fallback[0]] = fallback[1]


def _list_endings(caption: Caption, target: Target) -> list[str]:
    """A caption with each ending, the longest first."""
    text = caption.text.strip()
    chinese = has_chinese(text)
    body = text.rstrip(" .。,，;；") if text[-1:] not in "?!？！" else text
    made = []
    for ending in read_lexicon("zh" if chinese else "en").endings[target]:
        if chinese:
            made.append(_join_chinese(body, ending))
        else:
            comma = "" if ending.startswith("and ") or body[-1:] in "?!" else ","
            shown = ending.upper() if caption.lettering.upper else ending
            made.append(f"{body}{comma} {shown}")
    if chinese and body.endswith("了") and target != "excited":
        made.insert(-1, body[:-1] + "啦")  # the same word in a lighter tone
    return [said for said in made if said != text]


def _join_chinese(body: str, ending: str) -> str:
    """A caption with an ending; a particle takes the place of another one.

    >>> _join_chinese("药丸啊", "呢"), _join_chinese("真的？", "，不急")
    ('药丸呢', '真的？不急')
    """
    if ending == "！":
        return body.rstrip("！!。") + "！"
    if len(ending) == 1 and body[-1:] in _PARTICLES:
        return body[:-1] + ending
    return body + (ending.lstrip("，") if body[-1:] in "？！?!" else ending)


def _fits(caption: Caption, text: str) -> bool:
    if len(text) > caption.budget:
        return False
    try:
        fit_text(text, caption.lettering, caption.ink.box)
    except InputError:
        return False
    return True


def _judge_polarity(lexicon: Lexicon, said: str) -> Polarity:
    return "Negative" if lexicon.reframe(said) != said else "Neutral"


def _look(subject: ReappraisalSubject) -> tuple[float, float, float]:
    """How flat the colours are (drawn pictures have areas of one colour), light and warmth."""
    pixels = np.asarray(load(subject.image).resize((128, 128)), dtype=np.int16)
    flat = float((np.abs(np.diff(pixels, axis=1)).max(axis=2) <= 3).mean())
    light = float(pixels.mean()) / 255
    warm = float((pixels[..., 0] - pixels[..., 2]).mean()) / 255
    return flat, light, warm


def _describe(page: Page, said: str, flat: float, tone: tuple[float, float]) -> str:
    light, warm = tone
    kind = "drawing" if flat > 0.5 else "photograph"
    bright = "bright" if light > 0.6 else "dark" if light < 0.35 else "moderately bright"
    hue = "warm" if warm > 0.06 else "cool" if warm < -0.03 else "neutral"
    panels = "one panel" if len(page.panels) == 1 else f"{len(page.panels)} panels"
    printed = f'Its captions say: "{clean_line(said, 3000)}".' if said else "It has no caption."
    return f"A {kind} in {panels}, {bright}, with {hue} colours. {printed}"
