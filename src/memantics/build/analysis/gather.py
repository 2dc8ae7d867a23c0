"""Bring the parts of an analysis together: what is on this machine first, then the model's."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memantics.build.analysis.asking import ask_feeling, ask_harm
from memantics.build.analysis.records import Feeling, Findings, Harm, Missing, Sound
from memantics.build.extract.chain import Extraction, ExtractSettings, extract_meme
from memantics.build.intents.draft import IntentReport, IntentSettings, draft_intents
from memantics.core.images import decode, read_bytes
from memantics.core.memes import Meme
from memantics.core.step import Asker, Taken
from memantics.vision.panels import count_panels


@dataclass(frozen=True, slots=True)
class Tools:
    """What this machine can do without a model; each part can be absent.

    ``read`` gives the printed lines of an image (bytes and name), ``tell_language`` the language
    of a text, ``listen`` what a caption may be heard as, ``screen`` a detector's verdict,
    ``feel`` an emotion from words alone.
    """

    read: Callable[[bytes, str], Sequence[str]]
    tell_language: Callable[[str], str]
    listen: Callable[[str, str], Sequence[Sound]]
    screen: Callable[[Meme], Harm | None] | None = None
    feel: Callable[[Meme], Feeling] | None = None


MODEL_PARTS = ("dimensions and graph", "intents", "background knowledge")


def look(meme: Meme, tools: Tools) -> Findings:
    """What can be said without asking a model."""
    data = read_bytes(meme.image)
    image = decode(data, meme.image.name)
    lines = tuple(tools.read(data, meme.image.name))
    text = meme.text or " ".join(lines)
    language = meme.language or tools.tell_language(text)
    known = replace(meme, text=text, language=language)
    missing = [Missing(part, "needs --model") for part in MODEL_PARTS]
    screened = tools.screen(known) if tools.screen else None
    if screened is None:
        missing.append(Missing("harm by a detector", "there is no text to judge by"))
    return Findings(
        known,
        lines,
        language,
        count_panels(image),
        harms=(screened,) if screened else (),
        sounds=tuple(tools.listen(text, language)) if text else (),
        feelings=(tools.feel(known),) if tools.feel and text else (),
        missing=tuple(missing),
    )


async def ask_all(asker: Asker, seen: Findings, settings: ExtractSettings) -> Findings:
    """The same with all that a model says about it; what it did not answer is in ``missing``."""
    meme, language = seen.meme, settings.language
    extraction, intents, harm, feeling = await asyncio.gather(
        extract_meme(asker, meme, settings),
        draft_intents(asker, [meme], IntentSettings(language=language)),
        asker.take(ask_harm(meme, language, asker.model)),
        asker.take(ask_feeling(meme, language, asker.model)),
    )
    (drafted,) = intents.drafts
    return replace(
        seen,
        model=asker.model,
        knowledge=extraction.knowledge,
        intents=drafted.intents,
        background=drafted.background,
        harms=(*((harm.value,) if harm.value else ()), *seen.harms),
        feelings=(*((feeling.value,) if feeling.value else ()), *seen.feelings),
        missing=tuple(_list_missing(extraction, intents, harm, feeling))
        + tuple(own for own in seen.missing if own.part not in MODEL_PARTS),
        statuses=_count(extraction, intents, harm, feeling),
    )


def _list_missing(
    extraction: Extraction, intents: IntentReport, harm: Taken[Harm], feeling: Taken[Feeling]
) -> list[Missing]:
    found = [
        Missing(f"{step.dimension} ({step.stage})", f"{step.status}: {step.reason}")
        for step in extraction.steps
        if step.status not in ("answered", "skipped")
    ]
    found += [
        Missing(name, f"{taken.status}: {taken.reason}")
        for name, taken in (("harm", harm), ("emotion", feeling))
        if taken.value is None
    ]
    found += [Missing(own.step, f"{own.status}: {own.reason}") for own in intents.tally.misses]
    return found


def _count(
    extraction: Extraction, intents: IntentReport, harm: Taken[Harm], feeling: Taken[Feeling]
) -> dict[str, int]:
    counts = Counter(str(step.status) for step in extraction.steps if step.status != "skipped")
    counts.update({str(name): count for name, count in intents.tally.statuses.items()})
    counts.update([harm.status, feeling.status])
    return dict(counts)
