"""Writer of MemeIntent's format: a numbered table of memes with background and intents."""

from __future__ import annotations

from collections import Counter

from memantics.benchmarks import writing
from memantics.core.language import read_script
from memantics.core.queue import Review

PREFIX = "the meme "


def write_intents(review: Review) -> writing.Made:
    """Return one row per meme; skip and count memes that the format cannot represent."""
    memes = writing.gather_memes(review)
    rows: dict[str, writing.Record] = {}
    table: list[writing.Record] = []
    used: set[str] = set()
    skipped: Counter[str] = Counter()
    for reviewed, meme in writing.walk_kept(review, memes):
        intents, background = (
            writing.take_texts(reviewed, "intents"),
            writing.take_texts(reviewed, "background"),
        )
        lacking = writing.find_lacking(reviewed, "text", "description") if intents else "no intent"
        if lacking:
            skipped[lacking] += 1
            continue
        used.add(reviewed.item.group)
        rows[str(len(rows) + 1)] = {
            "img": meme.file,
            "text": meme.text,
            "image_caption": writing.take_text(reviewed, "description", default=""),
            "bks": "\n".join(f"* {line}" for line in background or [""]),
            "intents": list(dict.fromkeys(map(complete, intents))),
        }
        table.append({"meme": meme.id, "intents": list(intents), "background": list(background)})
    if not rows:
        raise writing.refuse_nothing(review, "MemeIntent", skipped)
    return writing.Made(
        "memeintent",
        ("intent", "background", "caption"),
        tuple(meme for group, meme in memes.items() if group in used),
        {"sigdial.json": writing.pack(rows)},
        {"intents": table},
        skipped=skipped,
    )


def complete(intent: str) -> str:
    """Return an intent with its English opening, which annotators omit.

    An intent in another script stays unchanged.

    >>> complete("mocks late trains"), complete("The meme mocks late trains")
    ('the meme mocks late trains', 'the meme mocks late trains')
    >>> complete("吐槽地铁晚点")
    '吐槽地铁晚点'
    """
    if read_script(intent):
        return intent
    head, rest = intent[: len(PREFIX)], intent[len(PREFIX) :]
    return PREFIX + (rest if head.casefold() == PREFIX else intent)


WRITER = writing.Writer(write_intents)
