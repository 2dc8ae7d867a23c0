"""One reading of a meme for every step that asks about it: text, language, what it sounds like."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from memantics.actions.analyze import choose_captions, listen
from memantics.core.errors import ImageError
from memantics.core.images import read_bytes
from memantics.core.language import language_of
from memantics.core.memes import Meme
from memantics.models.embedded.ocr import RememberingOcr, open_reader

HEARD = "heard as"


async def read_once(memes: Sequence[Meme], limit: int | None = None) -> tuple[Meme, ...]:
    """Memes with what this machine can tell about the first ``limit``; what was given stays.

    An image that cannot be read is left to whoever opens it next.
    """

    def work() -> tuple[Meme, ...]:
        with open_reader() as ocr:
            return tuple(_read(meme, ocr) for meme in memes[:limit])

    return *await asyncio.to_thread(work), *(memes[limit:] if limit is not None else ())


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
    heard = "; ".join(
        f"{sound.reading} ({sound.confidence:.0%} sure)"
        for sound in listen(" ".join(text.split()), known.language)
    )
    return replace(known, notes={**meme.notes, HEARD: heard}) if heard else known
