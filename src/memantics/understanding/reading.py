"""Find the memes that a user names, and read each once: text, language, homophones, template."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from memantics.benchmarks.registry import find_benchmark, find_source
from memantics.core.errors import ImageError, InputError, MissingExtra
from memantics.core.images import decode, read_bytes
from memantics.core.language import language_of
from memantics.core.lines import Alternatives, TextChoice
from memantics.core.memes import HOMOPHONES, TEMPLATE, Meme, read_memes
from memantics.core.registry import read_registry
from memantics.core.samples import image_path, read_samples
from memantics.core.text import cut_short
from memantics.models.embedded.ocr import RememberingOcr, open_reader
from memantics.understanding.analysis.records import (
    HomophoneFinding,
    describe_homophones,
    find_homophones,
)
from memantics.understanding.vision.appearance import list_notes
from memantics.understanding.vision.roles import read_image_text

SAMPLE = "sample"
_SIBLINGS, _LONGEST = 3, 80
_MOST_PARTS = 24  # a bound on the time per caption; the parts of eight lines are fewer
_JOINED = (2, 3)  # neighbouring lines that may hold one pun
_HAN = "[\u3400-\u9fff]"
_GAP = re.compile(rf"[\n\u3000]+| +(?={_HAN})|(?<={_HAN}) +")


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
    unsure: Alternatives = {}
    if not text.strip():
        try:
            data = read_bytes(meme.image)
            image = decode(data, meme.image.name)
            found = read_image_text(ocr, data, meme.image.name, image=image)
        except ImageError:
            return meme
        text, notes = found.caption, list_notes(image, found) | notes
        unsure = found.caption_alternatives
    if not text.strip():
        return meme
    known = replace(meme, text=text, notes=notes)
    known = replace(known, language=language_of(known))
    if HOMOPHONES in meme.notes or "reading" in meme.notes:
        return known
    # Without the phonetics extra, prompts contain no homophone readings.
    with suppress(MissingExtra):
        notes |= find_hints(text, known.language, unsure)
    return replace(known, notes=notes)


def list_parts(caption: str) -> list[str]:
    r"""Return the caption, each of its lines, and the joins of two or three neighbouring lines.

    A stored caption may hold more lines than the pun, or break the pun over several lines.

    >>> list_parts("男\n男\n左右为男")
    ['男\n男\n左右为男', '左右为男', '男左右为男', '男男']
    >>> list_parts("周一\n左右\n为\n男")[-2:]
    ['周一左右为', '左右为男']
    >>> list_parts("我好想桃")
    ['我好想桃']
    """
    return list(dict.fromkeys(_cut_caption(caption)))[:_MOST_PARTS]


def _cut_caption(caption: str) -> Iterator[str]:
    yield caption
    lines = [line for line in (part.strip() for part in _GAP.split(caption)) if line]
    if len(lines) < 2:
        return
    between = "" if re.search(_HAN, caption) else " "
    yield from sorted((line for line in lines if len(line) > 1), key=len, reverse=True)
    for size in _JOINED:
        if size == len(lines) > 2:  # the whole caption, which its reader joins itself
            return
        joins = (between.join(lines[n : n + size]) for n in range(len(lines) - size + 1))
        yield from sorted(joins, key=len, reverse=True)


def find_hints(caption: str, language: str, unsure: Alternatives | None = None) -> dict[str, str]:
    r"""Return the note for prompts with the confident readings of a caption and of its parts.

    ``unsure`` are characters that OCR considered, by offset into the whole caption.

    The probability in the note depends on the language model that is installed.

    >>> find_hints("男\n男\n左右为男", "zh")["heard as"].partition(" (")[0]
    '左右为难'
    """
    best: dict[str, HomophoneFinding] = {}
    for part in list_parts(caption):
        for found in find_homophones(part, language, unsure if part == caption else None):
            name = re.sub(r"\W", "", found.reading)
            if name not in best or found.confidence > best[name].confidence:
                best[name] = found
    notes = {name: describe_homophones([found]) for name, found in best.items()}
    sure = {name: text for name, note in notes.items() for text in note.values()}
    # A longer reading that contains a shorter one adds only other words of the caption.
    kept = [text for name, text in sure.items() if not any(o != name and o in name for o in sure)]
    return {HOMOPHONES: "; ".join(kept)} if kept else {}


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
