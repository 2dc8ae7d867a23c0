"""One reading of a meme for every step that asks about it: text, language, sound, template."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memantics.actions.analyze import listen
from memantics.build.analysis.records import tell_sounds
from memantics.core.errors import ImageError
from memantics.core.images import read_bytes
from memantics.core.language import language_of
from memantics.core.memes import HEARD, TEMPLATE, Meme
from memantics.core.text import cut_short
from memantics.models.embedded.ocr import RememberingOcr, open_reader
from memantics.vision.captions import choose_captions

_SIBLINGS, _LONGEST = 3, 80


async def read_once(memes: Sequence[Meme], limit: int | None = None) -> tuple[Meme, ...]:
    """Memes with what this machine can tell about the first ``limit``; what was given stays.

    An image that cannot be read is left to whoever opens it next.
    """

    def work() -> tuple[Meme, ...]:
        with open_reader() as ocr:
            return tuple(_read(meme, ocr) for meme in memes[:limit])

    read = (*await asyncio.to_thread(work), *(memes[limit:] if limit is not None else ()))
    return tuple(tell_templates(read))


def _read(meme: Meme, ocr: RememberingOcr) -> Meme:
    text = meme.text
    if not text.strip():
        try:
            name = meme.image.name
            text = "\n".join(choose_captions(ocr.read(read_bytes(meme.image), name).lines))
        except ImageError:
            return meme
    if not text.strip():
        return meme
    known = replace(meme, text=text)
    known = replace(known, language=language_of(known))
    if HEARD in meme.notes or "reading" in meme.notes:
        return known
    heard = tell_sounds(listen(" ".join(text.split()), known.language))
    return replace(known, notes={**meme.notes, **heard})


def tell_templates(memes: Sequence[Meme]) -> Iterator[Meme]:
    """Memes of a template family with a note of what others on the same picture say."""
    texts: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for meme in memes:
        texts[meme.family][cut_short(meme.text, _LONGEST)] = None
    for meme in memes:
        name = cut_short(meme.text, _LONGEST)
        others = [text for text in texts[meme.family] if text and text != name][:_SIBLINGS]
        if meme.family and others and TEMPLATE not in meme.notes:
            said = "; ".join(f"“{text}”" for text in others)
            note = f"other memes of this collection have the same picture and say: {said}"
            yield replace(meme, notes={**meme.notes, TEMPLATE: note})
        else:
            yield meme
