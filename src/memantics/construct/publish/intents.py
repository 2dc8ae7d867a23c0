"""MemeIntent's format: a numbered table of memes with background knowledge and intents."""

from __future__ import annotations

from collections import Counter

from memantics.construct.publish.bundle import PublishedMeme, Record
from memantics.construct.publish.family import (
    Made,
    gather_memes,
    pack,
    take_text,
    take_texts,
    walk_kept,
)
from memantics.construct.review import Review, Reviewed
from memantics.core.errors import DataError

PREFIX = "the meme "


def write_intents(review: Review) -> Made:
    """One row a meme; memes that the format cannot hold stay out, and are counted."""
    memes = gather_memes(review)
    rows: dict[str, Record] = {}
    table: list[Record] = []
    used: set[str] = set()
    left_out: Counter[str] = Counter()
    for own, meme in walk_kept(review, memes):
        intents, background = take_texts(own, "intents"), take_texts(own, "background")
        if lacking := _find_lacking(own, meme, intents):
            left_out[lacking] += 1
            continue
        used.add(own.item.group)
        rows[str(len(rows) + 1)] = {
            "img": meme.file,
            "text": meme.text,
            "image_caption": take_text(own, "description", default=""),
            "bks": "\n".join(f"* {line}" for line in background or [""]),
            "intents": list(dict.fromkeys(map(complete, intents))),
        }
        table.append({"meme": meme.id, "intents": list(intents), "background": list(background)})
    if not rows:
        why = ", ".join(f"{count:,} with {name}" for name, count in left_out.items())
        raise DataError(
            review.folder,
            f"holds no meme that MemeIntent's format takes: {why}",
            hint="give texts in memes.jsonl, run 'memantics build captions', then build again",
        )
    return Made(
        "memeintent",
        ("intent", "background", "caption"),
        tuple(meme for group, meme in memes.items() if group in used),
        {"sigdial.json": pack(rows)},
        {"intents": table},
        left_out=left_out,
    )


def complete(intent: str) -> str:
    """An intent as the format writes it; people leave out the words that it goes on from.

    >>> complete("mocks late trains"), complete("The meme mocks late trains")
    ('the meme mocks late trains', 'the meme mocks late trains')
    """
    head, rest = intent[: len(PREFIX)], intent[len(PREFIX) :]
    return PREFIX + (rest if head.casefold() == PREFIX else intent)


def _find_lacking(own: Reviewed, meme: PublishedMeme, intents: list[str]) -> str:
    """What keeps a meme out of the format, whose reader takes no empty texts."""
    if not intents:
        return "no intent"
    if not meme.text.strip():
        return "no printed text"
    return (
        "" if take_text(own, "description", default="").strip() else "no description of the image"
    )
