"""Generate two captions per meme (meaning of the text, description of the image) with a model.

Existing captions are kept. The model explains the text without seeing the image, and describes the
image without its text. A detector uses both captions as separate groups of features.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memantics.core.files import write_lines
from memantics.core.language import language_of
from memantics.core.memes import BESIDE, CAPTIONS, HOMOPHONES, Meme
from memantics.core.model import Asker, Step
from memantics.core.prompt import prompts_beside
from memantics.core.records import Closed
from memantics.core.reply import read_object
from memantics.models import drafts

SOURCES = "captions-sources.jsonl"
LONGEST = 600
# Two sets of prompts: plain ones, and those of the ToxiCN MM paper in other words, which name
# language and culture.
CaptionWording = Literal["plain", "culture"]
CaptionOrigin = Literal["given", "mined", "no text", "unseen", "missing"]
# Names of the two captions in detector data, in meme notes and in step ids.
_NOTES = {"text_caption": "meaning", "image_caption": "description"}


class _MinedCaption(Closed):
    caption: str


@dataclass(frozen=True, slots=True)
class Captioned:
    """A meme with both captions; ``origins`` and ``sources`` name where each comes from."""

    meme: Meme
    language: str
    captions: Mapping[str, str]
    origins: Mapping[str, CaptionOrigin]
    sources: Mapping[str, drafts.DraftSource] = field(default_factory=dict)


find_prompts = prompts_beside(__file__)


async def mine_captions(
    asker: Asker,
    memes: Sequence[Meme],
    language: str = "",
    expect: Callable[[int], None] = lambda _: None,
    wording: CaptionWording = "plain",
) -> drafts.Drafted[Captioned]:
    """Generate both captions of every meme; an empty ``language`` means the meme's own language."""
    plans = [(meme, language or language_of(meme)) for meme in memes]
    blind = sees_nothing(asker.model)
    expect(sum(len(list_missing(meme, blind=blind)) for meme in memes))
    tally = drafts.Tally()
    found = await asyncio.gather(
        *(_mine(asker, meme, plan, tally, wording) for meme, plan in plans)
    )
    return drafts.Drafted(tuple(found), tally)


def sees_nothing(model: str) -> bool:
    """Tell whether a model is text-only; its image descriptions would be invented.

    >>> sees_nothing("llm/smollm2"), sees_nothing("openai/some-vlm")
    (True, False)
    """
    return model.startswith("llm/")


def list_missing(meme: Meme, *, blind: bool = False) -> list[str]:
    """List the captions to ask for; a text-only model is not asked about the image.

    >>> list_missing(Meme("a", Path("a.png"), "hello", notes={"meaning": "a greeting"}))
    ['image_caption']
    """
    return [
        name
        for name, note in _NOTES.items()
        if not meme.notes.get(note, "").strip()
        and (not blind if note == "description" else bool(meme.text.strip()))
    ]


async def _mine(
    asker: Asker, meme: Meme, language: str, tally: drafts.Tally, wording: CaptionWording
) -> Captioned:
    wanted = list_missing(meme, blind=sees_nothing(asker.model))
    steps = (make_step(meme, name, language, wording) for name in wanted)
    taken = await asyncio.gather(*map(asker.take, steps))
    captions = {name: meme.notes.get(note, "").strip() for name, note in _NOTES.items()}
    lacking: dict[str, CaptionOrigin] = {"text_caption": "no text", "image_caption": "unseen"}
    origins = {name: "given" if said else lacking[name] for name, said in captions.items()}
    sources = {}
    for name, step_result in zip(wanted, taken, strict=True):
        tally.add(step_result)
        origins[name] = "mined" if step_result.value is not None else "missing"
        if step_result.value is not None:
            captions[name] = step_result.value
            sources[name] = drafts.note_source(step_result)
    return Captioned(meme, language, captions, origins, sources)


def make_step(meme: Meme, name: str, language: str, wording: CaptionWording = "plain") -> Step[str]:
    """Build the step that asks for one caption."""
    note = _NOTES[name]
    placeholders = {"language": drafts.name_language(language)}
    if wording == "culture":
        placeholders["spoken"] = drafts.name_language(language_of(meme))
    if note == "meaning":
        placeholders["material"] = drafts.show_material(
            {
                "printed text": meme.text,
                **{name: meme.notes.get(name, "") for name in (HOMOPHONES, BESIDE)},
            }
        )
    body = find_prompts()[note if wording == "plain" else f"{note}_{wording}"].fill(**placeholders)

    seen = meme if note == "description" else None
    request = drafts.make_request(
        body, drafts.record(caption=drafts.text()), meme=seen, language=language
    )
    return Step(f"{meme.id}/captions/{note}", request, lambda reply: read_caption(reply, language))


def read_caption(reply: str, language: str) -> str:
    """Parse a reply as one line in the requested language."""
    return drafts.check_wording(
        read_object(reply, _MinedCaption).caption, "caption", language, LONGEST
    )


def write_captions(folder: Path, report: drafts.Drafted[Captioned]) -> Path:
    """Write ``captions.jsonl`` and a file with the source of each caption.

    ``captions.jsonl`` contains only the fields that detectors read. Add a label field to train a
    detector on it.
    """
    origins = (
        {
            "id": captioned.meme.id,
            "language": captioned.language,
            "origins": captioned.origins,
            "sources": captioned.sources,
        }
        for captioned in report.drafts
    )
    write_lines(folder / SOURCES, origins)
    return write_lines(folder / CAPTIONS, (make_line(one, folder) for one in report.drafts))


def make_line(captioned_meme: Captioned, folder: Path) -> dict[str, str]:
    """Build one line of detector data from a meme and its captions."""
    image = _relative(captioned_meme.meme.image, folder)
    return {
        "id": captioned_meme.meme.id,
        "image": image,
        "text": captioned_meme.meme.text,
        **captioned_meme.captions,
    }


def _relative(image: Path, folder: Path) -> str:
    place = image.resolve()
    root = folder.resolve()
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else image.name


def count_origins(report: drafts.Drafted[Captioned]) -> dict[str, Counter[str]]:
    """Count the sources of captions, by kind of caption."""
    names = ("text_caption", "image_caption")
    return {
        name: Counter(captioned_meme.origins[name] for captioned_meme in report.drafts)
        for name in names
    }
