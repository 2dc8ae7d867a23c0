"""MemeIntent's format: a numbered table of memes with background knowledge and intents."""

from __future__ import annotations

from memantics.construct.publish.bundle import Record
from memantics.construct.publish.family import (
    Made,
    gather_memes,
    pack,
    take_text,
    take_texts,
    walk_kept,
)
from memantics.construct.review import Review


def write_intents(review: Review) -> Made:
    """One row a meme; memes for which no intent remained stay out."""
    memes = gather_memes(review)
    rows: dict[str, Record] = {}
    table: list[Record] = []
    used: set[str] = set()
    for own, meme in walk_kept(review, memes):
        intents, background = take_texts(own, "intents"), take_texts(own, "background")
        if not intents:
            continue
        used.add(own.item.group)
        rows[str(len(rows) + 1)] = {
            "img": meme.file,
            "text": meme.text,
            "image_caption": take_text(own, "description", default=""),
            "bks": "\n".join(f"* {line}" for line in background or [""]),
            "intents": list(intents),
        }
        table.append({"meme": meme.id, "intents": list(intents), "background": list(background)})
    return Made(
        "memeintent",
        ("intent", "background", "caption"),
        tuple(meme for group, meme in memes.items() if group in used),
        {"sigdial.json": pack(rows)},
        {"intents": table},
    )
