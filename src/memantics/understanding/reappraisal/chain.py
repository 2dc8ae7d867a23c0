"""Run memes through all reappraisal stages, and check the results.

The thresholds were chosen on generated test images and on manually inspected pairs of memes
(docs/research/reappraisal-checks.md).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NoReturn

from PIL import Image
from pydantic import BaseModel

from memantics.core import errors
from memantics.core.files import replace_file
from memantics.core.images import decode, encode_png, read_bytes, shrink
from memantics.core.lines import TextLine
from memantics.core.memes import Meme
from memantics.core.model import Taken
from memantics.core.stamping import Making
from memantics.understanding.reappraisal.kindness import feel
from memantics.understanding.reappraisal.making import SHEET_STEP, describe_making
from memantics.understanding.reappraisal.messages import say
from memantics.understanding.reappraisal.records import (
    BOTH,
    BROKEN,
    CHECKS,
    FEELING,
    MEME,
    PLAN,
    SHEET,
    VERSIONS,
    CaptionCheck,
    EditChecks,
    Flaw,
    KinderVersion,
    MemeFeeling,
    Mood,
    ReappraisalPlan,
    Shape,
    SourceEmotion,
    StageFile,
    VersionSheet,
    find_source,
    hash_inputs,
    read_stage,
    settle_offers,
    write_stage,
)
from memantics.understanding.reappraisal.rendering import (
    LEGIBLE,
    MadeMeme,
    Painted,
    check_result,
    list_changes,
    paint_meme,
    set_captions,
    show_both,
    show_versions,
    tell_mood,
)
from memantics.understanding.reappraisal.rules import find_faults
from memantics.understanding.reappraisal.situation import understand
from memantics.understanding.reappraisal.stages import ReappraisalSubject
from memantics.understanding.reappraisal.topics import decline_topic
from memantics.understanding.reappraisal.whole import WishPlanner
from memantics.understanding.reappraisal.workshop import (
    Ending,
    Reappraisal,
    ReappraisalStage,
    Workshop,
)
from memantics.understanding.vision.page import LetteredCaption, MemeStructure, read_page
from memantics.understanding.vision.regions import ReadLines, has_chinese, measure_thickness
from memantics.understanding.vision.roles import load_model

LEAST_ALIKE = 0.91  # minimum similarity of colour, outline and weight of letters
OUTLINED = 0.55  # maximum difference of the colour around the letters
GHOST, SMEARED = 0.3, 0.05  # maximum rest of old letters, and of changes beside them
SMALLEST, LARGEST = 0.6, 1.2  # range of the new letter size, relative to the old
# minimum score of new captions, and minimum gain: 94 % of 200 rewrites by people reach both
KIND, KINDER = 0.3, 0.1
DAMAGED = 0.1  # maximum loss of structure in a block outside the editable area
_MAIN = 0.6  # minimum letter size of a rewritten caption, relative to the largest text
_SEEN = 0.5  # minimum OCR confidence to count larger text as text
MOST_PIXELS = 4_000_000  # pixels; larger images are scaled down to limit time and memory
_SETTINGS = 3  # maximum rounds of drawing captions and reading them back
_RULES = 5  # version of the drawing code; increase it when the same plan gives another image
_TRIED = 3  # maximum plans drawn for one result
# flaws that another caption text may repair
_BY_WORDS = {"caption", "reading", "size", "kindness", "mood"}


def find_flaws(
    page: MemeStructure,
    plan: ReappraisalPlan,
    checks: EditChecks,
    lines: Sequence[TextLine],
    asked: Taken[Mood] | None = None,
) -> list[Flaw]:
    """List all flaws of a result; ``lines`` are the text lines read on the source.

    ``asked`` is a vision-language model's answer about faces and captions, if one was asked.
    """
    changed = {region: caption for region, (caption, _) in list_changes(page, plan).items()}
    return [
        *_check_caption(page, changed, lines),
        *(flaw for caption in checks.captions for flaw in _check_letters(caption)),
        *_check_picture(checks),
        *_check_feeling(checks, asked),
    ]


def _check_caption(
    page: MemeStructure, changed: dict[str, LetteredCaption], lines: Sequence[TextLine]
) -> Iterator[Flaw]:
    """Check that the rewritten text is the text that makes the meme negative."""
    if not changed:
        return
    threshold = load_model()["threshold"]
    for region, caption in changed.items():
        if max(line.probability for line in caption.block.lines) < threshold:
            what = say("label", region=region, text=repr(caption.text))
            yield Flaw(check="caption", what=what, advice=say("by_hand"))
    size = max(_measure_size(caption.block.lines) for caption in changed.values())
    touched = {line.box for caption in changed.values() for line in caption.block.lines}
    for line in lines:
        # OCR misreads drawings as a few letters; two Chinese characters are already a text.
        said = sum(char.isalpha() for char in line.text) >= (2 if has_chinese(line.text) else 4)
        larger = said and line.score >= _SEEN and size < _MAIN * measure_thickness(line)
        if line.box not in touched and larger:
            what = say("larger_text", text=repr(line.text))
            yield Flaw(check="caption", what=what, advice=say("own_words"))
            break
    for number, caption in enumerate(page.captions, 1):
        mood = feel(understand([caption.text]).lines[0].intended)
        if str(number) not in changed and (mood.rude or mood.gloomy):
            what = say("negative_caption", region=number, text=repr(caption.text))
            yield Flaw(check="caption", what=what, advice=say("own_words"))


def _measure_size(lines: Sequence[TextLine]) -> int:
    return max(map(measure_thickness, lines))


def _check_letters(caption: CaptionCheck) -> Iterator[Flaw]:
    region = caption.region
    if caption.read < LEGIBLE:
        share = f"{caption.read:.0%}"
        what = say("unreadable", share=share, text=repr(caption.planned), region=region)
        yield Flaw(check="reading", what=what, advice=say("shorter"))
    if caption.leftover or caption.ghost > GHOST:
        what = say("strokes", region=region, count=max(1, caption.leftover))
        yield Flaw(check="strokes", what=what, advice=say("paint_over"))
    alike = caption.lettering >= LEAST_ALIKE and caption.outline <= OUTLINED
    if caption.background_box or not alike:
        what = say("style", region=region)
        yield Flaw(check="lettering", what=what, advice=say("by_hand"))
    if caption.smear > SMEARED:
        what = say("smear", region=region, share=f"{caption.smear:.0%}")
        yield Flaw(check="picture", what=what, advice=say("by_hand"))
    if caption.clipped:
        yield Flaw(check="size", what=say("clipped", region=region), advice=say("shorter"))
    if not SMALLEST <= caption.size <= LARGEST:
        kind, words = ("smaller", "shorter") if caption.size < 1 else ("larger", "longer")
        what = say(kind, region=region, size=f"{caption.size:.2f}")
        yield Flaw(check="size", what=what, advice=say(words))


def _check_picture(checks: EditChecks) -> Iterator[Flaw]:
    if checks.damage > DAMAGED:
        what = say("damage", share=f"{checks.damage:.0%}")
        yield Flaw(check="picture", what=what, advice=say("other_editor"))
    if min((caption.border for caption in checks.captions), default=1.0) < LEGIBLE:
        yield Flaw(check="picture", what=say("border"), advice=say("by_hand"))
    if not checks.panels_kept:
        what = say("panels", before=checks.panels_before, after=checks.panels_after)
        yield Flaw(check="panels", what=what, advice=say("other_editor"))


def _check_feeling(checks: EditChecks, asked: Taken[Mood] | None) -> Iterator[Flaw]:
    old, new = checks.kindness or (0.0, 1.0)
    if new < KIND or new < old + KINDER:
        what = say("not_kinder", old=f"{old:.2f}", new=f"{new:.2f}")
        yield Flaw(check="kindness", what=what, advice=say("own_words"))
    if checks.mood is not None and not checks.mood.fit:
        mood = checks.mood
        reason = mood.reason.rstrip(".")
        what = say("mood", faces=mood.faces, captions=mood.captions, reason=reason)
        yield Flaw(check="mood", what=what, advice=say("fit_faces"))
    elif asked is not None and asked.value is None:
        what = say("mood_unknown", status=asked.status)
        yield Flaw(check="mood", what=what, advice=say("ask_again"))


@dataclass(slots=True)
class _Job:
    """One meme during reappraisal: its image, structure and the results of the stages so far."""

    meme: Meme
    shop: Workshop
    folder: Path
    image: Image.Image
    page: MemeStructure
    lines: Sequence[TextLine]
    digest: str
    resumed: bool = field(default=True)

    @property
    def subject(self) -> ReappraisalSubject:
        meme = self.meme
        others = [line for line in self.lines if line.role != "caption"]
        return ReappraisalSubject(meme.id, meme.image, self.page, meme.notes, self.emotion, others)

    @property
    def emotion(self) -> SourceEmotion | None:
        """The given emotion: from the requested target or from annotations."""
        target = self.shop.target
        return self.shop.emotions.get(self.meme.id) if target is None else find_source(target)


class _Stopped(Exception):
    """Raised if a reappraisal stage ends without a value."""

    def __init__(self, stage: ReappraisalStage, reason: str, ending: Ending = "failed") -> None:
        self.stage: ReappraisalStage = stage
        self.reason = reason
        self.ending: Ending = ending
        super().__init__(reason)


async def reappraise_all(
    memes: Sequence[Meme], shop: Workshop, width: int = 1
) -> AsyncIterator[Reappraisal]:
    """Run memes through all stages in parallel; a failed meme does not stop the others."""
    free = asyncio.Semaphore(width)

    async def take(meme: Meme) -> Reappraisal:
        async with free:
            return await reappraise(meme, shop)

    tasks = [asyncio.ensure_future(take(meme)) for meme in memes]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for left in tasks:
            left.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def reappraise(meme: Meme, shop: Workshop) -> Reappraisal:
    """Run one meme through all stages; only errors that affect every meme are raised."""
    folder = shop.out / meme.id
    try:
        job = await _open(meme, shop, folder)
        feeling = await _feel(job)
        plan = await _plan(job, feeling)
        plan, checks, versions = await _draw(job, feeling, plan)
    except _Stopped as stop:
        return Reappraisal(meme.id, folder, stop.ending, stop.stage, stop.reason)
    reason = "; ".join(flaw.what for flaw in checks.flaws)
    ending: Ending = "flawed" if checks.flaws else "done"
    made = Reappraisal(meme.id, folder, ending, "picture", reason, feeling, plan, checks)
    return replace(made, resumed=job.resumed, versions=versions)


async def _open(meme: Meme, shop: Workshop, folder: Path) -> _Job:
    """Read and measure a meme; the file is not changed."""
    if meme.image.resolve() in {(folder / name).resolve() for name in (MEME, BOTH)}:
        raise _Stopped(
            "reading", "the result would overwrite the source; choose another folder with --out"
        )
    try:
        data = await asyncio.to_thread(read_bytes, meme.image)
        measured = await asyncio.to_thread(_measure, data, meme.image.name, shop.read_lines)
    except errors.InputError as error:
        raise _Stopped("reading", str(error)) from error
    return _Job(meme, shop, folder, *measured, hashlib.sha256(data).hexdigest())


def _measure(
    data: bytes, name: str, read_lines: ReadLines
) -> tuple[Image.Image, MemeStructure, Sequence[TextLine]]:
    """Read the image, its structure and its text; images above the pixel limit are scaled down."""
    whole = decode(data, name)
    image = shrink(whole, MOST_PIXELS)
    lines = read_lines(data if image is whole else encode_png(image), name)
    return image, read_page(image, lines), lines


async def _feel(job: _Job) -> MemeFeeling:
    """Run the first stage of a reappraisal: determine the emotion of the meme."""
    shop = job.shop
    inputs = hash_inputs(job.digest, shop.planner.name, shop.target)
    # A person's own captions and a benchmark's index are drawn as they are.
    reason = "" if isinstance(shop.planner, WishPlanner) else await _find_objection(job)
    if reason:
        _fail(job, "feeling", inputs, reason, "declined")
    known = _recall(job.folder / FEELING, MemeFeeling, inputs, "feeling")
    if known is not None and shop.review is None:
        return known
    taken = await shop.planner.feel(job.subject) if known is None else None
    feeling = known or _take(job, "feeling", inputs, taken)
    if job.emotion is not None:
        feeling = feeling.model_copy(update={"emotion": job.emotion, "source": "given"})
    feeling = _review(job, "feeling", feeling, lambda _: [])
    _keep(job, "feeling", inputs, feeling)
    return feeling


async def _find_objection(job: _Job) -> str:
    """Return the topic that forbids a rewriting; text that is not a caption counts, too."""
    captions = [caption.text for caption in job.page.captions]
    touched = {line.box for caption in job.page.captions for line in caption.block.lines}
    others = [line.text for line in job.lines if line.box not in touched]
    return await asyncio.to_thread(decline_topic, [*captions, *others])


async def _plan(job: _Job, feeling: MemeFeeling) -> ReappraisalPlan:
    """Run the second stage, the plan; a plan edited by a person must also follow the rules."""
    shop, inputs = job.shop, _hash_feeling(job, feeling)
    known = _recall(job.folder / PLAN, ReappraisalPlan, inputs, "plan")

    def check(plan: ReappraisalPlan) -> list[str]:
        return find_faults(plan, feeling.emotion, job.page)

    if known is not None:
        faults = check(known)
        if faults and shop.review is None:
            raise _Stopped("plan", f"{job.folder / PLAN}: {'; '.join(faults)}")
        if shop.review is None:
            return known
    taken = await shop.planner.plan(job.subject, feeling) if known is None else None
    plan = known or _take(job, "plan", inputs, taken)
    if shop.review is not None:  # a plan that a person edited has no alternatives
        plan = _review(job, "plan", plan.model_copy(update={"others": []}), check)
    _keep(job, "plan", inputs, plan)
    return plan


def _hash_feeling(job: _Job, feeling: MemeFeeling) -> str:
    said = feeling.model_dump(mode="json", exclude={"source"})
    return hash_inputs(job.digest, job.shop.planner.name, said)


async def _draw(
    job: _Job, feeling: MemeFeeling, plan: ReappraisalPlan
) -> tuple[ReappraisalPlan, EditChecks, tuple[KinderVersion, ...]]:
    """Run stage three: draw and check the best plan, and further versions if requested."""
    shop, folder = job.shop, job.folder
    known = _recall(folder / CHECKS, EditChecks, _hash_picture(job, feeling, plan), "picture")
    if shop.versions == 1 and known is not None and (folder / MEME).is_file():
        return plan, known, ()
    texts = sorted(map(str, (plan.captions, *(offer.captions for offer in plan.others))))
    key = hash_inputs(_hash_picture(job, feeling), shop.versions, *texts)
    sheet = _recall(folder / VERSIONS, VersionSheet, key, "picture")
    if sheet is None or not all(version.path(folder).is_file() for version in sheet.versions):
        job.resumed, sheet = False, await _draw_all(job, feeling, plan)
    versions = sheet.versions
    if shop.choose > len(versions):
        what = f"{job.meme.id} has no version {shop.choose}: it has {len(versions)}"
        raise errors.InputError(what, hint=f"use a number that {folder / SHEET} shows")
    best = versions[max(0, shop.choose - 1)]
    made = await asyncio.to_thread(read_bytes, best.path(folder))
    after = decode(made, "the new meme").crop((0, 0, *job.image.size))  # without a label
    both = await asyncio.to_thread(show_both, job.image, after, feeling.emotion, best.plan)
    replace_file(folder / MEME, made)
    making = await _make_up(job, best.plan)
    replace_file(folder / BOTH, await asyncio.to_thread(_stamp_sheet, job, both, making))
    taken = settle_offers(plan, sheet, best)
    _keep(job, "plan", _hash_feeling(job, feeling), taken)
    checks, inputs = best.checks, _hash_picture(job, feeling, taken)
    said = StageFile(status=best.status, made_by="", made_from=inputs, reason=best.reason)
    _write(job, "picture", said.model_copy(update={"value": checks.model_dump(mode="json")}))
    if shop.versions == 1:
        for version in versions:
            version.path(folder).unlink()
        return taken, checks, ()
    pictures = [
        decode(read_bytes(version.path(folder)), "a version").crop((0, 0, *job.image.size))
        for version in versions
    ]
    shown = await asyncio.to_thread(show_versions, job.image, pictures, versions)
    replace_file(folder / SHEET, await asyncio.to_thread(_stamp_sheet, job, shown, making))
    value = sheet.model_dump(mode="json")
    write_stage(
        folder / VERSIONS,
        StageFile(status="done", made_by=shop.planner.name, made_from=key, value=value),
    )
    return taken, checks, tuple(versions)


def _hash_picture(job: _Job, feeling: MemeFeeling, plan: ReappraisalPlan | None = None) -> str:
    """Hash the inputs of an image; without a plan, the inputs shared by all plans."""
    editor = job.shop.editor
    identity = None if editor is None else dict(editor.identity)
    asked = [judge.name for judge in (job.shop.judge, job.shop.faces) if judge is not None]
    said = plan.model_dump(mode="json", exclude={"others"}) if plan else None
    stamp = job.shop.stamp.identity
    return hash_inputs(job.digest, said, identity, _RULES, stamp, feeling.emotion, *asked)


async def _draw_all(job: _Job, feeling: MemeFeeling, plan: ReappraisalPlan) -> VersionSheet:
    """Draw plans in order until enough of them pass every check; passing ones come first."""
    wanted, error = job.shop.versions, ""
    offers = [
        offer
        for offer in plan.others
        if not offer.lost or (wanted > 1 and not offer.lost.startswith(BROKEN))
    ]
    made: list[tuple[ReappraisalPlan, bytes, EditChecks]] = []
    ruined: list[set[str]] = []
    for each in (plan.model_copy(update={"others": []}), *map(plan.take, offers)):
        # a flaw that does not depend on the text would occur again
        regions = set(list_changes(job.page, each))
        if len(made) == max(_TRIED, 2 * wanted) or (wanted == 1 and regions in ruined):
            continue
        try:
            picture, checks = await _draw_one(job, each)
        except (errors.Unavailable, errors.MissingExtra, errors.StoreError):
            raise  # the same error would occur for every meme
        except (errors.ModelError, errors.InputError) as failed:
            error = error or str(failed)
            if isinstance(failed, errors.ModelError):
                break
            continue
        made.append((each, picture, checks))
        if not {flaw.check for flaw in checks.flaws} <= _BY_WORDS:
            ruined.append(regions)
        if sum(not checks.flaws for *_, checks in made) >= wanted:
            break
    if not made:
        _fail(job, "picture", _hash_picture(job, feeling, plan), error)
    made.sort(key=lambda drawn: len(drawn[2].flaws))
    versions = []
    for number, (each, picture, checks) in enumerate(made, 1):
        versions.append(KinderVersion(number=number, plan=each, checks=checks))
        replace_file(versions[-1].path(job.folder), picture)
    return VersionSheet(versions=versions)


async def _draw_one(job: _Job, plan: ReappraisalPlan) -> tuple[bytes, EditChecks]:
    """Draw one plan and check the result."""
    finder = job.shop.faces
    found = await finder.find(job.meme.id, job.meme.image, job.image) if finder else None
    painted = await paint_meme(job.image, job.page, plan, job.shop.editor, found or ())
    faces = None if found is None else len(found)
    made, checks = await asyncio.to_thread(_set_and_read, job, plan, painted, faces)
    looked_at = job.folder / "looked-at.png"
    replace_file(looked_at, made)
    try:
        checks = await _judge(job, plan, checks, looked_at)
    finally:
        looked_at.unlink()
    making = await _make_up(job, plan)
    return await asyncio.to_thread(job.shop.stamp.apply, made, making), checks


async def _make_up(job: _Job, plan: ReappraisalPlan) -> Making:
    changed = bool(list_changes(job.page, plan))
    shop = job.shop
    return await describe_making(job.meme, shop.planner.name, shop.editor, changed=changed)


def _stamp_sheet(job: _Job, sheet: Image.Image, making: Making) -> bytes:
    made = replace(making, steps=(*making.steps, SHEET_STEP))
    return job.shop.stamp.apply(encode_png(sheet, 6), made)


def _set_and_read(
    job: _Job, plan: ReappraisalPlan, painted: Painted, faces: int | None
) -> tuple[bytes, EditChecks]:
    """Draw captions and read them back; unreadable ones are drawn again on a background box."""
    editor = job.shop.editor
    boxed: frozenset[str] = frozenset()
    for left in reversed(range(_SETTINGS)):
        drawn = set_captions(painted, job.page, plan, boxed)
        made = encode_png(drawn.image, 6)
        lines = job.shop.read_lines(made, f"{job.meme.id} (new)")
        result = MadeMeme(drawn, lines, None if editor is None else editor.name, faces)
        checks = check_result(job.image, job.page, plan, result)
        dim = {caption.region for caption in checks.captions if caption.read < LEGIBLE} - boxed
        if not dim or not left:
            break
        boxed |= dim
    return made, checks


async def _judge(job: _Job, plan: ReappraisalPlan, checks: EditChecks, image: Path) -> EditChecks:
    """Add face and kindness checks, and list all flaws."""
    judge, rate = job.shop.judge, job.shop.kindness
    taken = await judge.judge_mood(job.meme.id, image) if judge else None
    update: dict[str, object] = {"mood": taken.value if taken else None}
    if taken is None:
        update["notes"] = [*checks.notes, *tell_mood(plan)]
    # Where a critic chose, its word counts; the classifier rejected better jokes.
    if rate is not None and checks.captions and not plan.choice:
        old = [caption.text for caption in job.page.captions]
        update["kindness"] = await asyncio.to_thread(lambda: [rate(old), rate(plan.texts)])
    checks = checks.model_copy(update=update)
    flaws = await asyncio.to_thread(find_flaws, job.page, plan, checks, job.lines, taken)
    return checks.model_copy(update={"flaws": flaws})


def _recall(path: Path, shape: type[Shape], inputs: str, stage: ReappraisalStage) -> Shape | None:
    try:
        return read_stage(path, shape, inputs)
    except errors.DataError as error:
        raise _Stopped(stage, str(error)) from error


def _take(job: _Job, stage: ReappraisalStage, inputs: str, taken: Taken[Shape] | None) -> Shape:
    """Return the value of a reappraisal stage that was just run.

    A planner that answers without a value has declined; otherwise the stage has failed.
    """
    job.resumed = False
    if taken is not None and taken.status == "answered" and taken.value is None:
        _fail(job, stage, inputs, taken.reason, "declined")
    if taken is None or taken.status != "answered" or taken.value is None:
        _fail(job, stage, inputs, f"{taken.status}: {taken.reason}" if taken else "not taken")
    return taken.value


def _fail(
    job: _Job,
    stage: ReappraisalStage,
    inputs: str,
    reason: str,
    ending: Literal["failed", "declined"] = "failed",
) -> NoReturn:
    _write(job, stage, StageFile(status=ending, made_by="", made_from=inputs, reason=reason))
    raise _Stopped(stage, reason, ending)


def _review(
    job: _Job, stage: ReappraisalStage, value: Shape, check: Callable[[Shape], list[str]]
) -> Shape:
    if job.shop.review is None:
        return value
    seen = job.shop.review(stage, job.meme.id, value, check)
    if seen is None:
        raise _Stopped(stage, "skipped by the reviewer", "skipped")
    return seen


def _keep(job: _Job, stage: ReappraisalStage, inputs: str, value: BaseModel) -> None:
    said = value.model_dump(mode="json")
    _write(job, stage, StageFile(status="done", made_by="", made_from=inputs, value=said))


def _write(job: _Job, stage: ReappraisalStage, file: StageFile) -> None:
    """Write the result of a reappraisal stage with its author (model, program or person)."""
    name = {"feeling": FEELING, "plan": PLAN}.get(stage, CHECKS)
    made_by = job.shop.planner.name
    if stage == "picture":
        made_by = "captions only" if job.shop.editor is None else job.shop.editor.name
    write_stage(job.folder / name, file.model_copy(update={"made_by": made_by}))
