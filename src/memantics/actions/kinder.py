"""Kinder versions of one meme for a page: ours, a model's, or in a person's words. None is kept."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memantics.actions.reappraise import EMBEDDED, line_reader, open_planner
from memantics.actions.reappraise_options import EditingOptions
from memantics.actions.studio import Picture, Studio, lay_out, read_text
from memantics.actions.versions import offer_version
from memantics.core.images import read_bytes
from memantics.core.preferences import OfferedVersion, Preference, append_preference
from memantics.core.result import Result
from memantics.reappraise.chain import reappraise as take_through
from memantics.reappraise.folder import MEME
from memantics.reappraise.kindness import rate_kindness
from memantics.reappraise.planner import choose_emotion
from memantics.reappraise.records import PAIRS, KinderVersion
from memantics.reappraise.stages import Planner
from memantics.reappraise.understanding import understand
from memantics.reappraise.whole import EditWish, WishPlanner
from memantics.reappraise.workshop import Reappraisal, Workshop

__all__ = ["EMBEDDED", "KinderFound", "Preference", "append_preference", "redraw", "soften"]
PERSON = "a person"


class ShownVersion(OfferedVersion):
    """A version with its picture as a PNG in a data URL, and what is wrong with it."""

    picture: str
    flaws: list[str]


@dataclass(frozen=True, slots=True)
class KinderFound(Result):
    """A kinder version as a PNG in a data URL, or why there is none.

    ``flaws`` say why it is not called done and what a person may do; ``notes`` what did not change.
    ``versions`` are all that were drawn, that one first; ``meme`` begins the hash of the picture.
    """

    status: str
    reason: str
    before: str
    after: str
    emotion: str
    target: str
    picture: str
    by: str
    baseline: bool
    flaws: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    versions: tuple[ShownVersion, ...] = ()
    meme: str = ""


async def soften(
    studio: Studio, picture: Picture, model: str = EMBEDDED, versions: int = 1
) -> KinderFound:
    """Kinder versions, planned from a lexicon (a baseline) or by a model; the best comes first."""
    name = model if model == EMBEDDED else studio.find_model(model)
    asking = replace(studio.asking, use_cache=False)
    options: EditingOptions = {"model": name, "asking": asking, "mood": False}
    with lay_out(picture) as (meme, folder):
        async with open_planner(options, folder / "plan", 1) as planner:
            made = await take_through(meme, _open_shop(studio, planner, folder, versions))
        return await _show(studio, picture, made, name)


async def redraw(studio: Studio, picture: Picture, words: str) -> KinderFound:
    """A version in a person's words, a line for each caption, drawn and checked as all are."""
    before = (await asyncio.to_thread(read_text, studio, picture)).text
    emotion = await asyncio.to_thread(lambda: choose_emotion(understand([before])))
    target = PAIRS[emotion]
    wish = EditWish("meme", emotion, target, before, words, "", "Template_StylizedMeme", "Negative")
    with lay_out(picture) as (meme, folder):
        shop = _open_shop(studio, WishPlanner(wish, PERSON), folder, 1)
        return await _show(studio, picture, await take_through(meme, shop), PERSON)


def _open_shop(studio: Studio, planner: Planner, folder: Path, versions: int) -> Workshop:
    shop = Workshop(planner, line_reader(studio.ocr), folder / "made")
    return replace(shop, kindness=rate_kindness, versions=versions)


async def _show(studio: Studio, picture: Picture, made: Reappraisal, by: str) -> KinderFound:
    before = (await asyncio.to_thread(read_text, studio, picture)).text
    paths = [version.path(made.folder) for version in made.versions]
    drawn: Sequence[KinderVersion] = made.versions
    if not drawn and made.plan and made.checks:
        drawn = [KinderVersion(number=1, plan=made.plan, checks=made.checks)]
        paths = [made.folder / MEME]
    shown = tuple(
        ShownVersion(
            **offer_version(version, by).model_dump(),
            picture=f"data:image/png;base64,{base64.b64encode(read_bytes(path)).decode()}",
            flaws=[f"{flaw.what}. {flaw.advice}." for flaw in version.checks.flaws],
        )
        for version, path in zip(drawn, paths, strict=True)
    )
    return KinderFound(
        made.status,
        made.reason.partition("; --force")[0],  # a page has no flags
        before,
        made.caption,
        made.feeling.emotion if made.feeling else "",
        made.plan.target if made.plan else "",
        shown[0].picture if shown else "",
        by,
        baseline=by == EMBEDDED,
        flaws=tuple(shown[0].flaws) if shown else (),
        notes=tuple(made.checks.notes) if made.checks else (),
        versions=shown,
        meme=hashlib.sha256(picture.data).hexdigest()[:16],
    )
