"""PunMemeCN's format: metadata by file name, with the votes on sentiment behind each label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memantics.benchmarks.punmemecn.write_chats import add_chats
from memantics.core.errors import DataError
from memantics.core.review import Review, Reviewed
from memantics.core.writing import (
    Made,
    PublishedMeme,
    Record,
    Writer,
    gather_memes,
    pack,
    take_text,
    walk_kept,
)

TOPICS = ("sports", "entertainment", "technology", "games", "work", "daily")
VOTERS = 3


def write_puns(review: Review) -> Made:
    """One entry a meme; the format's file names say whether it is a pun, so memes are renamed."""
    memes = gather_memes(review)
    meta: dict[str, Record] = {}
    table: list[Record] = []
    named: list[PublishedMeme] = []
    for number, (own, meme) in enumerate(walk_kept(review, memes), 1):
        is_pun = own.values.get("pun") == "yes"
        # A meme that is no pun belongs to no pun here: it makes a group of its own.
        new = replace(meme, id=f"CN{number:05}" + ("" if is_pun else ".similar_text"))
        named.append(new)
        meta[new.file] = _entry(own, is_pun=is_pun)
        row = {name: str(own.values.get(name) or "") for name in _COLUMNS}
        table.append({"meme": new.id, "known_as": own.item.group, **row})
    return Made(
        "punmemecn",
        ("detection", "sentiment", "ocr", "pinyin"),
        tuple(named),
        {"_Meta.json": pack(meta)},
        {"puns": table},
    )


_COLUMNS = (
    "caption",
    "pun",
    "pun_word",
    "homophone",
    "sentiment_target",
    "sentiment_type",
    "explanation",
)


def _entry(own: Reviewed, *, is_pun: bool) -> Record:
    caption = take_text(own, "caption")
    label = _label(own.values)
    entry = {
        "meme_type": "pun" if is_pun else "non-pun",
        "caption_1": caption,
        "meme_sentiment": label,
        "meme_sentiment_annotations": repr(_votes(own, label)),
        "meme_explanation": take_text(own, "explanation", default=""),
    }
    if not is_pun:
        return entry
    word, sound = take_text(own, "pun_word"), take_text(own, "homophone")
    if word not in caption:
        raise DataError(own.item.id, f"pun word {word!r} is not in its caption {caption!r}")
    return entry | {
        "caption_2": caption.replace(word, sound, 1),
        "meme_chat": dict.fromkeys(TOPICS),
    }


def _label(values: Mapping[str, object]) -> str:
    """``target-type``, with the middle of both where nobody said."""
    target = str(values.get("sentiment_target") or "both")
    kind = str(values.get("sentiment_type") or "neutral")
    return f"{target}-{kind}"


def _votes(own: Reviewed, label: str) -> dict[str, str]:
    """Three votes, as the format asks for; where fewer people voted the label fills up.

    Who decided a tie at a later stage is no fourth voter.
    """
    votes = own.verdict.votes if own.verdict else []
    cast = [_label(vote.values) for vote in votes if vote.stage == votes[0].stage]
    cast = (cast + [label] * VOTERS)[:VOTERS]
    return {f"annotator_{number}": vote for number, vote in enumerate(cast, 1)}


WRITER = Writer(write_puns, add_chats)
