"""When a reappraisal may be called done: every check that a result must pass, and what to do else.

Thresholds were set on drawn cases and on pairs that were looked at (docs/research/reappraisal.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memantics.core.lines import TextLine
from memantics.core.step import Taken
from memantics.reappraise.records import CaptionCheck, Checks, Flaw, Mood, ReappraisalPlan
from memantics.reappraise.rendering import LEGIBLE, list_changes
from memantics.reappraise.sentiment import feel
from memantics.reappraise.understanding import understand
from memantics.vision.captions import has_chinese, measure_thickness
from memantics.vision.page import LetteredCaption, Page
from memantics.vision.roles import load_model

LEAST_ALIKE = 0.86  # of 1: less, and letters lost their colour, their outline or their weight
SMALLEST, LARGEST = 0.6, 1.2  # of the old letters' size
DAMAGED = 0.1  # of a block's structure, outside of all that may change
_MAIN = 0.6  # of the largest text: a rewritten caption is at least that large
_SEEN = 0.5  # certainty of an OCR from which larger lettering was there, whatever it says
_OWN_WORDS = "Write the caption yourself: edit plan.json, or use --interactive"
_BY_HAND = "Finish it by hand, starting from meme.png, or choose another picture"


def find_flaws(
    page: Page,
    plan: ReappraisalPlan,
    checks: Checks,
    lines: Sequence[TextLine],
    asked: Taken[Mood] | None = None,
) -> list[Flaw]:
    """All that keeps a result from being done; ``lines`` are those that were read on its source.

    ``asked`` is what a model that sees said about faces and captions, where one was asked.
    """
    changed = {region: caption for region, (caption, _) in list_changes(page, plan).items()}
    return [
        *_check_caption(page, changed, lines),
        *(flaw for caption in checks.captions for flaw in _check_letters(caption)),
        *_check_picture(checks),
        *_check_feeling(checks, asked),
    ]


def _check_caption(
    page: Page, changed: dict[str, LetteredCaption], lines: Sequence[TextLine]
) -> Iterator[Flaw]:
    """Whether what was rewritten is what makes the meme negative."""
    if not changed:
        return
    threshold = load_model()["threshold"]
    for region, caption in changed.items():
        if max(line.chance for line in caption.block.lines) < threshold:
            what = (
                f"text {region} ({caption.text!r}) may be a label or a watermark, not the caption"
            )
            yield Flaw(check="caption", what=what, advice=_BY_HAND)
    size = max(_measure_size(caption.block.lines) for caption in changed.values())
    touched = {line.box for caption in changed.values() for line in caption.block.lines}
    for line in lines:
        # Drawings are misread as few letters; two Chinese characters are a text.
        said = sum(char.isalpha() for char in line.text) >= (2 if has_chinese(line.text) else 4)
        larger = said and line.score >= _SEEN and size < _MAIN * measure_thickness(line)
        if line.box not in touched and larger:
            what = f"the larger text {line.text!r} stayed as it was"
            yield Flaw(check="caption", what=what, advice=_OWN_WORDS)
            break
    for number, caption in enumerate(page.captions, 1):
        mood = feel(understand([caption.text]).lines[0].meant)
        if str(number) not in changed and (mood.rude or mood.gloomy):
            what = f"caption {number} ({caption.text!r}) is negative and stayed as it was"
            yield Flaw(check="caption", what=what, advice=_OWN_WORDS)


def _measure_size(lines: Sequence[TextLine]) -> int:
    return max(map(measure_thickness, lines))


def _check_letters(caption: CaptionCheck) -> Iterator[Flaw]:
    name = f"caption {caption.region}"
    if caption.read < LEGIBLE:
        what = f"{name} does not read: {caption.read:.2f} of {caption.planned!r}"
        yield Flaw(check="reading", what=what, advice="Try shorter words")
    if caption.leftover:
        count = "1 stroke" if caption.leftover == 1 else f"{caption.leftover} strokes"
        what = f"{count} of the old {name} can still be seen"
        yield Flaw(check="strokes", what=what, advice="Paint over them in meme.png")
    if caption.plate or caption.lettering < LEAST_ALIKE:
        what = f"{name} does not look as before: its letters could not be measured well"
        yield Flaw(check="lettering", what=what, advice=_BY_HAND)
    if not SMALLEST <= caption.size <= LARGEST:
        kind = "smaller" if caption.size < 1 else "larger"
        words = "shorter" if caption.size < 1 else "longer"
        what = f"the letters of {name} are much {kind} than before ({caption.size:.2f})"
        yield Flaw(check="size", what=what, advice=f"Try {words} words")


def _check_picture(checks: Checks) -> Iterator[Flaw]:
    if checks.damage > DAMAGED:
        what = f"the picture changed outside of its captions ({checks.damage:.0%} of a block)"
        yield Flaw(check="picture", what=what, advice="Use another editor, or --editor none")
    if min((caption.border for caption in checks.captions), default=1.0) < LEGIBLE:
        what = "the border of a caption's box was lost"
        yield Flaw(check="picture", what=what, advice=_BY_HAND)
    if not checks.panels_kept:
        what = f"{checks.panels_before} panels became {checks.panels_after}"
        yield Flaw(check="panels", what=what, advice="Use another editor, or --editor none")


def _check_feeling(checks: Checks, asked: Taken[Mood] | None) -> Iterator[Flaw]:
    old, new = checks.kindness or (0.0, 1.0)
    if new <= old:
        what = f"the new captions sound no kinder than the old ones ({old:.2f}, now {new:.2f})"
        yield Flaw(check="kindness", what=what, advice=_OWN_WORDS)
    if checks.mood is not None and not checks.mood.fit:
        mood = checks.mood
        what = f"faces look {mood.faces}, captions sound {mood.captions}: {mood.reason.rstrip('.')}"
        advice = "Let an editor change the faces (--editor), or write captions that fit them"
        yield Flaw(check="mood", what=what, advice=advice)
    elif asked is not None and asked.value is None:
        what = f"whether faces go with the captions was asked and not answered: {asked.status}"
        yield Flaw(check="mood", what=what, advice="Run it again, or look yourself (--no-mood)")
