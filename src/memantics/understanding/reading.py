"""Find the memes that a user names, and read each once: text, language, homophones, template."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from memantics.benchmarks.registry import find_benchmark, find_source
from memantics.core.errors import ImageError, InputError, MissingExtra
from memantics.core.images import decode, read_bytes
from memantics.core.language import language_of
from memantics.core.lines import TextChoice
from memantics.core.memes import HOMOPHONES, TEMPLATE, Meme, read_memes
from memantics.core.registry import read_registry
from memantics.core.samples import image_path, read_samples
from memantics.core.text import cut_short
from memantics.models.embedded.ocr import RememberingOcr, open_reader
from memantics.understanding.analysis.records import describe_homophones, find_homophones
from memantics.understanding.vision.appearance import list_notes
from memantics.understanding.vision.roles import read_image_text

SAMPLE = "sample"
_SIBLINGS, _LONGEST = 3, 80


def find_memes(folder: Path, *, notes: bool = True) -> tuple[Meme, ...]:
    """Find the memes of a folder, of a registered release by name, or of the ``sample`` data.

    A folder takes precedence over a release of the same name.
    """
    if str(folder) in read_registry() and not folder.exists():
        return read_release_memes(str(folder))
    if str(folder) != SAMPLE or folder.exists():
        return read_memes(folder)
    return tuple(
        Meme(
            meme.id,
            image_path(meme.id),
            meme.text,
            meme.language,
            {
                "meaning": meme.meaning,
                "description": meme.description,
                "sentiment": f"{meme.sentiment.target}-{meme.sentiment.type}",
                "reading": meme.pun.reading or "" if meme.pun else "",
            }
            if notes
            else {},
        )
        for meme in read_samples()
    )


def read_release_memes(name: str) -> tuple[Meme, ...]:
    """Read the memes of a registered release that have an image, with the release's captions."""
    benchmark = find_benchmark(name)
    labelled = next(iter(benchmark.plugin.labels.values()), None)
    rows = labelled.read(benchmark.open(find_source(benchmark, "release"))) if labelled else ()
    memes = {
        row.id: Meme(
            row.id,
            row.image,
            row.text,
            notes={"meaning": row.text_caption, "description": row.image_caption},
        )
        for row in rows
        if row.image is not None
    }
    if not memes:
        raise InputError(
            f"the registered copy of {name} contains no images",
            hint=f"memantics data add {name} DIR --images DIR",
        )
    return tuple(memes.values())


async def read_once(
    memes: Sequence[Meme], limit: int | None = None, text: TextChoice = "caption"
) -> tuple[Meme, ...]:
    """Read text, language and homophones of the first ``limit`` memes; given values are kept.

    Text that is not a caption and the image type become separate notes. An unreadable image is
    skipped here; the next step that opens the image reports the error.
    """

    def work() -> tuple[Meme, ...]:
        with open_reader(text=text) as ocr:
            return tuple(_read(meme, ocr) for meme in memes[:limit])

    read = (*await asyncio.to_thread(work), *(memes[limit:] if limit is not None else ()))
    return tuple(tell_templates(read))


def _read(meme: Meme, ocr: RememberingOcr) -> Meme:
    text, notes = meme.text, dict(meme.notes)
    if not text.strip():
        try:
            data = read_bytes(meme.image)
            image = decode(data, meme.image.name)
            found = read_image_text(ocr, data, meme.image.name, image=image)
        except ImageError:
            return meme
        text, notes = found.caption, list_notes(image, found) | notes
    if not text.strip():
        return meme
    known = replace(meme, text=text, notes=notes)
    known = replace(known, language=language_of(known))
    if HOMOPHONES in meme.notes or "reading" in meme.notes:
        return known
    # Without the phonetics extra, prompts contain no homophone readings.
    with suppress(MissingExtra):
        notes |= describe_homophones(find_homophones(" ".join(text.split()), known.language))
    return replace(known, notes=notes)


def tell_templates(memes: Sequence[Meme]) -> Iterator[Meme]:
    """Add the texts of other memes on the same image as a note to each meme."""
    texts: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for meme in memes:
        texts[meme.template_cluster][cut_short(meme.text, _LONGEST)] = None
    for meme in memes:
        caption = cut_short(meme.text, _LONGEST)
        others = [text for text in texts[meme.template_cluster] if text and text != caption][
            :_SIBLINGS
        ]
        if meme.template_cluster and others and TEMPLATE not in meme.notes:
            said = "; ".join(f"“{text}”" for text in others)
            note = f"other memes of this collection have the same picture and say: {said}"
            yield replace(meme, notes={**meme.notes, TEMPLATE: note})
        else:
            yield meme
